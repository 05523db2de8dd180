//! All that the program writes: the model's words to standard output, everything about them to standard error. Of a
//! command whose work it is to tell what has happened, both go to standard output.

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::os::fd::AsFd;
use std::sync::Arc;

use holdpoint_common::Event;
use holdpoint_session::form::Words;
use holdpoint_tools::shown::{prose, prose_line};
use rustix::termios::tcgetwinsize;
use serde::Serialize;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::json::Json;

/// Bytes that are collected before they are written.
const BUFFER: usize = 64 * 1024;

/// Goes to the beginning of a line of a terminal, and clears it.
const CLEAR: &str = "\r\x1b[K";

/// What stands before what the user types.
const MARK: &str = "> ";

/// How wide a terminal is that does not say it.
const COLUMNS: usize = 80;

/// Standard output and standard error. The program writes nowhere else.
pub(crate) struct Ui {
    out: Stream,
    err: Stream,
    /// Which of the two was written to last.
    last: Side,
    /// Where lines about the model's words go.
    about: Side,
    /// The last piece was one of a thought.
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
    /// Colour and weight may be used.
    styled: bool,
    /// Its last line has not been ended.
    open: bool,
    /// Cells that what the user types takes on it, if it is for that.
    typed: Option<usize>,
    /// It tells how far something is, until something else is to be told.
    passing: bool,
}

/// How a line about the model's words looks, where it may look like anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    Plain,
    Dim,
    Bold,
    Warning,
    Fault,
}

impl Style {
    fn codes(self) -> (&'static str, &'static str) {
        match self {
            Self::Plain => ("", ""),
            Self::Dim => ("\x1b[2m", "\x1b[0m"),
            Self::Bold => ("\x1b[1m", "\x1b[0m"),
            Self::Warning => ("\x1b[33m", "\x1b[0m"),
            Self::Fault => ("\x1b[1;31m", "\x1b[0m"),
        }
    }
}

impl Ui {
    /// On this process's standard output and error. `NO_COLOR` is obeyed.
    pub(crate) fn new() -> Self {
        let set = |name| std::env::var_os(name).is_some_and(|value: std::ffi::OsString| !value.is_empty());
        let plain = set("NO_COLOR") || std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let (out, err) = (io::stdout(), io::stderr());
        Self {
            out: Stream::new(&out, Box::new(io::stdout()), plain),
            err: Stream::new(&err, Box::new(io::stderr()), plain),
            last: Side::Err,
            about: Side::Err,
            is_thought: false,
        }
    }

    /// Writes both streams to this file.
    #[cfg(test)]
    pub(crate) fn to_file(file: &File) -> io::Result<Self> {
        Ok(Self {
            out: Stream::new(file, Box::new(file.try_clone()?), true),
            err: Stream::new(file, Box::new(file.try_clone()?), true),
            last: Side::Err,
            about: Side::Err,
            is_thought: false,
        })
    }

    /// From now on what is told about the model's words goes where they go. What went wrong does not.
    pub(crate) fn tell_all(&mut self) {
        self.about = Side::Out;
    }

    /// Whether standard output is a terminal.
    pub(crate) fn out_is_terminal(&self) -> bool {
        self.out.is_terminal
    }

    /// How wide a line of standard output is: without bound where that is no terminal, or one that does not say it.
    pub(crate) fn columns(&self) -> usize {
        let said = if self.out.is_terminal { tcgetwinsize(io::stdout()).map_or(0, |size| size.ws_col) } else { 0 };
        if said == 0 { usize::MAX } else { usize::from(said) }
    }

    /// Whether standard error is a terminal.
    pub(crate) fn err_is_terminal(&self) -> bool {
        self.err.is_terminal
    }

    /// Whether [`progress`](Self::progress) is shown.
    pub(crate) fn shows_progress(&self) -> bool {
        self.err.styled
    }

    /// Writes our own text to standard output, and makes sure that it got there.
    pub(crate) fn print(&mut self, text: &str) -> io::Result<()> {
        self.write(text.as_bytes())
    }

