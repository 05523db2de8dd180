//! A program that has been started, however it was.

use std::io::{self, BufReader};
use std::os::unix::net::UnixStream;
use std::process::Child;

use super::ProcessSpec;
use super::running::Root;

/// A program that runs.
pub(super) struct Started {
    /// Its supervisor, to be reaped; none where that is a thread of ours.
    pub(super) supervisor: Option<Child>,
    pub(super) reports: BufReader<UnixStream>,
    pub(super) control: UnixStream,
    pub(super) output: io::PipeReader,
    pub(super) leader: u32,
    pub(super) root: Root,
}

/// Says whether it is the folder that is missing: the system's error is the same as for a program.
pub(super) fn in_folder(error: io::Error, spec: &ProcessSpec) -> io::Error {
    if spec.cwd.is_dir() {
        return error;
    }
    io::Error::new(error.kind(), format!("can't work in {}: {error}", spec.cwd.display()))
}
