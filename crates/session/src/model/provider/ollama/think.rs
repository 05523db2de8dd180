//! Separates thoughts from the text of models that write them between tags at the start of their
//! answer.

use crate::model::provider::remote::Pieces;

const OPEN_TAG: &str = "<think>";
const CLOSE_TAG: &str = "</think>";

/// Separates the thoughts. Each variant is a position in the answer.
#[derive(Debug)]
pub(super) enum ThinkTagParser {
    /// Before the opening tag. The string is all content so far: white space and the beginning of
    /// the tag.
    Opening(String),
    /// Inside the thoughts. `pending` is white space and the beginning of the closing tag at their
    /// end, and `has_reported` says whether any thought was reported.
    Inside { pending: String, has_reported: bool },
    /// After the thoughts: white space before the text is dropped.
    After,
    /// In the text.
    Text,
}

impl Default for ThinkTagParser {
    fn default() -> Self {
        Self::Opening(String::new())
    }
}

impl ThinkTagParser {
    /// Adds content, and reports the thoughts and the text in it.
    pub(super) fn add(&mut self, content: &str, pieces: &mut Pieces) {
        match self {
            Self::Text => pieces.add_text(content),
            Self::After => {
                let text = content.trim_start();
                if !text.is_empty() {
                    *self = Self::Text;
                    pieces.add_text(text);
                }
            }
            Self::Opening(pending) => {
                pending.push_str(content);
                let start = pending.trim_start();
                if let Some(rest) = start.strip_prefix(OPEN_TAG) {
                    let rest = rest.to_owned();
                    *self = Self::Inside { pending: String::new(), has_reported: false };
                    self.add(&rest, pieces);
                } else if !OPEN_TAG.starts_with(start) {
                    self.end(pieces);
                }
            }
            Self::Inside { pending, has_reported } => {
                pending.push_str(content);
                if let Some((thought, rest)) = pending.split_once(CLOSE_TAG) {
                    report(thought.trim_end(), *has_reported, pieces);
                    let rest = rest.to_owned();
                    *self = Self::After;
                    return self.add(&rest, pieces);
                }
                let tag_start = pending.len() - partial_tag_bytes(pending);
                let rest = pending.split_off(pending[..tag_start].trim_end().len());
                *has_reported |= report(pending, *has_reported, pieces);
                *pending = rest;
            }
        }
    }

    /// Reports everything that is pending. All later content is text.
    pub(super) fn end(&mut self, pieces: &mut Pieces) {
        match std::mem::replace(self, Self::Text) {
            Self::Opening(pending) => pieces.add_text(&pending),
            Self::Inside { pending, has_reported } => {
                report(pending.trim_end(), has_reported, pieces);
            }
            Self::After | Self::Text => {}
        }
    }
}

/// Reports a piece of thought, without the white space before the first one. Returns whether
/// anything was left to report.
fn report(thought: &str, has_reported: bool, pieces: &mut Pieces) -> bool {
    let thought = if has_reported { thought } else { thought.trim_start() };
    pieces.add_thought(thought);
    !thought.is_empty()
}

/// How many bytes at the end of a text may begin the closing tag.
fn partial_tag_bytes(text: &str) -> usize {
    (1..CLOSE_TAG.len()).rev().find(|bytes| text.ends_with(&CLOSE_TAG[..*bytes])).unwrap_or(0)
}
