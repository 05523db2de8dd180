//! The supervisors above a process, read from `/proc`.
//!
//! A tool's process is below its supervisor, whatever it does: a supervisor adopts the processes
//! that lose their parent. A supervisor is known by its name, which only it can change. A process
//! that gives itself this name only places the processes below it under a supervisor.

use std::fs::{self, File};
use std::io::{self, Read};

/// The maximum size of a supervisor's name and label in bytes.
const MAX_LABEL_BYTES: u64 = 256;

/// A supervisor above a process.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SupervisorAbove {
    /// Its process id.
    pub pid: u32,
    /// The process id of its parent, which is its owner while the owner lives.
    pub parent: u32,
    /// When it started, in clock ticks after boot. Ids of ended processes are used again.
    pub started: u64,
}

/// A process and the supervisors above it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ancestry {
    /// The name of the process's program, at most 15 bytes.
    pub program: String,
    /// The supervisors above the process, the nearest first.
    pub supervisors: Vec<SupervisorAbove>,
}

impl Ancestry {
    /// Reads the ancestry of a process of this pid namespace. Other systems than Linux have no
    /// supervisors.
    ///
    /// # Errors
    /// The process or one of its ancestors can't be read. It may have ended, or belong to another
    /// user where `/proc` is mounted with `hidepid`.
    pub fn of(pid: u32) -> io::Result<Self> {
        #[cfg(target_os = "linux")]
        return walk::ancestry(pid);
        #[cfg(not(target_os = "linux"))]
        return Ok(Self { program: format!("process {pid}"), supervisors: Vec::new() });
    }

    /// The supervisors above this process that are not above `other`, the nearest first.
    pub fn supervisors_not_above<'a>(
        &'a self,
        other: &'a Self,
    ) -> impl Iterator<Item = &'a SupervisorAbove> {
        let is_shared = |supervisor: &SupervisorAbove| {
            let id = (supervisor.pid, supervisor.started);
            other.supervisors.iter().any(|above| (above.pid, above.started) == id)
        };
        self.supervisors.iter().filter(move |supervisor| !is_shared(supervisor))
    }

    /// Reads the ancestry of this process.
    ///
    /// # Errors
    /// Like [`of`](Self::of).
    pub fn of_this_process() -> io::Result<Self> {
        if !cfg!(target_os = "linux") {
            return Self::of(std::process::id());
        }
        // The id in the namespace of `/proc`.
        let id = fs::read_link("/proc/self")?;
        let id = id.to_str().and_then(|id| id.parse().ok()).ok_or(io::ErrorKind::InvalidData)?;
        Self::of(id)
    }
}

impl SupervisorAbove {
    /// The label that its owner has given it, see [`Processes::labelled`](super::Processes).
    #[must_use]
    pub fn label(&self) -> Option<String> {
        let mut line = Vec::new();
        let file = File::open(format!("/proc/{}/cmdline", self.pid)).ok()?;
        file.take(MAX_LABEL_BYTES).read_to_end(&mut line).ok()?;
        let label = line.split(|byte| *byte == 0).nth(1)?;
        String::from_utf8(label.to_vec()).ok().filter(|label| !label.is_empty())
    }
}

#[cfg(target_os = "linux")]
mod walk {
    use std::io;

    use rustix::process::Pid;

    use super::{Ancestry, SupervisorAbove};
    use crate::process::tree::{Stat, read_stat};
    use crate::process::{self, SUPERVISOR_NAME};

    /// The maximum number of ancestors of a process.
    const MAX_ANCESTORS: usize = 256;

    /// How often to begin again after an ancestor has ended. Each time, the process has fewer.
    const MAX_ATTEMPTS: usize = 10;

    struct Process {
        pid: Pid,
        stat: Stat,
    }

    pub(super) fn ancestry(pid: u32) -> io::Result<Ancestry> {
        let pid = process::pid(pid).ok_or(io::ErrorKind::InvalidInput)?;
        for _ in 0..MAX_ATTEMPTS {
            let stat = read_stat(pid)?.ok_or_else(|| {
                io::Error::new(io::ErrorKind::NotFound, format!("there is no process {pid}"))
            })?;
            let program = String::from_utf8_lossy(&stat.name).into_owned();
            if let Some(supervisors) = supervisors_above(Process { pid, stat })? {
                return Ok(Ancestry { program, supervisors });
            }
        }
        Err(io::Error::other(format!("the ancestors of process {pid} keep changing")))
    }

    /// Returns the supervisors above a process; `None` if one of the processes has ended meanwhile.
    fn supervisors_above(mut process: Process) -> io::Result<Option<Vec<SupervisorAbove>>> {
        let mut found = Vec::new();
        for _ in 0..MAX_ANCESTORS {
            let Some(pid) = Pid::from_raw(process.stat.parent) else { return Ok(Some(found)) };
            let parent = read_stat(pid)?;
            // A process that still has the same parent has had it all the time. The process that
            // was read is then the parent, and not a later one with the same number.
            match read_stat(process.pid)? {
                Some(Stat { parent, started, .. })
                    if (parent, started) == (process.stat.parent, process.stat.started) => {}
                _ => return Ok(None),
            }
            let Some(parent) = parent else {
                return Err(io::Error::other(format!("process {pid}, an ancestor, is hidden")));
            };
            if parent.name == SUPERVISOR_NAME.as_bytes() {
                found.push(SupervisorAbove {
                    pid: process::id(pid),
                    parent: parent.parent.unsigned_abs(),
                    started: parent.started,
                });
            }
            process = Process { pid, stat: parent };
        }
        Err(io::Error::other(format!("process {} has too many ancestors", process.pid)))
    }
}
