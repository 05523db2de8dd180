//! The process of a peer, identified so that a later process with the same id can't be taken for it.

use std::io;

use tokio::net::UnixStream;

/// A peer's process.
#[cfg(target_os = "linux")]
pub(super) struct PeerProcess {
    pidfd: std::os::fd::OwnedFd,
    id: u32,
}

#[cfg(target_os = "linux")]
impl PeerProcess {
    /// The process that has connected. Kernels before 6.5 report only its id, `pid`, which another
    /// process may have by now, if the peer has ended.
    pub(super) fn of(stream: &UnixStream, pid: Option<u32>) -> io::Result<Self> {
        use nix::errno::Errno;
        use nix::sys::socket::{getsockopt, sockopt::PeerPidfd};
        use rustix::process::{Pid, PidfdFlags, pidfd_open};
        let id = pid.ok_or_else(not_here)?;
        let pidfd = match getsockopt(stream, PeerPidfd) {
            Ok(pidfd) => pidfd,
            Err(Errno::ENOPROTOOPT) => {
                let pid = id.try_into().ok().and_then(Pid::from_raw).ok_or_else(not_here)?;
                pidfd_open(pid, PidfdFlags::empty()).map_err(|_| not_here())?
            }
            // Kernels before 6.16 report a process that has ended like this.
            Err(Errno::EINVAL | Errno::ESRCH | Errno::ENODATA) => return Err(not_here()),
            Err(error) => return Err(error.into()),
        };
        Ok(Self { pidfd, id })
    }

    /// Returns the process id, which is that of the process only if it
    /// [still runs](Self::is_running) afterwards. Fails if the process is in a pid namespace below
    /// that of this process: orphans there are adopted by the first process of the namespace, and
    /// not by their supervisor.
    pub(super) fn id(&self, depth: NamespaceDepth) -> io::Result<u32> {
        use std::os::fd::AsRawFd;
        let ids = match namespace_ids(&format!("/proc/self/fdinfo/{}", self.pidfd.as_raw_fd())) {
            // Kernels before 5.14 hide this file from a process with protected memory.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => self.ids_by_id()?,
            ids => ids?,
        };
        match ids.first() {
            Some(id) if *id != 0 && ids.len() == depth.0 => Ok(*id),
            _ => Err(not_here()),
        }
    }

    /// The ids of the process in its pid namespaces, if `/proc` has the same ids as this process.
    fn ids_by_id(&self) -> io::Result<Vec<u32>> {
        let is_same = namespace_ids("/proc/self/status")?.first() == Some(&std::process::id());
        if !is_same {
            return Err(io::Error::other("/proc belongs to another pid namespace"));
        }
        namespace_ids(&format!("/proc/{}/status", self.id)).map_err(|_| not_here())
    }

    /// Whether the process still runs, and so has its id.
    pub(super) fn is_running(&self) -> bool {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let mut fds = [PollFd::new(&self.pidfd, PollFlags::IN)];
        poll(&mut fds, Some(&Timespec::default())).is_ok_and(|ready| ready == 0)
    }
}

/// The number of pid namespaces that this process is in, as far as `/proc` shows them.
#[derive(Clone, Copy)]
pub(super) struct NamespaceDepth(usize);

impl NamespaceDepth {
    pub(super) fn of_this_process() -> io::Result<Self> {
        #[cfg(target_os = "linux")]
        return Ok(Self(namespace_ids("/proc/self/status")?.len()));
        #[cfg(not(target_os = "linux"))]
        return Ok(Self(1));
    }
}

/// Reads the ids of a process in its pid namespaces, beginning with that of `/proc`.
#[cfg(target_os = "linux")]
fn namespace_ids(file: &str) -> io::Result<Vec<u32>> {
    let text = std::fs::read_to_string(file)?;
    let ids = text.lines().find_map(|line| line.strip_prefix("NSpid:")).ok_or_else(not_here)?;
    ids.split_whitespace().map(|id| id.parse().map_err(|_| not_here())).collect()
}

/// A peer's process, on a system without supervisors.
#[cfg(not(target_os = "linux"))]
pub(super) struct PeerProcess(Option<u32>);

#[cfg(not(target_os = "linux"))]
impl PeerProcess {
    pub(super) fn of(_: &UnixStream, pid: Option<u32>) -> io::Result<Self> {
        Ok(Self(pid))
    }

    pub(super) fn id(&self, _: NamespaceDepth) -> io::Result<u32> {
        Ok(self.0.unwrap_or_default())
    }

    pub(super) fn is_running(&self) -> bool {
        true
    }
}

/// The error for a process that is not among the processes of this system.
pub(super) fn not_here() -> io::Error {
    io::Error::other("it has ended, or runs in another container or pid namespace")
}
