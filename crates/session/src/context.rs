//! The context of a request: the limits to which a conversation is cut before every request.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use holdpoint_common::{Limits, ModelSettings, Usage};

use crate::model::Message;

mod fit;
mod images;
mod tokenizer;

pub use fit::{LeftOut, TooLarge, fit};
pub(crate) use images::limit_images;
pub(crate) use tokenizer::Tokenizer;

/// How many bytes of facts are tried first for each token of a request.
const BYTES_PER_TOKEN: u64 = 16;

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

    /// How many bytes of the newest facts are tried first. Most text has fewer bytes per token.
    pub(crate) fn newest_bytes(&self) -> u64 {
        self.tokens.saturating_mul(BYTES_PER_TOKEN)
    }

    /// Whether a request of this many bytes is near the bounds: the tokens of a later one may have to
    /// be counted.
    pub(crate) fn are_near(&self, bytes: u64) -> bool {
        estimate(bytes) > self.tokens / 2
    }

    /// Whether a request of this many bytes is within the bounds by its size alone, so that its tokens
    /// need not be counted.
    #[must_use]
    pub fn allow(&self, bytes: u64, messages: &[Message]) -> bool {
        estimate(bytes) <= self.tokens
            && messages.iter().map(|message| message.lines()).sum::<u64>() <= self.lines
    }
}

/// An estimate of the tokens in a text of this size.
fn estimate(bytes: u64) -> u64 {
    Usage::estimate(bytes, 0).input
}

/// Counts tokens: each text once, because the kept part of a history is in every request again.
#[derive(Default)]
pub(crate) struct Counter {
    tokenizer: Arc<Tokenizer>,
    /// The count of each text of this request, by its hash.
    counts: HashMap<u64, u64>,
    /// The counts of the previous request. Older ones are forgotten.
    before: HashMap<u64, u64>,
}

impl Counter {
    pub(crate) fn new(tokenizer: Arc<Tokenizer>) -> Self {
        Self { tokenizer, ..Self::default() }
    }

    /// Begins to count the texts of another request.
    pub(crate) fn begin(&mut self) {
        self.before = std::mem::take(&mut self.counts);
    }

    /// The number of tokens in a text. The first use loads a vocabulary, so never call this on a
    /// thread that others wait for.
    pub(crate) fn count(&mut self, text: &str) -> u64 {
        let mut hasher = DefaultHasher::new();
        text.hash(&mut hasher);
        let hash = hasher.finish();
        let known = || self.before.get(&hash).copied();
        *self
            .counts
            .entry(hash)
            .or_insert_with(|| known().unwrap_or_else(|| self.tokenizer.count(text)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_the_last_request_are_kept_and_older_ones_forgotten() {
        let mut counter = Counter::default();
        counter.begin();
        assert_eq!((counter.count("hello world"), counter.count("x")), (2, 1));
        // A known count is not made again.
        let hello = *counter.counts.iter().find(|(_, tokens)| **tokens == 2).unwrap().0;
        counter.counts.insert(hello, 7);
        counter.begin();
        assert_eq!(counter.count("hello world"), 7);
        counter.begin();
        assert_eq!((counter.count("hello world"), counter.counts.len()), (7, 1));
        assert_eq!(counter.before.len(), 1, "the text `x` is forgotten");
        counter.begin();
        counter.begin();
        assert_eq!(counter.count("hello world"), 2);
    }
}
