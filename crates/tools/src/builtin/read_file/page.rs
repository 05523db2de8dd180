//! A page of a text: the lines that one call shows, and what it says of the rest.

use std::fmt::Write;
use std::io::{self, BufRead, Read};

use memchr::memchr_iter;

use crate::context::ToolContext;
use crate::files::coding::Coding;

/// Bytes of a page's text, without the numbers of lines.
const MAX_BYTES: usize = 64 * 1024;

/// Lines after which it is looked whether the turn was cut.
const BREATH: usize = 4_096;

/// A page in the making.
pub(super) struct Page<'a> {
    context: &'a ToolContext,
    /// Lines passed so far, shown or not.
    passed: usize,
    /// Lines shown, and their bytes.
    shown: usize,
    bytes: usize,
    output: String,
    notes: Vec<String>,
    /// Lines shown that end in a line feed, and those before which there is a carriage return: nobody sees it.
    ended: usize,
    returned: usize,
    /// What could not be read as UTF-8 was shown.
    foreign: bool,
    /// The encoding that the text was in, if another one.
    coding: Coding,
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
            ended: 0,
            returned: 0,
            foreign: false,
            coding: Coding::Utf8,
        }
    }

    /// The text was in this encoding before.
    pub(super) fn in_coding(self, coding: Coding) -> Self {
        Self { coding, ..self }
    }

    /// So many lines from line `first` on, as they are shown. Reads to the end. `None` if the turn was cut.
    pub(super) fn of(mut self, text: &mut impl BufRead, first: usize, limit: usize) -> io::Result<Option<String>> {
        let (mut next, mut is_all) = (1, false);
        while self.shown < limit && self.bytes < MAX_BYTES {
            if self.passed.is_multiple_of(BREATH) && self.context.is_cancelled() {
                return Ok(None);
            }
            let came = match self.passed + 1 < first {
                true => self.pass(text)?,
                false => self.show(text)?,
            };
            match came {
                Next::Line => next = self.passed + 1,
                Next::Full => break,
                Next::End => {
                    is_all = true;
                    break;
                }
            }
        }
        if !is_all && !self.pass_rest(text)? {
            return Ok(None);
        }
        Ok(Some(self.finish(next)))
    }

    fn pass(&mut self, text: &mut impl BufRead) -> io::Result<Next> {
        if text.skip_until(b'\n')? == 0 {
            return Ok(Next::End);
        }
        self.passed += 1;
        Ok(Next::Line)
    }

    fn show(&mut self, text: &mut impl BufRead) -> io::Result<Next> {
        let room = MAX_BYTES - self.bytes;
        let mut line = Vec::new();
        // A line end more than there is room for tells whether the line fits.
        if text.by_ref().take(room as u64 + 2).read_until(b'\n', &mut line)? == 0 {
            return Ok(Next::End);
        }
        let ended = line.strip_suffix(b"\n");
        let returned = ended.and_then(|line| line.strip_suffix(b"\r"));
        let words = returned.or(ended).unwrap_or(&line);
        let cut = words.len() > room;
        if cut && ended.is_none() {
            text.skip_until(b'\n')?;
        }
        self.passed += 1;
        if cut && self.shown > 0 {
            return Ok(Next::Full);
        }
        if cut {
            self.notes.push(format!("line {} is longer than {MAX_BYTES} bytes and cut", self.passed));
        }
        self.ended += usize::from(ended.is_some());
        self.returned += usize::from(returned.is_some());
        self.bytes += line.len().min(room);
        self.shown += 1;
        let text = &words[..words.len().min(room)];
        // A character that the cut has split is no fault of the file.
        self.foreign |= str::from_utf8(text).is_err_and(|error| !cut || error.error_len().is_some());
        let _ = writeln!(self.output, "{:>6}\t{}", self.passed, String::from_utf8_lossy(text));
        Ok(Next::Line)
    }

    /// Counts the lines that are left. `false` if the turn was cut.
    fn pass_rest(&mut self, text: &mut impl BufRead) -> io::Result<bool> {
        let mut is_open = false;
        loop {
            let part = text.fill_buf()?;
            let Some(last) = part.last() else { break };
            is_open = *last != b'\n';
            self.passed += memchr_iter(b'\n', part).count();
            let read = part.len();
            text.consume(read);
            if self.context.is_cancelled() {
                return Ok(false);
            }
        }
        self.passed += usize::from(is_open);
        Ok(true)
    }

    /// The page, with its notes. `next` is the first line that it does not have.
    fn finish(mut self, next: usize) -> String {
        let lines = self.passed;
        match self.returned {
            0 => {}
            all if all == self.ended => self.notes.push("these lines end in CRLF".to_owned()),
            _ => self.notes.push("some of these lines end in CRLF".to_owned()),
        }
        if lines == 0 {
            self.notes.push("the file is empty".to_owned());
        } else if self.shown == 0 || next <= lines {
            self.notes.push(format!("the file has {lines} lines"));
        }
        if next <= lines {
            self.notes.push(format!("go on with offset {next}"));
        }
        if self.foreign {
            self.notes.push(
                "the file is not UTF-8: what could not be read is shown as \u{fffd}; name its encoding to see it, for \
                 example windows-1252"
                    .to_owned(),
            );
        }
        if self.coding != Coding::Utf8 {
            self.notes.push(format!("the file is in {}", self.coding));
        }
        if !self.notes.is_empty() {
            let _ = writeln!(self.output, "[{}]", self.notes.join("; "));
        }
        self.output
    }
}

/// What came of a line.
enum Next {
    /// It was passed or shown.
    Line,
    /// It did not fit any more.
    Full,
    /// There was none.
    End,
}