    /// Writes our own bytes to standard output, and makes sure that they got there.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.writer.write_all(bytes)?;
        self.out.writer.flush()
    }

    /// Standard output, for what writes JSON by itself: a terminal gets it so that it only shows it.
    pub(crate) fn json_out(&mut self) -> Box<dyn Write + Send + '_> {
        match self.out.is_terminal {
            true => Box::new(Json::new(&mut self.out.writer)),
            false => Box::new(&mut self.out.writer),
        }
    }

    /// Writes something to standard output as JSON: on a terminal over several lines, else on one.
    pub(crate) fn json(&mut self, what: &impl Serialize) -> io::Result<()> {
        let json = Json::new(&mut self.out.writer);
        if self.out.is_terminal {
            serde_json::to_writer_pretty(json, what)
        } else {
            serde_json::to_writer(json, what)
        }?;
        self.print("\n")
    }

    /// Writes an event to standard output, one line of JSON.
    pub(crate) fn event(&mut self, event: &Arc<Event>) -> io::Result<()> {
        serde_json::to_writer(Json::new(&mut self.out.writer), &**event)?;
        self.out.writer.write_all(b"\n")
    }

    /// Adds a piece of a model's text to standard output.
    pub(crate) fn text(&mut self, piece: &str) -> io::Result<()> {
        if piece.is_empty() {
            return Ok(());
        }
        self.turn_to(Side::Out)?;
        if std::mem::take(&mut self.is_thought) && self.about == Side::Out {
            self.end_text()?;
        }
        self.out.writer.write_all(prose(piece).as_bytes())?;
        self.out.open = !piece.ends_with('\n');
        Ok(())
    }

    /// Adds a piece of a model's thought.
    pub(crate) fn thought(&mut self, piece: &str) -> io::Result<()> {
        if piece.is_empty() {
            return Ok(());
        }
        self.turn_to(self.about)?;
        if self.err.typed.is_some() {
            self.err.end_line();
        }
        if !std::mem::replace(&mut self.is_thought, true) && self.about == Side::Out {
            self.end_text()?;
        }
        self.put(Style::Dim, &prose(piece))?;
        match self.about {
            Side::Out => self.out.open = !piece.ends_with('\n'),
            Side::Err => self.err.open = !piece.ends_with('\n'),
        }
        Ok(())
    }

    /// Ends the lines that are open.
    pub(crate) fn end_line(&mut self) -> io::Result<()> {
        self.err.end_line();
        self.end_text()
    }

    fn end_text(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.out.open) {
            self.out.writer.write_all(b"\n")?;
        }
        Ok(())
    }

    /// Writes a line about the model's words. What is in it of others has been made visible by the caller.
    pub(crate) fn line(&mut self, style: Style, line: &str) -> io::Result<()> {
        self.turn_to(self.about)?;
        match self.about {
            Side::Out => self.end_text()?,
            Side::Err => self.err.end_line(),
        }
        self.put(style, line)?;
        self.put(Style::Plain, "\n")
    }

    /// Writes to where what is about the model's words goes. If nobody reads standard error, the work goes on.
    fn put(&mut self, style: Style, text: &str) -> io::Result<()> {
        match self.about {
            Side::Out => self.out.write(style, text),
            Side::Err => {
                self.err.put(style, text);
                Ok(())
            }
        }
    }

    /// Shows words being typed on one line of standard error, with the cursor in them: as much as fits, up to their end or
    /// from the cursor on.
    pub(crate) fn input(&mut self, words: &Words) -> io::Result<()> {
        self.turn_to(Side::Err)?;
        let before = self.err.typed.take();
        if before.is_none() {
            self.err.end_line();
        }
        let (left, right) = words.text().split_at(words.cursor());
        let (left, right) = (prose_line(left), prose_line(right));
        let columns = tcgetwinsize(io::stderr()).map_or(COLUMNS, |size| usize::from(size.ws_col)).max(MARK.len() + 2);
        // The last column stays free: a cursor behind it is on the next line for some terminals.
        let room = columns - MARK.len() - 1;
        let right = begin_of(&right, room);
        let left = end_of(&left, room - right.width());
        let cells = left.width() + right.width();
        let stale = before.unwrap_or_default().saturating_sub(cells);
        let back = "\u{8}".repeat(stale + right.width());
        self.err.put(Style::Bold, &format!("\r{MARK}{left}{right}{}{back}", " ".repeat(stale)));
        self.err.open = true;
        self.err.typed = Some(cells);
        self.flush()
    }

    /// Shows how far something is, on the last line of standard error, until something else is to be told there: the
    /// first of these lines that fits. Nothing where that is no terminal.
    pub(crate) fn progress(&mut self, lines: &[String]) -> io::Result<()> {
        // What the user types stands there.
        if !self.shows_progress() || self.err.typed.is_some() {
            return Ok(());
        }
        self.turn_to(Side::Err)?;
        if !self.err.passing {
            self.err.end_line();
        }
        let columns = tcgetwinsize(io::stderr()).map_or(COLUMNS, |size| usize::from(size.ws_col)).max(2);
        let fits = |line: &&String| line.width() < columns;
        let shown = lines.iter().find(fits).map_or("", String::as_str);
        self.err.put(Style::Plain, CLEAR);
        self.err.put(Style::Plain, shown);
        (self.err.open, self.err.passing) = (true, true);
        self.flush()
    }

    /// Says what went wrong and what to do.
    pub(crate) fn fault(&mut self, what: &str, hint: Option<&str>) {
        // Standard output may be what failed.
        let _ = self.end_line();
        let _ = self.out.writer.flush();
        self.err.put(Style::Fault, "error: ");
        self.err.put(Style::Plain, what);
        self.err.put(Style::Plain, "\n");
        if let Some(hint) = hint {
            self.err.put(Style::Bold, "hint: ");
            self.err.put(Style::Plain, hint);
            self.err.put(Style::Plain, "\n");
        }
        let _ = self.err.writer.flush();
    }

    /// Lets everything be seen.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        // If nobody reads what is said about the work, the work goes on.
        let _ = self.err.writer.flush();
        self.out.writer.flush()
    }

    /// Keeps the two streams in order where both are on one terminal.
    fn turn_to(&mut self, side: Side) -> io::Result<()> {
        if self.last == side {
            return Ok(());
        }
        self.last = side;
        match side {
            Side::Out => self.err.end_line(),
            // Elsewhere the model's text stays as it is.
            Side::Err if self.out.is_terminal && self.err.is_terminal => self.end_text()?,
            Side::Err => {}
        }
        self.flush()
    }
}

