//! The context of a request: the limits to which a conversation is cut before every request.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use holdpoint_common::{Limits, ModelSettings, Usage};

use crate::model::ModelRequest;

mod fit;
mod images;
mod tokenizer;

pub use fit::{LeftOut, TooLarge, fit};
pub(crate) use images::limit_images;
pub(crate) use tokenizer::Tokenizer;

/// The limits of one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// The most lines that its messages may have.
    pub lines: u64,
    /// The most tokens, by our own estimate.
    pub tokens: u64,
}

impl Bounds {
    /// The bounds that these limits set for this model: never more than its window has room for,
    /// beside an answer.
    #[must_use]
    pub fn new(limits: &Limits, model: &ModelSettings) -> Self {
        let room = |window: u64| window.saturating_sub(model.max_output.unwrap_or(window / 8));
        let tokens = model.window.map_or(u64::MAX, room).min(limits.max_history_tokens);
        Self { lines: limits.max_history_lines, tokens }
    }

    /// Whether a request is within the bounds by its size alone, so that its tokens need not be
    /// counted.
    #[must_use]
    pub fn allow(&self, request: &ModelRequest) -> bool {
        estimate(request.bytes()) <= self.tokens
            && request.messages.iter().map(|message| message.lines()).sum::<u64>() <= self.lines
    }
}

/// An estimate of the tokens in a text of this size.
fn estimate(bytes: u64) -> u64 {
    Usage::estimate(bytes, 0).input
}

/// Counts tokens, each text once.
#[derive(Default)]
pub(crate) struct Counter {
    tokenizer: Arc<Tokenizer>,
    /// The count of each text, by its hash, because the kept part of a history is in every request
    /// again.
    known: HashMap<u64, u64>,
}

impl Counter {
    pub(crate) fn new(tokenizer: Arc<Tokenizer>) -> Self {
        Self { tokenizer, known: HashMap::new() }
    }

    /// The number of tokens in a text. The first use loads a vocabulary, so never call this on a
    /// thread that others wait for.
    pub(crate) fn count(&mut self, text: &str) -> u64 {
        let mut hasher = DefaultHasher::new();
        text.hash(&mut hasher);
        *self.known.entry(hasher.finish()).or_insert_with(|| self.tokenizer.count(text))
    }
}
