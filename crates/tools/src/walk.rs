//! Walks through a folder tree. Links are not followed, and ignore files and the policy decide
//! which paths are left out.
//!
//! The walked folder is held open, and everything below is opened relative to it, by listed names
//! that are not links. A path that is moved or linked meanwhile cannot lead elsewhere.

mod ignores;
mod parallel;
pub(crate) mod pattern;

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{AtFlags, CWD, Dir, FileType, OFlags, statat};
use rustix::io::Errno;

use crate::context::ToolContext;
use crate::place::{Place, open};
use crate::policy::Exceptions;
use ignores::Ignores;

pub(crate) use parallel::ParallelWalk;

/// A walk through a folder.
pub(crate) struct Walk<'a> {
    context: &'a ToolContext,
    place: &'a Place,
    root: OwnedFd,
    exceptions: Exceptions<'a>,
    /// Whether the caller shows ignored entries. If so, ignored entries that the policy leaves out
    /// are counted, too.
    with_ignored: bool,
    left_out: LeftOut,
}

/// Counts of the paths that a walk has left out.
#[derive(Debug, Default)]
pub(crate) struct LeftOut {
    by_policy: AtomicU64,
    unreadable: AtomicU64,
}

/// The walked folder or one below it.
#[derive(Debug, Clone)]
pub(crate) struct Folder {
    /// Relative to the walked folder; empty for that folder itself.
    pub(crate) path: PathBuf,
    ignores: Option<Arc<Ignores>>,
}

/// The entries of a folder.
#[derive(Debug)]
pub(crate) struct Listing {
    pub(crate) entries: Vec<Entry>,
    ignores: Option<Arc<Ignores>>,
}

#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) name: OsString,
    pub(crate) kind: Kind,
    /// Ignored by an ignore file, or `.git`.
    pub(crate) ignored: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    File,
    Folder,
    Link,
    /// A device, a pipe or a socket.
    Other,
}

impl<'a> Walk<'a> {
    /// Begins a walk at a folder.
    ///
    /// # Errors
    /// An I/O error, also if the place is not a folder.
    pub(crate) fn through(place: &'a Place, context: &'a ToolContext) -> io::Result<Self> {
        let root = open(CWD, place.path(), OFlags::RDONLY | OFlags::DIRECTORY)?;
        let workspace = context.workspace();
        let exceptions = workspace.policy().exceptions(&context.tool_name, place, workspace.root());
        Ok(Self {
            context,
            place,
            root,
            exceptions,
            with_ignored: false,
            left_out: LeftOut::default(),
        })
    }

    /// Declares that the caller also shows ignored entries.
    pub(crate) fn with_ignored(self) -> Self {
        Self { with_ignored: true, ..self }
    }

    /// The folder at which the walk begins.
    pub(crate) fn top(&self) -> Folder {
        Folder { path: PathBuf::new(), ignores: Ignores::above(self.place, self.context.root()) }
    }

    /// Lists a folder, without the entries that the policy does not allow to be read. Empty if the
    /// folder can't be read.
    pub(crate) fn list(&self, folder: &Folder) -> Listing {
        let entries = self.entries(folder).unwrap_or_else(|_| {
            self.left_out.unreadable.fetch_add(1, Ordering::Relaxed);
            Vec::new()
        });
        let absolute = self.place.path().join(&folder.path);
        let ignores = Ignores::below(folder.ignores.as_ref(), &absolute, &entries, |path| {
            self.open(&folder.path.join(path))
        });
        let mut listing = Listing { entries, ignores };
        listing.entries.retain_mut(|entry| {
            let path = absolute.join(&entry.name);
            let is_folder = entry.kind == Kind::Folder;
            entry.ignored = entry.name == ".git"
                || Ignores::is_ignored(listing.ignores.as_ref(), &path, is_folder);
            let may_be_read = self.may_be_read(&folder.path, &entry.name);
            if !may_be_read && (self.with_ignored || !entry.ignored) {
                self.left_out.by_policy.fetch_add(1, Ordering::Relaxed);
            }
            may_be_read
        });
        listing
    }

