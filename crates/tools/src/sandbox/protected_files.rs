//! Compares the protected files of a workspace before and after commands in a sandbox.
//!
//! A sandbox can't prevent that a process creates a protected name in a folder that it can write
//! to. When the first of several commands begins, the protected files are read: the *baseline*.
//! When a command has ended, they are compared with it. A file that a command has created or
//! changed is put aside, and old contents are put back. Then the user is asked about the changes.

mod ask;
mod entry;
mod put;
mod role;
mod scan;

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub(crate) use self::ask::settle;
use self::entry::{Content, Entry};
use self::put::{Put, has_holder, save};
use self::role::is_protected;
use self::scan::{Root, Snapshot, search};
use crate::policy::changes_only_gits_own;
use crate::shown;

/// The most files that are put aside after one command. Further ones are renamed.
const MAX_ASIDE: usize = 1000;

/// The most problems that one report lists.
const MAX_PROBLEMS: usize = 5;

/// The protected files of a session's workspace. Clones share them.
#[derive(Debug, Clone)]
pub(crate) struct ProtectedFiles(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    /// Absolute, without links.
    workspace: PathBuf,
    /// The folder for files that are put aside.
    aside: PathBuf,
    /// Parallel calls and jobs compare one after the other, so that each change is found once.
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The number of commands that run.
    running: usize,
    baseline: Snapshot,
    /// Files that tools have written while a command ran, and that the baseline does not have.
    written: HashMap<PathBuf, Arc<Entry>>,
    /// Changes that the user has not been asked about.
    pending: BTreeMap<PathBuf, Change>,
}

/// A change of one path. It has been undone.
#[derive(Debug, Clone)]
struct Change {
    old: Option<Arc<Entry>>,
    new: Option<Arc<Entry>>,
    /// Where the new file was put; `None` if the file was removed.
    put: Option<Put>,
}

/// A command that runs in the sandbox. When this is dropped, the protected files are compared.
#[derive(Debug)]
pub(crate) struct RunningCommand {
    files: ProtectedFiles,
    skipped: Vec<PathBuf>,
    /// Paths that the command may change.
    allowed: Vec<PathBuf>,
    has_ended: bool,
}

/// The result of a comparison.
#[derive(Debug, Default)]
pub(crate) struct Compared {
    /// The paths of files that were put aside or put back.
    undone: Vec<PathBuf>,
    /// The folder of these files.
    aside: PathBuf,
    /// Sentences about files that can't be compared or put aside.
    problems: Vec<String>,
}

impl ProtectedFiles {
    /// For the workspace folder `workspace`. `aside` is the folder for files that are put aside,
    /// in which no process in the sandbox can write.
    pub(super) fn new(workspace: PathBuf, aside: PathBuf) -> Self {
        Self(Arc::new(Shared { workspace, aside, state: Mutex::default() }))
    }

    /// Begins a command. `hidden` are paths that no process in the sandbox can write, and `writable`
    /// those that the user lets it change, even if they are protected.
    pub(super) fn begin<'a>(
        &self,
        hidden: impl Iterator<Item = &'a PathBuf>,
        writable: &[PathBuf],
    ) -> RunningCommand {
        let workspace = &self.0.workspace;
        let below = |path: &PathBuf| Some(path.strip_prefix(workspace).ok()?.to_owned());
        let skipped: Vec<_> = hidden.filter_map(below).collect();
        // The workspace is writable in any case.
        let mut state = self.lock();
        // Of several commands that run, none is known to be the author of a change.
        let writable = if state.running == 0 { writable } else { &[] };
        let allowed = writable.iter().filter(|path| *path != workspace).filter_map(below).collect();
        // If the workspace can't be opened, the command does not start, or its end reports it.
        if state.running == 0
            && let Ok(root) = Root::open(&self.0.workspace)
        {
            state.baseline = search(&root, &skipped, &state.baseline, true, false);
            state.written.clear();
        }
        state.running += 1;
        RunningCommand { files: self.clone(), skipped, allowed, has_ended: false }
    }

    /// Runs `write`, which writes a file with the approval of the user. A comparison takes place
    /// before or after it.
    pub(crate) fn write(
        &self,
        path: &Path,
        content: &[u8],
        write: impl FnOnce() -> io::Result<File>,
    ) -> io::Result<File> {
        let path = path.strip_prefix(&self.0.workspace).unwrap_or(path);
        if !path.iter().any(|name| name.to_str().is_some_and(is_protected)) {
            return write();
        }
        let mut state = self.lock();
        let state = &mut *state;
        let file = write()?;
        if state.running > 0 {
            let mut entry = Entry::written(&file, content)?;
            match state.baseline.files.get_mut(path) {
                Some(known) => {
                    entry.is_git_config = known.is_git_config;
                    *known = Arc::new(entry);
                    state.written.remove(path);
                }
                None => drop(state.written.insert(path.to_owned(), Arc::new(entry))),
            }
        }
        Ok(file)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A comparison that panicked has put aside a part of the changes.
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the changes that one ask can show.
    fn take_pending(&self, mut is_shown: impl FnMut(&Path) -> bool) -> BTreeMap<PathBuf, Change> {
        let mut state = self.lock();
        let (taken, left) =
            std::mem::take(&mut state.pending).into_iter().partition(|(path, _)| is_shown(path));
        state.pending = left;
        taken
    }

    /// Keeps changes for the next ask, except those of files that have changed again.
    fn keep_pending(&self, changes: BTreeMap<PathBuf, Change>) {
        let mut state = self.lock();
        for (path, change) in changes {
            state.pending.entry(path).or_insert(change);
        }
    }

    /// Puts approved changes in place. Returns sentences about those that could not be.
    fn put_in_place(&self, changes: BTreeMap<PathBuf, Change>) -> Vec<String> {
        let mut state = self.lock();
        let root = match Root::open(&self.0.workspace) {
            Ok(root) => root,
            Err(error) => return vec![format!("the workspace can't be opened: {error}")],
        };
        let mut problems = Vec::new();
        // A removed file may be in a folder that another file takes the place of.
        let (removed, others): (Vec<_>, Vec<_>) =
            changes.into_iter().partition(|(_, change)| change.new.is_none());
        for (path, change) in removed.into_iter().chain(others) {
            match change.put_in_place(&root, &path) {
                Ok(()) => {
                    state.written.remove(&path);
                    match change.new {
                        Some(new) => drop(state.baseline.files.insert(path, new)),
                        None => drop(state.baseline.files.remove(&path)),
                    }
                    if let Some(Put::Aside(saved)) = change.put {
                        // A copy that can't be removed is removed with the session.
                        let _ = fs::remove_file(saved);
                    }
                }
                Err(error) => problems.push(format!("{}: {error}", name(&path))),
            }
        }
        limited(problems)
    }
}

