//! The claim to be the one daemon of a user and state folder: a lock for life, and the sockets.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use holdpoint_session::folders::{self, Folders, LockError, SessionsLock};
use thiserror::Error;

use crate::error::CliError;

/// The claim to be the one daemon, given up when dropped.
#[derive(Debug)]
pub(super) struct Claim {
    /// Released after the sockets are removed, so that the next owner finds none of ours.
    lock: SessionsLock,
    sockets: Sockets,
}

/// Our sockets in the file system. Clones share the same state.
#[derive(Debug, Clone)]
pub(super) struct Sockets(Arc<Mutex<Files>>);

#[derive(Debug, Default)]
struct Files {
    files: Vec<SocketFile>,
    /// Set when the sockets are removed at the end: they are not made again.
    over: bool,
}

/// A listener on one of the sockets.
#[derive(Debug)]
pub(super) struct Listener {
    pub(super) path: PathBuf,
    pub(super) listener: UnixListener,
}

/// The file of one socket.
#[derive(Debug, Clone)]
struct SocketFile {
    path: PathBuf,
    device_and_inode: (u64, u64),
    /// Whether making a removed socket again has failed, which is logged once.
    failed: bool,
}

/// The reason why this process is not the daemon.
#[derive(Debug, Error)]
pub(super) enum ClaimError {
    /// Another process holds the claim.
    #[error("a daemon is already running{}", pid.map(|pid| format!(" (pid {pid})")).unwrap_or_default())]
    Held {
        /// The id that the process has written into its lock.
        pid: Option<u32>,
    },
    /// The claim can't be taken.
    #[error(transparent)]
    Failed(#[from] CliError),
}

impl Claim {
    /// Takes the claim and listens on every socket. The folders must exist.
    pub(super) fn take(folders: &Folders) -> Result<(Self, Vec<Listener>), ClaimError> {
        let paths = folders.sockets().map_err(CliError::from)?;
        let lock = SessionsLock::take(folders).map_err(|error| match error {
            LockError::Held { pid } => ClaimError::Held { pid },
            LockError::Failed(error) => ClaimError::Failed(error.into()),
        })?;
        // Dropping the claim removes the first sockets if a later one fails.
        let claim = Self { lock, sockets: Sockets(Arc::default()) };
        let mut listeners = Vec::new();
        for path in paths {
            let (socket, listener) = listen(path)?;
            claim.sockets.lock().files.push(socket);
            listeners.push(listener);
        }
        Ok((claim, listeners))
    }

    /// Whether the claim excludes other daemons: the locked folder is still the one that they look
    /// in.
    pub(super) fn is_in_place(&self) -> bool {
        self.lock.is_in_place()
    }

    /// The sockets, for code that exits without dropping the claim.
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
    /// Removes every socket file that is still ours, for good.
    pub(super) fn remove(&self) {
        let mut sockets = self.lock();
        sockets.over = true;
        for socket in sockets.files.iter().filter(|socket| socket.is_there()) {
            if let Err(error) = fs::remove_file(&socket.path) {
                tracing::warn!(socket = %socket.path.display(), %error, "the socket could not be removed");
            }
        }
    }

    /// Whether clients can still find one of the sockets.
    pub(super) fn has_any_left(&self) -> bool {
        self.first().is_some()
    }

    /// The path of the first socket that clients can find.
    pub(super) fn first(&self) -> Option<PathBuf> {
        self.lock().files.iter().find(|socket| socket.is_there()).map(|socket| socket.path.clone())
    }

    /// Makes removed sockets again, with their folder if it is gone, and listens on them. A socket
    /// is skipped while another file has its path, or the parent of its folder is missing; the next
    /// call tries it again.
    pub(super) fn renew(&self) -> Vec<Listener> {
        let Files { files, over } = &mut *self.lock();
        let mut listeners = Vec::new();
        for socket in files.iter_mut().filter(|socket| !*over && socket.is_removed()) {
            let path = socket.path.display();
            let folder =
                socket.path.parent().map_or(Ok(()), folders::make_folder).map_err(CliError::from);
            match folder.and_then(|()| listen(socket.path.clone())) {
                Ok((file, listener)) => {
                    tracing::warn!(socket = %path, "the socket was removed and is created again");
                    *socket = file;
                    listeners.push(listener);
                }
                Err(error) if !socket.failed => {
                    tracing::warn!(socket = %path, %error, "the socket was removed and can't be created again yet");
                    socket.failed = true;
                }
                Err(_) => {}
            }
        }
        listeners
    }

