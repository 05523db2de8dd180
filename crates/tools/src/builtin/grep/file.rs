//! The search of one file.

use std::fs::File;
use std::io::{self, Read};

use grep_matcher::Matcher;
use grep_regex::RegexMatcher;
use grep_searcher::{
    BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkFinish, SinkMatch,
};

use super::{MAX_BYTES, Output};
use crate::context::ToolContext;
use crate::files::form::{PROBE, is_binary};

/// The most bytes shown of one line.
const MAX_LINE: usize = 500;

/// Bytes shown before the match in a longer line.
const BYTES_BEFORE_MATCH: usize = 100;

/// The most bytes of a file in memory. A line and its context have to fit.
const MAX_HELD: usize = 4 * 1024 * 1024;

/// Byte order marks of UTF-16. Such a file is searched as text despite its zero bytes.
const UTF_16: [[u8; 2]; 2] = [[0xff, 0xfe], [0xfe, 0xff]];

/// Searches one file after the other.
pub(super) struct FileSearch<'a> {
    context: &'a ToolContext,
    matcher: &'a RegexMatcher,
    searcher: Searcher,
    output: Output,
    limit: u64,
}

/// The matches in one file.
#[derive(Debug, Default)]
pub(super) struct Hits {
    /// Matching lines: all of them for `Output::Count`, otherwise no more than are shown.
    pub(super) count: u64,
    /// Matching lines and their context for `Output::Lines`, no more than one call shows.
    pub(super) lines: Vec<Line>,
    /// Bytes of `lines`.
    pub(super) bytes: usize,
}

#[derive(Debug)]
pub(super) struct Line {
    /// Counted from 1.
    pub(super) number: u64,
    pub(super) is_match: bool,
    /// Lines before this one were left out.
    pub(super) after_gap: bool,
    /// The text as shown, cut if it is long.
    pub(super) text: String,
}

/// The matches in a file, and where its search ended.
pub(super) struct Searched {
    pub(super) hits: Hits,
    pub(super) end: End,
}

/// Where the search of a file ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// At the end of the file, or once enough was found.
    Done,
    /// At a zero byte.
    Binary,
    /// At a line that is too long.
    TooLong,
    Unreadable,
}

impl<'a> FileSearch<'a> {
    /// For `Output::Lines`, `around` is the number of context lines before and after each match, and
    /// the search of a file ends after `limit` matches.
    pub(super) fn new(
        context: &'a ToolContext,
        matcher: &'a RegexMatcher,
        output: Output,
        around: usize,
        limit: u64,
    ) -> Self {
        let around = if output == Output::Lines { around } else { 0 };
        let searcher = SearcherBuilder::new()
            .binary_detection(BinaryDetection::quit(0))
            .line_number(output == Output::Lines)
            .before_context(around)
            .after_context(around)
            .heap_limit(Some(MAX_HELD))
            .build();
        Self { context, matcher, searcher, output, limit }
    }

    pub(super) fn search(&mut self, file: &File) -> Searched {
        let mut collector = Collector {
            matcher: self.matcher,
            output: self.output,
            limit: self.limit,
            hits: Hits::default(),
            after_gap: false,
            is_binary: false,
        };
        let mut text =
            Text { file, context: self.context, checked: 0, is_probed: false, is_binary: false };
        let end = match self.searcher.search_reader(self.matcher, &mut text, &mut collector) {
            Ok(()) if collector.is_binary => End::Binary,
            Ok(()) => End::Done,
            // The searcher returns a custom error for a line that exceeds its heap limit.
            Err(error) if error.get_ref().is_some() && !self.context.is_cancelled() => End::TooLong,
            Err(_) => End::Unreadable,
        };
        // A zero byte in the part that is probed also discards the matches before it.
        match text.is_binary {
            true => Searched { hits: Hits::default(), end: End::Binary },
            false => Searched { hits: collector.hits, end },
        }
    }
}

/// A file that reads as empty once it turns out to be binary. Reading fails after the turn was cut.
struct Text<'a> {
    file: &'a File,
    context: &'a ToolContext,
    /// Bytes checked for zeros so far.
    checked: usize,
    /// The check for zero bytes has ended.
    is_probed: bool,
    is_binary: bool,
}

impl Read for Text<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.context.is_cancelled() {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let read = self.file.read(into)?;
        if !self.is_probed {
            let new = &into[..read];
            self.is_probed = self.checked == 0 && UTF_16.iter().any(|mark| new.starts_with(mark));
            let probe = &new[..read.min(PROBE - self.checked)];
            self.is_binary |= !self.is_probed && is_binary(probe);
            self.checked += probe.len();
            self.is_probed |= self.checked == PROBE;
        }
        Ok(if self.is_binary { 0 } else { read })
    }
}

struct Collector<'a> {
    matcher: &'a RegexMatcher,
    output: Output,
    limit: u64,
    hits: Hits,
    after_gap: bool,
    is_binary: bool,
}

impl Collector<'_> {
    /// Keeps a line. Returns whether there is room for more.
    fn push(&mut self, number: Option<u64>, is_match: bool, bytes: &[u8]) -> bool {
        let match_start = match is_match && bytes.len() > MAX_LINE {
            true => self.matcher.find(bytes).ok().flatten().map_or(0, |found| found.start()),
            false => 0,
        };
        let line = Line {
            number: number.unwrap_or_default(),
            is_match,
            after_gap: std::mem::take(&mut self.after_gap),
            text: shortened(bytes, match_start),
        };
        self.hits.bytes += line.text.len();
        self.hits.lines.push(line);
        self.hits.bytes < MAX_BYTES
    }
}

impl Sink for Collector<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        if self.output == Output::Lines && self.hits.count == self.limit {
            return Ok(false);
        }
        self.hits.count += 1;
        Ok(match self.output {
            Output::Lines => self.push(found.line_number(), true, found.bytes()),
            // One match is enough.
            Output::Files => false,
            Output::Count => true,
        })
    }

    fn context(&mut self, _: &Searcher, line: &SinkContext<'_>) -> io::Result<bool> {
        Ok(self.push(line.line_number(), false, line.bytes()))
    }

    fn context_break(&mut self, _: &Searcher) -> io::Result<bool> {
        self.after_gap = true;
        Ok(true)
    }

    fn finish(&mut self, _: &Searcher, end: &SinkFinish) -> io::Result<()> {
        self.is_binary = end.binary_byte_offset().is_some();
        Ok(())
    }
}

/// The text of a line as shown. A long line is cut around its match.
fn shortened(line: &[u8], match_start: usize) -> String {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if line.len() <= MAX_LINE {
        return String::from_utf8_lossy(line).into_owned();
    }
    let start = match_start.saturating_sub(BYTES_BEFORE_MATCH).min(line.len() - MAX_LINE);
    let end = start + MAX_LINE;
    // Leave out the characters that the cut has split.
    let text = String::from_utf8_lossy(&line[start..end]);
    let text = text.trim_matches('\u{fffd}');
    let before = if start > 0 { "…" } else { "" };
    let after = if end < line.len() { "…" } else { "" };
    format!("{before}{text}{after} (cut: {} bytes)", line.len())
}
