//! Folders and files that nobody but their user gets at.

use std::fs::{DirBuilder, File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::process::geteuid;

use super::FoldersError;

/// Something is not its user's alone. It is left as it is, for who opened it may have meant it, and who came in may be in
/// it still.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Exposed {
    /// It is another user's.
    #[error("{} belongs to somebody else (uid {uid})", path.display())]
    Foreign {
        /// What.
        path: PathBuf,
        /// Whose.
        uid: u32,
    },
    /// Others get at it.
    #[error("others get {} {} (mode {mode:04o})", if *is_folder { "into" } else { "at" }, path.display())]
    Open {
        /// What.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
        /// Whether it is a folder.
        is_folder: bool,
    },
    /// A file was expected, and it is a link to one.
    #[error("{} is a link", path.display())]
    Link {
        /// What.
        path: PathBuf,
    },
}

/// Makes the folder with mode 0700 if it is not there, and what is above it where that is missing.
///
/// # Errors
/// It can't be made; it would lie in another user's folder; or it is there, and not its user's alone.
pub(super) fn make(folder: &Path) -> Result<(), FoldersError> {
    let failed = |error| FoldersError::Io { path: folder.to_owned(), error };
    check_above(folder)?;
    DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
    Ok(check(folder, &folder.metadata().map_err(failed)?, 0o077)?)
}

/// Makes one folder with mode 0700 in a folder that is there, if it is not there.
///
/// # Errors
/// It can't be made; it would lie in another user's folder; or it is there, and not its user's alone.
pub fn make_folder(folder: &Path) -> Result<(), FoldersError> {
    let failed = |error| FoldersError::Io { path: folder.to_owned(), error };
    check_above(folder)?;
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(failed(error)),
        _ => {}
    }
    Ok(check(folder, &folder.metadata().map_err(failed)?, 0o077)?)
}

/// Opens a file of ours as `how` says, and makes it with mode 0600 if it is not there.
///
/// # Errors
/// It can't be opened; or it is not its user's alone.
pub fn open(path: &Path, how: &mut OpenOptions) -> Result<File, FoldersError> {
    let failed = |error: io::Error| match error.raw_os_error() {
        Some(code) if code == Errno::LOOP.raw_os_error() => Exposed::Link { path: path.to_owned() }.into(),
        _ => FoldersError::Io { path: path.to_owned(), error },
    };
    let flags = OFlags::NOFOLLOW.bits().cast_signed();
    let file = how.create(true).truncate(false).mode(0o600).custom_flags(flags).open(path).map_err(failed)?;
    check(path, &file.metadata().map_err(failed)?, 0o077)?;
    Ok(file)
}

/// Refuses a file of ours that is there and not its user's alone.
///
/// # Errors
/// See above; or it can't be looked at.
pub fn check_file(path: &Path) -> Result<(), FoldersError> {
    match path.metadata() {
        Ok(found) if found.is_file() => Ok(check(path, &found, 0o077)?),
        // What is in its place is told when it is opened.
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(FoldersError::Io { path: path.to_owned(), error }),
    }
}

/// Refuses a folder inside another user's folder. Root can make one there under `sudo -E`, which keeps that user's `HOME`,
/// and under `su`, which keeps their `XDG_RUNTIME_DIR`; that user then can't use it, and can replace it. Folders of root and
/// folders with the sticky bit, like `/tmp`, are accepted.
pub(crate) fn check_above(folder: &Path) -> Result<(), Exposed> {
    const STICKY: u32 = 0o1000;
    let above = folder.ancestors().skip(1).find_map(|above| Some((above, above.metadata().ok()?)));
    let Some((above, found)) = above else { return Ok(()) };
    let is_ours = [0, geteuid().as_raw()].contains(&found.uid()) || found.mode() & STICKY != 0;
    if is_ours { Ok(()) } else { Err(Exposed::Foreign { path: above.to_owned(), uid: found.uid() }) }
}

/// Refuses what is another user's, or grants others one of these permissions.
pub(crate) fn check(path: &Path, found: &Metadata, others: u32) -> Result<(), Exposed> {
    let (path, mode) = (path.to_owned(), found.mode() & 0o777);
    if found.uid() != geteuid().as_raw() {
        return Err(Exposed::Foreign { path, uid: found.uid() });
    }
    if mode & others != 0 {
        return Err(Exposed::Open { path, mode, is_folder: found.is_dir() });
    }
    Ok(())
}