impl Shared {
    /// Compares the files with the baseline, and undoes the changes. `is_alone` is whether no other
    /// process in the sandbox lives. Only then are changes of `allowed` paths accepted.
    fn compare(
        &self,
        state: &mut State,
        skipped: &[PathBuf],
        allowed: &[PathBuf],
        is_alone: bool,
    ) -> Compared {
        let root = match Root::open(&self.workspace) {
            Ok(root) => root,
            Err(error) => {
                let why = format!("protected files could not be compared: {error}");
                return Compared { problems: vec![why], ..Compared::default() };
            }
        };
        let mut now = search(&root, skipped, &state.baseline, is_alone, true);
        let mut changes = changes(&root, state, &mut now);
        if is_alone {
            changes.retain(|path, _| !allowed.iter().any(|allowed| path.starts_with(allowed)));
        }
        let folder = if changes.is_empty() { Ok(PathBuf::new()) } else { self.new_folder() };
        let mut problems = Vec::new();
        for (path, why) in &now.problems {
            problems.push(match path.as_os_str().is_empty() {
                true => format!("protected files: {why}"),
                false => format!("{} could not be compared: {why}", name(path)),
            });
        }
        state.baseline = now;
        // The baseline has them from now on, or their changes are undone below.
        state.written.clear();
        let mut undone = Vec::new();
        // A new file can be in the way of one that was removed.
        let (new, removed): (Vec<_>, Vec<_>) =
            changes.into_iter().partition(|(_, change)| change.new.is_some());
        for (path, mut change) in new.into_iter().chain(removed) {
            let folder = folder.as_deref().ok().filter(|_| undone.len() < MAX_ASIDE);
            if let Err(error) = change.undo(&root, &path, folder) {
                problems.push(format!("{} could not be put aside: {error}", name(&path)));
                continue;
            }
            match &change.old {
                Some(old) => drop(state.baseline.files.insert(path.clone(), Arc::clone(old))),
                None => drop(state.baseline.files.remove(&path)),
            }
            if let Some(Put::Renamed(new)) = &change.put {
                let [path, new] = [&path, new].map(|path| name(path));
                problems.push(format!("{path} can't be kept aside, and is now {new}"));
                continue;
            }
            state.pending.insert(path.clone(), change);
            undone.push(path);
        }
        Compared { undone, aside: self.aside.clone(), problems: limited(problems) }
    }

    /// A new folder for the files of one comparison.
    fn new_folder(&self) -> io::Result<PathBuf> {
        use std::os::unix::fs::DirBuilderExt;
        let mut builder = fs::DirBuilder::new();
        builder.mode(0o700).recursive(true).create(&self.aside)?;
        builder.recursive(false);
        let mut number = fs::read_dir(&self.aside)?.count();
        loop {
            let folder = self.aside.join(number.to_string());
            match builder.create(&folder) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
                created => return created.map(|()| folder),
            }
        }
    }
}