    /// Ignores poisoning: no critical section leaves the data inconsistent.
    fn lock(&self) -> MutexGuard<'_, Files> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SocketFile {
    /// Whether the path is free.
    fn is_removed(&self) -> bool {
        fs::symlink_metadata(&self.path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
    }

    /// Whether the file at the path is this socket.
    fn is_there(&self) -> bool {
        fs::symlink_metadata(&self.path)
            .is_ok_and(|found| (found.dev(), found.ino()) == self.device_and_inode)
    }
}

fn failed(path: &Path, error: io::Error) -> CliError {
    CliError::failed(format!("{}: {error}", path.display()))
}

/// Listens on a new socket at this path, replacing a stale one.
fn listen(path: PathBuf) -> Result<(SocketFile, Listener), CliError> {
    remove_stale(&path)?;
    let listener = bind_private(&path).map_err(|error| failed(&path, error))?;
    let found = fs::symlink_metadata(&path).map_err(|error| failed(&path, error))?;
    let device_and_inode = (found.dev(), found.ino());
    let file = SocketFile { path: path.clone(), device_and_inode, failed: false };
    Ok((file, Listener { path, listener }))
}

/// Binds a socket that is private to its user at every moment. The first mode of a socket follows
/// the umask, which belongs to the whole process. The socket is therefore made in a private folder
/// and moved when its mode is set.
fn bind_private(path: &Path) -> io::Result<UnixListener> {
    // This path is no longer than the final one, which has a limited length.
    let folder = path.with_file_name("hold.new");
    let new = folder.join("sock");
    // A process that was killed here has left the socket and its folder.
    for removed in [fs::remove_file(&new), fs::remove_dir(&folder)] {
        removed.or_else(|error| {
            if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) }
        })?;
    }
    fs::DirBuilder::new().mode(0o700).create(&folder)?;
    let listener = UnixListener::bind(&new)?;
    fs::set_permissions(&new, fs::Permissions::from_mode(0o600))?;
    fs::rename(&new, path)?;
    fs::remove_dir(&folder)?;
    Ok(listener)
}

/// Whether a process listens on one of the sockets.
pub(super) fn is_served(folders: &Folders) -> Result<bool, CliError> {
    Ok(folders.sockets()?.iter().any(|socket| UnixStream::connect(socket).is_ok()))
}

/// Checks that no process holds the sessions, after no serving daemon was found.
///
/// # Errors
/// Returns [`Unreachable`] if a process holds the sessions. It may be starting, stopping or
/// unreachable.
pub(super) fn check_free(folders: &Folders) -> Result<(), Unreachable> {
    match SessionsLock::check(folders) {
        Err(LockError::Held { pid }) => Err(Unreachable { pid }),
        // A lock that can't be opened is reported where it is taken.
        Ok(()) | Err(LockError::Failed(_)) => Ok(()),
    }
}

/// The error for a process that holds the sessions and can't be reached.
#[derive(Debug)]
pub(super) struct Unreachable {
    /// Its process id, if known.
    pub(super) pid: Option<u32>,
}

impl From<Unreachable> for CliError {
    fn from(Unreachable { pid }: Unreachable) -> Self {
        let Some(pid) = pid else {
            return Self::failed("an unreachable process holds the sessions")
                .hint("stop the program that holds them, which may be in another container");
        };
        Self::failed(format!("an unreachable process holds the sessions (pid {pid})")).hint(format!(
            "try again, because a daemon restores its socket within a second; or stop it with `kill {pid}`: its \
             sessions stay saved"
        ))
    }
}

/// Whether a connection failed because the socket has no listener, or lost it: a killed process
/// resets the connections that it has not accepted.
pub(super) fn has_no_listener(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionRefused, ConnectionReset, NotFound};
    matches!(error.kind(), NotFound | ConnectionRefused | ConnectionReset)
}

