//! The small program that starts and ends the processes of a tool call. The program `holdpoint` can
//! do the same, but each start of it takes longer. The package for Node.js needs it, because Node.js
//! can't do it itself.

use std::process::ExitCode;

fn main() -> ExitCode {
    holdpoint_tools::supervise_if_asked();
    eprintln!(
        "error: {} is started by holdpoint, for each command",
        holdpoint_tools::SUPERVISOR_BUILD
    );
    ExitCode::FAILURE
}
