//! Counts the tokens of texts by a public vocabulary. The vocabulary takes tens of megabytes and up
//! to a fifth of a second to load, so it is loaded once, and only when a count is needed or will be
//! soon.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use tiktoken_rs::CoreBPE;
use tokio::runtime;
use tokio::sync::Semaphore;

use super::Bounds;

/// How many bytes are counted at a time. For a text without spaces, the time grows faster than the
/// length.
const PIECE_BYTES: usize = 1024;

pub(crate) struct Tokenizer {
    /// `None` if the vocabulary can't be loaded.
    vocabulary: OnceLock<Option<CoreBPE>>,
    /// Whether it is being loaded ahead, or was.
    loads_ahead: AtomicBool,
    /// The right to count before a request needs it.
    pub(crate) ahead: Arc<Semaphore>,
}

impl Default for Tokenizer {
    fn default() -> Self {
        let vocabulary = OnceLock::new();
        Self { vocabulary, loads_ahead: AtomicBool::new(false), ahead: Arc::new(Semaphore::new(1)) }
    }
}

impl Tokenizer {
    /// Loads the vocabulary in the background if a request of this many bytes is near its bounds.
    pub(crate) fn load_if_near(
        self: &Arc<Self>,
        bounds: &Bounds,
        bytes: u64,
        runtime: &runtime::Handle,
    ) {
        if bounds.are_near(bytes)
            && self.vocabulary.get().is_none()
            && !self.loads_ahead.swap(true, Ordering::Relaxed)
        {
            let tokenizer = Arc::clone(self);
            runtime.spawn_blocking(move || _ = tokenizer.vocabulary());
        }
    }

    fn vocabulary(&self) -> Option<&CoreBPE> {
        self.vocabulary.get_or_init(|| tiktoken_rs::o200k_base().ok()).as_ref()
    }

    /// The number of tokens in a text.
    pub(crate) fn count(&self, text: &str) -> u64 {
        let Some(vocabulary) = self.vocabulary() else {
            return super::estimate(text.len() as u64);
        };
        let (mut tokens, mut rest) = (0, text);
        while !rest.is_empty() {
            let (piece, later) = rest.split_at(rest.floor_char_boundary(PIECE_BYTES));
            tokens += vocabulary.encode_ordinary(piece).len() as u64;
            rest = later;
        }
        tokens
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_vocabulary_is_loaded_once_before_a_request_needs_it() {
        let runtime = runtime::Builder::new_current_thread().build().unwrap();
        let tokenizer = Arc::new(Tokenizer::default());
        let bounds = Bounds { lines: 9, tokens: 1_000 };
        // An estimate of 500 tokens.
        tokenizer.load_if_near(&bounds, 1_250, runtime.handle());
        assert_eq!(Arc::strong_count(&tokenizer), 1, "it is too far from the bounds");
        tokenizer.load_if_near(&bounds, 1_300, runtime.handle());
        tokenizer.load_if_near(&bounds, 1_300, runtime.handle());
        assert!(Arc::strong_count(&tokenizer) <= 2, "one task loads it");
        assert!(tokenizer.vocabulary.wait().is_some());
    }

    #[test]
    fn tokens_are_counted_whatever_the_text() {
        let tokenizer = Tokenizer::default();
        assert!(tokenizer.vocabulary.get().is_none(), "the vocabulary is loaded on first use");
        assert_eq!(tokenizer.count(""), 0);
        assert_eq!(tokenizer.count("hello world"), 2);
        for text in ["a".repeat(100_000), "é漢😀".repeat(10_000), " \n".repeat(50_000)] {
            let tokens = tokenizer.count(&text);
            assert!(tokens > 0 && tokens <= text.len() as u64, "{tokens}");
        }
        // A text in which a piece would end inside a character.
        assert!(tokenizer.count(&format!("x{}", "漢".repeat(1000))) > 0);
    }
}
