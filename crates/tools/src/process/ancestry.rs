//! The supervisors above a process, read from `/proc`.
//!
//! A supervisor adopts the processes below it that lose their parent, so a tool's process stays
//! below it. A supervisor is recognized by the name of its process, which no other process can
//! change. Another process can take this name, with the only effect that the processes below it
//! seem to be a tool's.

use std::ffi::OsString;
use std::io;

/// A supervisor above a process.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SupervisorAbove {
    /// Its process id.
    pub pid: u32,
    /// The process id of its parent, which is its owner while the owner lives.
    pub parent: u32,
    /// When it started, in clock ticks after boot. The ids of ended processes are used again.
    pub started: u64,
}

/// A process and the supervisors above it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ancestry {
    /// Its process id in the pid namespace of `/proc`.
    pub pid: u32,
    /// The name that the process has given itself, at most 15 bytes. By default the name of its
    /// program.
    pub program: String,
    /// The supervisors above the process, the nearest first.
    pub supervisors: Vec<SupervisorAbove>,
}

impl Ancestry {
    /// Reads the ancestry of the process with this id in the pid namespace of `/proc`. Other
    /// systems than Linux have no supervisors.
    ///
    /// # Errors
    /// The process or one of its ancestors can't be read. It may have ended (`NotFound`, for the
    /// process itself), or belong to another user where `/proc` is mounted with `hidepid`.
    pub fn of(pid: u32) -> io::Result<Self> {
        #[cfg(target_os = "linux")]
        return walk::ancestry(pid, walk::Hidden::IsAnError);
        #[cfg(not(target_os = "linux"))]
        return Ok(Self { pid, program: String::new(), supervisors: Vec::new() });
    }

    /// Reads the ancestry of this process, up to the first ancestor that is hidden.
    ///
    /// # Errors
    /// `/proc` can't be read.
    pub fn of_this_process() -> io::Result<Self> {
        #[cfg(target_os = "linux")]
        return walk::ancestry(walk::own_id()?, walk::Hidden::EndsTheWalk);
        #[cfg(not(target_os = "linux"))]
        return Self::of(std::process::id());
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
}

impl SupervisorAbove {
    /// The label that its owner has given it, see [`Processes::labelled`](super::Processes).
    #[must_use]
    pub fn label(&self) -> Option<String> {
        let words = self.read("cmdline").ok()?;
        String::from_utf8(words.split(|byte| *byte == 0).nth(1)?.to_vec()).ok()
    }

    /// The environment that it was started with, which is that of the tool call.
    ///
    /// # Errors
    /// The system does not show it, or the supervisor has ended.
    pub fn environment(&self) -> io::Result<Vec<(OsString, OsString)>> {
        use std::os::unix::ffi::OsStringExt;
        let variable = |bytes: &[u8]| {
            let at = bytes.iter().position(|byte| *byte == b'=')?;
            let [name, value] = [&bytes[..at], &bytes[at + 1..]];
            Some((OsString::from_vec(name.to_vec()), OsString::from_vec(value.to_vec())))
        };
        Ok(self.read("environ")?.split(|byte| *byte == 0).filter_map(variable).collect())
    }

    /// Reads a file of the supervisor below `/proc`. Fails if another process has its id by now.
    fn read(&self, file: &str) -> io::Result<Vec<u8>> {
        #[cfg(target_os = "linux")]
        return walk::read(self, file);
        #[cfg(not(target_os = "linux"))]
        return Err(io::Error::new(io::ErrorKind::NotFound, file));
    }
}

#[cfg(target_os = "linux")]
mod walk {
    use std::fs::{self, File};
    use std::io::{self, Read};

    use rustix::process::Pid;

    use super::{Ancestry, SupervisorAbove};
    use crate::process::tree::{Stat, read_stat};
    use crate::process::{self, SUPERVISOR_NAME};

    /// The maximum number of ancestors of a process.
    const MAX_ANCESTORS: usize = 256;

