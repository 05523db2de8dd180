//! Walking through a folder: what lies in it and below, link by link refused, as ignore files and the policy have it.
//!
//! The folder is held open, and all below is opened from there, by names that were listed and no link among them: what
//! is moved or linked meanwhile leads nowhere else.

mod crew;
mod ignores;
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

pub(crate) use crew::Crew;

/// A folder that is walked through.
pub(crate) struct Walk<'a> {
    context: &'a ToolContext,
    place: &'a Place,
    root: OwnedFd,
    exceptions: Exceptions<'a>,
    /// What is ignored is looked at, too.
    with_ignored: bool,
    left_out: LeftOut,
}

/// What a walk did not look at.
#[derive(Debug, Default)]
pub(crate) struct LeftOut {
    by_policy: AtomicU64,
    unreadable: AtomicU64,
}

/// A folder on the way.
#[derive(Debug, Clone)]
pub(crate) struct Folder {
    /// From the folder that is walked through; empty for that itself.
    pub(crate) path: PathBuf,
    ignores: Option<Arc<Ignores>>,
}

/// What lies in a folder.
#[derive(Debug)]
pub(crate) struct Listing {
    pub(crate) entries: Vec<Entry>,
    ignores: Option<Arc<Ignores>>,
}

#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) name: OsString,
    pub(crate) kind: Kind,
    /// An ignore file says so, or it is `.git`.
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
    /// Begins at a folder.
    ///
    /// # Errors
    /// Also if it is none.
    pub(crate) fn through(place: &'a Place, context: &'a ToolContext) -> io::Result<Self> {
        let root = open(CWD, place.path(), OFlags::RDONLY | OFlags::DIRECTORY)?;
        let workspace = context.workspace();
        let exceptions = workspace.policy().exceptions(&context.tool_name, place, workspace.root());
        Ok(Self { context, place, root, exceptions, with_ignored: false, left_out: LeftOut::default() })
    }

    /// The same, for one who shows what is ignored, too.
    pub(crate) fn with_ignored(self) -> Self {
        Self { with_ignored: true, ..self }
    }

    /// The folder it begins at.
    pub(crate) fn top(&self) -> Folder {
        Folder { path: PathBuf::new(), ignores: Ignores::above(self.place, self.context.root()) }
    }

    /// What lies in a folder, without what the policy does not let be read. Nothing if it can't be read.
    pub(crate) fn list(&self, folder: &Folder) -> Listing {
        let entries = self.entries(folder).unwrap_or_else(|_| {
            self.left_out.unreadable.fetch_add(1, Ordering::Relaxed);
            Vec::new()
        });
        let absolute = self.place.path().join(&folder.path);
        let ignores =
            Ignores::below(folder.ignores.as_ref(), &absolute, &entries, |path| self.open(&folder.path.join(path)));
        let mut listing = Listing { entries, ignores };
        listing.entries.retain_mut(|entry| {
            let path = absolute.join(&entry.name);
            let is_folder = entry.kind == Kind::Folder;
            entry.ignored = entry.name == ".git" || Ignores::is_ignored(listing.ignores.as_ref(), &path, is_folder);
            let may_be_read = self.lets_read(&folder.path, &entry.name);
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
                // Not every file system says.
                FileType::Unknown => match statat(listed.fd()?, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW) {
                    Ok(stat) => FileType::from_raw_mode(stat.st_mode),
                    Err(Errno::NOENT) => continue,
                    Err(error) => return Err(error.into()),
                },
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

    /// A folder that was listed.
    pub(crate) fn enter(folder: &Folder, listing: &Listing, entry: &Entry) -> Folder {
        Folder { path: folder.path.join(&entry.name), ignores: listing.ignores.clone() }
    }

    /// Opens a file that was listed, for reading.
    pub(crate) fn open(&self, path: &Path) -> io::Result<File> {
        Ok(open(&self.root, path, OFlags::RDONLY)?.into())
    }

    /// A file that was listed could not be read.
    pub(crate) fn could_not_read(&self) {
        self.left_out.unreadable.fetch_add(1, Ordering::Relaxed);
    }

    /// When a file that was listed was last changed, and in which nanosecond.
    pub(crate) fn modified(&self, path: &Path) -> io::Result<(i64, u64)> {
        let stat = statat(&self.root, path, AtFlags::SYMLINK_NOFOLLOW)?;
        Ok((stat.st_mtime as i64, stat.st_mtime_nsec as u64))
    }

    /// Where a link leads, as it says.
    pub(crate) fn target(&self, path: &Path) -> Option<String> {
        let target = rustix::fs::readlinkat(&self.root, path, Vec::new()).ok()?;
        Some(target.to_string_lossy().into_owned())
    }

    /// How a path below is shown: relative to the workspace where it lies inside.
    pub(crate) fn shown(&self, path: &Path) -> PathBuf {
        match self.place.shown() {
            "." => path.to_owned(),
            shown => Path::new(shown).join(path),
        }
    }

    /// Whether the turn was cut.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.context.is_cancelled()
    }

    /// What was not looked at, in words, each a note.
    pub(crate) fn left_out(&self) -> Vec<String> {
        let notes = [
            (&self.left_out.by_policy, "left out by the policy"),
            (&self.left_out.unreadable, "that could not be read"),
        ];
        let note = |(count, what): (&AtomicU64, _)| counted(count.load(Ordering::Relaxed), "path", what);
        notes.into_iter().filter_map(note).collect()
    }

    /// Whether the policy lets a path below be read, as it lies and by the name the folder was reached by.
    fn lets_read(&self, folder: &Path, name: &OsStr) -> bool {
        if self.exceptions.is_empty() {
            return true;
        }
        let below = folder.join(name);
        let (path, named) = (self.place.path(), self.place.named());
        !self.exceptions.include(&path.join(&below)) && (named == path || !self.exceptions.include(&named.join(&below)))
    }
}

/// So many of something, if there are any.
pub(crate) fn counted(count: u64, thing: &str, what: &str) -> Option<String> {
    match count {
        0 => None,
        1 => Some(format!("1 {thing} {what}")),
        count => Some(format!("{count} {thing}s {what}")),
    }
}
