//! A tool call with arguments that are still streaming.

use std::ops::Range;

use super::reader::{HeldBytes, Pieces, is_no_input};
use crate::model::{ModelError, ModelEvent};

/// A call under construction.
#[derive(Debug, Default)]
pub(crate) struct OpenCall {
    pub(crate) name: String,
    id: Option<String>,
    signature: Option<String>,
    arguments: String,
    /// The range of `arguments` without the white space around it, kept so that it is not scanned
    /// again for every piece.
    content: Range<usize>,
    /// Bytes of `arguments` that no [`ModelEvent::Writing`] has reported.
    unreported: usize,
    nesting: Nesting,
}

impl OpenCall {
    /// Adds to the name of the tool. Some servers repeat the name in every fragment, and some send
    /// it in pieces before the arguments.
    pub(crate) fn add_name(&mut self, piece: &str, held: &mut HeldBytes) -> Result<(), ModelError> {
        if self.name.is_empty() || (piece != self.name && !self.has_arguments()) {
            held.add(piece.len())?;
            self.name.push_str(piece);
        }
        Ok(())
    }

    /// Sets the provider's id of the call. The first id counts, because some servers send another
    /// one with every fragment.
    pub(crate) fn set_id(&mut self, id: String, held: &mut HeldBytes) -> Result<(), ModelError> {
        if self.id.is_none() && !id.is_empty() {
            held.add(id.len())?;
            self.id = Some(id);
        }
        Ok(())
    }

    /// Sets the data that are sent back with the call. The last value counts.
    pub(crate) fn set_signature(
        &mut self,
        signature: String,
        held: &mut HeldBytes,
    ) -> Result<(), ModelError> {
        held.add(signature.len())?;
        self.signature = Some(signature);
        Ok(())
    }

    /// Appends a piece of the arguments, and reports its size once the call has a name.
    pub(crate) fn add_arguments(
        &mut self,
        piece: &str,
        pieces: &mut Pieces,
        held: &mut HeldBytes,
    ) -> Result<(), ModelError> {
        // Some gateways send `null` or `{}` before the real arguments.
        let has_content = !piece.trim().is_empty();
        if has_content && self.has_no_input() {
            self.arguments.clear();
            self.content = 0..0;
            self.nesting = Nesting::default();
        }
        if has_content {
            if self.content.is_empty() {
                self.content.start = self.arguments.len() + piece.len() - piece.trim_start().len();
            }
            self.content.end = self.arguments.len() + piece.trim_end().len();
        }
        self.arguments.push_str(piece);
        self.nesting.add(piece.as_bytes());
        self.unreported += piece.len();
        if self.name.is_empty() {
            return held.add(piece.len());
        }
        if self.unreported > 0 {
            pieces.add(ModelEvent::Writing { bytes: std::mem::take(&mut self.unreported) });
        }
        Ok(())
    }

    /// Whether the call has no id, name, signature or arguments so far.
    pub(crate) fn is_empty(&self) -> bool {
        self.id.is_none() && self.name.is_empty() && self.signature.is_none() && self.has_no_input()
    }

    /// Whether there are no arguments, or only a placeholder that real ones may replace.
    pub(crate) fn has_no_input(&self) -> bool {
        is_no_input(&self.arguments[self.content.clone()])
    }

    /// Whether any arguments have arrived, even a placeholder such as `{}`.
    pub(crate) fn has_arguments(&self) -> bool {
        !self.content.is_empty()
    }

    /// Whether the arguments are a whole object, by their brackets.
    pub(crate) fn is_complete(&self) -> bool {
        self.nesting.is_closed()
    }

    /// Ends the call. Its arguments are `announced` if none were streamed, or only a placeholder.
    /// Returns `false` if the call names no tool and is lost.
    pub(crate) fn end(self, announced: String, pieces: &mut Pieces) -> bool {
        let arguments = if self.has_no_input() { announced } else { self.arguments };
        pieces.add_call(self.id, self.name, arguments, self.signature)
    }
}

/// Follows the brackets of JSON text as it streams, so that no piece is scanned twice.
#[derive(Debug, Default)]
pub(super) struct Nesting {
    depth: usize,
    opened: bool,
    in_string: bool,
    escaped: bool,
}

impl Nesting {
    pub(super) fn add(&mut self, piece: &[u8]) {
        for &byte in piece {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' if self.in_string => self.escaped = true,
                b'"' => self.in_string = !self.in_string,
                _ if self.in_string => {}
                b'{' | b'[' => {
                    self.depth += 1;
                    self.opened = true;
                }
                b'}' | b']' => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
        }
    }

    /// Whether the text ends inside an object or a list, but outside of a string.
    pub(super) fn is_open(&self) -> bool {
        self.depth > 0 && !self.in_string
    }

    fn is_closed(&self) -> bool {
        self.opened && self.depth == 0 && !self.in_string
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// White space around arguments is scanned once, however small the pieces are.
    #[test]
    fn arguments_with_long_white_space_are_read_in_linear_time() {
        let blank = " ".repeat(4 * 1024 * 1024);
        let (mut call, mut pieces, mut held) = (
            OpenCall { name: "a".into(), ..OpenCall::default() },
            Pieces::default(),
            HeldBytes::default(),
        );
        let mut add = |piece: &str| call.add_arguments(piece, &mut pieces, &mut held).unwrap();
        add(&format!("{blank}{{\"a\":\""));
        (0..200_000).for_each(|_| add("x"));
        add("\"}");
        (0..200_000).for_each(|_| add(" "));
        add(" \u{3000}");
        assert!(call.is_complete() && call.has_arguments() && !call.has_no_input());
        assert_eq!(call.arguments.trim().len(), r#"{"a":""}"#.len() + 200_000);
    }

    #[test]
    fn a_placeholder_in_pieces_gives_way_to_arguments() {
        for placeholder in [" {} ", "null", "\n{ }", ""] {
            for cut in 0..=placeholder.len() {
                let (mut call, mut pieces, mut held) =
                    (OpenCall::default(), Pieces::default(), HeldBytes::default());
                let mut add =
                    |piece: &str| call.add_arguments(piece, &mut pieces, &mut held).unwrap();
                add(&placeholder[..cut]);
                add(&placeholder[cut..]);
                if placeholder == "\n{ }" {
                    assert!(!call.has_no_input(), "an object with a space is not a placeholder");
                    continue;
                }
                add(" {\"a\":1} ");
                assert_eq!(call.arguments.trim(), r#"{"a":1}"#, "{placeholder:?} cut at {cut}");
                assert!(call.is_complete() && !call.has_no_input());
            }
        }
    }

    #[test]
    fn m_e6_arguments_are_complete_when_their_brackets_close() {
        for (text, complete) in [
            ("", false),
            ("null", false),
            ("{", false),
            (r#"{"a":"}"#, false),
            (r#"{"a":"\"}"#, false),
            (r#"{"a":{"b":[1]}"#, false),
            ("{}", true),
            (r#"{"a":"\\"}"#, true),
            (r#" {"a":{"b":["]"]}} "#, true),
        ] {
            for cut in (0..=text.len()).filter(|cut| text.is_char_boundary(*cut)) {
                let (mut call, mut pieces, mut held) =
                    (OpenCall::default(), Pieces::default(), HeldBytes::default());
                for piece in [&text[..cut], &text[cut..]] {
                    call.add_arguments(piece, &mut pieces, &mut held).unwrap();
                }
                assert_eq!(call.is_complete(), complete, "{text} cut at {cut}");
            }
        }
    }
}
