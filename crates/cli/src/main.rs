//! The program `holdpoint`: runs coding agents from a terminal, a script or a service.

mod ask_keys;
mod cli;
mod commands;
mod daemon;
mod error;
mod follow;
mod json;
mod log;
mod open;
mod policy;
mod runtime;
mod said;
mod select;
mod sessions;
mod signals;
mod table;
mod terminal;
mod tui;
mod ui;
mod web;
mod words;

use std::process::ExitCode;

fn main() -> ExitCode {
    // This program supervises its own tools' processes. Before anything else: a supervisor stays small.
    holdpoint_tools::supervise_if_asked();
    cli::main()
}
