//! Stops a daemon from a command, whatever its version and state.

use std::io;
use std::time::{Duration, Instant};

use holdpoint_session::folders::Folders;
use rustix::process::{Pid, Signal, geteuid};
use tokio::net::UnixStream;

use super::start::CLAIM_RETRY_INTERVAL;
use super::{claim, shutdown};
use crate::error::CliError;

/// How long the daemon may take: its own time limit, and a little for the rest.
const STOP_TIMEOUT: Duration = shutdown::LIMIT.saturating_add(Duration::from_secs(3));

/// Stops the daemon of these folders and waits until it is gone. Returns its process id, or `None`
/// if none runs. Also waits for a daemon without sockets, which is stopping or makes them again.
///
/// The request is a signal, which is the same in all versions and arrives even if the server is
/// blocked. It is sent to the process that listens on the socket, as the kernel reports it.
///
/// # Errors
/// Fails if the daemon can't be found, or is not gone in time.
pub(crate) async fn stop(folders: &Folders) -> Result<Option<u32>, CliError> {
    let deadline = Instant::now() + STOP_TIMEOUT;
    let pid = loop {
        if let Some(pid) = listening_pid(folders).await? {
            break pid;
        }
        match claim::check_free(folders) {
            Ok(()) => return Ok(None),
            Err(unreachable) if Instant::now() > deadline => return Err(unreachable.into()),
            Err(_) => tokio::time::sleep(CLAIM_RETRY_INTERVAL).await,
        }
    };
    let number = pid.as_raw_nonzero().get().unsigned_abs();
    let process = Process::open(pid).map_err(|error| stop_error(number, &error.into()))?;
    // If the process still listens, its id has not been reused.
    if listening_pid(folders).await? != Some(pid) {
        return Ok(Some(number));
    }
    process.term().map_err(|error| stop_error(number, &error.into()))?;
    let gone = tokio::task::spawn_blocking(move || process.wait_until_gone(STOP_TIMEOUT)).await;
    match gone.map_err(io::Error::other).and_then(|gone| gone) {
        Ok(true) => Ok(Some(number)),
        Ok(false) => Err(CliError::failed(format!(
            "the daemon (pid {number}) has not exited after {} s",
            STOP_TIMEOUT.as_secs()
        ))
        .hint(format!("`kill -KILL {number}` ends it: acknowledged changes are saved"))),
        Err(error) => Err(stop_error(number, &error)),
    }
}

/// The process that listens on the daemon's socket.
async fn listening_pid(folders: &Folders) -> Result<Option<Pid>, CliError> {
    for socket in folders.sockets()? {
        let failed = |error: io::Error| CliError::failed(format!("{}: {error}", socket.display()));
        let peer = match UnixStream::connect(&socket).await {
            Ok(stream) => stream.peer_cred().map_err(failed)?,
            Err(error) if claim::has_no_listener(&error) => continue,
            Err(error) => return Err(failed(error)),
        };
        let pid = peer.pid().and_then(Pid::from_raw).filter(|_| peer.uid() == geteuid().as_raw());
        return pid.map(Some).ok_or_else(|| {
            CliError::failed(format!(
                "the program listening on {} is not one of this user's processes here",
                socket.display()
            ))
            .hint("stop it with TERM where it was started")
        });
    }
    Ok(None)
}

fn stop_error(pid: u32, error: &io::Error) -> CliError {
    CliError::failed(format!("the daemon (pid {pid}) can't be stopped: {error}"))
}

/// A process identified by its pidfd, which can't be mistaken for another.
#[cfg(target_os = "linux")]
struct Process(std::os::fd::OwnedFd);

#[cfg(target_os = "linux")]
impl Process {
    fn open(pid: Pid) -> rustix::io::Result<Self> {
        rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).map(Self)
    }

    fn term(&self) -> rustix::io::Result<()> {
        match rustix::process::pidfd_send_signal(&self.0, Signal::TERM) {
            // The process has ended.
            Err(rustix::io::Errno::SRCH) => Ok(()),
            sent => sent,
        }
    }

    fn wait_until_gone(&self, timeout: Duration) -> io::Result<bool> {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let deadline = std::time::Instant::now() + timeout;
        loop {
            let remaining = deadline.saturating_duration_since(std::time::Instant::now());
            let remaining = Timespec::try_from(remaining).map_err(io::Error::other)?;
            match poll(&mut [PollFd::new(&self.0, PollFlags::IN)], Some(&remaining)) {
                Err(rustix::io::Errno::INTR) => {}
                gone => return Ok(gone? > 0),
            }
        }
    }
}

/// A process identified by its id: this system has nothing better.
#[cfg(not(target_os = "linux"))]
struct Process(Pid);

#[cfg(not(target_os = "linux"))]
impl Process {
    fn open(pid: Pid) -> rustix::io::Result<Self> {
        Ok(Self(pid))
    }

    fn term(&self) -> rustix::io::Result<()> {
        rustix::process::kill_process(self.0, Signal::TERM)
    }

    fn wait_until_gone(&self, timeout: Duration) -> io::Result<bool> {
        let deadline = std::time::Instant::now() + timeout;
        while rustix::process::test_kill_process(self.0).is_ok() {
            if std::time::Instant::now() > deadline {
                return Ok(false);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(true)
    }
}
