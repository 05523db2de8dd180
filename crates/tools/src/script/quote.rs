//! Quotes: single, double, `$'…'` and backquotes.

use super::reader::{Reader, Stop};
use super::word::WordBuilder;

/// The quotes around a piece of text.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Quotes {
    None,
    /// `"`, or a here-document.
    Double,
}

impl Reader<'_> {
    pub(super) fn single_quotes(&mut self, word: &mut WordBuilder) -> Result<(), Stop> {
        self.at += 1;
        let length = self.rest().find('\'').ok_or(Stop("a quote is not closed"))?;
        let quoted = &self.rest()[..length];
        self.check_line_breaks(quoted)?;
        word.text.push_str(quoted);
        self.at += length + 1;
        Ok(())
    }

    pub(super) fn double_quotes(&mut self, word: &mut WordBuilder) -> Result<(), Stop> {
        self.at += 1;
        loop {
            match (self.peek().ok_or(Stop("a quote is not closed"))?, self.peek_at(1)) {
                (b'"', _) => {
                    self.at += 1;
                    return Ok(());
                }
                (b'$', Some(b'(')) if self.text_substitution(word) => {}
                (b'$', _) => self.nested(|this| this.dollar(Quotes::Double, word))?,
                (b'`', _) => self.backquotes(word)?,
                (b'\\', Some(b'\n')) => {
                    if !matches!(self.before(), Some(b' ' | b'\t')) {
                        self.unclear("a line continuation inside a word or an operator");
                    }
                    self.at += 2;
                }
                (b'\\', Some(byte @ (b'$' | b'`' | b'"' | b'\\'))) => {
                    word.text.push(char::from(byte));
                    self.at += 2;
                }
                (b'\n', _) => {
                    self.check_line_breaks("\n")?;
                    word.text.push('\n');
                    self.at += 1;
                }
                _ => word.text.extend(self.take()),
            }
        }
    }

    /// Reads a command between backquotes.
    pub(super) fn backquotes(&mut self, word: &mut WordBuilder) -> Result<(), Stop> {
        word.dynamic = true;
        self.at += 1;
        let start = self.at;
        loop {
            match self.take().ok_or(Stop("a backquote is not closed"))? {
                '`' => break,
                '\\' => {
                    self.take();
                }
                _ => {}
            }
        }
        let quoted = &self.source[start..self.at - 1];
        self.check_line_breaks(quoted)?;
        if !quoted.contains('\\') {
            return self.inner(quoted, |inner| inner.script());
        }
        self.unclear("backslashes between backquotes");
        let unescaped = ["\\\\", "\\`", "\\$"]
            .iter()
            .fold(quoted.to_owned(), |text, escaped| text.replace(escaped, &escaped[1..]));
        self.inner(&unescaped, |inner| inner.script())
    }

    /// Reads `$'…'`, after the `$`.
    pub(super) fn ansi_quotes(&mut self, word: &mut WordBuilder) -> Result<(), Stop> {
        self.at += 1;
        loop {
            match self.take().ok_or(Stop("a quote is not closed"))? {
                '\'' => return Ok(()),
                '\\' => match self.ansi_escape()? {
                    Some(character) => word.text.push(character),
                    None => word.dynamic = true,
                },
                character => {
                    if character == '\n' {
                        self.check_line_breaks("\n")?;
                    }
                    word.text.push(character);
                }
            }
        }
    }

    /// Reads the escape after a backslash in `$'…'`. Returns the character if it is the same in all
    /// locales.
    fn ansi_escape(&mut self) -> Result<Option<char>, Stop> {
        let escaped = self.take().ok_or(Stop("a quote is not closed"))?;
        let (digits, radix) = match escaped {
            'x' => (2, 16),
            'u' => (4, 16),
            'U' => (8, 16),
            '0'..='7' => {
                self.at -= 1;
                (3, 8)
            }
            'a' => return Ok(Some('\x07')),
            'b' => return Ok(Some('\x08')),
            'e' | 'E' => return Ok(Some('\x1b')),
            'f' => return Ok(Some('\x0c')),
            'n' => return Ok(Some('\n')),
            'r' => return Ok(Some('\r')),
            't' => return Ok(Some('\t')),
            'v' => return Ok(Some('\x0b')),
            '\\' | '\'' | '"' | '?' => return Ok(Some(escaped)),
            _ => return Ok(None),
        };
        let code =
            self.rest().chars().take(digits).take_while(|c| c.is_digit(radix)).collect::<String>();
        self.at += code.len();
        // Zero ends the word, and a character outside ASCII depends on the locale.
        Ok(u8::from_str_radix(&code, radix)
            .ok()
            .filter(|code| (1..0x80).contains(code))
            .map(char::from))
    }

    /// Like [`check_line_break`](Self::check_line_break) for the line breaks in quotes, which are
    /// also refused if a here-document waits for the end of this line.
    fn check_line_breaks(&self, quoted: &str) -> Result<(), Stop> {
        if quoted.contains('\n') && !self.pending_heredocs.is_empty() {
            return Err(Stop("a here-document begins inside another construct"));
        }
        if quoted.contains('\n') { self.check_line_break() } else { Ok(()) }
    }
}
