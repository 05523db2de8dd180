//! The lock on a folder of sessions: the process that runs them has it, be it a daemon or a program of its own.
//!
//! Two files are locked. The lock on the folder holds for as long as the folder is there, also when files in it are removed.
//! The lock on a file in it reaches other machines where the file system has such locks for files only.

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
    path: PathBuf,
    folder: File,
    _file: File,
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
        let path = folders.data().to_owned();
        let folder = File::open(&path).map_err(|error| FoldersError::Io { path: path.clone(), error })?;
        let file = folders.data().join(LOCK);
        lock(&folder, &file)?;
        loop {
            let mut opened = private::open(&file, OpenOptions::new().read(true).write(true))?;
            lock(&opened, &file)?;
            // The file that was locked may have been removed meanwhile, and another be in its place.
            if opened.metadata().is_ok_and(|held| is_at(&file, &held)) {
                sign(&mut opened).map_err(|error| FoldersError::Io { path: file, error })?;
                return Ok(Self { path, folder, _file: opened });
            }
        }
    }

    /// Checks that no process has it, without taking it. Nothing is made by this.
    ///
    /// # Errors
    /// [`LockError::Held`] if a process has it.
    pub fn check(folders: &Folders) -> Result<(), LockError> {
        let file = folders.data().join(LOCK);
        for path in [folders.data(), &file] {
            match File::open(path) {
                Ok(opened) if is_free(&opened) => {}
                Ok(_) => return Err(LockError::Held { pid: holder(&file) }),
                Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {}
                Err(error) => return Err(FoldersError::Io { path: path.to_owned(), error }.into()),
            }
        }
        Ok(())
    }

    /// Whether the folder at its path is still the one that is locked. If not, another process can have the one there.
    #[must_use]
    pub fn is_in_place(&self) -> bool {
        self.folder.metadata().is_ok_and(|held| is_at(&self.path, &held))
    }
}

/// Locks the folder or the file in it.
fn lock(opened: &File, file: &Path) -> Result<(), LockError> {
    loop {
        match flock(opened, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(()),
            // Another process only looked at it.
            Err(Errno::WOULDBLOCK) if is_free(opened) => {}
            Err(Errno::WOULDBLOCK) => return Err(LockError::Held { pid: holder(file) }),
            Err(error) => return Err(FoldersError::Io { path: file.to_owned(), error: error.into() }.into()),
        }
    }
}

/// Writes into the file the process that has it, for people.
fn sign(file: &mut File) -> io::Result<()> {
    file.set_len(0)?;
    file.write_all(format!("{}\n", std::process::id()).as_bytes())
}

/// Whether no process has locked it. A shared lock, for a moment, is in the way of nothing but [`SessionsLock::take`].
fn is_free(file: &File) -> bool {
    let free = flock(file, FlockOperation::NonBlockingLockShared).is_ok();
    if free {
        // It is unlocked when the file is closed, too.
        let _ = flock(file, FlockOperation::Unlock);
    }
    free
}

fn is_at(path: &Path, file: &Metadata) -> bool {
    fs::metadata(path).is_ok_and(|there| (there.dev(), there.ino()) == (file.dev(), file.ino()))
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