impl Stream {
    fn new(of: &(impl AsFd + IsTerminal), fallback: Box<dyn Write + Send>, plain: bool) -> Self {
        // Without the line buffer that the standard library has in between.
        let own = of.as_fd().try_clone_to_owned().map(|fd| Box::new(File::from(fd)) as Box<dyn Write + Send>);
        let is_terminal = of.is_terminal();
        Self {
            writer: BufWriter::with_capacity(BUFFER, own.unwrap_or(fallback)),
            is_terminal,
            styled: is_terminal && !plain,
            open: false,
            typed: None,
            passing: false,
        }
    }

    /// Ends the line if it is open, where a failure concerns nobody.
    fn end_line(&mut self) {
        self.typed = None;
        let passing = std::mem::take(&mut self.passing);
        if std::mem::take(&mut self.open) {
            self.put(Style::Plain, if passing { CLEAR } else { "\n" });
        }
    }

    /// Writes to where a failure concerns nobody.
    fn put(&mut self, style: Style, text: &str) {
        let _ = self.write(style, text);
    }

    fn write(&mut self, style: Style, text: &str) -> io::Result<()> {
        let (begin, end) = if self.styled { style.codes() } else { ("", "") };
        [begin, text, end].iter().try_for_each(|part| self.writer.write_all(part.as_bytes()))
    }
}

/// As much of a text's end as fits into so many cells.
fn end_of(text: &str, cells: usize) -> &str {
    let mut left = cells;
    let fits = |&(_, character): &(usize, char)| {
        let width = character.width().unwrap_or_default();
        left.checked_sub(width).inspect(|rest| left = *rest).is_some()
    };
    let start = text.char_indices().rev().take_while(fits).last().map_or(text.len(), |(at, _)| at);
    &text[start..]
}

/// As much of a text's begin as fits into this many cells.
fn begin_of(text: &str, cells: usize) -> &str {
    let mut left = cells;
    let fits = |&(_, character): &(usize, char)| {
        let width = character.width().unwrap_or_default();
        left.checked_sub(width).inspect(|rest| left = *rest).is_some()
    };
    let end = text.char_indices().take_while(fits).last().map_or(0, |(at, last)| at + last.len_utf8());
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_what_is_typed_fits() {
        for (text, cells, end) in
            [("", 3, ""), ("abc", 3, "abc"), ("abcd", 3, "bcd"), ("a漢字", 3, "字"), ("漢字", 4, "漢字")]
        {
            assert_eq!(end_of(text, cells), end);
        }
        for (text, cells, begin) in [("", 3, ""), ("abc", 3, "abc"), ("abcd", 3, "abc"), ("漢字a", 3, "漢")] {
            assert_eq!(begin_of(text, cells), begin);
        }
    }
}
