//! What a file is like at a moment: by what a change is noticed.

use std::fs::Metadata;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;

use holdpoint_common::FileMark;

use crate::place::Place;

/// Bytes of a file up to which its content is looked at. Above, its size and its time have to do.
pub(crate) const MAX_HASHED: u64 = 64 * 1024 * 1024;

/// Bytes of a hash that are kept: as many as nobody finds another text for.
const HASH: usize = 16;

/// The mark of a file of this content.
pub(crate) fn mark_of(place: &Place, metadata: &Metadata, content: &[u8]) -> FileMark {
    let hash = (content.len() as u64 <= MAX_HASHED).then(|| hash_of(content));
    mark(place, metadata, hash)
}

/// The mark of a file without regard to its content.
pub(crate) fn mark(place: &Place, metadata: &Metadata, hash: Option<String>) -> FileMark {
    let modified = i128::from(metadata.mtime()) * 1_000_000_000 + i128::from(metadata.mtime_nsec());
    let modified = u64::try_from(modified).unwrap_or(0);
    FileMark { path: place.shown().to_owned(), size: metadata.len(), modified, hash }
}

/// Whether two marks are of the same content, as far as can be told. To touch a file changes nothing.
pub(crate) fn is_same(one: &FileMark, other: &FileMark) -> bool {
    one.size == other.size
        && match (&one.hash, &other.hash) {
            (Some(one), Some(other)) => one == other,
            _ => one.modified == other.modified,
        }
}

/// A short name for a content, in hexadecimal.
pub(crate) fn hash_of(content: &[u8]) -> String {
    shortened(blake3::hash(content))
}

fn shortened(hash: blake3::Hash) -> String {
    hash.to_hex()[..2 * HASH].to_owned()
}

/// Looks at all that is read through it.
pub(crate) struct Hashing<R> {
    from: R,
    hasher: blake3::Hasher,
    read: u64,
}

impl<R> Hashing<R> {
    pub(crate) fn new(from: R) -> Self {
        Self { from, hasher: blake3::Hasher::new(), read: 0 }
    }

    /// The hash of what was read; none if that was too much.
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
