//! Stops a daemon from a command, whatever its version and state.

use std::io;
use std::time::{Duration, Instant};

use holdpoint_common::SessionError;
use holdpoint_common::api::RequestError;
use holdpoint_session::folders::Folders;
use holdpoint_tools::Ancestry;
use rustix::io::Errno;
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
    stop_listener(folders, async || listening_pid(folders).await).await
}

/// Like [`stop`], with the function that finds the process to stop.
async fn stop_listener(
    folders: &Folders,
    mut listening_pid: impl AsyncFnMut() -> Result<Option<Pid>, CliError>,
) -> Result<Option<u32>, CliError> {
    let deadline = Instant::now() + STOP_TIMEOUT;
    // A daemon that was found and may be gone.
    let mut stopping_pid = None;
    let (raw_pid, process) = loop {
        if let Some(pid) = listening_pid().await? {
            let raw_pid = pid.as_raw_nonzero().get().unsigned_abs();
            if stopping_pid.is_some_and(|stopping| stopping != raw_pid) {
                // The next daemon listens, so this one has given up its claim.
                return Ok(stopping_pid);
            }
            let process = match Process::open(pid) {
                Err(Errno::SRCH) => None,
                opened => Some(opened.map_err(|error| stop_error(raw_pid, &error.into()))?),
            };
            match (listening_pid().await?, process) {
                // The process still listens, so its id has not been reused.
                (Some(listening), Some(process)) if listening == pid => break (raw_pid, process),
                // The next look tells whether another daemon listens.
                _ => stopping_pid = Some(raw_pid),
            }
        }
        match claim::check_free(folders) {
            Ok(()) => return Ok(stopping_pid),
            Err(unreachable) if Instant::now() > deadline => return Err(unreachable.into()),
            Err(_) => tokio::time::sleep(CLAIM_RETRY_INTERVAL).await,
        }
    };
    check_not_from_tool(raw_pid)?;
    match process.term() {
        // `SRCH`: the process has ended.
        Ok(()) | Err(Errno::SRCH) => {}
        Err(error) => return Err(stop_error(raw_pid, &error.into())),
    }
    let gone = tokio::task::spawn_blocking(move || process.wait_until_gone(STOP_TIMEOUT)).await;
    match gone.map_err(io::Error::other).and_then(|gone| gone) {
        Ok(true) => Ok(Some(raw_pid)),
        Ok(false) => Err(CliError::failed(format!(
            "the daemon (pid {raw_pid}) has not exited after {} s",
            STOP_TIMEOUT.as_secs()
        ))
        .hint(format!("`kill -KILL {raw_pid}` ends it: acknowledged changes are saved"))),
        Err(error) => Err(stop_error(raw_pid, &error)),
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

/// Checks that every tool call that has started this process has also started the daemon.
fn check_not_from_tool(daemon: u32) -> Result<(), CliError> {
    let failed = |error| stop_error(daemon, &error);
    let ours = Ancestry::of_this_process().map_err(failed)?;
    if ours.supervisors.is_empty() {
        return Ok(());
    }
    let theirs = match Ancestry::of(daemon) {
        // The daemon has ended.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        theirs => theirs.map_err(failed)?,
    };
    match ours.supervisors_not_above(&theirs).next() {
        None => Ok(()),
        Some(_) => Err(SessionError::from(RequestError::FromTool).into()),
    }
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
        rustix::process::pidfd_send_signal(&self.0, Signal::TERM)
    }

    fn wait_until_gone(&self, timeout: Duration) -> io::Result<bool> {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let deadline = std::time::Instant::now() + timeout;
        loop {
            let remaining = deadline.saturating_duration_since(std::time::Instant::now());
            let remaining = Timespec::try_from(remaining).map_err(io::Error::other)?;
            match poll(&mut [PollFd::new(&self.0, PollFlags::IN)], Some(&remaining)) {
                Err(Errno::INTR) => {}
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

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use holdpoint_session::folders::SessionsLock;

    use super::*;

    /// A daemon that is found just before it removes its sockets has not stopped yet.
    #[tokio::test]
    async fn a_daemon_without_sockets_has_stopped_when_its_lock_is_free() {
        let root = tempfile::tempdir().unwrap();
        let folders = Folders::find(Some(root.path())).unwrap();
        folders.make().unwrap();
        let mut lock = Some(SessionsLock::take(&folders).unwrap());
        let ours = rustix::process::getpid();
        let mut calls = 0;
        let stopped = stop_listener(&folders, async || {
            calls += 1;
            if calls > 2 {
                lock = None;
            }
            Ok((calls == 1).then_some(ours))
        })
        .await;
        assert_eq!(stopped.unwrap(), Some(std::process::id()));
        assert!(lock.is_none(), "the daemon still holds the lock");
    }

    /// The next daemon may take the lock and listen before the lock is seen free.
    #[tokio::test]
    async fn the_next_daemon_is_not_stopped() {
        let root = tempfile::tempdir().unwrap();
        let folders = Folders::find(Some(root.path())).unwrap();
        folders.make().unwrap();
        let _lock = SessionsLock::take(&folders).unwrap();
        let mut next = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let mut calls = 0;
        let stopped = stop_listener(&folders, async || {
            calls += 1;
            Ok(match calls {
                1 => Some(rustix::process::getpid()),
                2 => None,
                _ => Some(Pid::from_child(&next)),
            })
        })
        .await;
        assert_eq!(stopped.unwrap(), Some(std::process::id()));
        // `cat` ends at the end of its input.
        drop(next.stdin.take());
        assert!(next.wait().unwrap().success(), "the next daemon got a signal");
    }

    #[tokio::test]
    async fn a_daemon_that_exits_while_it_is_found_has_stopped() {
        let root = tempfile::tempdir().unwrap();
        let folders = Folders::find(Some(root.path())).unwrap();
        folders.make().unwrap();
        let mut exited = Command::new("true").spawn().unwrap();
        let pid = Pid::from_child(&exited);
        exited.wait().unwrap();
        let mut calls = 0;
        let stopped = stop_listener(&folders, async || {
            calls += 1;
            Ok((calls == 1).then_some(pid))
        })
        .await;
        assert_eq!(stopped.unwrap(), Some(exited.id()));
    }
}
