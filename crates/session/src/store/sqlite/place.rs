//! Where the database lies: the user's own, and the same as before.

use std::fs::{DirBuilder, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::StoreError;
use crate::folders::{check, check_above};

/// Where SQLite keeps what a transaction undoes, while the database is not in WAL mode yet.
pub(super) const ROLLBACK_JOURNAL: &str = "-journal";

/// The files that SQLite keeps beside a database.
pub(super) const BESIDE: [&str; 3] = ["-wal", "-shm", ROLLBACK_JOURNAL];

/// One of those files.
pub(super) fn beside(database: &Path, suffix: &str) -> PathBuf {
    let mut path = database.as_os_str().to_owned();
    path.push(suffix);
    path.into()
}

/// Makes the folder, with mode 0700, unless it is there.
pub(super) fn make_folder(path: &Path) -> Result<(), StoreError> {
    check_above(path)?;
    DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    // Who can write there can put another database in its place.
    Ok(check(path, &path.metadata()?, 0o022)?)
}

/// Makes the file, unless it is there: before SQLite does, for its mode. What SQLite makes beside it gets the same.
pub(super) fn make_file(path: &Path) -> Result<(), StoreError> {
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            Ok(check(path, &path.symlink_metadata()?, 0o077)?)
        }
        made => Ok(made.map(drop)?),
    }
}

/// Which file lies there. Another one may have been put in its place, and what is written to the one before is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Identity {
    device: u64,
    inode: u64,
}

impl Identity {
    /// `None`: there is none.
    pub(super) fn of(path: &Path) -> Option<Self> {
        let found = path.symlink_metadata().ok()?;
        Some(Self { device: found.dev(), inode: found.ino() })
    }
}
