//! Here-documents: their delimiters and their text.

use super::quote::Quotes;
use super::reader::{Reader, Stop};
use super::word::WordBuilder;

/// A here-document, read up to its delimiter.
pub(super) struct Heredoc {
    /// The line that ends the text.
    end: String,
    /// Whether bash expands the text.
    expands: bool,
    /// Whether tabs are removed from the beginning of each line.
    untabbed: bool,
}

impl Reader<'_> {
    /// Reads the delimiter after `<<`.
    pub(super) fn heredoc_delimiter(&mut self, untabbed: bool) -> Result<bool, Stop> {
        if self.substitution_depth > 0 {
            self.unclear(
                "a here-document in a substitution, which versions of bash parse differently",
            );
        }
        self.blanks();
        let quote = match self.peek() {
            Some(quote @ (b'\'' | b'"' | b'\\')) => {
                self.at += 1;
                Some(quote)
            }
            _ => None,
        };
        let end = self
            .take_while(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte))
            .to_owned();
        let closed = match quote {
            Some(quote @ (b'\'' | b'"')) if self.peek() == Some(quote) => {
                self.at += 1;
                true
            }
            Some(b'\'' | b'"') => false,
            _ => true,
        };
        if end.is_empty() || !closed || !self.word_ends_at(0) {
            return Err(Stop("the delimiter of a here-document is not a plain word"));
        }
        self.pending_heredocs.push(Heredoc { end, expands: quote.is_none(), untabbed });
        Ok(true)
    }

    /// Reads the text of a here-document.
    pub(super) fn heredoc_text(&mut self, heredoc: &Heredoc) -> Result<(), Stop> {
        let start = self.at;
        loop {
            let line = self
                .rest()
                .split_inclusive('\n')
                .next()
                .ok_or(Stop("a here-document is not closed"))?;
            let body = &self.source[start..self.at];
            self.at += line.len();
            let line = line.strip_suffix('\n').unwrap_or(line);
            let candidate = if heredoc.untabbed { line.trim_start_matches('\t') } else { line };
            if candidate == heredoc.end {
                return if heredoc.expands {
                    self.inner(body, |inner| inner.expanded_text())
                } else {
                    Ok(())
                };
            }
            if heredoc.expands && line.ends_with('\\') {
                return Err(Stop("a line continuation in a here-document"));
            }
        }
    }

    /// Reads text in which only `$`, backquotes and backslashes have a meaning.
    fn expanded_text(&mut self) -> Result<(), Stop> {
        let mut ignored = WordBuilder::default();
        while let Some(byte) = self.peek() {
            match byte {
                b'\\' => {
                    self.at += 1;
                    self.take();
                }
                b'$' => self.dollar(Quotes::Double, &mut ignored)?,
                b'`' => self.backquotes(&mut ignored)?,
                _ => {
                    self.take();
                }
            }
        }
        Ok(())
    }
}
