//! The lock on a folder of sessions: whoever runs them has it, be it a daemon or a program of its own.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::{Folders, FoldersError, private};

/// In the data folder: two that share sessions are the fault it is against, wherever their sockets are.
const LOCK: &str = "daemon.lock";

/// The sessions of a folder are ours: from when it is taken until it is dropped.
#[derive(Debug)]
pub struct SessionsLock {
    file: File,
    path: PathBuf,
}

/// Why they are not.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process has them.
    #[error("another process has the sessions{}", pid.map(|pid| format!(" (pid {pid})")).unwrap_or_default())]
    Held {
        /// Its process id, as written in the lock.
        pid: Option<u32>,
    },
    /// The lock can't be had.
    #[error(transparent)]
    Failed(#[from] FoldersError),
}

impl SessionsLock {
    /// Takes it, and writes into it, for people, whose it is. The folders are there.
    ///
    /// # Errors
    /// [`LockError::Held`] if another process has it: that is not waited for.
    pub fn take(folders: &Folders) -> Result<Self, LockError> {
        let path = folders.data().join(LOCK);
        let failed = |error| FoldersError::Io { path: path.clone(), error };
        loop {
            let file = private::open(&path, OpenOptions::new().read(true).write(true))?;
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {}
                // Another process only looked at it.
                Err(Errno::WOULDBLOCK) if is_free(&file) => continue,
                Err(Errno::WOULDBLOCK) => return Err(LockError::Held { pid: holder(&path) }),
                Err(error) => return Err(failed(error.into()).into()),
            }
            // What was locked may have been removed meanwhile, and another file be in its place.
            let mut lock = Self { file, path: path.clone() };
            if lock.is_in_place() {
                lock.sign().map_err(failed)?;
                return Ok(lock);
            }
        }
    }

    /// Checks that no process has it, without taking it. Nothing is made by this.
    ///
    /// # Errors
    /// [`LockError::Held`] if a process has it.
    pub fn check(folders: &Folders) -> Result<(), LockError> {
        let path = folders.data().join(LOCK);
        match File::open(&path) {
            Ok(file) if is_free(&file) => Ok(()),
            Ok(_) => Err(LockError::Held { pid: holder(&path) }),
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(()),
            Err(error) => Err(FoldersError::Io { path, error }.into()),
        }
    }

    /// Whether the file at its path is still the one that is locked. If not, another process can take the lock.
    #[must_use]
    pub fn is_in_place(&self) -> bool {
        self.file.metadata().is_ok_and(|held| is_at(&self.path, &held))
    }

    fn sign(&mut self) -> io::Result<()> {
        self.file.set_len(0)?;
        self.file.write_all(format!("{}\n", std::process::id()).as_bytes())
    }
}

/// Whether no process has the lock. A shared lock, for a moment, is in the way of nothing but [`SessionsLock::take`].
fn is_free(file: &File) -> bool {
    let free = flock(file, FlockOperation::NonBlockingLockShared).is_ok();
    if free {
        // It is unlocked when the file is closed, too.
        let _ = flock(file, FlockOperation::Unlock);
    }
    free
}

fn is_at(path: &Path, file: &Metadata) -> bool {
    fs::symlink_metadata(path).is_ok_and(|there| (there.dev(), there.ino()) == (file.dev(), file.ino()))
}

/// The process whose number is written in the lock, if it has the file open.
fn holder(path: &Path) -> Option<u32> {
    let pid = fs::read_to_string(path).ok()?.lines().next()?.parse().ok()?;
    // To look at a file of a process keeps it open for a moment longer: our own is not looked at.
    (pid == std::process::id() || has_open(pid, path)).then_some(pid)
}

/// A number that was written long ago, or in another container, may be another process's here.
#[cfg(target_os = "linux")]
fn has_open(pid: u32, path: &Path) -> bool {
    let files = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    files.filter_map(|file| fs::metadata(file.path()).ok()).any(|open| is_at(path, &open))
}

#[cfg(not(target_os = "linux"))]
fn has_open(_: u32, _: &Path) -> bool {
    true
}
