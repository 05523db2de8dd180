//! Finds the protected files below a workspace.
//!
//! Other processes may change the workspace meanwhile, so every path is opened relative to the
//! workspace folder, without following links.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, chmod, fstat, statat};

use super::entry::{Entry, Quota, Stamp};
use super::role::{Part, Role, is_bare_repository};
use crate::place::open;

/// The most folders and files that one search adds to those known before. A flood of new ones
/// therefore hides no change of a known one.
const MAX_NEW_FOLDERS: usize = 20_000;
const MAX_NEW_FILES: usize = 20_000;

/// The most folders and files, each, that are known.
const MAX_KNOWN: usize = 60_000;

/// The most names that one search reads.
const MAX_NAMES: usize = 500_000;

/// The most bytes of contents that one search reads.
const MAX_BYTES: u64 = 16 * 1024 * 1024;

/// The most bytes of contents that are kept.
const MAX_KEPT_BYTES: u64 = 32 * 1024 * 1024;

/// The protected files below a workspace, by their paths relative to it.
#[derive(Debug, Default)]
pub(super) struct Snapshot {
    pub(super) files: BTreeMap<PathBuf, Arc<Entry>>,
    /// Folders by their paths. A folder that has not changed is not read again.
    folders: HashMap<PathBuf, Folder>,
    /// Why paths could not be searched.
    pub(super) problems: BTreeMap<PathBuf, String>,
}

#[derive(Debug, Clone)]
struct Folder {
    stamp: Stamp,
    settled: bool,
    given: Role,
    children: Arc<[(OsString, Part)]>,
}

/// The folder of a workspace, held open.
#[derive(Debug)]
pub(super) struct Root {
    pub(super) folder: OwnedFd,
    device: u64,
}

impl Root {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let folder = open(CWD, path, OFlags::RDONLY | OFlags::DIRECTORY)?;
        let device = Stamp::new(&fstat(&folder)?).device;
        Ok(Self { folder, device })
    }

    /// Opens a folder below the workspace without following links.
    pub(super) fn open_folder(&self, path: &Path) -> io::Result<OwnedFd> {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        open(self.folder.as_fd(), path, OFlags::RDONLY | OFlags::DIRECTORY)
    }

    /// Lets the user enter and read a folder below the workspace.
    fn make_readable(&self, path: &Path) -> io::Result<()> {
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        let folder = open(self.folder.as_fd(), path, flags)?;
        let mode = Stamp::new(&fstat(&folder)?).mode & 0o7777;
        // The path leads to the open folder, even if another one has its name by now.
        let opened = format!("/proc/self/fd/{}", folder.as_raw_fd());
        Ok(chmod(opened, Mode::from_raw_mode(mode | 0o700))?)
    }

    /// Reads one entry; `None` if there is none.
    pub(super) fn read(&self, path: &Path, known: &Arc<Entry>) -> io::Result<Option<Arc<Entry>>> {
        let Some(name) = path.file_name() else { return Ok(None) };
        let folder = match self.open_folder(path.parent().unwrap_or(Path::new(""))) {
            Err(error) if is_gone(&error) => return Ok(None),
            folder => folder?,
        };
        let (now, mut quota) = (SystemTime::UNIX_EPOCH, Quota(MAX_BYTES));
        Entry::read(&folder, name, Some(known), known.is_git_config, now, &mut quota)
    }
}

/// Whether a folder of a path is missing, or is a file or a link by now.
pub(super) fn is_gone(error: &io::Error) -> bool {
    use io::ErrorKind::{NotADirectory, NotFound};
    // `open` reports a link as another error.
    matches!(error.kind(), NotFound | NotADirectory) || error.raw_os_error().is_none()
}

struct Search<'a> {
    root: &'a Root,
    /// Folders that are not searched.
    skipped: &'a [PathBuf],
    before: &'a Snapshot,
    found: Snapshot,
    queue: VecDeque<Next>,
    /// The time of the search, to tell files that have settled; the epoch if none has.
    now: SystemTime,
    new_folders: usize,
    new_files: usize,
    names: usize,
    opens: bool,
    quota: Quota,
}

/// A folder that is searched next.
struct Next {
    path: PathBuf,
    role: Role,
    stamp: Option<Stamp>,
}

/// Finds the protected files below `root`, with the help of an earlier search. `is_alone` is whether
/// no process in the sandbox lives. Otherwise one may write through a mapping of a file, which
/// does not change its times each time. With `opens`, folders that were closed to their user since
/// the earlier search are opened.
pub(super) fn search(
    root: &Root,
    skipped: &[PathBuf],
    before: &Snapshot,
    is_alone: bool,
    opens: bool,
) -> Snapshot {
    let kept_bytes = before.files.values().map(|entry| entry.kept_bytes()).sum();
    let mut search = Search {
        root,
        skipped,
        before,
        found: Snapshot::default(),
        queue: [Next { path: PathBuf::new(), role: Role::Plain, stamp: None }].into(),
        now: if is_alone { SystemTime::now() } else { SystemTime::UNIX_EPOCH },
        new_folders: MAX_NEW_FOLDERS.min(MAX_KNOWN.saturating_sub(before.folders.len())),
        new_files: MAX_NEW_FILES.min(MAX_KNOWN.saturating_sub(before.files.len())),
        names: MAX_NAMES,
        opens,
        quota: Quota(MAX_BYTES.min(MAX_KEPT_BYTES.saturating_sub(kept_bytes))),
    };
    while let Some(next) = search.queue.pop_front() {
        if let Err(error) = search.folder(&next) {
            // A folder that was removed meanwhile has no files.
            if !is_gone(&error) {
                search.found.problems.insert(next.path, error.to_string());
            }
        }
    }
    search.keep_closed();
    search.found
}

