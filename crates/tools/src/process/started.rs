//! A program that has been started, with or without a supervisor.

use std::io::{self, BufReader};
use std::os::unix::net::UnixStream;
use std::process::Child;

use super::ProcessSpec;
use super::running::Root;
use super::streams::OwnerEnds;
use crate::sandbox::{DomainProxy, RefusedHosts};

/// A running program and the ends of its channels.
pub(super) struct Started {
    /// The supervisor, which must be reaped; `None` if it is a thread.
    pub(super) supervisor: Option<Child>,
    pub(super) reports: BufReader<UnixStream>,
    pub(super) control: UnixStream,
    pub(super) ends: OwnerEnds,
    pub(super) leader: u32,
    pub(super) root: Root,
    /// The proxy of a program that may reach named hosts.
    pub(super) proxy: Option<DomainProxy>,
}

/// The channels of a running program that a thread watches.
pub(super) struct Watched {
    pub(super) ends: OwnerEnds,
    /// Receives a byte when the program has ended, and is closed when its whole tree has.
    pub(super) ended_signal: UnixStream,
    /// The hosts that a program with a proxy could not reach.
    pub(super) refused: Option<RefusedHosts>,
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
