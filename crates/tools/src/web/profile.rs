//! The private folder of a browser, with an unguessable name, which is removed with the browser.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use tempfile::TempDir;

/// The prefix of the folders' names.
const PREFIX: &str = "browser-";

/// The lock file in each folder, locked by the process that made the folder.
const LOCK: &str = "lock";

/// The folder of one browser, removed when dropped. If the process is killed, the next `make` or
/// `sweep` in the same parent folder removes the folder.
#[derive(Debug)]
pub(super) struct Profile {
    folder: TempDir,
    /// Locked while this exists, so that no other process removes the folder.
    _lock: File,
}

impl Profile {
    /// Makes a folder in `parent`, and removes the folders that killed processes have left there.
    ///
    /// # Errors
    /// An I/O error.
    pub(super) fn make(parent: &Path) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(parent)?;
        let _parent_lock = lock_parent(parent)?;
        remove_leftovers(parent)?;
        let folder = tempfile::Builder::new()
            .prefix(PREFIX)
            .permissions(Permissions::from_mode(0o700))
            .tempdir_in(parent)?;
        let lock = lock_file(&folder.path().join(LOCK))?;
        lock.lock()?;
        Ok(Self { folder, _lock: lock })
    }

    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }
}

impl Drop for Profile {
    fn drop(&mut self) {
        // `TempDir` would ignore the error.
        if let Err(error) = fs::remove_dir_all(self.folder.path()) {
            tracing::warn!(folder = %self.folder.path().display(), %error, "a browser's folder can't be removed");
        }
    }
}

/// Removes the folders that killed processes have left in `parent`, if it exists.
pub(super) fn sweep(parent: &Path) -> io::Result<()> {
    if !parent.exists() {
        return Ok(());
    }
    let _parent_lock = lock_parent(parent)?;
    remove_leftovers(parent)
}

/// Locks `parent`, because a folder that is being made does not have a locked file yet.
fn lock_parent(parent: &Path) -> io::Result<File> {
    let lock = lock_file(&parent.join(LOCK))?;
    lock.lock()?;
    Ok(lock)
}

fn remove_leftovers(parent: &Path) -> io::Result<()> {
    for entry in fs::read_dir(parent)?.flatten() {
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if !is_folder || !entry.file_name().to_string_lossy().starts_with(PREFIX) {
            continue;
        }
        let lock = lock_file(&entry.path().join(LOCK));
        if lock.is_ok_and(|lock| lock.try_lock().is_ok())
            && let Err(error) = fs::remove_dir_all(entry.path())
        {
            // The browser may still be ending; the next sweep removes its folder.
            tracing::debug!(folder = %entry.path().display(), %error, "a browser's folder can't be removed yet");
        }
    }
    Ok(())
}

fn lock_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(path)
}
