//! What of a conversation goes into a request: the limits of its context, held before every one.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use holdpoint_common::{Limits, ModelSettings, Usage};

use crate::model::ModelRequest;

mod fit;
mod tokenizer;

pub use fit::{LeftOut, TooLarge, fit};
pub(crate) use tokenizer::Tokenizer;

/// What a request may be at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Lines of its messages.
    pub lines: u64,
    /// Tokens, by our own estimate.
    pub tokens: u64,
}

impl Bounds {
    /// What these limits allow to this model: never more than its window has room for, beside an answer.
    #[must_use]
    pub fn of(limits: &Limits, model: &ModelSettings) -> Self {
        let room = |window: u64| window.saturating_sub(model.max_output.unwrap_or(window / 8));
        let tokens = model.window.map_or(u64::MAX, room).min(limits.max_history_tokens);
        Self { lines: limits.max_history_lines, tokens }
    }

    /// Whether a request is within them by its size alone: then no token is counted.
    #[must_use]
    pub fn hold(&self, request: &ModelRequest) -> bool {
        estimate(request.bytes()) <= self.tokens
            && request.messages.iter().map(|message| message.lines()).sum::<u64>() <= self.lines
    }
}

/// Tokens of a text of this size, where none are counted.
fn estimate(bytes: u64) -> u64 {
    Usage::estimate(bytes, 0).input
}

/// Counts tokens, each text once.
#[derive(Default)]
pub(crate) struct Counter {
    tokenizer: Arc<Tokenizer>,
    /// What each text counted, by its hash: what is kept of a history comes again with every request.
    known: HashMap<u64, u64>,
}

impl Counter {
    pub(crate) fn new(tokenizer: Arc<Tokenizer>) -> Self {
        Self { tokenizer, known: HashMap::new() }
    }

    /// Tokens of a text. The first use loads a vocabulary: not on a thread that others wait for.
    pub(crate) fn count(&mut self, text: &str) -> u64 {
        let mut hasher = DefaultHasher::new();
        text.hash(&mut hasher);
        *self.known.entry(hasher.finish()).or_insert_with(|| self.tokenizer.count(text))
    }
}
