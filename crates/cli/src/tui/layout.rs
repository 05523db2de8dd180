//! Lays out transcript entries as lines. Only visible entries are laid out, and their lines are
//! cached.

mod call_views;
mod lines;

use std::collections::HashMap;

use ratatui::text::Line;

use self::call_views::{CallView, CallViews};
use self::lines::lines_of;
use super::markdown::MarkdownCache;
use super::transcript::{Entry, Key, Kind, Transcript};

/// The cache size above which entries that are no longer visible are dropped.
const MAX_CACHED: usize = 256;

/// The scroll position of the transcript.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Scroll {
    /// At the end, following new entries.
    #[default]
    End,
    /// Fixed: the top line is this row of this entry, even while new entries arrive.
    At { key: Key, row: usize },
}

/// The settings that all layouts depend on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct LayoutOptions {
    pub(crate) width: usize,
    /// Whether tool calls and thoughts are shown.
    pub(crate) steps: bool,
}

/// The cached layouts of visible entries.
#[derive(Debug, Default)]
pub(crate) struct Layouts {
    pub(crate) calls: CallViews,
    options: LayoutOptions,
    laid: HashMap<Key, CachedLayout>,
    /// The number of the current pass: each frame, scroll and choice starts one.
    pass: u64,
}

#[derive(Debug, Default)]
struct CachedLayout {
    version: u32,
    view: CallView,
    /// Whether an empty line precedes the entry.
    gap: bool,
    lines: Vec<Line<'static>>,
    markdown: MarkdownCache,
    /// The pass that used the layout last.
    last_used: u64,
}

/// A position in the transcript: the index of an entry and a row of it.
type RowPosition = (usize, usize);

impl Layouts {
    /// The visible lines of a screen of this height, and whether more follow.
    pub(crate) fn window(
        &mut self,
        transcript: &Transcript,
        options: LayoutOptions,
        scroll: &mut Scroll,
        height: usize,
    ) -> (Vec<Line<'static>>, bool) {
        self.start_pass(options);
        let top = self.top(transcript, *scroll, height);
        let (mut lines, below) = self.lines_from(transcript, top, height);
        if lines.len() < height && *scroll != Scroll::End {
            *scroll = Scroll::End;
            let top = self.top(transcript, Scroll::End, height);
            lines = self.lines_from(transcript, top, height).0;
        }
        (lines, below)
    }

