//! The folder of one browser: private, its name not to be guessed, and gone when the browser is.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use tempfile::TempDir;

/// What the names of browsers' folders begin with.
const PREFIX: &str = "browser-";

/// In each folder, held locked by the process that made it.
const LOCK: &str = "lock";

/// The folder of one browser. Removed when dropped; where this process is killed, by whoever makes the next one beside
/// it.
#[derive(Debug)]
pub(super) struct Profile {
    folder: TempDir,
    /// Locked as long as this process lives, so that nobody removes it.
    _lock: File,
}

impl Profile {
    /// Makes one in `place`, and removes there what killed processes have left.
    ///
    /// # Errors
    /// What the system says.
    pub(super) fn make(place: &Path) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(place)?;
        let _making = alone(place)?;
        remove_left(place)?;
        let folder =
            tempfile::Builder::new().prefix(PREFIX).permissions(Permissions::from_mode(0o700)).tempdir_in(place)?;
        let lock = lock_file(&folder.path().join(LOCK))?;
        lock.lock()?;
        Ok(Self { folder, _lock: lock })
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }
}

impl Drop for Profile {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(self.folder.path()) {
            tracing::warn!(folder = %self.folder.path().display(), %error, "a browser's folder can't be removed");
        }
    }
}

/// Removes what killed processes have left, if there is such a place.
pub(super) fn sweep(place: &Path) -> io::Result<()> {
    if !place.exists() {
        return Ok(());
    }
    let _making = alone(place)?;
    remove_left(place)
}

/// Held while folders without a locked file may be seen: those that are just being made.
fn alone(place: &Path) -> io::Result<File> {
    let lock = lock_file(&place.join(LOCK))?;
    lock.lock()?;
    Ok(lock)
}

fn remove_left(place: &Path) -> io::Result<()> {
    for entry in fs::read_dir(place)?.flatten() {
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if !is_folder || !entry.file_name().to_string_lossy().starts_with(PREFIX) {
            continue;
        }
        let lock = lock_file(&entry.path().join(LOCK));
        if lock.is_ok_and(|lock| lock.try_lock().is_ok())
            && let Err(error) = fs::remove_dir_all(entry.path())
        {
            // Its browser may be just ending. The next sweep finds it.
            tracing::debug!(folder = %entry.path().display(), %error, "a browser's folder can't be removed yet");
        }
    }
    Ok(())
}

fn lock_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(path)
}
