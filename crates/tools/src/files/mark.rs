//! File marks: the size, time and hash by which a change of a file is noticed.

use std::fs::Metadata;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;

use holdpoint_common::FileMark;

use crate::place::Place;

/// The largest file that is hashed, in bytes. Larger ones are compared by size and time.
pub(crate) const MAX_HASHED: u64 = 64 * 1024 * 1024;

/// Bytes kept of a hash: enough that no other text with the same hash can be found.
const HASH: usize = 16;

/// The mark of a file with this content.
pub(crate) fn mark_of(place: &Place, metadata: &Metadata, content: &[u8]) -> FileMark {
    let hash = (content.len() as u64 <= MAX_HASHED).then(|| hash_of(content));
    mark(place, metadata, hash)
}

/// The mark of a file with this hash of its content.
pub(crate) fn mark(place: &Place, metadata: &Metadata, hash: Option<String>) -> FileMark {
    let modified = i128::from(metadata.mtime()) * 1_000_000_000 + i128::from(metadata.mtime_nsec());
    let modified = u64::try_from(modified).unwrap_or(0);
    FileMark { path: place.shown().to_owned(), size: metadata.len(), modified, hash }
}

/// Whether two marks are of the same content. If both have a hash, the time does not count.
pub(crate) fn is_same(one: &FileMark, other: &FileMark) -> bool {
    one.size == other.size
        && match (&one.hash, &other.hash) {
            (Some(one), Some(other)) => one == other,
            _ => one.modified == other.modified,
        }
}

/// The shortened hash of a content, in hexadecimal.
pub(crate) fn hash_of(content: &[u8]) -> String {
    shortened(blake3::hash(content))
}

fn shortened(hash: blake3::Hash) -> String {
    hash.to_hex()[..2 * HASH].to_owned()
}

/// A reader that hashes the bytes read through it.
pub(crate) struct Hashing<R> {
    from: R,
    hasher: blake3::Hasher,
    read: u64,
}

impl<R> Hashing<R> {
    pub(crate) fn new(from: R) -> Self {
        Self { from, hasher: blake3::Hasher::new(), read: 0 }
    }

    /// The hash of all bytes read, or `None` if there were more than `MAX_HASHED`.
    pub(crate) fn hash(&self) -> Option<String> {
        (self.read <= MAX_HASHED).then(|| shortened(self.hasher.finalize()))
    }
}

impl<R: Read> Read for Hashing<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.from.read(into)?;
        self.read += read as u64;
        if self.read <= MAX_HASHED {
            self.hasher.update(&into[..read]);
        }
        Ok(read)
    }
}