    /// Scrolls by `rows`, up if negative. Returns whether the first line is at the top.
    pub(crate) fn scroll(
        &mut self,
        transcript: &Transcript,
        options: LayoutOptions,
        scroll: &mut Scroll,
        height: usize,
        rows: isize,
    ) -> bool {
        self.start_pass(options);
        let Some((mut at, row)) = self.top(transcript, *scroll, height) else { return true };
        let mut row = row.cast_signed() + rows;
        while row < 0 {
            match self.shown_before(transcript, at) {
                Some(before) => {
                    at = before;
                    row += self.height(transcript, at).cast_signed();
                }
                None => row = 0,
            }
        }
        loop {
            let entry_height = self.height(transcript, at).cast_signed();
            if row < entry_height {
                break;
            }
            match self.shown_after(transcript, at) {
                Some(after) => {
                    at = after;
                    row -= entry_height;
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
        row == 0 && self.shown_before(transcript, at).is_none()
    }

    /// Chooses the previous or the next tool call and scrolls it into view. After the last call,
    /// none is chosen and the view returns to the end. Without an earlier call, the view stays.
    pub(crate) fn choose(
        &mut self,
        transcript: &Transcript,
        options: LayoutOptions,
        scroll: &mut Scroll,
        height: usize,
        earlier: bool,
    ) {
        self.start_pass(options);
        let entries = transcript.entries();
        let is_call = |entry: &Entry| matches!(entry.kind, Kind::Tool(_)) && options.steps;
        let current =
            self.calls.chosen().and_then(|key| entries.iter().rposition(|entry| entry.key == key));
        let next = match (current, earlier) {
            (_, true) => {
                let before = &entries[..current.unwrap_or(entries.len())];
                // The first call stays chosen.
                let Some(at) = before.iter().rposition(is_call).or(current) else {
                    return self.calls.choose(None);
                };
                Some(at)
            }
            (Some(at), false) => {
                entries[at + 1..].iter().position(is_call).map(|found| at + 1 + found)
            }
            // Without a chosen call, there is no next one.
            (None, false) => None,
        };
        self.calls.choose(next.map(|at| entries[at].key));
        let Some(at) = next else { return *scroll = Scroll::End };
        let Some((first, row)) = self.top(transcript, *scroll, height) else { return };
        let above: usize = (first..at).map(|at| self.shown_height(transcript, at)).sum();
        let is_visible = at >= first
            && above >= row
            && above - row + self.shown_height(transcript, at) <= height;
        if !is_visible {
            *scroll = Scroll::At { key: entries[at].key, row: 0 };
        }
    }

    /// Drops all cached layouts.
    pub(crate) fn forget(&mut self) {
        self.laid.clear();
    }

    fn shown_height(&mut self, transcript: &Transcript, at: usize) -> usize {
        if self.is_shown(&transcript.entries()[at]) { self.height(transcript, at) } else { 0 }
    }

    fn start_pass(&mut self, options: LayoutOptions) {
        if self.options != options {
            self.laid.clear();
            self.options = options;
        }
        self.pass += 1;
        if self.laid.len() > MAX_CACHED {
            let pass = self.pass;
            // The previous pass used those that are still visible.
            self.laid.retain(|_, laid| laid.last_used + 1 >= pass);
        }
    }

    /// The position of the screen's top line, or `None` if no entry is shown.
    fn top(
        &mut self,
        transcript: &Transcript,
        scroll: Scroll,
        height: usize,
    ) -> Option<RowPosition> {
        if let Scroll::At { key, row } = scroll
            && let Some(at) = transcript.entries().iter().rposition(|entry| entry.key == key)
        {
            if self.is_shown(&transcript.entries()[at]) {
                return Some((at, row.min(self.height(transcript, at).saturating_sub(1))));
            }
            // The entry is now hidden: the next shown one takes its place.
            if let Some(after) = self.shown_after(transcript, at) {
                return Some((after, 0));
            }
        }
        let mut at = self.shown_before(transcript, transcript.entries().len())?;
        let mut rows = self.height(transcript, at);
        while rows < height {
            let Some(before) = self.shown_before(transcript, at) else { return Some((at, 0)) };
            at = before;
            rows += self.height(transcript, at);
        }
        Some((at, rows - height))
    }

    /// The lines from `top` on, and whether more follow.
    fn lines_from(
        &mut self,
        transcript: &Transcript,
        top: Option<RowPosition>,
        height: usize,
    ) -> (Vec<Line<'static>>, bool) {
        let mut lines = Vec::with_capacity(height);
        let Some((mut at, mut row)) = top else { return (lines, false) };
        loop {
            let laid = self.lay_out(transcript, at);
            let room = height - lines.len();
            lines.extend(laid.iter().skip(row).take(room).cloned());
            let more = laid.len().saturating_sub(row) > room;
            match self.shown_after(transcript, at) {
                Some(after) if lines.len() < height => (at, row) = (after, 0),
                after => return (lines, more || after.is_some()),
            }
        }
    }

    fn is_shown(&self, entry: &Entry) -> bool {
        self.options.steps || !entry.kind.is_step()
    }

    /// The nearest shown entry before this one.
    fn shown_before(&self, transcript: &Transcript, at: usize) -> Option<usize> {
        transcript.entries()[..at].iter().rposition(|entry| self.is_shown(entry))
    }

    /// The nearest shown entry after this one.
    fn shown_after(&self, transcript: &Transcript, at: usize) -> Option<usize> {
        let rest = transcript.entries().get(at + 1..)?;
        rest.iter().position(|entry| self.is_shown(entry)).map(|found| at + 1 + found)
    }

    fn height(&mut self, transcript: &Transcript, at: usize) -> usize {
        self.lay_out(transcript, at).len()
    }

    fn lay_out(&mut self, transcript: &Transcript, at: usize) -> &[Line<'static>] {
        let entry = &transcript.entries()[at];
        let gap = self
            .shown_before(transcript, at)
            .is_some_and(|before| needs_gap(&transcript.entries()[before], entry));
        let view = self.calls.view_of(entry.key);
        let is_new = !self.laid.contains_key(&entry.key);
        let laid = self.laid.entry(entry.key).or_default();
        laid.last_used = self.pass;
        if is_new || laid.version != entry.version || laid.gap != gap || laid.view != view {
            laid.version = entry.version;
            laid.gap = gap;
            laid.view = view;
            laid.lines.clear();
            if gap {
                laid.lines.push(Line::default());
            }
            lines_of(entry, self.options.width, view, &mut laid.markdown, &mut laid.lines);
        }
        &laid.lines
    }
}

/// Whether an empty line separates the two entries.
fn needs_gap(before: &Entry, entry: &Entry) -> bool {
    let joins = matches!(
        (&before.kind, &entry.kind),
        (_, Kind::Note(_)) | (Kind::Tool(_) | Kind::Note(_), Kind::Tool(_))
    );
    !joins
}

/// The unwrapped lines of a transcript of these events, with all calls open.
#[cfg(test)]
pub(crate) fn lines_of_transcript(events: &[holdpoint_common::Event]) -> Vec<String> {
    let mut transcript = Transcript::new(std::process::id());
    events.iter().for_each(|event| transcript.add(event));
    let mut layouts = Layouts::default();
    // None is chosen, so this opens all.
    layouts.calls.toggle();
    let options = LayoutOptions { width: usize::from(u16::MAX), steps: true };
    let (lines, _) = layouts.window(&transcript, options, &mut Scroll::End, usize::from(u16::MAX));
    lines.iter().map(ToString::to_string).collect()
}
