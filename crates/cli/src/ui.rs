//! The program's output: the model's words to standard output, lines about them to standard error.
//! Commands that report the past write both to standard output.

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::os::fd::AsFd;
use std::sync::Arc;

use holdpoint_common::Event;
use holdpoint_session::form::LineEditor;
use holdpoint_tools::shown::{prose, prose_line};
use rustix::termios::tcgetwinsize;
use serde::Serialize;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::json::Json;
use crate::tone::Tone;

/// The buffer size of each stream.
const BUFFER_BYTES: usize = 64 * 1024;

/// Returns to the start of a terminal's line and clears it.
const CLEAR: &str = "\r\x1b[K";

/// The mark in front of the user's input.
const INPUT_MARK: &str = "> ";

/// The assumed width of a terminal that does not report one.
const DEFAULT_COLUMNS: usize = 80;

/// Standard output and standard error. The program writes nowhere else.
pub(crate) struct Ui {
    out: Stream,
    err: Stream,
    /// The stream that was written to last.
    last_side: Side,
    /// The stream for lines about the model's words.
    line_side: Side,
    /// Whether the last piece belonged to a thought.
    is_thought: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Out,
    Err,
}

struct Stream {
    writer: BufWriter<Box<dyn Write + Send>>,
    is_terminal: bool,
    /// Whether colour and weight may be used.
    is_styled: bool,
    /// Whether the last line is unfinished.
    is_mid_line: bool,
    /// The width of the user's input, if the last line shows it.
    input_cells: Option<usize>,
    /// Whether the last line shows progress, which the next output replaces.
    is_progress: bool,
}

impl Tone {
    /// The codes before and behind text of this tone, where styles are allowed.
    fn codes(self) -> (&'static str, &'static str) {
        match self {
            Self::Plain => ("", ""),
            Self::Dim => ("\x1b[2m", "\x1b[0m"),
            Self::Strong => ("\x1b[1m", "\x1b[0m"),
            Self::User => ("\x1b[1;36m", "\x1b[0m"),
            Self::Accent => ("\x1b[36m", "\x1b[0m"),
            Self::Good => ("\x1b[32m", "\x1b[0m"),
            Self::Warning => ("\x1b[33m", "\x1b[0m"),
            Self::Fault => ("\x1b[1;31m", "\x1b[0m"),
            Self::Waits => ("\x1b[1;33m", "\x1b[0m"),
        }
    }
}

impl Ui {
    /// Writes to this process's standard output and error. `NO_COLOR` is obeyed.
    pub(crate) fn new() -> Self {
        let is_set = |name| {
            std::env::var_os(name).is_some_and(|value: std::ffi::OsString| !value.is_empty())
        };
        let plain =
            is_set("NO_COLOR") || std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let (out, err) = (io::stdout(), io::stderr());
        Self {
            out: Stream::new(&out, Box::new(io::stdout()), plain),
            err: Stream::new(&err, Box::new(io::stderr()), plain),
            last_side: Side::Err,
            line_side: Side::Err,
            is_thought: false,
        }
    }

    /// Writes both streams to this file.
    #[cfg(test)]
    pub(crate) fn to_file(file: &File) -> io::Result<Self> {
        Ok(Self {
            out: Stream::new(file, Box::new(file.try_clone()?), true),
            err: Stream::new(file, Box::new(file.try_clone()?), true),
            last_side: Side::Err,
            line_side: Side::Err,
            is_thought: false,
        })
    }

    /// Sends lines about the model's words to standard output from now on. Errors stay on standard
    /// error.
    pub(crate) fn lines_to_stdout(&mut self) {
        self.line_side = Side::Out;
    }

    pub(crate) fn out_is_terminal(&self) -> bool {
        self.out.is_terminal
    }

    /// The width of standard output; unlimited if it is not a terminal or does not report its
    /// width.
    pub(crate) fn columns(&self) -> usize {
        let is_terminal = self.out.is_terminal;
        is_terminal.then(|| reported_columns(io::stdout())).flatten().unwrap_or(usize::MAX)
    }

    pub(crate) fn err_is_terminal(&self) -> bool {
        self.err.is_terminal
    }

    /// Whether [`progress`](Self::progress) is shown.
    pub(crate) fn shows_progress(&self) -> bool {
        self.err.is_styled
    }

    /// Writes the program's own text to standard output and flushes it.
    pub(crate) fn print(&mut self, text: &str) -> io::Result<()> {
        self.write(text.as_bytes())
    }

