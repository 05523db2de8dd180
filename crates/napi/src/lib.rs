//! The Rust part of the Node.js package `holdpoint`: sessions of an engine in the process, or of a
//! daemon.
//!
//! | file | content |
//! | --- | --- |
//! | `engine`, `setup` | the engine of the process and its setup |
//! | `sessions` | all functions on sessions, one file per concern |
//! | `connect` | connections to a daemon |
//! | `client` | descriptions of clients |
//! | `form` | the form of an ask, and the filter for the keys after it |
//! | `stream`, `batch` | delivery of events to a callback, in order and in batches, at its pace |
//! | `log` | delivery of log records to a callback, through a bounded queue |
//! | `convert`, `globals` | conversion of values and promises to and from JavaScript |
//! | `arguments` | arguments as Rust types, with errors in JavaScript terms |
//! | `failure` | JavaScript errors with a `code` |
//! | `panics`, `probe` | panics and a tool that pauses, for the tests (feature `test-support`) |
//!
//! This crate is a thin layer: the logic of sessions is in `holdpoint-session`.
#![allow(
    unsafe_code,
    reason = "napi-derive generates the functions that Node calls; none is written by hand"
)]
#![allow(unreachable_pub, reason = "only Node uses the public items")]

mod arguments;
mod batch;
mod client;
mod connect;
mod convert;
mod engine;
mod failure;
mod form;
mod globals;
mod log;
#[cfg(feature = "test-support")]
mod panics;
#[cfg(feature = "test-support")]
mod probe;
mod sessions;
mod setup;
mod stream;
