//! The exact text of lines, without numbers and notes.

use std::io::{self, BufRead, Read};

use holdpoint_common::FileMark;

use super::{OpenedFile, refused};
use crate::context::ToolContext;
use crate::error::ToolError;
use crate::files::form::BYTE_ORDER_MARK;
use crate::files::text_encoding::TextEncoding;
use crate::place::Place;

/// Lines between two checks whether the turn was cut.
const LINES_PER_CHECK: usize = 4_096;

/// The lines to read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lines {
    /// The first line, counted from 1.
    pub(super) first: usize,
    /// How many lines.
    pub(super) limit: usize,
    /// The most bytes of their text.
    pub(super) max_bytes: usize,
}

/// The reason why the lines were not read.
enum NotRead {
    TooLong,
    Cut,
    Failed(io::Error),
}

impl From<io::Error> for NotRead {
    fn from(error: io::Error) -> Self {
        Self::Failed(error)
    }
}

/// Reads lines of a file exactly, and the rest of the file for its mark.
pub(super) fn read(
    place: &Place,
    requested: Option<TextEncoding>,
    lines: Lines,
    context: &ToolContext,
) -> Result<(String, FileMark), ToolError> {
    let mut file = OpenedFile::open(place, requested, context)?;
    let not_text = |encoding| refused(place, &format!("the file is not valid {encoding}"));
    let text = match file.encoding {
        TextEncoding::Utf8 => lines.read(&mut file.content, context),
        encoding => {
            let text = encoding.decode(file.bytes(place)?).ok_or_else(|| not_text(encoding))?;
            let text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&text);
            lines.read(&mut text.as_bytes(), context)
        }
    };
    let text = text.map_err(|why| match why {
        NotRead::Cut => ToolError::Interrupted,
        NotRead::Failed(error) => refused(place, &error.to_string()),
        NotRead::TooLong => refused(
            place,
            &format!(
                "these lines have more than {} bytes (hint: read fewer lines at once)",
                lines.max_bytes
            ),
        ),
    })?;
    let text = String::from_utf8(text).map_err(|_| not_text(TextEncoding::Utf8))?;
    Ok((text, file.mark(place)))
}

impl Lines {
    fn read(self, text: &mut impl BufRead, context: &ToolContext) -> Result<Vec<u8>, NotRead> {
        let check = |line: usize| match line.is_multiple_of(LINES_PER_CHECK) {
            true if context.is_cancelled() => Err(NotRead::Cut),
            _ => Ok(()),
        };
        for line in 1..self.first {
            check(line)?;
            if text.skip_until(b'\n')? == 0 {
                break;
            }
        }
        let mut bytes = Vec::new();
        for line in 0..self.limit {
            check(line)?;
            let room = self.max_bytes - bytes.len();
            let read = text.by_ref().take(room as u64 + 1).read_until(b'\n', &mut bytes)?;
            if bytes.len() > self.max_bytes {
                return Err(NotRead::TooLong);
            }
            if read == 0 {
                break;
            }
        }
        loop {
            let rest = text.fill_buf()?.len();
            if rest == 0 {
                return Ok(bytes);
            }
            text.consume(rest);
            check(0)?;
        }
    }
}
