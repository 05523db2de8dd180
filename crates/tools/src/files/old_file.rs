//! A file that is going to be replaced, as it is found.

use std::fmt;
use std::fs::Metadata;
use std::io::{self, Read};

use holdpoint_common::FileMark;

use crate::files::mark::{Hashing, MAX_HASHED, mark};
use crate::place::{Place, Spot};

/// Bytes that are read at once.
const CHUNK: usize = 256 * 1024;

/// A file that is going to be replaced.
pub(crate) struct OldFile {
    pub(crate) metadata: Metadata,
    pub(crate) mark: FileMark,
    /// What is in it, if that is text.
    pub(crate) text: Result<String, NoText>,
}

/// Why there is no text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoText {
    /// It has more bytes than are looked at.
    TooLarge(u64),
    /// It is not UTF-8, or has zero bytes.
    Binary(u64),
}

impl OldFile {
    /// The file there; `None` if there is none.
    ///
    /// # Errors
    /// Also if something else is there.
    pub(crate) fn at(spot: &Spot, place: &Place) -> io::Result<Option<Self>> {
        let Some((file, metadata)) = spot.open()? else { return Ok(None) };
        let size = metadata.len();
        if size > MAX_HASHED {
            let mark = mark(place, &metadata, None);
            return Ok(Some(Self { metadata, mark, text: Err(NoText::TooLarge(size)) }));
        }
        // One byte more tells that it has grown.
        let mut content = Hashing::new(file.take(MAX_HASHED + 1));
        let text = read_text(&mut content, size)?;
        let mark = mark(place, &metadata, content.hash());
        Ok(Some(Self { metadata, mark, text }))
    }
}

/// Reads all; what is no text is not kept.
fn read_text(content: &mut impl Read, size: u64) -> io::Result<Result<String, NoText>> {
    let mut text = Vec::with_capacity(usize::try_from(size).unwrap_or(0) + 1);
    let (mut bytes, mut is_binary) = (0, false);
    loop {
        let from = text.len();
        let read = content.by_ref().take(CHUNK as u64).read_to_end(&mut text)?;
        if read == 0 {
            break;
        }
        bytes += read as u64;
        is_binary |= memchr::memchr(0, &text[from..]).is_some();
        if is_binary {
            text = Vec::new();
        }
    }
    Ok(match String::from_utf8(text) {
        _ if bytes > MAX_HASHED => Err(NoText::TooLarge(bytes)),
        Ok(text) if !is_binary => Ok(text),
        _ => Err(NoText::Binary(bytes)),
    })
}

impl fmt::Display for NoText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge(bytes) => write!(f, "it has {bytes} bytes, more than {} MiB", MAX_HASHED / 1024 / 1024),
            Self::Binary(bytes) => write!(f, "it is not UTF-8 text but binary, of {bytes} bytes"),
        }
    }
}