/// The changes since the baseline that need approval. Completes `now` with files that the search
/// did not find.
fn changes(root: &Root, state: &State, now: &mut Snapshot) -> BTreeMap<PathBuf, Change> {
    let mut changes = BTreeMap::new();
    for (path, old) in &state.baseline.files {
        if now.files.contains_key(path) {
            continue;
        }
        match root.read(path, old) {
            Ok(Some(entry)) => drop(now.files.insert(path.clone(), entry)),
            Ok(None) if has_holder(root, path) => {
                let change = Change { old: Some(Arc::clone(old)), new: None, put: None };
                changes.insert(path.clone(), change);
            }
            Ok(None) => {}
            Err(error) => {
                now.files.insert(path.clone(), Arc::clone(old));
                now.problems.insert(path.clone(), error.to_string());
            }
        }
    }
    for (path, new) in &now.files {
        let old = state.written.get(path).or_else(|| state.baseline.files.get(path));
        let is_accepted = old.is_some_and(|old| old.is_same(new)) || is_gits_own(old, new);
        if !is_accepted {
            let change = Change { old: old.cloned(), new: Some(Arc::clone(new)), put: None };
            changes.insert(path.clone(), change);
        }
    }
    changes
}

/// Whether git changes the settings in this way in its normal work.
fn is_gits_own(old: Option<&Arc<Entry>>, new: &Entry) -> bool {
    let old = match old.map(|old| &old.content) {
        None => &[][..],
        Some(Content::File(old)) => old,
        Some(Content::Link(_) | Content::NotKept(_)) => return false,
    };
    let Content::File(new_content) = &new.content else { return false };
    new.is_git_config && changes_only_gits_own(old, new_content)
}

impl Change {
    /// Puts the new file aside, in `folder`, and the old one back.
    fn undo(&mut self, root: &Root, path: &Path, folder: Option<&Path>) -> io::Result<()> {
        if let Some(new) = &self.new {
            let saved = folder.map(|folder| save(folder, path, &new.content));
            self.put = Some(match saved {
                Some(Ok(saved)) => Put::Aside(saved),
                // Nothing is lost in this way.
                Some(Err(_)) | None => Put::Renamed(root.rename(path)?),
            });
        }
        match self.kept_old() {
            Some(old) => root.put(path, Some(old)),
            None => {
                root.put(path, None)?;
                root.remove_empty_folders(path);
                Ok(())
            }
        }
    }

    fn put_in_place(&self, root: &Root, path: &Path) -> io::Result<()> {
        let now = match self.old.as_ref().or(self.new.as_ref()) {
            Some(known) => root.read(path, known)?,
            None => None,
        };
        let is_undone = match (self.kept_old(), &now) {
            (Some(old), Some(now)) => old.is_same(now),
            (old, now) => old.is_none() && now.is_none(),
        };
        if !is_undone {
            return Err(io::Error::other("it has changed since, and was left as it is"));
        }
        root.put(path, self.new.as_deref())
    }

    /// The old file, if it can be put back.
    fn kept_old(&self) -> Option<&Entry> {
        self.old.as_deref().filter(|old| !matches!(old.content, Content::NotKept(_)))
    }
}

impl RunningCommand {
    /// Ends the command and compares. If some of its processes could not be ended, the baseline
    /// stays in force.
    pub(crate) fn end(mut self, has_living: bool) -> Compared {
        self.compare(has_living)
    }

    fn compare(&mut self, has_living: bool) -> Compared {
        self.has_ended = true;
        let mut state = self.files.lock();
        let is_alone = state.running == 1 && !has_living;
        let compared = self.files.0.compare(&mut state, &self.skipped, &self.allowed, is_alone);
        state.running -= usize::from(!has_living);
        compared
    }
}

impl Drop for RunningCommand {
    fn drop(&mut self) {
        if !self.has_ended {
            let Compared { undone, problems, .. } = self.compare(false);
            if !undone.is_empty() || !problems.is_empty() {
                tracing::warn!(?undone, ?problems, "a command changed protected files");
            }
        }
    }
}

impl Compared {
    /// A line for the output of a job or of an interrupted call; empty if there is nothing to
    /// report.
    pub(crate) fn line(&self) -> String {
        let mut line = String::new();
        if !self.undone.is_empty() {
            line.push_str(&format!(
                "[changes of protected files were put aside in {}; the next command of shell asks for approval: {}]\n",
                name(&self.aside),
                names(self.undone.iter())
            ));
        }
        self.problems.iter().for_each(|problem| line.push_str(&format!("[{problem}]\n")));
        line
    }
}

/// A path as it is shown.
fn name(path: &Path) -> String {
    shown::line(&path.to_string_lossy()).into_owned()
}

/// The first names of several.
fn names<'a>(paths: impl ExactSizeIterator<Item = &'a PathBuf>) -> String {
    let more = paths.len().saturating_sub(MAX_PROBLEMS);
    let first: Vec<_> = paths.take(MAX_PROBLEMS).map(|path| name(path)).collect();
    match more {
        0 => first.join(", "),
        more => format!("{} and {more} more", first.join(", ")),
    }
}

fn limited(mut problems: Vec<String>) -> Vec<String> {
    if problems.len() > MAX_PROBLEMS {
        let more = problems.len() - MAX_PROBLEMS;
        problems.truncate(MAX_PROBLEMS);
        problems.push(format!("and {more} more protected files could not be compared or kept"));
    }
    problems
}
