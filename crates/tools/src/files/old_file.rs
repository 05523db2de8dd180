//! An existing file that is about to be replaced.

use std::fmt;
use std::fs::Metadata;
use std::io::{self, Read};

use holdpoint_common::FileMark;

use crate::files::mark::{Hashing, MAX_HASHED, mark};
use crate::files::text_encoding::TextEncoding;
use crate::place::{OpenParent, Place};

/// Bytes that are read at once.
const CHUNK: usize = 256 * 1024;

/// A file before it is replaced.
pub(crate) struct OldFile {
    pub(crate) metadata: Metadata,
    pub(crate) mark: FileMark,
    /// The content, or why it is not text.
    pub(crate) text: Result<String, NotText>,
    /// The encoding of `text`.
    pub(crate) encoding: TextEncoding,
}

/// The reason why a file is not read as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotText {
    /// The file, of this size in bytes, is larger than `MAX_HASHED`.
    TooLarge(u64),
    /// The file, of this size in bytes, contains a zero byte.
    Binary(u64),
    /// The file is not UTF-8, and its encoding is unknown.
    Unknown,
    /// The file is not text in the encoding of its byte order mark or of the call.
    Invalid(TextEncoding),
    /// The encoding of the byte order mark is not that of the call.
    BomMismatch { bom: TextEncoding, requested: TextEncoding },
}

impl OldFile {
    /// Reads the file that `parent` names. `None` if the file is missing. `requested` is the
    /// encoding that the call names.
    ///
    /// # Errors
    /// Fails if the file can't be read or is not a regular file.
    pub(crate) fn read(
        parent: &OpenParent,
        place: &Place,
        requested: Option<TextEncoding>,
    ) -> io::Result<Option<Self>> {
        let Some((file, metadata)) = parent.open()? else { return Ok(None) };
        let size = metadata.len();
        if size > MAX_HASHED {
            let mark = mark(place, &metadata, None);
            let encoding = requested.unwrap_or_default();
            return Ok(Some(Self { metadata, mark, text: Err(NotText::TooLarge(size)), encoding }));
        }
        // Reads one byte past the limit, to notice a file that has grown.
        let mut content = Hashing::new(file.take(MAX_HASHED + 1));
        let (text, encoding) = read_text(&mut content, size, requested)?;
        let mark = mark(place, &metadata, content.hash());
        Ok(Some(Self { metadata, mark, text, encoding }))
    }
}

/// Reads the whole file and returns its text and encoding. The bytes are dropped once they turn out
/// to be binary.
fn read_text(
    content: &mut impl Read,
    size: u64,
    requested: Option<TextEncoding>,
) -> io::Result<(Result<String, NotText>, TextEncoding)> {
    let mut text = Vec::with_capacity(usize::try_from(size).unwrap_or(0) + 1);
    let mut bytes = 0;
    let mut is_binary = false;
    let mut bom = None;
    loop {
        let from = text.len();
        let read = content.by_ref().take(CHUNK as u64).read_to_end(&mut text)?;
        if bytes == 0 {
            bom = TextEncoding::of_bom(&text);
        }
        if read == 0 {
            break;
        }
        bytes += read as u64;
        let has_zeros = requested.or(bom).is_some_and(TextEncoding::has_zeros);
        is_binary |= !has_zeros && memchr::memchr(0, &text[from..]).is_some();
        if is_binary {
            text = Vec::new();
        }
    }
    let encoding = requested.or(bom).unwrap_or_default();
    let text = match (bom, requested) {
        _ if bytes > MAX_HASHED => Err(NotText::TooLarge(bytes)),
        (Some(bom), Some(requested)) if bom != requested => {
            Err(NotText::BomMismatch { bom, requested })
        }
        _ if is_binary => Err(NotText::Binary(bytes)),
        _ => match encoding.decode(text) {
            Some(text) if memchr::memchr(0, text.as_bytes()).is_some() => {
                Err(NotText::Binary(bytes))
            }
            Some(text) => Ok(text),
            None if requested.or(bom).is_some() => Err(NotText::Invalid(encoding)),
            None => Err(NotText::Unknown),
        },
    };
    Ok((text, encoding))
}

impl fmt::Display for NotText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge(bytes) => {
                write!(f, "the file has {bytes} bytes, more than {} MiB", MAX_HASHED / 1024 / 1024)
            }
            Self::Binary(bytes) => write!(
                f,
                "the file is binary ({bytes} bytes, some of them zero; for text in UTF-16, set `\"encoding\": \
                 \"utf-16le\"`)"
            ),
            Self::Unknown => f.write_str(
                "the file is not UTF-8 and has no byte order mark: set its encoding, for example `\"encoding\": \
                 \"windows-1252\"`",
            ),
            Self::Invalid(encoding) => write!(f, "the file is not valid {encoding}: set another encoding"),
            Self::BomMismatch { bom, requested } => {
                write!(f, "the file has the byte order mark of {bom}, not {requested}: leave the encoding out")
            }
        }
    }
}
