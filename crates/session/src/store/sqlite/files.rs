//! Checks of the database's location: that it is the user's own, and that the file is still the
//! same.

use std::fs::{DirBuilder, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::StoreError;
use crate::folders::{check, check_above};

/// The suffix of SQLite's rollback journal, which is in use before the database is in WAL mode.
pub(super) const ROLLBACK_JOURNAL: &str = "-journal";

/// The suffixes of the files that SQLite keeps beside a database.
pub(super) const SIDE_FILE_SUFFIXES: [&str; 3] = ["-wal", "-shm", ROLLBACK_JOURNAL];

/// The path of the file with this suffix beside a database.
pub(super) fn side_file(database: &Path, suffix: &str) -> PathBuf {
    let mut path = database.as_os_str().to_owned();
    path.push(suffix);
    path.into()
}

/// Creates the folder with mode 0700, unless it exists.
pub(super) fn make_folder(path: &Path) -> Result<(), StoreError> {
    check_above(path)?;
    DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    // A user with write access could replace the database.
    Ok(check(path, &path.metadata()?, 0o022)?)
}

/// Creates the file unless it exists. This sets its mode before SQLite would create it; SQLite's
/// other files get the same mode.
pub(super) fn make_file(path: &Path) -> Result<(), StoreError> {
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            Ok(check(path, &path.symlink_metadata()?, 0o077)?)
        }
        made => Ok(made.map(drop)?),
    }
}

/// The identity of the file at a path. If another file has replaced it, writes to the old one are
/// lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Identity {
    device: u64,
    inode: u64,
}

impl Identity {
    /// Returns `None` if the file does not exist.
    pub(super) fn at_path(path: &Path) -> Option<Self> {
        let found = path.symlink_metadata().ok()?;
        Some(Self { device: found.dev(), inode: found.ino() })
    }
}
