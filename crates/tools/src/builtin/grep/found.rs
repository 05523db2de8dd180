//! What a search has found so far: of all files, the first in the order of their paths.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::file::Hits;
use super::{MAX_BYTES, Output};

/// What is kept of a search by several threads: as much as is shown, and always the same.
#[derive(Debug)]
pub(super) struct Found {
    /// What there may be so many of: matching lines if these are shown, else files.
    output: Output,
    limit: u64,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    files: BTreeMap<PathBuf, Hits>,
    /// What counts of them.
    count: u64,
    /// Bytes of their lines.
    bytes: usize,
}

impl Found {
    pub(super) fn new(output: Output, limit: u64) -> Self {
        Self { output, limit, kept: Mutex::default() }
    }

    /// Whether what a file of this path has can still be shown.
    pub(super) fn has_room_for(&self, path: &Path) -> bool {
        let kept = self.lock();
        !self.is_full(kept.count, kept.bytes) || kept.files.last_key_value().is_some_and(|(last, _)| path < last)
    }

    /// Keeps what was found in a file, and drops what there is no room for any more.
    pub(super) fn keep(&self, path: PathBuf, hits: Hits) {
        let mut kept = self.lock();
        kept.count += self.weight(&hits);
        kept.bytes += hits.bytes;
        kept.files.insert(path, hits);
        while let Some(last) = kept.files.last_entry()
            && let (weight, bytes) = (self.weight(last.get()), last.get().bytes)
            && self.is_full(kept.count - weight, kept.bytes - bytes)
        {
            kept.files.pop_last();
            kept.count -= weight;
            kept.bytes -= bytes;
        }
    }

    /// The files in the order of their paths, and whether there may be more.
    pub(super) fn into_files(self) -> (BTreeMap<PathBuf, Hits>, bool) {
        let kept = std::mem::take(&mut *self.lock());
        (kept.files, self.is_full(kept.count, kept.bytes))
    }

    /// Whether so much fills the page.
    fn is_full(&self, count: u64, bytes: usize) -> bool {
        count >= self.limit || bytes >= MAX_BYTES
    }

    fn weight(&self, hits: &Hits) -> u64 {
        if self.output == Output::Lines { hits.count } else { 1 }
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
