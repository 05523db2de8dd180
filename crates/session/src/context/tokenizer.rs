//! Counts the tokens of texts by a public vocabulary. The vocabulary takes tens of megabytes and up
//! to a fifth of a second to load, so it is loaded once, and only when a count is needed.

use std::sync::OnceLock;

use tiktoken_rs::CoreBPE;

/// How many bytes are counted at a time. For a text without spaces, the time grows faster than the
/// length.
const PIECE_BYTES: usize = 1024;

#[derive(Default)]
pub(crate) struct Tokenizer {
    /// `None` if the vocabulary can't be loaded.
    vocabulary: OnceLock<Option<CoreBPE>>,
}

impl Tokenizer {
    /// The number of tokens in a text.
    pub(crate) fn count(&self, text: &str) -> u64 {
        let Some(vocabulary) = self.vocabulary.get_or_init(|| tiktoken_rs::o200k_base().ok())
        else {
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
