//! The results of a search so far: the first matching files in the order of their paths.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::file::Hits;
use super::{MAX_BYTES, Output};

/// The results that several threads have found. Only the part that is shown is kept, and it does
/// not depend on the order in which files are searched.
#[derive(Debug)]
pub(super) struct Found {
    /// The limit counts matching lines for `Output::Lines`, and files otherwise.
    output: Output,
    limit: u64,
    kept: Mutex<KeptHits>,
}

#[derive(Debug, Default)]
struct KeptHits {
    files: BTreeMap<PathBuf, Hits>,
    /// Matching lines or files, as the limit counts them.
    count: u64,
    /// Bytes of all kept lines.
    bytes: usize,
}

impl Found {
    pub(super) fn new(output: Output, limit: u64) -> Self {
        Self { output, limit, kept: Mutex::default() }
    }

    /// Whether matches in a file at this path could still be shown.
    pub(super) fn has_room_for(&self, path: &Path) -> bool {
        let kept = self.lock();
        !self.is_full(kept.count, kept.bytes)
            || kept.files.last_key_value().is_some_and(|(last, _)| path < last)
    }

    /// Keeps the matches of a file, and drops the last files that no longer fit.
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

    /// Whether results with this count and size fill the page.
    fn is_full(&self, count: u64, bytes: usize) -> bool {
        count >= self.limit || bytes >= MAX_BYTES
    }

    /// How much a file counts towards the limit.
    fn weight(&self, hits: &Hits) -> u64 {
        if self.output == Output::Lines { hits.count } else { 1 }
    }

    fn lock(&self) -> MutexGuard<'_, KeptHits> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
