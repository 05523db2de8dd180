//! What a search has found so far: of all files, the first in the order of their paths.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::Output;
use super::file::Hits;

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
}

impl Found {
    pub(super) fn new(output: Output, limit: u64) -> Self {
        Self { output, limit, kept: Mutex::default() }
    }

    /// Whether what a file of this path has can still be shown.
    pub(super) fn has_room_for(&self, path: &Path) -> bool {
        let kept = self.lock();
        kept.count < self.limit || kept.files.last_key_value().is_some_and(|(last, _)| path < last)
    }

    /// Keeps what was found in a file, and drops what there is no room for any more.
    pub(super) fn keep(&self, path: PathBuf, hits: Hits) {
        let mut kept = self.lock();
        kept.count += self.weight(&hits);
        kept.files.insert(path, hits);
        while let Some(last) = kept.files.last_entry()
            && let weight = self.weight(last.get())
            && kept.count - weight >= self.limit
        {
            kept.files.pop_last();
            kept.count -= weight;
        }
    }

    /// The files in the order of their paths, and whether there may be more.
    pub(super) fn into_files(self) -> (BTreeMap<PathBuf, Hits>, bool) {
        let kept = self.kept.into_inner().unwrap_or_else(PoisonError::into_inner);
        (kept.files, kept.count >= self.limit)
    }

    fn weight(&self, hits: &Hits) -> u64 {
        if self.output == Output::Lines { hits.count } else { 1 }
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
