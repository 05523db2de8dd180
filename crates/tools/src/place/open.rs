//! Opens resolved paths. No link is followed, and an [`OpenParent`] opens only regular files.

use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, openat, statat};
use rustix::io::Errno;

/// The flags for holding a folder open, to open other paths relative to it.
#[cfg(target_os = "linux")]
pub(super) const HOLD: OFlags = OFlags::PATH.union(OFlags::DIRECTORY);
#[cfg(not(target_os = "linux"))]
pub(super) const HOLD: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY);

/// The folder of a place, held open, and the name in it. Even if the path to the folder changes,
/// this is the place that was resolved.
#[derive(Debug)]
pub(crate) struct OpenParent {
    folder: OwnedFd,
    name: OsString,
}

/// Opens `path` relative to `folder`, or from the root if it is absolute. No part of it may be a
/// link or `..`. Opening a pipe does not block.
pub(crate) fn open(folder: impl AsFd, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    // openat2 refuses these flags together with PATH.
    let nonblocking =
        if flags == HOLD { OFlags::empty() } else { OFlags::NONBLOCK | OFlags::NOCTTY };
    let flags = flags | nonblocking | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{ResolveFlags, openat2};
        let beneath =
            if path.is_absolute() { ResolveFlags::empty() } else { ResolveFlags::BENEATH };
        match openat2(&folder, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS | beneath) {
            // Unknown to an old kernel, or forbidden in a container.
            Err(Errno::NOSYS | Errno::PERM) => {}
            opened => return opened.map_err(explain),
        }
    }
    open_step_by_step(folder, path, flags).map_err(explain)
}

fn open_step_by_step(folder: impl AsFd, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    let hold = HOLD | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut held = match path.is_absolute() {
        true => openat(CWD, "/", hold, Mode::empty())?,
        false => openat(folder, ".", hold, Mode::empty())?,
    };
    let mut parts = path
        .components()
        .filter(|part| !matches!(part, Component::RootDir | Component::CurDir))
        .peekable();
    while let Some(part) = parts.next() {
        if part == Component::ParentDir {
            return Err(Errno::XDEV);
        }
        let flags = if parts.peek().is_some() { hold } else { flags };
        held = match openat(&held, part.as_os_str(), flags, Mode::empty()) {
            // Linux reports NOTDIR for a link as well as for a file when a folder is expected.
            Err(Errno::NOTDIR) if is_link(&held, part.as_os_str()) => return Err(Errno::LOOP),
            opened => opened?,
        };
    }
    // The root and `.` have no part that was opened with `flags`.
    match path.file_name().is_none() {
        true => openat(&held, ".", flags, Mode::empty()),
        false => Ok(held),
    }
}

fn is_link(folder: &OwnedFd, name: &OsStr) -> bool {
    statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)
        .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Symlink)
}

/// Explains the error for a link, which the path did not have when it was resolved.
fn explain(error: Errno) -> io::Error {
    match error {
        Errno::LOOP => io::Error::other("a part of the path has become a link"),
        error => error.into(),
    }
}

impl OpenParent {
    /// Holds the folder of `path`, which is absolute and without links.
    ///
    /// # Errors
    /// Also fails if the folder is missing or if `path` is the root.
    pub(crate) fn open_existing(path: &Path) -> io::Result<Self> {
        let (folder, name) = folder_and_name(path)?;
        Ok(Self { folder: open(CWD, folder, HOLD)?, name: name.to_owned() })
    }

    /// Like [`open_existing`](Self::open_existing), but creates missing folders.
    pub(crate) fn open_or_create(path: &Path) -> io::Result<Self> {
        let (folder, name) = folder_and_name(path)?;
        let is_missing = |folder: &Path| {
            open(CWD, folder, HOLD).is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
        };
        let existing =
            folder.ancestors().find(|folder| !is_missing(folder)).unwrap_or(Path::new("/"));
        let mut held = open(CWD, existing, HOLD)?;
        for part in folder.strip_prefix(existing).unwrap_or(Path::new("")) {
            match rustix::fs::mkdirat(&held, part, Mode::from_raw_mode(0o777)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
            held = open(&held, Path::new(part), HOLD)?;
        }
        Ok(Self { folder: held, name: name.to_owned() })
    }

    /// Opens the file for reading. `None` if it is missing.
    ///
    /// # Errors
    /// Also fails if this is not a regular file. A device or a pipe is not opened.
    pub(crate) fn open(&self) -> io::Result<Option<(File, Metadata)>> {
        let stat = match statat(&self.folder, &self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => return Ok(None),
            stat => stat?,
        };
        if let Some(error) = not_regular_error(FileType::from_raw_mode(stat.st_mode)) {
            return Err(error);
        }
        let file = File::from(open(&self.folder, Path::new(&self.name), OFlags::RDONLY)?);
        let metadata = file.metadata()?;
        match metadata.is_file() {
            true => Ok(Some((file, metadata))),
            false => Err(io::Error::other("it is no longer a file")),
        }
    }

    pub(super) fn folder(&self) -> &OwnedFd {
        &self.folder
    }

    pub(super) fn name(&self) -> &OsStr {
        &self.name
    }
}

fn folder_and_name(path: &Path) -> io::Result<(&Path, &OsStr)> {
    path.parent()
        .zip(path.file_name())
        .ok_or_else(|| io::Error::other("it is a folder, not a file"))
}

/// The error for anything but a regular file.
fn not_regular_error(kind: FileType) -> Option<io::Error> {
    let found = match kind {
        FileType::RegularFile => return None,
        FileType::Directory => "a folder",
        FileType::Symlink => "now a link",
        FileType::Fifo => "a pipe",
        FileType::Socket => "a socket",
        FileType::CharacterDevice | FileType::BlockDevice => "a device",
        _ => "something else",
    };
    Some(io::Error::other(format!("it is {found}, not a file")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_explained_with_and_without_openat2() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::create_dir(root.join("real")).unwrap();
        std::fs::write(root.join("real/file"), "").unwrap();
        std::os::unix::fs::symlink("real", root.join("link")).unwrap();
        std::os::unix::fs::symlink("real/file", root.join("linked")).unwrap();
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        assert!(open_step_by_step(CWD, &root.join("real/file"), flags).is_ok());
        for path in ["link/file", "linked"].map(|path| root.join(path)) {
            assert_eq!(open_step_by_step(CWD, &path, flags).unwrap_err(), Errno::LOOP);
            let error = open(CWD, &path, OFlags::RDONLY).unwrap_err();
            assert_eq!(error.to_string(), "a part of the path has become a link");
        }
        let below_file = open_step_by_step(CWD, &root.join("real/file/x"), flags).unwrap_err();
        assert_eq!(below_file, Errno::NOTDIR);
    }
}
