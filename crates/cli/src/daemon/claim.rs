//! The claim to be the one daemon of a user and state folder: a lock for life, and the socket.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, Mode, flock};
use rustix::io::Errno;
use rustix::process::umask;
use thiserror::Error;

use crate::error::CliError;
use crate::folders::Folders;

/// The lock, in the data folder: two daemons that share sessions are the fault it is against, wherever their sockets
/// are.
const LOCK: &str = "daemon.lock";

/// The claim to be the one daemon: held for life, given up when dropped.
#[derive(Debug)]
pub(super) struct Claim {
    /// Closed last: whoever gets the lock finds no socket of ours.
    _lock: File,
    socket: SocketFile,
}

/// Our socket in the file system.
#[derive(Debug, Clone)]
pub(super) struct SocketFile {
    path: PathBuf,
    /// Device and inode.
    file: (u64, u64),
}

/// Why this process is not the daemon.
#[derive(Debug, Error)]
pub(super) enum ClaimError {
    /// Another one is.
    #[error("a daemon runs already{}", pid.map(|pid| format!(" (pid {pid})")).unwrap_or_default())]
    Held {
        /// Its process id, as it has written down.
        pid: Option<u32>,
    },
    /// It can't be.
    #[error(transparent)]
    Failed(#[from] CliError),
}

impl Claim {
    /// Takes the claim and listens. The folders are there.
    pub(super) fn take(folders: &Folders) -> Result<(Self, UnixListener), ClaimError> {
        let path = folders.socket()?;
        let mut lock = lock(&folders.data().join(LOCK))?;
        remove_stale(&path)?;
        let failed = |error: io::Error| CliError::failed(format!("{}: {error}", path.display()));
        // The mode of a socket is given by the umask alone. Nothing else runs in this process yet.
        let before = umask(Mode::from_raw_mode(0o177));
        let bound = UnixListener::bind(&path);
        umask(before);
        let listener = bound.map_err(failed)?;
        let found = fs::symlink_metadata(&path).map_err(failed)?;
        let socket = SocketFile { path: path.clone(), file: (found.dev(), found.ino()) };
        // For people, and for those who look for the daemon elsewhere.
        let told = lock.set_len(0).and_then(|()| write!(lock, "{}\n{}\n", std::process::id(), path.display()));
        told.map_err(failed)?;
        Ok((Self { _lock: lock, socket }, listener))
    }

    /// The socket, for those who leave without dropping this.
    pub(super) fn socket(&self) -> &SocketFile {
        &self.socket
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.socket.remove();
    }
}

impl SocketFile {
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Removes it, if what is there is still ours.
    pub(super) fn remove(&self) {
        let ours = fs::symlink_metadata(&self.path).is_ok_and(|found| (found.dev(), found.ino()) == self.file);
        if ours && let Err(error) = fs::remove_file(&self.path) {
            tracing::warn!(socket = %self.path.display(), %error, "the socket could not be removed");
        }
    }
}

/// Where the daemon of these folders may listen: where it would if we started it, and where the one that holds the lock
/// says. They differ where `XDG_RUNTIME_DIR` does: from a service, for example.
pub(super) fn sockets(folders: &Folders) -> Result<Vec<PathBuf>, CliError> {
    let mut sockets = vec![folders.socket()?];
    let told = fs::read_to_string(folders.data().join(LOCK)).unwrap_or_default();
    let told = told.lines().nth(1).map(PathBuf::from);
    sockets.extend(told.filter(|told| *told != sockets[0]));
    Ok(sockets)
}

/// Whether somebody listens at one of them.
pub(super) fn is_served(folders: &Folders) -> Result<bool, CliError> {
    Ok(sockets(folders)?.iter().any(|socket| UnixStream::connect(socket).is_ok()))
}

/// Locks the file for as long as it is open.
fn lock(path: &Path) -> Result<File, ClaimError> {
    let failed = |error: io::Error| CliError::failed(format!("{}: {error}", path.display()));
    loop {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let file = options.open(path).map_err(failed)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => return Err(ClaimError::Held { pid: holder(path) }),
            Err(error) => return Err(failed(error.into()).into()),
        }
        // What was locked may have been removed meanwhile, and another file be in its place.
        let (held, there) = (file.metadata().map_err(failed)?, fs::metadata(path));
        if there.is_ok_and(|there| (there.dev(), there.ino()) == (held.dev(), held.ino())) {
            return Ok(file);
        }
    }
}

/// Who has written into the lock.
fn holder(path: &Path) -> Option<u32> {
    fs::read_to_string(path).ok()?.lines().next()?.parse().ok()
}

/// Removes a socket that nobody listens on any more. Anything else stays, and is an error.
fn remove_stale(path: &Path) -> Result<(), CliError> {
    let shown = path.display();
    let failed = |error: io::Error| CliError::failed(format!("{shown}: {error}"));
    let found = match fs::symlink_metadata(path) {
        Ok(found) => found.file_type(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed(error)),
    };
    if !found.is_socket() {
        return Err(CliError::failed(format!("{shown} is in the way: it is no socket"))
            .hint("it is left as it is: look at it, and move it away"));
    }
    match UnixStream::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => fs::remove_file(path).map_err(failed),
        Err(error) => Err(failed(error)),
        Ok(_) => Err(CliError::failed(format!("another program listens on {shown}"))
            .hint("it may be a daemon with another data folder: name another place by --state-dir")),
    }
}