    /// The maximum number of walks. A walk is repeated if a process ends that it has read.
    const MAX_WALKS: usize = 10;

    /// The maximum size of a file of a supervisor in bytes.
    const MAX_FILE_BYTES: u64 = 1024 * 1024;

    /// The meaning of an ancestor that the system does not show.
    #[derive(Clone, Copy, PartialEq, Eq)]
    pub(super) enum Hidden {
        IsAnError,
        EndsTheWalk,
    }

    /// A process on the way up.
    struct Visited {
        pid: Pid,
        stat: Stat,
    }

    impl Visited {
        /// Whether the process still has the parent that was read.
        fn is_unchanged(&self) -> io::Result<bool> {
            let now = read_stat(self.pid)?;
            Ok(now.is_some_and(|now| {
                (now.parent, now.started) == (self.stat.parent, self.stat.started)
            }))
        }
    }

    pub(super) fn ancestry(pid: u32, hidden: Hidden) -> io::Result<Ancestry> {
        let pid = process::pid(pid).ok_or(io::ErrorKind::InvalidInput)?;
        for _ in 0..MAX_WALKS {
            let stat = read_stat(pid)?.ok_or_else(|| {
                io::Error::new(io::ErrorKind::NotFound, format!("there is no process {pid}"))
            })?;
            let program = String::from_utf8_lossy(&stat.name).into_owned();
            if let Some(supervisors) = supervisors_above(Visited { pid, stat }, hidden)? {
                return Ok(Ancestry { pid: process::id(pid), program, supervisors });
            }
        }
        Err(io::Error::other(format!("the ancestors of process {pid} keep changing")))
    }

    /// Returns the supervisors above a process; `None` if one of the processes has ended meanwhile.
    fn supervisors_above(
        mut process: Visited,
        hidden: Hidden,
    ) -> io::Result<Option<Vec<SupervisorAbove>>> {
        let mut found = Vec::new();
        for _ in 0..MAX_ANCESTORS {
            let pid = Pid::from_raw(process.stat.parent);
            let parent = pid.map(read_stat).transpose()?.flatten();
            // A process that started before its child is its parent, and not a later process with
            // the same id. Otherwise the child is read again: if it still has the same parent, it
            // has had it all the time.
            let is_older =
                parent.as_ref().is_some_and(|parent| parent.started < process.stat.started);
            if !is_older && !process.is_unchanged()? {
                return Ok(None);
            }
            let Some(pid) = pid else { return Ok(Some(found)) };
            let Some(parent) = parent else {
                return match hidden {
                    Hidden::EndsTheWalk => Ok(Some(found)),
                    Hidden::IsAnError => {
                        Err(io::Error::other(format!("process {pid} above it is hidden")))
                    }
                };
            };
            if parent.name == SUPERVISOR_NAME.as_bytes() {
                found.push(SupervisorAbove {
                    pid: process::id(pid),
                    parent: parent.parent.unsigned_abs(),
                    started: parent.started,
                });
            }
            process = Visited { pid, stat: parent };
        }
        if found.is_empty() {
            let message = format!("there are more than {MAX_ANCESTORS} processes above it");
            return Err(io::Error::other(message));
        }
        Ok(Some(found))
    }

    /// The id of this process in the namespace of `/proc`.
    pub(super) fn own_id() -> io::Result<u32> {
        let id = fs::read_link("/proc/self")?;
        Ok(id.to_str().and_then(|id| id.parse().ok()).ok_or(io::ErrorKind::InvalidData)?)
    }

    pub(super) fn read(supervisor: &SupervisorAbove, file: &str) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let file = File::open(format!("/proc/{}/{file}", supervisor.pid))?;
        file.take(MAX_FILE_BYTES).read_to_end(&mut bytes)?;
        let stat = process::pid(supervisor.pid).map(read_stat).transpose()?.flatten();
        match stat {
            Some(stat) if stat.started == supervisor.started => Ok(bytes),
            _ => Err(io::ErrorKind::NotFound.into()),
        }
    }
}
