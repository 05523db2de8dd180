//! The program `holdpoint`: runs coding agents from a terminal, a script or a service.

mod acp;
mod ask_keys;
mod cli;
mod commands;
mod daemon;
mod error;
mod follow;
mod json;
mod log;
mod mcp;
mod narrator;
mod open;
mod own_memory;
mod policy;
mod prompt_input;
mod runtime;
#[cfg(test)]
mod same_words;
mod select;
mod sessions;
mod signals;
mod summaries;
mod table;
mod terminal;
mod tone;
#[cfg(test)]
#[path = "../tests/it/tty.rs"]
#[allow(dead_code, reason = "shared with the tests of the screen")]
mod tty;
mod tui;
mod ui;
mod web;

use std::process::ExitCode;

fn main() -> ExitCode {
    // This program also supervises its own tools' processes. The check comes first, so that a
    // supervisor stays small.
    holdpoint_tools::supervise_if_asked();
    own_memory::protect();
    cli::main()
}
