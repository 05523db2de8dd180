//! End-to-end tests of the program: commands, the daemon, the screen, and a soak of all of them.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::too_many_lines,
    reason = "a test"
)]

mod acp;
mod cli;
mod daemon;
mod fleet;
mod hosted;
mod http_server;
mod oauth_server;
mod screen;
mod soak;
mod start;
mod trust;
#[allow(dead_code, reason = "shared with the benchmark")]
mod tty;
mod world;
