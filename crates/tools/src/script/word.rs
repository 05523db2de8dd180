//! Words: reads them and determines their text, if it is known before the script runs.

use super::Word;
use super::quote::Quotes;
use super::reader::{Reader, Stop, is_meta};

/// A word that is being read.
#[derive(Default)]
pub(super) struct WordBuilder {
    /// The known text.
    pub(super) text: String,
    /// Whether a part of the word is known only when the script runs.
    pub(super) dynamic: bool,
    /// Whether the word begins with `~`, which `text` leaves out.
    home: bool,
    /// Whether the word has an unquoted `[`.
    bracket: bool,
    /// Whether the word has an unquoted `{`.
    brace: bool,
}

impl WordBuilder {
    fn finish(self) -> Word {
        // `[` alone is the name of a program.
        if self.dynamic || (self.bracket && self.text != "[") {
            Word::Dynamic
        } else if self.home {
            Word::Home(self.text)
        } else {
            Word::Literal(self.text)
        }
    }
}

impl Reader<'_> {
    /// Reads a word that must be next, after blanks.
    pub(super) fn operand(&mut self) -> Result<Word, Stop> {
        self.blanks();
        if self.peek() == Some(b'#') {
            return Err(Stop("a word is missing before a comment"));
        }
        let start = self.at;
        let word = self.word()?;
        let is_number = self.source[start..self.at].bytes().all(|byte| byte.is_ascii_digit());
        if is_number && matches!(self.peek(), Some(b'<' | b'>')) {
            return Err(Stop("bash would read this number as part of a redirection"));
        }
        Ok(word)
    }

    pub(super) fn word(&mut self) -> Result<Word, Stop> {
        let start = self.at;
        let mut word = WordBuilder::default();
        while let Some(byte) = self.peek() {
            match byte {
                b'<' | b'>' if self.peek_at(1) == Some(b'(') => {
                    if self.at > start {
                        return Err(Stop("a process substitution in the middle of a word"));
                    }
                    self.at += 2;
                    self.substitution()?;
                    word.dynamic = true;
                }
                _ if is_meta(byte) => break,
                b'\'' => self.single_quotes(&mut word)?,
                b'"' => self.double_quotes(&mut word)?,
                b'$' => self.dollar(Quotes::None, &mut word)?,
                b'`' => self.backquotes(&mut word)?,
                b'\\' => self.escaped(&mut word)?,
                b'~' => self.tilde(start, &mut word),
                _ => self.plain(byte, &mut word),
            }
        }
        let raw = &self.source[start..self.at];
        if raw.is_empty() {
            return Err(Stop("a word is missing"));
        }
        if raw.starts_with('{') && raw.ends_with('}') && matches!(self.peek(), Some(b'<' | b'>')) {
            return Err(Stop("a redirection sets a variable"));
        }
        Ok(word.finish())
    }

    /// Reads a character that is neither quoted nor a quote.
    fn plain(&mut self, byte: u8, word: &mut WordBuilder) {
        match byte {
            b'*' | b'?' => word.dynamic = true,
            b'[' => word.bracket = true,
            b'{' => word.brace = true,
            b',' if word.brace => word.dynamic = true,
            b'.' if word.brace && self.before() == Some(b'.') => word.dynamic = true,
            _ => {}
        }
        if let Some(character) = self.take() {
            word.dynamic |= character.len_utf8() > 1
                && character.encode_utf8(&mut [0; 4]).bytes().any(is_odd_blank);
            word.text.push(character);
        }
    }

    /// Reads a backslash and the character that it quotes.
    fn escaped(&mut self, word: &mut WordBuilder) -> Result<(), Stop> {
        if self.peek_at(1) == Some(b'\n') {
            self.unclear("a line continuation inside a word");
            self.at += 2;
            return Ok(());
        }
        self.at += 1;
        word.text.push(self.take().ok_or(Stop("the command ends with a backslash"))?);
        Ok(())
    }

    /// Reads an unquoted `~`.
    fn tilde(&mut self, start: usize, word: &mut WordBuilder) {
        let is_first = self.at == start;
        let before = self.before();
        self.at += 1;
        let prefix_ends = self.peek().is_none_or(|byte| byte == b'/' || is_meta(byte));
        if is_first && prefix_ends {
            word.home = true;
        } else if is_first || matches!(before, Some(b'=' | b':')) {
            word.dynamic = true;
        } else {
            word.text.push('~');
        }
    }
}

/// Whether some locales of some systems treat this byte of a longer character as a blank.
fn is_odd_blank(byte: u8) -> bool {
    matches!(byte, 0x85 | 0xa0)
}
