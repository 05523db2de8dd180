//! Entries as lines of the screen: laid out only where they are seen, and kept while they are.

use std::collections::HashMap;

use holdpoint_common::ToolStatus;
use holdpoint_tools::shown::{prose, prose_line, text as exact};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};

use super::markdown::Growing;
use super::style::Tone;
use super::transcript::{Entry, Key, Kind, Tool, ToolState, Transcript};
use super::wrap::wrap;
use crate::said::{shorten, sum_up, title};

/// Lines of an open tool call that are shown at most of each of its parts: the last ones.
const OPEN_LINES: usize = 200;
/// Layouts that are kept, more or less.
const KEPT: usize = 256;

/// Where the transcript is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Scroll {
    /// At its end, whatever comes.
    #[default]
    End,
    /// The top line of the screen is this row of this entry, whatever comes after it.
    At { key: Key, row: usize },
}

/// How entries are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Look {
    pub(crate) width: usize,
    /// Steps are shown.
    pub(crate) steps: bool,
    /// What tools said is shown.
    pub(crate) open: bool,
}

/// The layouts of the entries that are seen.
#[derive(Debug, Default)]
pub(crate) struct Layouts {
    look: Look,
    laid: HashMap<Key, Laid>,
    /// Counts the frames.
    frame: u64,
}

#[derive(Debug, Default)]
struct Laid {
    version: u32,
    /// With an empty line before it.
    gap: bool,
    lines: Vec<Line<'static>>,
    growing: Growing,
    used: u64,
}

/// A place in the transcript: a row of an entry.
type Place = (usize, usize);

impl Layouts {
    /// The lines of a screen of this height, and whether there is more below.
    pub(crate) fn window(
        &mut self,
        transcript: &Transcript,
        look: Look,
        scroll: &mut Scroll,
        height: usize,
    ) -> (Vec<Line<'static>>, bool) {
        self.begin(look);
        let top = self.top(transcript, *scroll, height);
        let (mut lines, below) = self.from(transcript, top, height);
        if lines.len() < height && *scroll != Scroll::End {
            *scroll = Scroll::End;
            let top = self.top(transcript, Scroll::End, height);
            lines = self.from(transcript, top, height).0;
        }
        (lines, below)
    }

    /// Scrolls by so many rows: up if they are negative. Whether it stands at the first line now.
    pub(crate) fn scroll(
        &mut self,
        transcript: &Transcript,
        look: Look,
        scroll: &mut Scroll,
        height: usize,
        rows: isize,
    ) -> bool {
        self.begin(look);
        let Some((mut at, row)) = self.top(transcript, *scroll, height) else { return true };
        let mut row = row.cast_signed() + rows;
        while row < 0 {
            match self.before(transcript, at) {
                Some(before) => {
                    at = before;
                    row += self.height(transcript, at).cast_signed();
                }
                None => row = 0,
            }
        }
        loop {
            let here = self.height(transcript, at).cast_signed();
            if row < here {
                break;
            }
            match self.after(transcript, at) {
                Some(after) => {
                    at = after;
                    row -= here;
                }
                None => {
                    *scroll = Scroll::End;
                    return false;
                }
            }
        }
        let row = row.cast_unsigned();
        let is_end = self.top(transcript, Scroll::End, height).is_some_and(|end| (at, row) >= end);
        *scroll = match transcript.entries().get(at) {
            Some(entry) if !is_end => Scroll::At { key: entry.key, row },
            _ => Scroll::End,
        };
        row == 0 && self.before(transcript, at).is_none()
    }

    fn begin(&mut self, look: Look) {
        if self.look != look {
            self.laid.clear();
            self.look = look;
        }
        self.frame += 1;
        if self.laid.len() > KEPT {
            let frame = self.frame;
            self.laid.retain(|_, laid| laid.used + 2 > frame);
        }
    }

