//! The screen as its users meet it: the real program in a real terminal, with keys pressed and a screen to read.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, reason = "a test")]

mod asks;
mod hostile;
mod leaving;
mod lost;
mod picture;
mod plain;
mod saving;
mod start;
mod story;
#[allow(dead_code, reason = "shared with the benchmark")]
mod tty;
#[path = "../cli/world.rs"]
#[allow(dead_code, reason = "shared with the tests of the commands")]
mod world;
