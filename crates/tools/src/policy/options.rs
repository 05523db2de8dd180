//! The options of programs that run others: where they end and the other program begins.

use crate::script::Word;

/// What options a program has before its operands.
#[derive(Debug, Clone, Copy)]
pub(super) struct Options {
    /// Letters that stand alone.
    pub(super) flags: &'static str,
    /// Letters that take a value: the rest of the word, or the next one.
    pub(super) values: &'static str,
    /// Long options that stand alone.
    pub(super) long_flags: &'static [&'static str],
    /// Long options that take a value: after `=`, or the next word.
    pub(super) long_values: &'static [&'static str],
}

impl Options {
    /// None.
    pub(super) const NONE: Self = Self { flags: "", values: "", long_flags: &[], long_values: &[] };

    /// How many words the options are. `Err`: how many are understood before one that is not.
    pub(super) fn skip(&self, words: &[Word]) -> Result<usize, usize> {
        let mut at = 0;
        while let Some(word) = words.get(at) {
            let Word::Literal(word) = word else { return Err(at) };
            let more = match word.strip_prefix('-') {
                None | Some("") => return Ok(at),
                Some("-") => return Ok(at + 1),
                Some(rest) => match rest.strip_prefix('-') {
                    Some(long) => self.long(long),
                    None => self.short(rest),
                },
            };
            at += more.ok_or(at)?;
        }
        Ok(at.min(words.len()))
    }

    /// How many words a long option is.
    fn long(&self, option: &str) -> Option<usize> {
        match option.split_once('=') {
            Some((name, _)) => self.long_values.contains(&name).then_some(1),
            None if self.long_flags.contains(&option) => Some(1),
            None => self.long_values.contains(&option).then_some(2),
        }
    }

    /// How many words a bundle of letters is.
    fn short(&self, letters: &str) -> Option<usize> {
        for (at, letter) in letters.char_indices() {
            if self.values.contains(letter) {
                let last = at + letter.len_utf8() == letters.len();
                return Some(if last { 2 } else { 1 });
            }
            if !self.flags.contains(letter) {
                return None;
            }
        }
        Some(1)
    }
}
