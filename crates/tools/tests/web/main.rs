//! The tool `web`: a real browser, real pages on a local server, real windows.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, reason = "a test")]
#![cfg(target_os = "linux")]

mod display;
mod ending;
mod going;
mod incidents;
mod pausing;
mod reading;
mod server;
mod support;
