//! Separates thoughts from the text of models that write them between tags at the start of their
//! answer.

use crate::model::provider::remote::Pieces;

const OPEN_TAG: &str = "<think>";
const CLOSE_TAG: &str = "</think>";

/// Separates the thoughts. Each variant is a position in the answer.
#[derive(Debug)]
pub(super) enum ThinkTagParser {
    /// Before the opening tag. `pending` is all content so far.
    Opening { pending: Pending },
    /// Inside the thoughts. `pending` is at their end, and `has_reported` says whether any thought
    /// was reported.
    Inside { pending: Pending, has_reported: bool },
    /// After the thoughts: white space before the text is dropped.
    After,
    /// In the text.
    Text,
}

/// White space, then the beginning of a tag. Either may be empty.
#[derive(Debug, Default)]
pub(super) struct Pending {
    text: String,
    /// The length of the white space in bytes, kept so that it is not scanned again for every
    /// piece.
    blank: usize,
}

impl Default for ThinkTagParser {
    fn default() -> Self {
        Self::Opening { pending: Pending::default() }
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
            Self::Opening { pending: Pending { text, blank } } => {
                text.push_str(content);
                let start = text[*blank..].trim_start();
                *blank = text.len() - start.len();
                if let Some(rest) = start.strip_prefix(OPEN_TAG) {
                    let rest = rest.to_owned();
                    *self = Self::Inside { pending: Pending::default(), has_reported: false };
                    self.add(&rest, pieces);
                } else if !OPEN_TAG.starts_with(start) {
                    self.end(pieces);
                }
            }
            Self::Inside { pending: Pending { text, blank }, has_reported } => {
                text.push_str(content);
                if let Some(tag) = text[*blank..].find(CLOSE_TAG).map(|tag| *blank + tag) {
                    report(text[..tag].trim_end(), *has_reported, pieces);
                    let rest = text.split_off(tag + CLOSE_TAG.len());
                    *self = Self::After;
                    return self.add(&rest, pieces);
                }
                let tag = text.len() - partial_tag_bytes(text);
                let thought = text[*blank..tag].trim_end().len();
                if thought > 0 {
                    let rest = text.split_off(*blank + thought);
                    *has_reported |= report(text, *has_reported, pieces);
                    *blank = tag - text.len();
                    *text = rest;
                } else {
                    *blank = tag;
                }
            }
        }
    }

    /// Reports everything that is pending. All later content is text.
    pub(super) fn end(&mut self, pieces: &mut Pieces) {
        match std::mem::replace(self, Self::Text) {
            Self::Opening { pending } => pieces.add_text(&pending.text),
            Self::Inside { pending, has_reported } => {
                report(pending.text.trim_end(), has_reported, pieces);
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
