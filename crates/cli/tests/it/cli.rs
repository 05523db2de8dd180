//! End-to-end tests of the program as a process: in a pipe, in a terminal, and ended by signals.

mod config;
mod confirm;
mod help;
mod looping;
mod looping_followed;
mod many_sessions;
mod mcp;
mod mcp_http;
mod mcp_login;
mod mcp_logout;
mod mcp_named;
mod model_faults;
mod models;
pub(crate) mod pages;
mod policy;
pub(crate) mod pty;
mod questions;
mod run;
mod sessions;
mod signals;
mod supervisor;
mod terminal;
