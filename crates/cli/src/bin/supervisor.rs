//! The small program that starts and ends the processes of a tool call. The program `holdpoint` can
//! do the same, but each start of it takes longer. The package for Node.js needs it, because Node.js
//! can't do it itself.

use std::io::{self, Write};
use std::process::ExitCode;

use holdpoint_tools::SUPERVISOR_BUILD;

fn main() -> ExitCode {
    holdpoint_tools::supervise_if_asked();
    let _ = writeln!(
        io::stderr(),
        "error: {SUPERVISOR_BUILD} is started by holdpoint, for each command"
    );
    ExitCode::FAILURE
}
