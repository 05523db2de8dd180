//! The process of a peer, identified so that a later process with the same id can't be taken for it.

use std::io;

use tokio::net::UnixStream;

/// A peer's process.
#[cfg(target_os = "linux")]
pub(super) struct PeerProcess(std::os::fd::OwnedFd);

#[cfg(target_os = "linux")]
impl PeerProcess {
    /// The process that has connected. Kernels before 6.5 report only its id, `pid`, which another
    /// process may have by now, if the peer has ended.
    pub(super) fn of(stream: &UnixStream, pid: Option<u32>) -> io::Result<Self> {
        use nix::errno::Errno;
        use nix::sys::socket::{getsockopt, sockopt::PeerPidfd};
        use rustix::process::{Pid, PidfdFlags, pidfd_open};
        match getsockopt(stream, PeerPidfd) {
            Err(Errno::ENOPROTOOPT) => {
                let pid = pid.and_then(|pid| Pid::from_raw(pid.try_into().ok()?));
                Ok(Self(pidfd_open(pid.ok_or_else(not_here)?, PidfdFlags::empty())?))
            }
            pidfd => Ok(Self(pidfd?)),
        }
    }

    /// Its process id. Fails if the process has ended, or is in a pid namespace of its own: there
    /// a process that loses its parent gets one inside the namespace, not its supervisor.
    pub(super) fn id(&self) -> io::Result<u32> {
        use std::os::fd::AsRawFd;
        let info = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", self.0.as_raw_fd()))?;
        // The ids in all namespaces, beginning with that of `/proc`.
        let mut ids = info
            .lines()
            .find_map(|line| line.strip_prefix("NSpid:"))
            .ok_or_else(not_here)?
            .split_whitespace();
        match (ids.next().and_then(|id| id.parse().ok()), ids.next()) {
            (Some(id), None) if id != 0 => Ok(id),
            _ => Err(not_here()),
        }
    }
}

/// A peer's process, on a system without supervisors.
#[cfg(not(target_os = "linux"))]
pub(super) struct PeerProcess(u32);

#[cfg(not(target_os = "linux"))]
impl PeerProcess {
    pub(super) fn of(_: &UnixStream, pid: Option<u32>) -> io::Result<Self> {
        pid.map(Self).ok_or_else(not_here)
    }

    pub(super) fn id(&self) -> io::Result<u32> {
        Ok(self.0)
    }
}

/// The error for a process that is not among the processes of this system.
pub(super) fn not_here() -> io::Error {
    io::Error::other("it has ended, or runs in another container or pid namespace")
}
