//! Tests of the tools from outside: real processes, files and browsers, and the policy over them.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::too_many_lines,
    reason = "a test"
)]

#[cfg(target_os = "linux")]
mod ancestry;
mod ask_user;
mod background;
#[cfg(target_os = "linux")]
mod duplex;
mod ending;
mod file_memory;
mod files;
mod flood;
mod guard;
#[cfg(target_os = "linux")]
mod hostile_repositories;
mod many;
#[cfg(target_os = "linux")]
mod mcp;
mod policy;
#[cfg(target_os = "linux")]
mod sandbox;
#[cfg(target_os = "linux")]
mod sandbox_changes;
mod secrets;
mod shell;
mod shown;
mod web;
