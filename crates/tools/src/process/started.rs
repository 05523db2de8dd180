//! A program that has been started, with or without a supervisor.

use std::io::{self, BufReader};
use std::os::unix::net::UnixStream;
use std::process::Child;

use super::ProcessSpec;
use super::running::Root;

/// A running program and the ends of its channels.
pub(super) struct Started {
    /// The supervisor, which must be reaped; `None` if it is a thread.
    pub(super) supervisor: Option<Child>,
    pub(super) reports: BufReader<UnixStream>,
    pub(super) control: UnixStream,
    pub(super) output: io::PipeReader,
    pub(super) leader: u32,
    pub(super) root: Root,
}

/// Adds the folder to the error if the folder is missing: the system's error is the same as for a
/// missing program.
pub(super) fn with_folder(error: io::Error, spec: &ProcessSpec) -> io::Error {
    if spec.cwd.is_dir() {
        return error;
    }
    io::Error::new(
        error.kind(),
        format!("can't use {} as the working folder: {error}", spec.cwd.display()),
    )
}