/// Removes a socket without a listener. Anything else stays and is an error.
fn remove_stale(path: &Path) -> Result<(), CliError> {
    let shown = path.display();
    let failed = |error| failed(path, error);
    let found = match fs::symlink_metadata(path) {
        Ok(found) => found.file_type(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed(error)),
    };
    if !found.is_socket() {
        return Err(CliError::failed(format!("{shown} is in the way: it is not a socket"))
            .hint("it is left unchanged: check it and move it away"));
    }
    match UnixStream::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            fs::remove_file(path).map_err(failed)
        }
        Err(error) => Err(failed(error)),
        Ok(_) => Err(CliError::failed(format!("another program listens on {shown}")).hint(
            "it may be a daemon with another data folder: set another folder with --state-dir",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The claim on new folders below `root`.
    fn claim(root: &Path) -> (Folders, Claim, Vec<Listener>) {
        let folders = Folders::find(Some(root)).unwrap();
        folders.make().unwrap();
        let (claim, listeners) = Claim::take(&folders).unwrap();
        (folders, claim, listeners)
    }

    #[test]
    fn t_n7_sockets_are_made_again_however_often_they_are_removed() {
        let root = tempfile::tempdir().unwrap();
        let (folders, claim, _listeners) = claim(root.path());
        let socket = folders.sockets().unwrap().remove(0);
        for round in 0..40 {
            match round % 3 {
                0 => fs::remove_dir_all(socket.parent().unwrap()).unwrap(),
                _ => fs::remove_file(&socket).unwrap(),
            }
            let listeners = claim.sockets().renew();
            assert_eq!(listeners.len(), 1, "{round}");
            UnixStream::connect(&socket).unwrap();
            let mode = fs::metadata(socket.parent().unwrap()).unwrap().mode();
            assert_eq!(mode & 0o777, 0o700);
        }
        assert!(claim.sockets().renew().is_empty(), "an existing socket is left as it is");
        // Removed at the end, they are not made again.
        claim.sockets().remove();
        assert!(claim.sockets().renew().is_empty() && !socket.exists());
    }

    #[test]
    fn t_n7_a_file_in_the_place_of_a_socket_stays_and_delays_it() {
        let root = tempfile::tempdir().unwrap();
        let (folders, claim, _listeners) = claim(root.path());
        let socket = folders.sockets().unwrap().remove(0);
        fs::remove_file(&socket).unwrap();
        fs::write(&socket, "mine").unwrap();
        assert!(claim.sockets().renew().is_empty());
        assert_eq!(fs::read_to_string(&socket).unwrap(), "mine");
        fs::remove_file(&socket).unwrap();
        assert_eq!(claim.sockets().renew().len(), 1);
        // A folder that others can enter is not used.
        fs::remove_file(&socket).unwrap();
        let folder = socket.parent().unwrap();
        fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).unwrap();
        assert!(claim.sockets().renew().is_empty());
        fs::set_permissions(folder, fs::Permissions::from_mode(0o700)).unwrap();
        assert_eq!(claim.sockets().renew().len(), 1);
    }

    #[test]
    fn t_n1_reading_who_has_the_lock_does_not_block_taking_it() {
        // Runs in a process of its own: the other tests start processes, each of which has the open
        // lock until it executes its program.
        if std::env::var_os("HOLDPOINT_ALONE").is_none() {
            let name =
                "daemon::claim::tests::t_n1_reading_who_has_the_lock_does_not_block_taking_it";
            let mut alone = std::process::Command::new(std::env::current_exe().unwrap());
            let ran = alone.args(["--exact", name]).env("HOLDPOINT_ALONE", "1").output().unwrap();
            let output = String::from_utf8_lossy(&ran.stdout);
            assert!(ran.status.success() && output.contains("1 passed"), "{output}");
            return;
        }
        let root = tempfile::tempdir().unwrap();
        let (folders, first, _listeners) = claim(root.path());
        assert_eq!(check_free(&folders).unwrap_err().pid, Some(std::process::id()));
        drop(first);
        assert!(check_free(&folders).is_ok());
        let done = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(std::sync::atomic::Ordering::Relaxed) {
                    let _ = check_free(&folders);
                }
            });
            let taken: Vec<_> = (0..500).map(|_| SessionsLock::take(&folders).map(drop)).collect();
            done.store(true, std::sync::atomic::Ordering::Relaxed);
            assert!(taken.iter().all(Result::is_ok), "{taken:?}");
        });
        let lock = SessionsLock::take(&folders).unwrap();
        assert!(lock.is_in_place());
        fs::remove_dir_all(folders.data()).unwrap();
        assert!(!lock.is_in_place());
        assert!(check_free(&folders).is_ok());
    }
}
