//! A page of a text: the lines that one call shows, and notes about the rest.

use std::fmt::Write;
use std::io::{self, BufRead, Read};

use memchr::memchr_iter;

use crate::context::ToolContext;
use crate::files::text_encoding::TextEncoding;

/// The most bytes of a page's text, without line numbers.
const MAX_BYTES: usize = 64 * 1024;

/// Lines between two checks whether the turn was cut.
const LINES_PER_CHECK: usize = 4_096;

/// A page while it is built.
pub(super) struct Page<'a> {
    context: &'a ToolContext,
    /// Lines passed so far, shown or not.
    passed: usize,
    /// Lines shown, and their bytes.
    shown: usize,
    bytes: usize,
    output: String,
    notes: Vec<String>,
    /// Shown lines that end in a line feed.
    ended_lines: usize,
    /// Shown lines that end in CRLF. The carriage return itself is not shown.
    crlf_lines: usize,
    /// A shown line has bytes that are not UTF-8.
    has_invalid_utf8: bool,
    /// The encoding of the file. The text itself was decoded to UTF-8.
    encoding: TextEncoding,
}

impl<'a> Page<'a> {
    pub(super) fn new(context: &'a ToolContext) -> Self {
        Self {
            context,
            passed: 0,
            shown: 0,
            bytes: 0,
            output: String::new(),
            notes: Vec::new(),
            ended_lines: 0,
            crlf_lines: 0,
            has_invalid_utf8: false,
            encoding: TextEncoding::Utf8,
        }
    }

    /// Sets the encoding that the text was decoded from.
    pub(super) fn in_encoding(self, encoding: TextEncoding) -> Self {
        Self { encoding, ..self }
    }

    /// Formats up to `limit` lines from line `first` on. Reads the text to its end, to count its
    /// lines. `None` if the turn was cut.
    pub(super) fn format_lines(
        mut self,
        text: &mut impl BufRead,
        first: usize,
        limit: usize,
    ) -> io::Result<Option<String>> {
        let mut next = 1;
        let mut has_ended = false;
        while self.shown < limit && self.bytes < MAX_BYTES {
            if self.passed.is_multiple_of(LINES_PER_CHECK) && self.context.is_cancelled() {
                return Ok(None);
            }
            let result = match self.passed + 1 < first {
                true => self.skip_line(text)?,
                false => self.show_line(text)?,
            };
            match result {
                Next::Line => next = self.passed + 1,
                Next::Full => break,
                Next::End => {
                    has_ended = true;
                    break;
                }
            }
        }
        if !has_ended && !self.count_rest(text)? {
            return Ok(None);
        }
        Ok(Some(self.finish(next)))
    }

    fn skip_line(&mut self, text: &mut impl BufRead) -> io::Result<Next> {
        if text.skip_until(b'\n')? == 0 {
            return Ok(Next::End);
        }
        self.passed += 1;
        Ok(Next::Line)
    }

    fn show_line(&mut self, text: &mut impl BufRead) -> io::Result<Next> {
        let room = MAX_BYTES - self.bytes;
        let mut line = Vec::new();
        // Two more bytes, for the line end, show whether the line fits.
        if text.by_ref().take(room as u64 + 2).read_until(b'\n', &mut line)? == 0 {
            return Ok(Next::End);
        }
        let without_lf = line.strip_suffix(b"\n");
        let without_crlf = without_lf.and_then(|line| line.strip_suffix(b"\r"));
        let content = without_crlf.or(without_lf).unwrap_or(&line);
        let is_cut = content.len() > room;
        if is_cut && without_lf.is_none() {
            text.skip_until(b'\n')?;
        }
        self.passed += 1;
        if is_cut && self.shown > 0 {
            return Ok(Next::Full);
        }
        if is_cut {
            self.notes
                .push(format!("line {} is longer than {MAX_BYTES} bytes and was cut", self.passed));
        }
        self.ended_lines += usize::from(without_lf.is_some());
        self.crlf_lines += usize::from(without_crlf.is_some());
        self.bytes += line.len().min(room);
        self.shown += 1;
        let text = &content[..content.len().min(room)];
        // A character that the cut has split is not an error of the file.
        self.has_invalid_utf8 |=
            str::from_utf8(text).is_err_and(|error| !is_cut || error.error_len().is_some());
        let _ = writeln!(self.output, "{:>6}\t{}", self.passed, String::from_utf8_lossy(text));
        Ok(Next::Line)
    }

    /// Counts the remaining lines. Returns `false` if the turn was cut.
    fn count_rest(&mut self, text: &mut impl BufRead) -> io::Result<bool> {
        let mut has_open_line = false;
        loop {
            let part = text.fill_buf()?;
            let Some(last) = part.last() else { break };
            has_open_line = *last != b'\n';
            self.passed += memchr_iter(b'\n', part).count();
            let read = part.len();
            text.consume(read);
            if self.context.is_cancelled() {
                return Ok(false);
            }
        }
        self.passed += usize::from(has_open_line);
        Ok(true)
    }

    /// Adds the notes to the page. `next` is the first line that is not on it.
    fn finish(mut self, next: usize) -> String {
        let lines = self.passed;
        match self.crlf_lines {
            0 => {}
            all if all == self.ended_lines => self.notes.push("these lines end in CRLF".to_owned()),
            _ => self.notes.push("some of these lines end in CRLF".to_owned()),
        }
        if lines == 0 {
            self.notes.push("the file is empty".to_owned());
        } else if self.shown == 0 || next <= lines {
            self.notes.push(format!("the file has {lines} lines"));
        }
        if next <= lines {
            self.notes.push(format!("continue with offset={next}"));
        }
        if self.has_invalid_utf8 {
            self.notes.push(
                "the file is not UTF-8: invalid bytes are shown as \u{fffd}; set its encoding to read them, for \
                 example windows-1252"
                    .to_owned(),
            );
        }
        if self.encoding != TextEncoding::Utf8 {
            self.notes.push(format!("the encoding is {}", self.encoding));
        }
        if !self.notes.is_empty() {
            let _ = writeln!(self.output, "[{}]", self.notes.join("; "));
        }
        self.output
    }
}

/// The result of reading a line.
enum Next {
    /// The line was skipped or shown.
    Line,
    /// The line no longer fits.
    Full,
    /// The text has ended.
    End,
}