    /// The top line of the screen; nothing if there are no lines.
    fn top(&mut self, transcript: &Transcript, scroll: Scroll, height: usize) -> Option<Place> {
        if let Scroll::At { key, row } = scroll
            && let Some(at) = transcript.entries().iter().rposition(|entry| entry.key == key)
        {
            if self.is_shown(&transcript.entries()[at]) {
                return Some((at, row.min(self.height(transcript, at).saturating_sub(1))));
            }
            // It has been hidden: what comes next takes its place.
            if let Some(after) = self.after(transcript, at) {
                return Some((after, 0));
            }
        }
        let mut at = self.before(transcript, transcript.entries().len())?;
        let mut rows = self.height(transcript, at);
        while rows < height {
            let Some(before) = self.before(transcript, at) else { return Some((at, 0)) };
            at = before;
            rows += self.height(transcript, at);
        }
        Some((at, rows - height))
    }

    /// The lines from a place on, and whether there are more.
    fn from(&mut self, transcript: &Transcript, top: Option<Place>, height: usize) -> (Vec<Line<'static>>, bool) {
        let mut lines = Vec::with_capacity(height);
        let Some((mut at, mut row)) = top else { return (lines, false) };
        loop {
            let laid = self.lay_out(transcript, at);
            let left = height - lines.len();
            lines.extend(laid.iter().skip(row).take(left).cloned());
            let more = laid.len().saturating_sub(row) > left;
            match self.after(transcript, at) {
                Some(after) if lines.len() < height => (at, row) = (after, 0),
                after => return (lines, more || after.is_some()),
            }
        }
    }

    fn is_shown(&self, entry: &Entry) -> bool {
        self.look.steps || !entry.kind.is_step()
    }

    /// The nearest shown entry before this one.
    fn before(&self, transcript: &Transcript, at: usize) -> Option<usize> {
        transcript.entries()[..at].iter().rposition(|entry| self.is_shown(entry))
    }

    /// The nearest shown entry after this one.
    fn after(&self, transcript: &Transcript, at: usize) -> Option<usize> {
        let rest = transcript.entries().get(at + 1..)?;
        rest.iter().position(|entry| self.is_shown(entry)).map(|found| at + 1 + found)
    }

    fn height(&mut self, transcript: &Transcript, at: usize) -> usize {
        self.lay_out(transcript, at).len()
    }

    fn lay_out(&mut self, transcript: &Transcript, at: usize) -> &[Line<'static>] {
        let entry = &transcript.entries()[at];
        let gap = self.before(transcript, at).is_some_and(|before| needs_gap(&transcript.entries()[before], entry));
        let (look, frame) = (self.look, self.frame);
        let fresh = !self.laid.contains_key(&entry.key);
        let laid = self.laid.entry(entry.key).or_default();
        laid.used = frame;
        if fresh || laid.version != entry.version || laid.gap != gap {
            (laid.version, laid.gap) = (entry.version, gap);
            laid.lines.clear();
            if gap {
                laid.lines.push(Line::default());
            }
            lines_of(entry, look, &mut laid.growing, &mut laid.lines);
        }
        &laid.lines
    }
}

/// Whether an empty line stands between the two.
fn needs_gap(before: &Entry, entry: &Entry) -> bool {
    let joins = matches!(
        (&before.kind, &entry.kind),
        (_, Kind::Note { .. }) | (Kind::Tool(_) | Kind::Note { .. }, Kind::Tool(_))
    );
    !joins
}

fn lines_of(entry: &Entry, look: Look, growing: &mut Growing, lines: &mut Vec<Line<'static>>) {
    match &entry.kind {
        Kind::Prompt { text, by } => {
            let mark = if by.is_empty() { String::from("› ") } else { format!("› ({by}) ") };
            for (number, line) in text.trim_end().split('\n').enumerate() {
                let mark = if number == 0 { &*mark } else { "  " };
                wrap(&Line::styled(format!("{mark}{line}"), Tone::User.style()), look.width, "  ", lines);
            }
        }
        Kind::Text { text, .. } => lines.extend_from_slice(growing.lines(text, look.width)),
        Kind::Thought { text, .. } => {
            let style = Tone::Dim.style().add_modifier(Modifier::ITALIC);
            for line in text.trim().split('\n') {
                wrap(&Line::styled(line.to_owned(), style), look.width, "", lines);
            }
        }
        Kind::Tool(tool) => lines_of_tool(tool, look, lines),
        Kind::Note { tone, text } => {
            for (number, line) in text.split('\n').enumerate() {
                let style = if number == 0 { tone.style() } else { Tone::Dim.style() };
                wrap(&Line::styled(format!("  {line}"), style), look.width, "    ", lines);
            }
        }
    }
}

