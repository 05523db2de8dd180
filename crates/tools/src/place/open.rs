//! Opening what a path was found to lead to: no link is followed any more, and nothing but a file is opened.

use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, openat, statat};
use rustix::io::Errno;

/// What a folder is held open with, to open others from there.
#[cfg(target_os = "linux")]
pub(super) const HOLD: OFlags = OFlags::PATH.union(OFlags::DIRECTORY);
#[cfg(not(target_os = "linux"))]
pub(super) const HOLD: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY);

/// A place's folder, held open, and the name in it. Whatever becomes of the way there, this is the place that was
/// found.
#[derive(Debug)]
pub(crate) struct Spot {
    folder: OwnedFd,
    name: OsString,
}

/// Opens what `path` leads to from `folder`, or from the root if it is absolute. No part of it may be a link or `..`.
/// Does not wait for the other end of a pipe.
pub(crate) fn open(folder: impl AsFd, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    let calm = if flags == HOLD { OFlags::empty() } else { OFlags::NONBLOCK | OFlags::NOCTTY };
    let flags = flags | calm | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{ResolveFlags, openat2};
        let beneath = if path.is_absolute() { ResolveFlags::empty() } else { ResolveFlags::BENEATH };
        match openat2(&folder, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS | beneath) {
            // Not known to an old kernel, or not allowed in a container.
            Err(Errno::NOSYS | Errno::PERM) => {}
            opened => return opened.map_err(explain),
        }
    }
    step_by_step(folder, path, flags).map_err(explain)
}

fn step_by_step(folder: impl AsFd, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    let hold = HOLD | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut held = match path.is_absolute() {
        true => openat(CWD, "/", hold, Mode::empty())?,
        false => openat(folder, ".", hold, Mode::empty())?,
    };
    let mut parts = path.components().filter(|part| !matches!(part, Component::RootDir | Component::CurDir)).peekable();
    while let Some(part) = parts.next() {
        if part == Component::ParentDir {
            return Err(Errno::XDEV);
        }
        let flags = if parts.peek().is_some() { hold } else { flags };
        held = openat(&held, part.as_os_str(), flags, Mode::empty())?;
    }
    match path.file_name().is_none() {
        true => openat(&held, ".", flags, Mode::empty()),
        false => Ok(held),
    }
}

/// What was found was no link, whoever reads this did not ask about links.
fn explain(error: Errno) -> io::Error {
    match error {
        Errno::LOOP => io::Error::other("a part of the path has become a link"),
        error => error.into(),
    }
}

impl Spot {
    /// Holds the folder of `path`: absolute, and no part of it a link.
    ///
    /// # Errors
    /// Also if the folder is missing, and for the root.
    pub(crate) fn of(path: &Path) -> io::Result<Self> {
        let (folder, name) = folder_and_name(path)?;
        Ok(Self { folder: open(CWD, folder, HOLD)?, name: name.to_owned() })
    }

    /// The same, and makes folders that are missing.
    pub(crate) fn make(path: &Path) -> io::Result<Self> {
        let (folder, name) = folder_and_name(path)?;
        let missing =
            |folder: &Path| matches!(open(CWD, folder, HOLD), Err(error) if error.kind() == io::ErrorKind::NotFound);
        let there = folder.ancestors().find(|folder| !missing(folder)).unwrap_or(Path::new("/"));
        let mut held = open(CWD, there, HOLD)?;
        for part in folder.strip_prefix(there).unwrap_or(Path::new("")) {
            match rustix::fs::mkdirat(&held, part, Mode::from_raw_mode(0o777)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
            held = open(&held, Path::new(part), HOLD)?;
        }
        Ok(Self { folder: held, name: name.to_owned() })
    }

    /// Opens the file there for reading. `None` if there is nothing.
    ///
    /// # Errors
    /// Also if it is no file: a device or a pipe is not so much as touched.
    pub(crate) fn open(&self) -> io::Result<Option<(File, Metadata)>> {
        let stat = match statat(&self.folder, &self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => return Ok(None),
            stat => stat?,
        };
        if let Some(error) = no_file(FileType::from_raw_mode(stat.st_mode)) {
            return Err(error);
        }
        let file = File::from(open(&self.folder, Path::new(&self.name), OFlags::RDONLY)?);
        let metadata = file.metadata()?;
        match metadata.is_file() {
            true => Ok(Some((file, metadata))),
            false => Err(io::Error::other("it is no file any more")),
        }
    }

    /// The folder.
    pub(super) fn folder(&self) -> &OwnedFd {
        &self.folder
    }

    /// The name in it.
    pub(super) fn name(&self) -> &OsStr {
        &self.name
    }
}

fn folder_and_name(path: &Path) -> io::Result<(&Path, &OsStr)> {
    path.parent().zip(path.file_name()).ok_or_else(|| io::Error::other("it is a folder, not a file"))
}

/// Why there is nothing to read or write, if there is no file.
fn no_file(kind: FileType) -> Option<io::Error> {
    let what = match kind {
        FileType::RegularFile => return None,
        FileType::Directory => "a folder",
        FileType::Symlink => "a link by now",
        FileType::Fifo => "a pipe",
        FileType::Socket => "a socket",
        FileType::CharacterDevice | FileType::BlockDevice => "a device",
        _ => "something else",
    };
    Some(io::Error::other(format!("it is {what}, not a file")))
}