impl Search<'_> {
    fn folder(&mut self, next: &Next) -> io::Result<()> {
        let Next { path, role, stamp } = next;
        let before = self.before.folders.get(path).filter(|before| before.given == *role);
        if before.is_none() && !self.take_new_folder() {
            return Ok(());
        }
        // A folder without children needs no further look if it is the same as before.
        if let (Some(before), Some(stamp)) = (before, stamp)
            && before.settled
            && before.stamp == *stamp
            && before.children.is_empty()
        {
            self.found.folders.insert(path.clone(), before.clone());
            return Ok(());
        }
        let fd = self.open(path)?;
        let stamp = Stamp::new(&fstat(&fd)?);
        if stamp.device != self.root.device {
            return Ok(());
        }
        let before = before.filter(|before| before.settled && before.stamp == stamp);
        let folder = match before {
            Some(before) => before.clone(),
            None => Folder {
                stamp,
                settled: stamp.is_settled(self.now),
                given: *role,
                children: self.children(&fd, *role)?,
            },
        };
        for (name, part) in folder.children.iter() {
            match part {
                Part::File { is_git_config } => {
                    self.file(&fd, path.join(name), name, *is_git_config);
                }
                Part::Folder(role) => self.enqueue(&fd, path.join(name), name, *role),
            }
        }
        self.found.folders.insert(path.clone(), folder);
        Ok(())
    }

    /// Opens a folder, also one that a command has closed to its user.
    fn open(&self, path: &Path) -> io::Result<OwnedFd> {
        match self.root.open_folder(path) {
            Err(error)
                if error.kind() == io::ErrorKind::PermissionDenied
                    && self.opens
                    && !self.before.problems.contains_key(path) =>
            {
                self.root.make_readable(path)?;
                self.root.open_folder(path)
            }
            folder => folder,
        }
    }

    /// Reads the names in a folder. Returns those that have a part in the comparison.
    fn children(&mut self, fd: &OwnedFd, role: Role) -> io::Result<Arc<[(OsString, Part)]>> {
        let mut names = Vec::new();
        for entry in Dir::read_from(fd)? {
            let entry = entry?;
            let name = entry.file_name();
            if name == c"." || name == c".." {
                continue;
            }
            let Some(left) = self.names.checked_sub(1) else {
                self.add_limit(format!("more than {MAX_NAMES} names"));
                break;
            };
            self.names = left;
            let name = OsStr::from_bytes(name.to_bytes());
            let is_folder = match entry.file_type() {
                FileType::Unknown => statat(fd, name, AtFlags::SYMLINK_NOFOLLOW)
                    .is_ok_and(|stat| Stamp::new(&stat).is_folder()),
                kind => kind == FileType::Directory,
            };
            names.push((name.to_owned(), is_folder));
        }
        let known = names.iter().filter_map(|(name, _)| name.to_str());
        let role = match role {
            Role::Plain if is_bare_repository(known) => Role::Bare,
            role => role,
        };
        let part = |(name, is_folder): (OsString, bool)| {
            // A name that is not UTF-8 is no protected name, but can be a file in a folder of one.
            let part = role.part(&name.to_string_lossy(), is_folder)?;
            Some((name, part))
        };
        Ok(names.into_iter().filter_map(part).collect())
    }

    fn enqueue(&mut self, fd: &OwnedFd, path: PathBuf, name: &OsStr, role: Role) {
        if self.skipped.contains(&path) {
            return;
        }
        // An entry that is gone, or no folder any more, changed its folder, too.
        let Ok(stat) = statat(fd, name, AtFlags::SYMLINK_NOFOLLOW) else { return };
        let stamp = Stamp::new(&stat);
        if !stamp.is_folder() {
            return;
        }
        let next = Next { path, role, stamp: Some(stamp) };
        // Breadth first, so that a limit leaves out the deepest folders; but protected ones first.
        match role.is_protected() {
            true => self.queue.push_front(next),
            false => self.queue.push_back(next),
        }
    }

    fn file(&mut self, fd: &OwnedFd, path: PathBuf, name: &OsStr, is_git_config: bool) {
        if self.skipped.contains(&path) {
            return;
        }
        let known = self.before.files.get(&path);
        if known.is_none() && self.new_files == 0 {
            return self.add_limit(format!(
                "too many protected files: more than {MAX_NEW_FILES} are new, or {MAX_KNOWN} in all"
            ));
        }
        match Entry::read(fd, name, known, is_git_config, self.now, &mut self.quota) {
            Ok(None) => {}
            Ok(Some(entry)) => {
                self.new_files -= usize::from(known.is_none());
                self.found.files.insert(path, entry);
            }
            Err(error) => drop(self.found.problems.insert(path, error.to_string())),
        }
    }

    /// Keeps the known files of folders that can't be read now.
    fn keep_closed(&mut self) {
        let Snapshot { files, problems, .. } = &mut self.found;
        if problems.is_empty() {
            return;
        }
        let is_closed = |path: &Path| {
            let mut above = path.ancestors().skip(1).filter(|path| !path.as_os_str().is_empty());
            above.any(|path| problems.contains_key(path))
        };
        for (path, entry) in &self.before.files {
            if !files.contains_key(path) && is_closed(path) {
                files.insert(path.clone(), Arc::clone(entry));
            }
        }
    }

    fn take_new_folder(&mut self) -> bool {
        let left = self.new_folders.checked_sub(1);
        match left {
            Some(left) => self.new_folders = left,
            None => self.add_limit(format!(
                "too many folders: more than {MAX_NEW_FOLDERS} are new, or {MAX_KNOWN} in all"
            )),
        }
        left.is_some()
    }

    fn add_limit(&mut self, why: String) {
        self.found.problems.insert(PathBuf::new(), format!("{why}: the rest was not compared"));
    }
}
