//! The program that supervises the processes of tools for a Node.js process, which can't do it
//! itself.

use std::process::ExitCode;

fn main() -> ExitCode {
    holdpoint_tools::supervise_if_asked();
    ExitCode::FAILURE
}
