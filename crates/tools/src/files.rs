//! The files that the calls of one session have seen, to detect changes by others.

pub(crate) mod change;
pub(crate) mod form;
pub(crate) mod mark;
pub(crate) mod old_file;
pub(crate) mod text_encoding;

use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use holdpoint_common::FileMark;
use holdpoint_common::limits::MAX_CALLS;

use crate::files::mark::is_same;

/// How many earlier versions of a file are remembered: as many as the calls of one answer can write.
/// An edit that was shown for an older version fails.
const MAX_PAST: usize = MAX_CALLS;

/// The files that the calls of one session have seen. Clones share the same state.
///
/// A read or a write counts from the next call on. After a restart, the session
/// [restores](Self::recall) the marks from its log.
#[derive(Debug, Clone, Default)]
pub struct Files {
    known_files: Arc<Mutex<HashMap<String, KnownFile>>>,
    file_locks: Arc<Mutex<HashMap<PathBuf, Arc<Mutex<()>>>>>,
}

/// The last known version of a file.
#[derive(Debug)]
struct KnownFile {
    mark: FileMark,
    /// The versions before it, since the last change by others.
    past: VecDeque<FileMark>,
}

impl Files {
    /// Restores marks from the log, except for files that already have a newer one.
    pub fn recall(&self, marks: impl IntoIterator<Item = FileMark>) {
        let mut known = lock(&self.known_files);
        for mark in marks {
            known.entry(mark.path.clone()).or_insert(KnownFile { mark, past: VecDeque::new() });
        }
    }

    /// Runs `work` while no other call of the session works on the file.
    pub(crate) fn with_lock<T>(&self, path: &Path, work: impl FnOnce() -> T) -> T {
        let file_lock = Arc::clone(lock(&self.file_locks).entry(path.to_owned()).or_default());
        let result = {
            let _guard = lock(&file_lock);
            work()
        };
        // A call that waits for the file also holds a reference.
        let mut file_locks = lock(&self.file_locks);
        drop(file_lock);
        if file_locks.get(path).is_some_and(|file_lock| Arc::strong_count(file_lock) == 1) {
            file_locks.remove(path);
        }
        result
    }

    /// Records that a call has read the file in this version.
    pub(crate) fn record_read(&self, now: FileMark) {
        let mut known = lock(&self.known_files);
        match known.get_mut(&now.path) {
            Some(before) if is_same(&before.mark, &now) => before.mark = now,
            _ => {
                known.insert(now.path.clone(), KnownFile { mark: now, past: VecDeque::new() });
            }
        }
    }

    /// Records that a call has changed the file from `before` to `now`.
    pub(crate) fn record_write(&self, before: Option<FileMark>, now: FileMark) {
        let mut known = lock(&self.known_files);
        let past = known
            .remove(&now.path)
            .filter(|last| before.as_ref().is_some_and(|before| is_same(&last.mark, before)));
        let mut past = past.map(|last| last.past).unwrap_or_default();
        past.extend(before);
        if past.len() > MAX_PAST {
            past.pop_front();
        }
        known.insert(now.path.clone(), KnownFile { mark: now, past });
    }

    /// Whether others have changed the file since a call of the session last read or wrote it.
    pub(crate) fn is_changed(&self, now: &FileMark) -> bool {
        lock(&self.known_files).get(&now.path).is_some_and(|last| !is_same(&last.mark, now))
    }

    /// Whether only calls of this session have changed the file since it had the mark `then`.
    pub(crate) fn only_session_changed(&self, then: &FileMark, now: &FileMark) -> bool {
        is_same(then, now)
            || lock(&self.known_files).get(&now.path).is_some_and(|last| {
                is_same(&last.mark, now) && last.past.iter().any(|before| is_same(before, then))
            })
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic does not leave these maps in an inconsistent state.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
