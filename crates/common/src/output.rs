//! The kept part of a tool's output: its head and its tail.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Bytes kept from the beginning of a tool call's output.
pub const KEPT_HEAD: usize = 16 * 1024;
/// Bytes kept from the end of a tool call's output.
pub const KEPT_TAIL: usize = 16 * 1024;

/// The head and the tail of a text of any length.
///
/// The finished value does not depend on the pieces in which the text was pushed. A client that
/// folds deltas therefore gets the same value as the fact that ends the item. At most 48 KiB are
/// held.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HeadAndTail {
    /// Beginning of the text, at most 16 KiB, cut at a character boundary.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub head: String,
    /// Number of bytes left out between head and tail.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub dropped: u64,
    /// End of the text, if the head does not hold all of it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub tail: String,
}

/// Whether a number is zero, so that it can be left out of the JSON.
pub(crate) fn is_zero<N: Default + PartialEq>(number: &N) -> bool {
    *number == N::default()
}

impl HeadAndTail {
    /// Appends `text` to the end.
    pub fn push(&mut self, mut text: &str) {
        if self.tail.is_empty() {
            let room = KEPT_HEAD.saturating_sub(self.head.len());
            let (fits, rest) = text.split_at(text.floor_char_boundary(room));
            self.head.push_str(fits);
            if rest.is_empty() {
                return;
            }
            text = rest;
        }
        if text.len() > 2 * KEPT_TAIL {
            let cut = text.ceil_char_boundary(text.len() - KEPT_TAIL);
            self.dropped += (self.tail.len() + cut) as u64;
            self.tail.clear();
            text = &text[cut..];
        }
        self.tail.push_str(text);
        if self.tail.len() > 2 * KEPT_TAIL {
            self.trim_tail();
        }
    }

    /// Trims the tail to [`KEPT_TAIL`] bytes. Call it when the text is complete.
    #[must_use]
    pub fn finish(mut self) -> Self {
        self.trim_tail();
        self
    }

    fn trim_tail(&mut self) {
        if self.tail.len() > KEPT_TAIL {
            let cut = self.tail.ceil_char_boundary(self.tail.len() - KEPT_TAIL);
            self.dropped += cut as u64;
            self.tail.drain(..cut);
        }
    }

    /// Whether there was no text.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.head.is_empty() && self.tail.is_empty()
    }

    /// Returns the text for a person or a model, with a line that says how many bytes were left
    /// out.
    #[must_use]
    pub fn to_text(&self) -> String {
        if self.dropped == 0 {
            return format!("{}{}", self.head, self.tail);
        }
        format!("{}\n[... {} bytes left out ...]\n{}", self.head, self.dropped, self.tail)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keep(text: &str, piece: usize) -> HeadAndTail {
        let mut kept = HeadAndTail::default();
        let mut rest = text;
        while !rest.is_empty() {
            let (now, later) = rest.split_at(rest.ceil_char_boundary(piece.min(rest.len())));
            kept.push(now);
            rest = later;
        }
        kept.finish()
    }

    #[test]
    fn pieces_do_not_matter() {
        for len in [0, 10, KEPT_HEAD, KEPT_HEAD + 1, KEPT_HEAD + KEPT_TAIL, 200_000] {
            let text: String =
                (0..).map(|n: u32| char::from(b'a' + (n % 23) as u8)).take(len).collect();
            let text = text.replace("cd", "é漢");
            let whole = keep(&text, usize::MAX);
            for piece in [1, 7, 4096, 40_000] {
                assert_eq!(keep(&text, piece), whole, "{len} bytes in pieces of {piece}");
            }
            let all = whole.head.len() + whole.tail.len() + usize::try_from(whole.dropped).unwrap();
            assert_eq!(all, text.len());
        }
    }
}
