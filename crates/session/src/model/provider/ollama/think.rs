//! Separates thoughts from the text of models that write them between tags at the start of their
//! answer.

use crate::model::provider::remote::Pieces;

const OPEN: &str = "<think>";
const CLOSE: &str = "</think>";

/// The position in the answer.
#[derive(Debug)]
pub(super) enum ThinkTagParser {
    /// Only white space and the beginning of the tag have arrived, which are kept.
    Opening(String),
    /// Inside the thoughts. `kept` is white space and the beginning of the closing tag at their
    /// end, and `begun` says whether any thought was reported.
    Inside { kept: String, begun: bool },
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
            Self::Text => pieces.text(content),
            Self::After => {
                let text = content.trim_start();
                if !text.is_empty() {
                    *self = Self::Text;
                    pieces.text(text);
                }
            }
            Self::Opening(kept) => {
                kept.push_str(content);
                let begin = kept.trim_start();
                if let Some(rest) = begin.strip_prefix(OPEN) {
                    let rest = rest.to_owned();
                    *self = Self::Inside { kept: String::new(), begun: false };
                    self.add(&rest, pieces);
                } else if !OPEN.starts_with(begin) {
                    self.end(pieces);
                }
            }
            Self::Inside { kept, begun } => {
                kept.push_str(content);
                if let Some((thought, rest)) = kept.split_once(CLOSE) {
                    report(thought.trim_end(), *begun, pieces);
                    let rest = rest.to_owned();
                    *self = Self::After;
                    return self.add(&rest, pieces);
                }
                let whole = kept.len() - begun_tag(kept);
                let rest = kept.split_off(kept[..whole].trim_end().len());
                *begun |= report(kept, *begun, pieces);
                *kept = rest;
            }
        }
    }

    /// Reports everything that was kept. All later content is text.
    pub(super) fn end(&mut self, pieces: &mut Pieces) {
        match std::mem::replace(self, Self::Text) {
            Self::Opening(kept) => pieces.text(&kept),
            Self::Inside { kept, begun } => drop(report(kept.trim_end(), begun, pieces)),
            Self::After | Self::Text => {}
        }
    }
}

/// Reports a piece of thought, without the white space before the first one. Returns whether
/// anything was left to report.
fn report(thought: &str, begun: bool, pieces: &mut Pieces) -> bool {
    let thought = if begun { thought } else { thought.trim_start() };
    pieces.thought(thought);
    !thought.is_empty()
}

/// How many bytes at the end of a text may begin the closing tag.
fn begun_tag(text: &str) -> usize {
    (1..CLOSE.len()).rev().find(|bytes| text.ends_with(&CLOSE[..*bytes])).unwrap_or(0)
}
