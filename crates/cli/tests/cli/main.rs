//! The program as its users meet it: started as a process, in a pipe and in a terminal, and ended by signals.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "in tests, a panic is how a fault is told")]

mod asking;
mod config;
mod confirm;
mod help;
mod looping;
mod looping_followed;
mod model_faults;
mod models;
mod pages;
mod policy;
mod pty;
mod run;
mod sessions;
mod several;
mod signals;
#[path = "../screen/start.rs"]
#[allow(dead_code, reason = "shared with the tests of the screen")]
mod start;
mod terminal;
#[path = "../screen/tty.rs"]
#[allow(dead_code, reason = "shared with the tests of the screen")]
mod tty;
mod world;