fn lines_of_tool(tool: &Tool, look: Look, lines: &mut Vec<Line<'static>>) {
    let said = match &tool.state {
        ToolState::Waits => String::new(),
        ToolState::Runs => {
            let text = if tool.output.tail.is_empty() { &tool.output.head } else { &tool.output.tail };
            let last = text.trim_end().rsplit('\n').next().unwrap_or_default();
            shorten(&prose_line(last))
        }
        ToolState::Ended { result, .. } if result.trim().is_empty() => sum_up(tool.output.to_text().trim_end()),
        ToolState::Ended { result, .. } => sum_up(result.trim_end()),
    };
    let (mark, tone, word) = match &tool.state {
        ToolState::Waits => ("○", Tone::Dim, ""),
        ToolState::Runs => ("●", Tone::Accent, ""),
        ToolState::Ended { status, .. } => match status {
            ToolStatus::Ok => ("✓", Tone::Good, ""),
            ToolStatus::Error => ("✗", Tone::Fault, "failed: "),
            ToolStatus::Denied => ("✗", Tone::Warning, "denied: "),
            ToolStatus::Interrupted => ("✗", Tone::Warning, "interrupted: "),
            ToolStatus::Panicked => ("✗", Tone::Fault, "panicked: "),
        },
    };
    // Some results begin with the very word.
    let word = if said.starts_with(word.trim_end_matches(": ")) { "" } else { word };
    let mut spans = vec![Span::styled(format!("{mark} "), tone.style()), Span::raw(title(&tool.call))];
    let tells = !said.is_empty() || !word.is_empty();
    if !look.open && tells {
        spans.push(Span::styled(format!("  └ {word}{said}"), Tone::Dim.style()));
    }
    if !look.open {
        return lines.push(on_one_line(spans, look.width));
    }
    wrap(&Line::from(spans), look.width, "  ", lines);
    let mut put = |text: &str, style: Style| behind_bar(text, style, look.width, lines);
    let field = |name: &str| tool.call.input.get(name).and_then(|value| value.as_str());
    for (name, mark, colour) in
        [("old_string", "-", Color::Red), ("new_string", "+", Color::Green), ("content", "+", Color::Green)]
    {
        let Some(text) = field(name) else { continue };
        let text: Vec<_> = exact(text).split('\n').map(|line| format!("{mark}{line}")).collect();
        put(&text.join("\n"), Style::new().fg(colour));
    }
    put(&prose(tool.output.to_text().trim_end()), Tone::Dim.style());
    if let ToolState::Ended { result, .. } = &tool.state {
        put(&format!("{word}{}", prose(result.trim_end())), Tone::Dim.style());
    }
}

/// Text of others, so that nothing in it looks like ours.
fn behind_bar(text: &str, style: Style, width: usize, lines: &mut Vec<Line<'static>>) {
    if text.is_empty() {
        return;
    }
    let all: Vec<_> = text.split('\n').collect();
    if let Some(hidden) = all.len().checked_sub(OPEN_LINES).filter(|hidden| *hidden > 0) {
        lines.push(Line::styled(format!("  │ ({hidden} lines before)"), Tone::Dim.style()));
    }
    for line in all.iter().skip(all.len().saturating_sub(OPEN_LINES)) {
        wrap(&Line::styled(format!("  │ {line}"), style), width, "  │ ", lines);
    }
}

/// As much as fits.
fn on_one_line(spans: Vec<Span<'static>>, width: usize) -> Line<'static> {
    let mut left = width;
    let mut line = Line::default();
    for span in spans {
        let fitted = super::wrap::fit(&span.content, left);
        left = left.saturating_sub(unicode_width::UnicodeWidthStr::width(&*fitted));
        line.spans.push(Span::styled(fitted, span.style));
    }
    line
}
