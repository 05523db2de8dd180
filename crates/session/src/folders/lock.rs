//! The lock on a folder of sessions: whoever runs them has it, be it a daemon or a program of its own.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::{Folders, FoldersError, private};

/// In the data folder: two that share sessions are the fault it is against, wherever their sockets are.
const LOCK: &str = "daemon.lock";

/// The sessions of a folder are ours: from when it is taken until it is dropped.
#[derive(Debug)]
pub struct SessionsLock {
    file: File,
}

/// Why they are not.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process has them.
    #[error("another process has the sessions{}", pid.map(|pid| format!(" (pid {pid})")).unwrap_or_default())]
    Held {
        /// Its process id, as it has written down.
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
                Err(Errno::WOULDBLOCK) => return Err(LockError::Held { pid: holder(&path) }),
                Err(error) => return Err(failed(error.into()).into()),
            }
            // What was locked may have been removed meanwhile, and another file be in its place.
            let (held, there) = (file.metadata().map_err(failed)?, fs::symlink_metadata(&path));
            if there.is_ok_and(|there| (there.dev(), there.ino()) == (held.dev(), held.ino())) {
                let mut lock = Self { file };
                lock.sign().map_err(failed)?;
                return Ok(lock);
            }
        }
    }

    fn sign(&mut self) -> io::Result<()> {
        self.file.set_len(0)?;
        self.file.write_all(format!("{}\n", std::process::id()).as_bytes())
    }
}

/// Who has written into the lock.
fn holder(path: &Path) -> Option<u32> {
    fs::read_to_string(path).ok()?.lines().next()?.parse().ok()
}
