//! Puts files aside, and puts contents in place.
//!
//! Other processes may change the workspace meanwhile, so everything happens in folders that are
//! held open. A file is replaced by a new one that takes its name: neither a link nor another name
//! of the file (a hard link) leads a write elsewhere.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, Gid, Mode, OFlags, Uid, fchmod, fchown, fstat, mkdirat, openat, renameat, statat,
    symlinkat, unlinkat,
};
use rustix::io::Errno;

use super::entry::{Content, Entry, Stamp};
use super::role::is_protected;
use super::scan::Root;
use crate::place::open;

/// The prefix of the names of files that can't be kept. Such a file is renamed, and moved out of
/// folders with protected names.
const RENAMED: &str = "holdpoint-aside-";

/// Where a changed file was put.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Put {
    /// Its contents are in this file of the session.
    Aside(PathBuf),
    /// It is at this path below the workspace.
    Renamed(PathBuf),
}

impl Root {
    /// Replaces `path` by an entry, or removes it. Missing folders are created.
    pub(super) fn put(&self, path: &Path, entry: Option<&Entry>) -> io::Result<()> {
        let (folder, name) = parts(path)?;
        let Some(entry) = entry else {
            let folder = self.open_writable(folder)?;
            return match unlinkat(&folder, name, AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT) => Ok(()),
                Err(error) => Err(error.into()),
            };
        };
        let folder = self.open_or_create(folder)?;
        let temp = fresh_name(".holdpoint-");
        let created = create(&folder, &temp, entry).and_then(|()| {
            match renameat(&folder, &temp, &folder, name) {
                // A folder is in the way.
                Err(Errno::ISDIR | Errno::NOTEMPTY | Errno::EXIST) => {
                    rename_away(&folder, name)?;
                    Ok(renameat(&folder, &temp, &folder, name)?)
                }
                renamed => Ok(renamed?),
            }
        });
        if created.is_err() {
            // After the rename there is no file of this name.
            let _ = unlinkat(&folder, &temp, AtFlags::empty());
        }
        created
    }

    /// Moves a file to a name that is not protected. Returns the new path.
    pub(super) fn rename(&self, path: &Path) -> io::Result<PathBuf> {
        let (folder, name) = parts(path)?;
        let to = above_protected(path);
        let new = fresh_name(RENAMED);
        renameat(self.open_writable(folder)?, name, self.open_writable(&to)?, &new)?;
        Ok(to.join(new))
    }

    /// Opens a folder in which names change. A command may have made it unwritable.
    fn open_writable(&self, path: &Path) -> io::Result<OwnedFd> {
        let folder = self.open_folder(path)?;
        make_writable(&folder)?;
        Ok(folder)
    }

    /// Removes the folders above `path` that are empty and have a protected name or are below one.
    pub(super) fn remove_empty_folders(&self, path: &Path) {
        for folder in path.ancestors().skip(1) {
            let has_protected = folder.iter().any(is_protected_name);
            let Ok((parent, name)) = parts(folder) else { return };
            let removed = has_protected
                && self
                    .open_folder(parent)
                    .is_ok_and(|parent| unlinkat(&parent, name, AtFlags::REMOVEDIR).is_ok());
            if !removed {
                return;
            }
        }
    }

    /// Opens a folder, and creates those that are missing. A file in the way of one is renamed.
    fn open_or_create(&self, path: &Path) -> io::Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let mut folder = self.open_writable(Path::new(""))?;
        for name in path {
            let next = match open(folder.as_fd(), Path::new(name), flags) {
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Err(error),
                Err(_) => {
                    if statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW).is_ok() {
                        rename_away(&folder, name)?;
                    }
                    mkdirat(&folder, name, Mode::from_raw_mode(0o755))?;
                    open(folder.as_fd(), Path::new(name), flags)?
                }
                Ok(next) => next,
            };
            make_writable(&next)?;
            folder = next;
        }
        Ok(folder)
    }
}

/// Saves an entry below a folder of the session, where no process in the sandbox can write.
pub(super) fn save(folder: &Path, path: &Path, content: &Content) -> io::Result<PathBuf> {
    let saved = folder.join(path);
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true).mode(0o700);
    builder.create(saved.parent().unwrap_or(folder))?;
    match content {
        Content::File(bytes) => fs::write(&saved, bytes)?,
        Content::Link(target) => {
            std::os::unix::fs::symlink(OsStr::from_bytes(target), &saved)?;
        }
        Content::NotKept(why) => return Err(io::Error::other(*why)),
    }
    Ok(saved)
}

fn create(folder: &OwnedFd, name: &OsStr, entry: &Entry) -> io::Result<()> {
    match &entry.content {
        Content::File(bytes) => {
            let flags =
                OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let mut file = File::from(openat(folder, name, flags, Mode::from_raw_mode(0o600))?);
            file.write_all(bytes)?;
            let (owner, group) = entry.owner();
            // Only root may set the owner.
            let _ = fchown(&file, Some(Uid::from_raw(owner)), Some(Gid::from_raw(group)));
            // Without the bits that run a program as another user.
            Ok(fchmod(&file, Mode::from_raw_mode(entry.mode() & 0o1777))?)
        }
        Content::Link(target) => Ok(symlinkat(OsStr::from_bytes(target), folder, name)?),
        Content::NotKept(why) => Err(io::Error::other(*why)),
    }
}

fn rename_away(folder: &OwnedFd, name: &OsStr) -> io::Result<()> {
    Ok(renameat(folder, name, folder, fresh_name(RENAMED))?)
}

fn make_writable(folder: &OwnedFd) -> io::Result<()> {
    let mode = Stamp::new(&fstat(folder)?).mode & 0o7777;
    if mode & 0o700 != 0o700 {
        fchmod(folder, Mode::from_raw_mode(mode | 0o700))?;
    }
    Ok(())
}

/// A name that no file has: its end is random.
fn fresh_name(prefix: &str) -> OsString {
    // The keys of a hasher are random, and so is its result.
    format!("{prefix}{:016x}", RandomState::new().build_hasher().finish()).into()
}

/// The folder and the name of a path below the workspace.
fn parts(path: &Path) -> io::Result<(&Path, &OsStr)> {
    let parts = path.parent().zip(path.file_name());
    parts.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))
}

/// Whether the folder exists whose removal takes the file with it: the one above its outermost
/// protected name, or its git directory.
pub(super) fn has_holder(root: &Root, path: &Path) -> bool {
    let mut holder = above_protected(path);
    let below = path.strip_prefix(&holder).unwrap_or(path);
    if below.iter().count() > 1 {
        match below.iter().next() {
            Some(name) if name.eq_ignore_ascii_case(".git") => holder.push(name),
            // A bare repository.
            Some(name) if !is_protected_name(name) => holder = path.with_file_name(""),
            _ => {}
        }
    }
    root.open_folder(&holder).is_ok()
}

/// The folder of the outermost protected name of a path; the workspace if there is none.
fn above_protected(path: &Path) -> PathBuf {
    let at = path.iter().position(is_protected_name).unwrap_or_default();
    path.iter().take(at).collect()
}

fn is_protected_name(name: &OsStr) -> bool {
    name.to_str().is_some_and(is_protected)
}
