//! The lock on a folder of sessions. The process that runs the sessions holds it, whether it is a
//! daemon or another program.
//!
//! Two locks are held. The lock on the folder remains valid even if files in it are removed. The
//! lock on a file in it also keeps out other machines, if the file system has such locks for files
//! only.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::{Folders, FoldersError, private};

/// The lock file. It is in the data folder, because the lock is against processes that share
/// sessions, wherever their sockets are.
const LOCK_FILE: &str = "daemon.lock";

/// The lock on a folder of sessions. Dropping it releases the lock.
#[derive(Debug)]
pub struct SessionsLock {
    path: PathBuf,
    folder: File,
    _file: File,
}

/// The reason why the lock was not taken.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process holds the lock.
    #[error("another process is using the sessions{}", pid.map(|pid| format!(" (pid {pid})")).unwrap_or_default())]
    Held {
        /// The id of that process, as written in the lock file.
        pid: Option<u32>,
    },
    /// The lock can't be taken because of another error.
    #[error(transparent)]
    Failed(#[from] FoldersError),
}

impl SessionsLock {
    /// Takes the lock, and writes the id of this process into the lock file, for people to read.
    /// The folders must exist.
    ///
    /// # Errors
    /// [`LockError::Held`] if another process holds the lock. This call does not wait for it.
    pub fn take(folders: &Folders) -> Result<Self, LockError> {
        let path = folders.data().to_owned();
        let folder =
            File::open(&path).map_err(|error| FoldersError::Io { path: path.clone(), error })?;
        let file = folders.data().join(LOCK_FILE);
        lock(&folder, &path, &file)?;
        loop {
            let mut opened = private::open(&file, OpenOptions::new().read(true).write(true))?;
            lock(&opened, &file, &file)?;
            // The locked file may have been removed and replaced in the meantime.
            if opened.metadata().is_ok_and(|held| is_at(&file, &held)) {
                write_pid(&mut opened).map_err(|error| FoldersError::Io { path: file, error })?;
                return Ok(Self { path, folder, _file: opened });
            }
        }
    }

    /// Checks that no process holds the lock, without taking it and without creating a file.
    ///
    /// # Errors
    /// [`LockError::Held`] if a process holds it.
    pub fn check(folders: &Folders) -> Result<(), LockError> {
        let file = folders.data().join(LOCK_FILE);
        for path in [folders.data(), &file] {
            match File::open(path) {
                Ok(opened) if is_free(&opened) => {}
                Ok(_) => return Err(LockError::Held { pid: holder(&file) }),
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
                    ) => {}
                Err(error) => return Err(FoldersError::Io { path: path.to_owned(), error }.into()),
            }
        }
        Ok(())
    }

    /// Whether the folder at its path is still the locked one. If not, another process can lock the
    /// one that is there.
    #[must_use]
    pub fn is_in_place(&self) -> bool {
        self.folder.metadata().is_ok_and(|held| is_at(&self.path, &held))
    }
}

/// Locks the file or folder at `path`. `lock_file` has the id of the process that holds the lock.
fn lock(opened: &File, path: &Path, lock_file: &Path) -> Result<(), LockError> {
    loop {
        match flock(opened, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(()),
            // Another process was only checking the lock.
            Err(Errno::WOULDBLOCK) if is_free(opened) => {}
            Err(Errno::WOULDBLOCK) => return Err(LockError::Held { pid: holder(lock_file) }),
            Err(error) => {
                return Err(FoldersError::Io { path: path.to_owned(), error: error.into() }.into());
            }
        }
    }
}

/// Writes the id of this process into the lock file, for people to read.
fn write_pid(file: &mut File) -> io::Result<()> {
    file.set_len(0)?;
    file.write_all(format!("{}\n", std::process::id()).as_bytes())
}

/// Whether no process has locked the file. Takes a shared lock for a moment, which is in the way of
/// [`SessionsLock::take`] only.
fn is_free(file: &File) -> bool {
    let free = flock(file, FlockOperation::NonBlockingLockShared).is_ok();
    if free {
        // Closing the file also unlocks it.
        let _ = flock(file, FlockOperation::Unlock);
    }
    free
}

fn is_at(path: &Path, file: &Metadata) -> bool {
    fs::metadata(path).is_ok_and(|there| (there.dev(), there.ino()) == (file.dev(), file.ino()))
}

/// The process that is named in the lock file, if it has locked that file. An id that was written
/// long ago, or in another container, may belong to another process here.
fn holder(path: &Path) -> Option<u32> {
    let pid = fs::read_to_string(path).ok()?.lines().next()?.parse().ok()?;
    has_locked(pid, &path.metadata().ok()?).then_some(pid)
}

/// Whether the process has locked the file, according to `/proc/locks`, where each line has the
/// form `1: FLOCK ADVISORY WRITE 4711 fe:00:131074 0 EOF`. The device is not compared, because
/// some file systems report another one to programs.
#[cfg(target_os = "linux")]
fn has_locked(pid: u32, file: &Metadata) -> bool {
    let (pid, inode) = (pid.to_string(), file.ino().to_string());
    let locks = fs::read_to_string("/proc/locks").unwrap_or_default();
    locks.lines().any(|line| {
        let fields: Vec<_> = line.split_whitespace().collect();
        let [_, "FLOCK", _, _, owner, locked, ..] = fields[..] else { return false };
        owner == pid && locked.rsplit(':').next() == Some(&inode)
    })
}

#[cfg(not(target_os = "linux"))]
fn has_locked(_: u32, _: &Metadata) -> bool {
    true
}
