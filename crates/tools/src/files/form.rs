//! The form of a text, which stays when its words are written anew: byte order mark and line ends. And what is no text.

use std::borrow::Cow;

use memchr::{memchr, memchr_iter};

/// What some editors put first in a text file. No part of its text, and nobody sees it.
pub(crate) const BYTE_ORDER_MARK: &str = "\u{feff}";

/// Bytes at a file's beginning in which a zero byte says that it is no text.
pub(crate) const PROBE: usize = 8 * 1024;

/// Whether a file that begins so is no text.
pub(crate) fn is_binary(beginning: &[u8]) -> bool {
    memchr(0, &beginning[..beginning.len().min(PROBE)]).is_some()
}

/// The form of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Form {
    has_mark: bool,
    /// Every line that ends does so in carriage return and line feed.
    is_crlf: bool,
}

impl Form {
    /// The form of this text.
    pub(crate) fn of(text: &str) -> Self {
        let bytes = text.as_bytes();
        let mut ends = memchr_iter(b'\n', bytes).map(|at| at > 0 && bytes[at - 1] == b'\r').peekable();
        Self { has_mark: text.starts_with(BYTE_ORDER_MARK), is_crlf: ends.peek().is_some() && ends.all(|is| is) }
    }

    /// A text in this form. One that has carriage returns keeps its line ends.
    pub(crate) fn give<'a>(self, text: &'a str) -> Cow<'a, str> {
        let mut given: Cow<'a, str> = match self.has_ends_for(text) {
            true => text.replace('\n', "\r\n").into(),
            false => text.into(),
        };
        if self.has_mark && !given.starts_with(BYTE_ORDER_MARK) {
            given.to_mut().insert_str(0, BYTE_ORDER_MARK);
        }
        given
    }

    /// Whether it gives a text other line ends than it has.
    pub(crate) fn has_ends_for(self, text: &str) -> bool {
        self.is_crlf && text.contains('\n') && !text.contains('\r')
    }
}
