//! Measures every figure of the main job in one run.
//!
//! Run it with `cargo bench -p holdpoint --bench figures [-- PART_OF_A_NAME…]`, on an otherwise
//! idle machine.
//!
//! The output is a table: each figure, its bound, their ratio and `ok` or `OVER`. Some figures are
//! also given as a multiple of a cost of the machine itself: a thread wake, a round trip over a
//! socket, a program started, a process killed, a file synced. A figure over its bound does not
//! fail the run.
//!
//! Whole programs are measured from outside: the real `holdpoint`, with a scripted HTTP server in
//! this process as its model, which is not counted. Latencies inside one process use the engine as
//! the program does.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::too_many_lines,
    clippy::print_stderr,
    reason = "a benchmark ends at the first error"
)]

#[cfg(not(target_os = "linux"))]
fn main() {}

#[cfg(target_os = "linux")]
mod acp;
#[cfg(target_os = "linux")]
mod api;
#[cfg(target_os = "linux")]
mod asks;
#[cfg(target_os = "linux")]
mod attaching;
#[cfg(target_os = "linux")]
mod calls;
#[cfg(target_os = "linux")]
mod cuts;
#[cfg(target_os = "linux")]
mod daemon;
#[cfg(target_os = "linux")]
mod files;
#[cfg(target_os = "linux")]
mod fleet;
#[cfg(target_os = "linux")]
mod floors;
#[cfg(target_os = "linux")]
mod growth;
#[cfg(target_os = "linux")]
mod hosted;
#[cfg(target_os = "linux")]
mod hostile;
#[cfg(target_os = "linux")]
mod many;
#[cfg(target_os = "linux")]
mod mcp;
#[cfg(target_os = "linux")]
mod models;
#[cfg(target_os = "linux")]
mod neighbours;
#[cfg(target_os = "linux")]
mod policy;
#[cfg(target_os = "linux")]
mod processes;
#[cfg(target_os = "linux")]
mod program;
#[cfg(target_os = "linux")]
mod runs;
#[cfg(target_os = "linux")]
mod saving;
#[cfg(target_os = "linux")]
mod screen;
#[cfg(target_os = "linux")]
mod sessions;
#[cfg(target_os = "linux")]
mod shown;
#[cfg(target_os = "linux")]
mod stored;
#[cfg(target_os = "linux")]
mod support;
#[cfg(target_os = "linux")]
mod table;
#[cfg(target_os = "linux")]
mod trees;
#[cfg(target_os = "linux")]
#[path = "../../tests/it/tty.rs"]
#[allow(dead_code, reason = "shared with the tests of the screen")]
mod tty;
#[cfg(target_os = "linux")]
mod web;

#[cfg(target_os = "linux")]
fn main() {
    // The engine uses this program to supervise its tools' processes.
    holdpoint_tools::supervise_if_asked();
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.first().map(String::as_str) {
        Some(program::USAGE_OF) => return program::usage_of(&args[1..]),
        Some(many::SESSIONS) => return many::sessions(),
        Some(stored::STORED) => return stored::stored(&args[1..]),
        _ => {}
    }
    // The options that `cargo bench` itself passes are not filters.
    let filters = args.into_iter().filter(|arg| !arg.starts_with("--")).collect();
    let table = table::Table::new(filters, floors::Floors::measure());
    floors::measure(&table);
    asks::measure(&table);
    attaching::measure(&table);
    runs::measure(&table);
    neighbours::measure(&table);
    cuts::measure(&table);
    trees::measure(&table);
    processes::measure(&table);
    policy::measure(&table);
    shown::measure(&table);
    files::measure(&table);
    calls::measure(&table);
    mcp::measure(&table);
    models::measure(&table);
    program::measure(&table);
    daemon::measure(&table);
    api::measure(&table);
    acp::measure(&table);
    fleet::measure(&table);
    hosted::measure(&table);
    hostile::measure(&table);
    many::measure(&table);
    stored::measure(&table);
    sessions::measure(&table);
    growth::measure(&table);
    saving::measure(&table);
    screen::measure(&table);
    web::measure(&table);
}
