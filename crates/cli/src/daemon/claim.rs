//! The claim to be the one daemon of a user and state folder: a lock for life, and the socket.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use holdpoint_session::folders::{Folders, LockError, SessionsLock};
use thiserror::Error;

use crate::error::CliError;

/// The claim to be the one daemon: held for life, given up when dropped.
#[derive(Debug)]
pub(super) struct Claim {
    /// Closed when the sockets are removed: whoever gets it finds none of ours.
    _lock: SessionsLock,
    sockets: Sockets,
}

/// How often sockets are made again that others have removed: each time takes a thread.
const MOST_RENEWALS: u32 = 16;

/// Our sockets in the file system. Clones are the same.
#[derive(Debug, Clone)]
pub(super) struct Sockets(Arc<Mutex<Files>>);

#[derive(Debug)]
struct Files {
    files: Vec<SocketFile>,
    /// How often one may be made again.
    renewals: u32,
}

/// One of them.
#[derive(Debug, Clone)]
struct SocketFile {
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
    /// Takes the claim and listens on every socket. The folders are there.
    pub(super) fn take(folders: &Folders) -> Result<(Self, Vec<UnixListener>), ClaimError> {
        let paths = folders.sockets().map_err(CliError::from)?;
        let lock = SessionsLock::take(folders).map_err(|error| match error {
            LockError::Held { pid } => ClaimError::Held { pid },
            LockError::Failed(error) => ClaimError::Failed(error.into()),
        })?;
        // What listens already is removed again if the next can't.
        let files = Files { files: Vec::new(), renewals: MOST_RENEWALS };
        let claim = Self { _lock: lock, sockets: Sockets(Arc::new(Mutex::new(files))) };
        let mut listeners = Vec::new();
        for path in paths {
            let (socket, listener) = listen(path)?;
            claim.sockets.lock().files.push(socket);
            listeners.push(listener);
        }
        Ok((claim, listeners))
    }

    /// The sockets, for those who leave without dropping this.
    pub(super) fn sockets(&self) -> &Sockets {
        &self.sockets
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.sockets.remove();
    }
}

impl Sockets {
    /// Removes each of them, if the file is still ours. None is made again.
    pub(super) fn remove(&self) {
        let mut sockets = self.lock();
        sockets.renewals = 0;
        for socket in sockets.files.iter().filter(|socket| socket.is_there()) {
            if let Err(error) = fs::remove_file(&socket.path) {
                tracing::warn!(socket = %socket.path.display(), %error, "the socket could not be removed");
            }
        }
    }

    /// Whether one of them can still be found.
    pub(super) fn any_left(&self) -> bool {
        self.first().is_some()
    }

    /// The path of the first that can be found.
    pub(super) fn first(&self) -> Option<PathBuf> {
        self.lock().files.iter().find(|socket| socket.is_there()).map(|socket| socket.path.clone())
    }

    /// Makes those again that others have removed, and listens there. Those whose folder is gone stay so.
    pub(super) fn renew(&self) -> Vec<UnixListener> {
        let Files { files, renewals } = &mut *self.lock();
        let mut listeners = Vec::new();
        for socket in files.iter_mut().filter(|socket| socket.is_removed()) {
            let Some(left) = renewals.checked_sub(1) else { break };
            if let Ok((file, listener)) = listen(socket.path.clone()) {
                tracing::warn!(socket = %file.path.display(), "the socket was removed, and is made again");
                (*socket, *renewals) = (file, left);
                listeners.push(listener);
            }
        }
        listeners
    }

    /// Nothing is left half done under this lock.
    fn lock(&self) -> MutexGuard<'_, Files> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SocketFile {
    /// There is nothing at its path.
    fn is_removed(&self) -> bool {
        fs::symlink_metadata(&self.path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
    }

    /// What is at its path is it.
    fn is_there(&self) -> bool {
        fs::symlink_metadata(&self.path).is_ok_and(|found| (found.dev(), found.ino()) == self.file)
    }
}

fn failed(path: &Path, error: io::Error) -> CliError {
    CliError::failed(format!("{}: {error}", path.display()))
}

/// Listens at this path.
fn listen(path: PathBuf) -> Result<(SocketFile, UnixListener), CliError> {
    remove_stale(&path)?;
    let bound = bind_private(&path).map_err(|error| failed(&path, error))?;
    let found = fs::symlink_metadata(&path).map_err(|error| failed(&path, error))?;
    Ok((SocketFile { file: (found.dev(), found.ino()), path }, bound))
}

/// Binds a socket that only its user may connect to, at every moment. Its first mode is of the umask, which is of the whole
/// process: so it is made in a private folder, and moved to its place when it has its mode.
fn bind_private(path: &Path) -> io::Result<UnixListener> {
    // A path no longer than that of its place, whose length is bounded.
    let folder = path.with_file_name("hold.new");
    let new = folder.join("sock");
    // One that was killed here has left them.
    for left in [fs::remove_file(&new), fs::remove_dir(&folder)] {
        left.or_else(|error| if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) })?;
    }
    fs::DirBuilder::new().mode(0o700).create(&folder)?;
    let listener = UnixListener::bind(&new)?;
    fs::set_permissions(&new, fs::Permissions::from_mode(0o600))?;
    fs::rename(&new, path)?;
    fs::remove_dir(&folder)?;
    Ok(listener)
}

/// Whether somebody listens at one of the sockets.
pub(super) fn is_served(folders: &Folders) -> Result<bool, CliError> {
    Ok(folders.sockets()?.iter().any(|socket| UnixStream::connect(socket).is_ok()))
}

/// Whether a connection to a socket failed because nobody listens there, or no longer: who is killed resets those that
/// it has not accepted.
pub(super) fn is_nobody(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionRefused, ConnectionReset, NotFound};
    matches!(error.kind(), NotFound | ConnectionRefused | ConnectionReset)
}

/// Removes a socket that nobody listens on any more. Anything else stays, and is an error.
fn remove_stale(path: &Path) -> Result<(), CliError> {
    let shown = path.display();
    let failed = |error| failed(path, error);
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
