//! The form of a text, which stays when the text is replaced: its byte order mark and line ends.
//! Also the check for binary files.

use std::borrow::Cow;

use memchr::{memchr, memchr_iter};

/// An invisible character that some editors put at the start of a text file.
pub(crate) const BYTE_ORDER_MARK: &str = "\u{feff}";

/// Bytes at the start of a file in which a zero byte means that the file is binary.
pub(crate) const PROBE: usize = 8 * 1024;

/// Whether a file that begins with these bytes is binary.
pub(crate) fn is_binary(beginning: &[u8]) -> bool {
    memchr(0, &beginning[..beginning.len().min(PROBE)]).is_some()
}

/// The byte order mark and the line ends of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Form {
    has_mark: bool,
    /// Every line end is CRLF, and there is at least one.
    is_crlf: bool,
}

impl Form {
    pub(crate) fn from_text(text: &str) -> Self {
        let bytes = text.as_bytes();
        let mut ends =
            memchr_iter(b'\n', bytes).map(|at| at > 0 && bytes[at - 1] == b'\r').peekable();
        Self {
            has_mark: text.starts_with(BYTE_ORDER_MARK),
            is_crlf: ends.peek().is_some() && ends.all(|is_crlf| is_crlf),
        }
    }

    /// Returns `text` in this form. A text with carriage returns keeps its line ends.
    pub(crate) fn apply_to<'a>(self, text: &'a str) -> Cow<'a, str> {
        let mut result: Cow<'a, str> = match self.changes_line_ends(text) {
            true => text.replace('\n', "\r\n").into(),
            false => text.into(),
        };
        if self.has_mark && !result.starts_with(BYTE_ORDER_MARK) {
            result.to_mut().insert_str(0, BYTE_ORDER_MARK);
        }
        result
    }

    /// Whether `apply_to` changes the line ends of `text`.
    pub(crate) fn changes_line_ends(self, text: &str) -> bool {
        self.is_crlf && text.contains('\n') && !text.contains('\r')
    }
}
