//! Processes of one tool call: starting, watching and ending them.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use holdpoint_common::EndedProcesses;

/// What a supervisor is called by in `argv[0]`.
pub const SUPERVISOR_NAME: &str = "holdpoint-supervisor";

/// Serves as a supervisor and never returns, if this process was started as one; else returns at once.
pub fn supervise_if_asked() {}

/// Who supervises the processes of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Supervisor {
    /// This program, run once more.
    ThisProgram,
    /// Another program.
    Program(PathBuf),
    /// Nobody.
    None,
}

/// What to start.
#[derive(Debug, Clone)]
pub struct ProcessSpec {
    /// The program.
    pub program: OsString,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// The folder to run it in.
    pub cwd: PathBuf,
    /// Its environment.
    pub env: Vec<(String, String)>,
}

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// With this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
    /// Not known.
    Unknown,
}

/// What reading brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Read {
    /// So many bytes.
    Bytes(usize),
    /// There is no more.
    Ended,
    /// The deadline passed.
    TimedOut,
}

/// The processes of one tool call.
#[derive(Debug, Clone)]
pub struct Processes {
    grace: Duration,
}

/// A started program.
#[derive(Debug)]
pub struct Process(());

#[expect(missing_docs, clippy::unused_self, clippy::missing_errors_doc, reason = "a stand-in for an hour")]
impl Processes {
    #[must_use]
    pub fn new(_: Supervisor, grace: Duration) -> Self {
        Self { grace }
    }
    #[must_use]
    pub fn grace(&self) -> Duration {
        self.grace
    }
    pub fn spawn(&self, _: ProcessSpec) -> io::Result<Process> {
        Err(io::ErrorKind::Unsupported.into())
    }
    pub fn end(&self) {}
    #[must_use]
    pub fn finish(&self) -> EndedProcesses {
        EndedProcesses::default()
    }
    #[must_use]
    pub fn so_far(&self) -> EndedProcesses {
        EndedProcesses::default()
    }
}

#[expect(missing_docs, clippy::unused_self, clippy::missing_errors_doc, reason = "a stand-in for an hour")]
impl Process {
    pub fn read_by(&mut self, _: &mut [u8], _: Option<Instant>) -> io::Result<Read> {
        Ok(Read::Ended)
    }
    #[must_use]
    pub fn wait_by(&self, _: Option<Instant>) -> Option<Exit> {
        None
    }
    pub fn end(&self) {}
    #[must_use]
    pub fn finish(self) -> (Exit, EndedProcesses) {
        (Exit::Unknown, EndedProcesses::default())
    }
}
