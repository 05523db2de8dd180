//! The program from outside: commands, the daemon, the screen, and all of them at once for a while.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, reason = "a test")]

mod cli;
mod daemon;
mod screen;
mod soak;
mod start;
#[allow(dead_code, reason = "shared with the benchmark")]
mod tty;
mod world;
