//! What the calls of one session have seen of files: whether somebody else has changed one since.

pub(crate) mod change;
pub(crate) mod coding;
pub(crate) mod form;
pub(crate) mod mark;
pub(crate) mod old_file;

use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use holdpoint_common::FileMark;

use crate::files::mark::is_same;

/// How many of its own changes to one file a session can look back over: more than one answer's calls at once.
const MAX_PAST: usize = 256;

/// What the calls of one session have seen of files. Clones are the same.
///
/// What a call reads or writes is known to the next one at once, and to those after a restart by the marks of the
/// log, which the session [recalls](Self::recall).
#[derive(Debug, Clone, Default)]
pub struct Files {
    seen: Arc<Mutex<HashMap<String, Seen>>>,
    busy: Arc<Mutex<HashMap<PathBuf, Arc<Mutex<()>>>>>,
}

/// A file as it was last seen.
#[derive(Debug)]
struct Seen {
    mark: FileMark,
    /// What it was before, as long as nobody but us has changed it.
    past: VecDeque<FileMark>,
}

impl Files {
    /// Takes in what the log says was seen, unless more is known already.
    pub fn recall(&self, marks: impl IntoIterator<Item = FileMark>) {
        let mut seen = lock(&self.seen);
        for mark in marks {
            seen.entry(mark.path.clone()).or_insert(Seen { mark, past: VecDeque::new() });
        }
    }

    /// Works on a file while no other call of the session does.
    pub(crate) fn alone_with<T>(&self, path: &Path, work: impl FnOnce() -> T) -> T {
        let own = Arc::clone(lock(&self.busy).entry(path.to_owned()).or_default());
        let result = {
            let _alone = lock(&own);
            work()
        };
        // Whoever waits for it holds it, too.
        let mut busy = lock(&self.busy);
        drop(own);
        if busy.get(path).is_some_and(|held| Arc::strong_count(held) == 1) {
            busy.remove(path);
        }
        result
    }

    /// A call has read the file, and this is what it was then.
    pub(crate) fn read(&self, now: FileMark) {
        let mut seen = lock(&self.seen);
        match seen.get_mut(&now.path) {
            Some(before) if is_same(&before.mark, &now) => before.mark = now,
            _ => {
                seen.insert(now.path.clone(), Seen { mark: now, past: VecDeque::new() });
            }
        }
    }

    /// A call has made `now` of the file, of what was `before`.
    pub(crate) fn wrote(&self, before: Option<FileMark>, now: FileMark) {
        let mut seen = lock(&self.seen);
        let past =
            seen.remove(&now.path).filter(|last| before.as_ref().is_some_and(|before| is_same(&last.mark, before)));
        let mut past = past.map(|last| last.past).unwrap_or_default();
        past.extend(before);
        if past.len() > MAX_PAST {
            past.pop_front();
        }
        seen.insert(now.path.clone(), Seen { mark: now, past });
    }

    /// Whether somebody else has changed the file since a call has last read or written it.
    pub(crate) fn is_changed(&self, now: &FileMark) -> bool {
        lock(&self.seen).get(&now.path).is_some_and(|last| !is_same(&last.mark, now))
    }

    /// Whether nobody but calls of this session have changed the file since it was like `then`.
    pub(crate) fn is_ours_since(&self, then: &FileMark, now: &FileMark) -> bool {
        is_same(then, now)
            || lock(&self.seen)
                .get(&now.path)
                .is_some_and(|last| is_same(&last.mark, now) && last.past.iter().any(|before| is_same(before, then)))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing is left half done in them by a panic.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