    fn entries(&self, folder: &Folder) -> io::Result<Vec<Entry>> {
        let path = if folder.path.as_os_str().is_empty() { Path::new(".") } else { &folder.path };
        let opened = open(&self.root, path, OFlags::RDONLY | OFlags::DIRECTORY)?;
        let mut entries = Vec::new();
        let mut listed = Dir::new(opened)?;
        while let Some(entry) = listed.next() {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name == "." || name == ".." {
                continue;
            }
            let kind = match entry.file_type() {
                // Not every file system reports the type.
                FileType::Unknown => {
                    match statat(listed.fd()?, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW) {
                        Ok(stat) => FileType::from_raw_mode(stat.st_mode),
                        Err(Errno::NOENT) => continue,
                        Err(error) => return Err(error.into()),
                    }
                }
                kind => kind,
            };
            let kind = match kind {
                FileType::RegularFile => Kind::File,
                FileType::Directory => Kind::Folder,
                FileType::Symlink => Kind::Link,
                _ => Kind::Other,
            };
            entries.push(Entry { name: name.to_owned(), kind, ignored: false });
        }
        Ok(entries)
    }

    /// Enters a listed folder.
    pub(crate) fn enter(folder: &Folder, listing: &Listing, entry: &Entry) -> Folder {
        Folder { path: folder.path.join(&entry.name), ignores: listing.ignores.clone() }
    }

    /// Opens a listed file for reading.
    pub(crate) fn open(&self, path: &Path) -> io::Result<File> {
        Ok(open(&self.root, path, OFlags::RDONLY)?.into())
    }

    /// Counts a listed file that could not be read.
    pub(crate) fn count_unreadable(&self) {
        self.left_out.unreadable.fetch_add(1, Ordering::Relaxed);
    }

    /// The modification time of a listed file, in seconds and nanoseconds.
    pub(crate) fn modified(&self, path: &Path) -> io::Result<(i64, u64)> {
        let stat = statat(&self.root, path, AtFlags::SYMLINK_NOFOLLOW)?;
        Ok((stat.st_mtime as i64, stat.st_mtime_nsec as u64))
    }

    /// The target of a link, not resolved.
    pub(crate) fn target(&self, path: &Path) -> Option<String> {
        let target = rustix::fs::readlinkat(&self.root, path, Vec::new()).ok()?;
        Some(target.to_string_lossy().into_owned())
    }

    /// The displayed form of a path below the walked folder: relative to the workspace if the
    /// folder is inside.
    pub(crate) fn shown(&self, path: &Path) -> PathBuf {
        match self.place.shown() {
            "." => path.to_owned(),
            shown => Path::new(shown).join(path),
        }
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.context.is_cancelled()
    }

    /// Notes that count the paths left out.
    pub(crate) fn left_out_notes(&self) -> Vec<String> {
        let notes = [
            (&self.left_out.by_policy, "left out by the policy"),
            (&self.left_out.unreadable, "that could not be read"),
        ];
        let note = |(count, description): (&AtomicU64, _)| {
            count_note(count.load(Ordering::Relaxed), "path", description)
        };
        notes.into_iter().filter_map(note).collect()
    }

    /// Whether the policy allows an entry to be read, by the folder's resolved path and by its
    /// given one.
    fn may_be_read(&self, folder: &Path, name: &OsStr) -> bool {
        if self.exceptions.is_empty() {
            return true;
        }
        let below = folder.join(name);
        let (path, given) = (self.place.path(), self.place.given_path());
        !self.exceptions.leaves_out(&path.join(&below))
            && (given == path || !self.exceptions.leaves_out(&given.join(&below)))
    }
}

/// The count with its noun and a description, or `None` if it is zero.
pub(crate) fn count_note(count: u64, noun: &str, description: &str) -> Option<String> {
    match count {
        0 => None,
        1 => Some(format!("1 {noun} {description}")),
        count => Some(format!("{count} {noun}s {description}")),
    }
}