    /// Writes the program's own bytes to standard output and flushes them.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.writer.write_all(bytes)?;
        self.out.writer.flush()
    }

    /// Standard output for code that writes JSON itself. For a terminal, the JSON is escaped.
    pub(crate) fn json_out(&mut self) -> Box<dyn Write + Send + '_> {
        match self.out.is_terminal {
            true => Box::new(Json::new(&mut self.out.writer)),
            false => Box::new(&mut self.out.writer),
        }
    }

    /// Writes a value to standard output as JSON, over several lines on a terminal, else on one.
    pub(crate) fn json(&mut self, value: &impl Serialize) -> io::Result<()> {
        let json = Json::new(&mut self.out.writer);
        if self.out.is_terminal {
            serde_json::to_writer_pretty(json, value)
        } else {
            serde_json::to_writer(json, value)
        }?;
        self.print("\n")
    }

    /// Writes an event to standard output as one line of JSON.
    pub(crate) fn event(&mut self, event: &Arc<Event>) -> io::Result<()> {
        serde_json::to_writer(Json::new(&mut self.out.writer), &**event)?;
        self.out.writer.write_all(b"\n")
    }

    /// Writes a piece of the model's text to standard output.
    pub(crate) fn text(&mut self, piece: &str) -> io::Result<()> {
        if piece.is_empty() {
            return Ok(());
        }
        self.switch_to(Side::Out)?;
        if std::mem::take(&mut self.is_thought) && self.line_side == Side::Out {
            self.end_text()?;
        }
        self.out.writer.write_all(prose(piece).as_bytes())?;
        self.out.is_mid_line = !piece.ends_with('\n');
        Ok(())
    }

    /// Writes a piece of the model's thought.
    pub(crate) fn thought(&mut self, piece: &str) -> io::Result<()> {
        if piece.is_empty() {
            return Ok(());
        }
        self.switch_to(self.line_side)?;
        if self.err.input_cells.is_some() {
            self.err.end_line();
        }
        if !std::mem::replace(&mut self.is_thought, true) && self.line_side == Side::Out {
            self.end_text()?;
        }
        self.put(Tone::Dim, &prose(piece))?;
        match self.line_side {
            Side::Out => self.out.is_mid_line = !piece.ends_with('\n'),
            Side::Err => self.err.is_mid_line = !piece.ends_with('\n'),
        }
        Ok(())
    }

    /// Ends the unfinished lines of both streams.
    pub(crate) fn end_line(&mut self) -> io::Result<()> {
        self.err.end_line();
        self.end_text()
    }

    fn end_text(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.out.is_mid_line) {
            self.out.writer.write_all(b"\n")?;
        }
        Ok(())
    }

    /// Writes a line about the model's words. The caller has escaped foreign text in it.
    pub(crate) fn line(&mut self, tone: Tone, line: &str) -> io::Result<()> {
        self.switch_to(self.line_side)?;
        match self.line_side {
            Side::Out => self.end_text()?,
            Side::Err => self.err.end_line(),
        }
        self.put(tone, line)?;
        self.put(Tone::Plain, "\n")
    }

    /// Writes to the stream for lines about the model's words. Failures on standard error are
    /// ignored, because work continues without a reader there.
    fn put(&mut self, tone: Tone, text: &str) -> io::Result<()> {
        match self.line_side {
            Side::Out => self.out.write(tone, text),
            Side::Err => {
                self.err.put(tone, text);
                Ok(())
            }
        }
    }

    /// Shows the user's input, with the cursor in it, on one line of standard error. If space is
    /// short, the text from the cursor on takes precedence.
    pub(crate) fn input(&mut self, editor: &LineEditor) -> io::Result<()> {
        self.switch_to(Side::Err)?;
        let cells_before = self.err.input_cells.take();
        if cells_before.is_none() {
            self.err.end_line();
        }
        let (left, right) = editor.text().split_at(editor.cursor());
        let (left, right) = (prose_line(left), prose_line(right));
        let columns =
            reported_columns(io::stderr()).unwrap_or(DEFAULT_COLUMNS).max(INPUT_MARK.len() + 2);
        // The last column stays free: in some terminals, a cursor behind it is on the next line.
        let room = columns - INPUT_MARK.len() - 1;
        let right = begin_of(&right, room);
        let left = end_of(&left, room - right.width());
        let cells = left.width() + right.width();
        let stale_cells = cells_before.unwrap_or_default().saturating_sub(cells);
        let backspaces = "\u{8}".repeat(stale_cells + right.width());
        let blanks = " ".repeat(stale_cells);
        let line = format!("\r{INPUT_MARK}{left}{right}{blanks}{backspaces}");
        self.err.put(Tone::Strong, &line);
        self.err.is_mid_line = true;
        self.err.input_cells = Some(cells);
        self.flush()
    }

    /// Shows the first of these lines that fits as the last line of standard error, until the next
    /// output there. Does nothing unless [`shows_progress`](Self::shows_progress).
    pub(crate) fn progress(&mut self, lines: &[String]) -> io::Result<()> {
        // The user's input has the line.
        if !self.shows_progress() || self.err.input_cells.is_some() {
            return Ok(());
        }
        self.switch_to(Side::Err)?;
        if !self.err.is_progress {
            self.err.end_line();
        }
        let columns = reported_columns(io::stderr()).unwrap_or(DEFAULT_COLUMNS).max(2);
        let fits = |line: &&String| line.width() < columns;
        let shown = lines.iter().find(fits).map_or("", String::as_str);
        self.err.put(Tone::Plain, CLEAR);
        self.err.put(Tone::Plain, shown);
        self.err.is_mid_line = true;
        self.err.is_progress = true;
        self.flush()
    }

    /// Writes an error and its hint to standard error.
    pub(crate) fn fault(&mut self, message: &str, hint: Option<&str>) {
        // The error may be a failed write to standard output.
        let _ = self.end_line();
        let _ = self.out.writer.flush();
        self.err.put(Tone::Fault, "error: ");
        self.err.put(Tone::Plain, message);
        self.err.put(Tone::Plain, "\n");
        if let Some(hint) = hint {
            self.err.put(Tone::Strong, "hint: ");
            self.err.put(Tone::Plain, hint);
            self.err.put(Tone::Plain, "\n");
        }
        let _ = self.err.writer.flush();
    }

    /// Flushes both streams.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        // Work continues without a reader on standard error.
        let _ = self.err.writer.flush();
        self.out.writer.flush()
    }

    /// Switches between the streams, keeping their output in order if both are on one terminal.
    fn switch_to(&mut self, side: Side) -> io::Result<()> {
        if self.last_side == side {
            return Ok(());
        }
        self.last_side = side;
        match side {
            Side::Out => self.err.end_line(),
            // Elsewhere, the model's text is left as it is.
            Side::Err if self.out.is_terminal && self.err.is_terminal => self.end_text()?,
            Side::Err => {}
        }
        self.flush()
    }
}

