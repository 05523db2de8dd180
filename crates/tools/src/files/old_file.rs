//! A file that is going to be replaced, as it is found.

use std::fmt;
use std::fs::Metadata;
use std::io::{self, Read};

use holdpoint_common::FileMark;

use crate::files::coding::Coding;
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
    /// The encoding of that text.
    pub(crate) coding: Coding,
}

/// Why there is no text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoText {
    /// It has more bytes than are looked at.
    TooLarge(u64),
    /// A binary file, by its zero bytes; its size in bytes.
    Binary(u64),
    /// It is not UTF-8, and its encoding is not known.
    Unknown,
    /// It is not in the encoding that the call names.
    Not(Coding),
    /// Its byte order mark is of the first encoding, and the call names the second.
    Marked(Coding, Coding),
}

impl OldFile {
    /// The file there; `None` if there is none. `named`: the encoding that the call names.
    ///
    /// # Errors
    /// Also if something else is there.
    pub(crate) fn at(spot: &Spot, place: &Place, named: Option<Coding>) -> io::Result<Option<Self>> {
        let Some((file, metadata)) = spot.open()? else { return Ok(None) };
        let size = metadata.len();
        if size > MAX_HASHED {
            let mark = mark(place, &metadata, None);
            let coding = named.unwrap_or_default();
            return Ok(Some(Self { metadata, mark, text: Err(NoText::TooLarge(size)), coding }));
        }
        // One byte more tells that it has grown.
        let mut content = Hashing::new(file.take(MAX_HASHED + 1));
        let (text, coding) = read_text(&mut content, size, named)?;
        let mark = mark(place, &metadata, content.hash());
        Ok(Some(Self { metadata, mark, text, coding }))
    }
}

/// Reads the whole file, and drops its bytes once it is known not to be text. Also returns its encoding.
fn read_text(
    content: &mut impl Read,
    size: u64,
    named: Option<Coding>,
) -> io::Result<(Result<String, NoText>, Coding)> {
    let mut text = Vec::with_capacity(usize::try_from(size).unwrap_or(0) + 1);
    let (mut bytes, mut is_binary) = (0, false);
    let mut marked = None;
    loop {
        let from = text.len();
        let read = content.by_ref().take(CHUNK as u64).read_to_end(&mut text)?;
        if bytes == 0 {
            marked = Coding::marked(&text);
        }
        if read == 0 {
            break;
        }
        bytes += read as u64;
        let has_zeros = named.or(marked).is_some_and(Coding::has_zeros);
        is_binary |= !has_zeros && memchr::memchr(0, &text[from..]).is_some();
        if is_binary {
            text = Vec::new();
        }
    }
    let coding = named.or(marked).unwrap_or_default();
    let text = match (marked, named) {
        _ if bytes > MAX_HASHED => Err(NoText::TooLarge(bytes)),
        (Some(marked), Some(named)) if marked != named => Err(NoText::Marked(marked, named)),
        _ if is_binary => Err(NoText::Binary(bytes)),
        _ => match coding.decode(text) {
            Some(text) if memchr::memchr(0, text.as_bytes()).is_some() => Err(NoText::Binary(bytes)),
            Some(text) => Ok(text),
            None if named.or(marked).is_some() => Err(NoText::Not(coding)),
            None => Err(NoText::Unknown),
        },
    };
    Ok((text, coding))
}

impl fmt::Display for NoText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge(bytes) => write!(f, "it has {bytes} bytes, more than {} MiB", MAX_HASHED / 1024 / 1024),
            Self::Binary(bytes) => write!(
                f,
                "it is binary, of {bytes} bytes, some of them zero (if it is text in UTF-16, name that: `\"encoding\": \
                 \"utf-16le\"`)"
            ),
            Self::Unknown => f.write_str(
                "it is not UTF-8, and has no byte order mark of another encoding: name its encoding, for example \
                 `\"encoding\": \"windows-1252\"`",
            ),
            Self::Not(coding) => write!(f, "it is not all text in {coding}: name another encoding"),
            Self::Marked(marked, named) => {
                write!(
                    f,
                    "it begins with the byte order mark of {marked}, and is not in {named}: leave the encoding out"
                )
            }
        }
    }
}
