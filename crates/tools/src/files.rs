//! What the calls of one session have seen of files: whether somebody else has changed one since.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use holdpoint_common::FileMark;

/// What the calls of one session have seen of files. Clones are the same.
///
/// What a call reads or writes is known to the next one at once, and to those after a restart by the marks of the
/// log, which the session [recalls](Self::recall).
#[derive(Debug, Clone, Default)]
pub struct Files(Arc<Mutex<HashMap<String, FileMark>>>);

impl Files {
    /// Takes in what the log says was seen, unless more is known already.
    pub fn recall(&self, marks: impl IntoIterator<Item = FileMark>) {
        let mut known = self.known_marks();
        for mark in marks {
            known.entry(mark.path.clone()).or_insert(mark);
        }
    }

    /// A call has read or written the file, and this is what it was then.
    pub(crate) fn saw(&self, mark: FileMark) {
        self.known_marks().insert(mark.path.clone(), mark);
    }

    fn known_marks(&self) -> MutexGuard<'_, HashMap<String, FileMark>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