impl Stream {
    fn new(
        target: &(impl AsFd + IsTerminal),
        fallback: Box<dyn Write + Send>,
        plain: bool,
    ) -> Self {
        // Bypasses the line buffer of the standard library.
        let unbuffered = target
            .as_fd()
            .try_clone_to_owned()
            .map(|fd| Box::new(File::from(fd)) as Box<dyn Write + Send>);
        let is_terminal = target.is_terminal();
        Self {
            writer: BufWriter::with_capacity(BUFFER_BYTES, unbuffered.unwrap_or(fallback)),
            is_terminal,
            is_styled: is_terminal && !plain,
            is_mid_line: false,
            input_cells: None,
            is_progress: false,
        }
    }

    /// Ends an unfinished line, ignoring failures.
    fn end_line(&mut self) {
        self.input_cells = None;
        let was_progress = std::mem::take(&mut self.is_progress);
        if std::mem::take(&mut self.is_mid_line) {
            self.put(Tone::Plain, if was_progress { CLEAR } else { "\n" });
        }
    }

    /// Writes text, ignoring failures.
    fn put(&mut self, tone: Tone, text: &str) {
        let _ = self.write(tone, text);
    }

    fn write(&mut self, tone: Tone, text: &str) -> io::Result<()> {
        let (begin, end) = if self.is_styled { tone.codes() } else { ("", "") };
        [begin, text, end].iter().try_for_each(|part| self.writer.write_all(part.as_bytes()))
    }
}

/// The width of a terminal, if it reports one.
fn reported_columns(terminal: impl AsFd) -> Option<usize> {
    tcgetwinsize(terminal).ok().map(|size| usize::from(size.ws_col)).filter(|columns| *columns > 0)
}

/// The longest end of a text that fits into this many cells.
fn end_of(text: &str, cells: usize) -> &str {
    let fitting = text.char_indices().rev().take_while(fits_into(cells));
    let start = fitting.last().map_or(text.len(), |(at, _)| at);
    &text[start..]
}

/// The longest beginning of a text that fits into this many cells.
fn begin_of(text: &str, cells: usize) -> &str {
    let fitting = text.char_indices().take_while(fits_into(cells));
    let end = fitting.last().map_or(0, |(at, last)| at + last.len_utf8());
    &text[..end]
}

/// Returns a predicate that accepts one character after the other while they fit into `cells`.
fn fits_into(cells: usize) -> impl FnMut(&(usize, char)) -> bool {
    let mut remaining = cells;
    move |&(_, character)| {
        let width = character.width().unwrap_or_default();
        remaining.checked_sub(width).inspect(|rest| remaining = *rest).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_and_the_beginning_of_a_text_fit() {
        for (text, cells, end) in [
            ("", 3, ""),
            ("abc", 3, "abc"),
            ("abcd", 3, "bcd"),
            ("a漢字", 3, "字"),
            ("漢字", 4, "漢字"),
        ] {
            assert_eq!(end_of(text, cells), end);
        }
        for (text, cells, begin) in
            [("", 3, ""), ("abc", 3, "abc"), ("abcd", 3, "abc"), ("漢字a", 3, "漢")]
        {
            assert_eq!(begin_of(text, cells), begin);
        }
    }
}
