//! The Node.js package `holdpoint`, the part in Rust: sessions of an engine in the process, or of a daemon.
//!
//! | file | what it does |
//! | --- | --- |
//! | `engine`, `setup` | the engine of the process, and what it is started with |
//! | `sessions` | all that is done with sessions, a file a concern |
//! | `connect` | sessions of a daemon |
//! | `client` | the words for a client |
//! | `form` | the form of an ask, and the keys after it |
//! | `stream`, `batch` | events on their way to a callback: in order, in batches, as fast as it takes them |
//! | `log` | what is logged, on its way to a callback: as much of it as there is room for |
//! | `crossing` | values and promises, on their way to JavaScript and back |
//! | `given` | arguments read as our types, with errors in the words of JavaScript |
//! | `failure` | what goes wrong, as an error of JavaScript with a `code` |
//! | `panics`, `stop` | ways to panic, and a tool that stops, for the tests (feature `test-support`) |
//!
//! Everything here is thin: what sessions are is the matter of `holdpoint-session`.
#![allow(unsafe_code, reason = "napi-derive writes the functions that Node calls; none is written here by hand")]
#![allow(unreachable_pub, reason = "what is public here is reached by Node alone")]

mod batch;
mod client;
mod connect;
mod crossing;
mod engine;
mod failure;
mod form;
mod given;
mod log;
#[cfg(feature = "test-support")]
mod panics;
mod sessions;
mod setup;
#[cfg(feature = "test-support")]
mod stop;
mod stream;
