//! Draws an ask: the request, which scrolls, and the keys that answer it.

use holdpoint_common::{AskRequest, PauseKind, Question};
use holdpoint_session::form::{AskForm, Entry, LineEditor};
use holdpoint_tools::shown::{line as exact_line, prose, prose_line};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthStr;

use super::super::ask::AskView;
use super::super::wrap::{wrap, wrap_exact};
use super::{position, put, rule};
use crate::ask_keys::{self, behind};
use crate::table::fit;
use crate::tone::Tone;

/// The most rows of the "always" rule; the command is shown in full above.
const ALWAYS_ROWS: usize = 2;
/// The most rows of a heading that stays in place while the body scrolls.
const HEADING_ROWS: usize = 2;
/// The most rows of typed words. The last ones are shown, or those from the cursor on.
const TYPED_ROWS: usize = 3;

/// The marks of untrusted text: one before each line, the other before the further rows of a
/// wrapped line, so that no such row can pass for a line.
const BAR: &str = "│ ";
const CONTINUED: &str = "┆ ";

/// The layout of an ask.
pub(super) struct Panel {
    /// The request, which scrolls.
    body: Vec<Line<'static>>,
    /// How many of the first rows of `body` are the heading.
    heading: usize,
    /// The keys and the typed words, always visible.
    keys: Vec<Line<'static>>,
    /// The cursor's row and column in `keys`, while words are typed.
    caret: Option<(usize, usize)>,
    title: String,
}

/// Lays out an ask. `open` is the number of its session's open asks; `session_name` is set only in
/// the hub.
pub(super) fn panel(view: &AskView, open: usize, session_name: Option<&str>, width: u16) -> Panel {
    let width = usize::from(width);
    let form = &view.form;
    let tool = prose_line(form.ask().request.tool_name()).into_owned();
    let subject = session_name.map_or(tool.clone(), |name| format!("{}: {tool}", prose_line(name)));
    let mut title = format!("⏸ {subject}");
    if let Some(waits) = behind(open.saturating_sub(1)) {
        title.push_str(&format!(", {waits}"));
    }
    let mut panel = Panel { body: Vec::new(), heading: 0, keys: Vec::new(), caret: None, title };
    match (&form.ask().request, form.question()) {
        (AskRequest::Pause(pause), _) => {
            let hint =
                if pause.kind == PauseKind::Continue { " (Press Enter to continue)" } else { "" };
            let message = format!("{}{hint}", prose_line(&pause.message));
            wrap(&Line::styled(message, Tone::Waits.style()), width, "  ", &mut panel.body);
            panel.heading = panel.body.len();
            let details = pause.details.as_deref().unwrap_or_default();
            let is_diff = details.starts_with("--- ");
            for text in details.split('\n').filter(|_| !details.is_empty()) {
                let style = if is_diff { diff_style(text) } else { Style::new() };
                behind_bar(text, style, width, &mut panel.body);
            }
            if pause.kind == PauseKind::Confirm && form.entry() == Entry::Choice {
                confirm_keys(form, width, &mut panel.keys);
            }
        }
        (AskRequest::Question(_), Some((question, ..))) => {
            panel.heading = question_lines(question, form, width, &mut panel.body);
        }
        (AskRequest::Question(_), None) => {}
    }
    let tone = match form.entry() {
        Entry::Text { .. } => {
            panel.caret = Some(typed_lines(form.line(), width, &mut panel.keys));
            Tone::Dim
        }
        Entry::Choice => Tone::Strong,
    };
    wrap(&Line::styled(ask_keys::hint(form), tone.style()), width, "", &mut panel.keys);
    panel
}

/// Adds the lines above a Confirm's Y and N: the "always" rule and the key for a reason.
fn confirm_keys(form: &AskForm, width: usize, keys: &mut Vec<Line<'static>>) {
    let hints = ask_keys::confirm(form);
    if let (Some(key), Some(always)) = (hints.always, &form.ask().always) {
        let mut rows = Vec::new();
        let style = if form.armed().is_some() { Tone::Waits.style() } else { Style::new() };
        wrap_exact(
            &Line::styled(format!("{key} {}", exact_line(always)), style),
            width,
            "   ",
            &mut rows,
        );
        let is_cut = rows.len() > ALWAYS_ROWS;
        rows.truncate(ALWAYS_ROWS);
        if let Some(last) = rows.last_mut().filter(|_| is_cut) {
            *last = Line::styled(fit(&format!("{last}…"), width), style);
        }
        keys.extend(rows);
    }
    keys.push(Line::raw(hints.reason));
}

/// Lays out the words being typed. Returns the cursor's row and column.
fn typed_lines(editor: &LineEditor, width: usize, keys: &mut Vec<Line<'static>>) -> (usize, usize) {
    let (left, right) = editor.text().split_at(editor.cursor());
    // A hidden mark is wrapped with the words to find the cursor's row, then removed.
    let mark = Style::new().add_modifier(Modifier::HIDDEN);
    let line = Line::from(vec![
        Span::styled("> ", Tone::Accent.style()),
        Span::raw(prose_line(left).into_owned()),
        Span::styled("|", mark),
        Span::raw(prose_line(right).into_owned()),
    ]);
    let mut rows = Vec::new();
    wrap(&line, width, "  ", &mut rows);
    let mut caret = (0, 0);
    for (at, row) in rows.iter_mut().enumerate() {
        if let Some(index) = row.spans.iter().position(|span| span.style == mark) {
            caret = (at, row.spans[..index].iter().map(Span::width).sum());
            row.spans.remove(index);
        }
    }
    let above = rows.len().saturating_sub(TYPED_ROWS).min(caret.0);
    let row = keys.len() + caret.0 - above;
    keys.extend(rows.into_iter().skip(above).take(TYPED_ROWS));
    (row, caret.1)
}

/// Lays out a question with its options. Returns how many rows its first line takes.
fn question_lines(
    question: &Question,
    form: &AskForm,
    width: usize,
    body: &mut Vec<Line<'static>>,
) -> usize {
    let mut lines = question.question.trim().split('\n');
    let first = prose_line(lines.next().unwrap_or_default()).into_owned();
    let text = format!("{}: {first}{}", prose_line(&question.header), ask_keys::position(form));
    wrap(&Line::styled(text, Tone::Waits.style()), width, "  ", body);
    let heading = body.len();
    for line in lines {
        behind_bar(line, Style::new(), width, body);
    }
    for (number, option) in (1..).zip(&question.options) {
        let mut spans = vec![
            Span::styled(format!("  {number}. "), Tone::Accent.style()),
            Span::raw(prose_line(&option.label).into_owned()),
            Span::styled(ask_keys::chosen(form, &option.label), Tone::Good.style()),
        ];
        if !option.description.is_empty() {
            spans.push(Span::styled(
                format!(" - {}", prose_line(&option.description)),
                Tone::Dim.style(),
            ));
        }
        wrap(&Line::from(spans), width, "     ", body);
    }
    heading
}

/// Adds a line of untrusted text behind a bar, with every space kept.
fn behind_bar(text: &str, style: Style, width: usize, body: &mut Vec<Line<'static>>) {
    let bar = Span::styled(BAR, Tone::Dim.style());
    wrap_exact(
        &Line::from(vec![bar, Span::styled(prose(text).into_owned(), style)]),
        width,
        CONTINUED,
        body,
    );
}

/// The style of a line of a diff.
fn diff_style(text: &str) -> Style {
    match text.as_bytes().first() {
        Some(b'+') if !text.starts_with("+++ ") => Style::new().fg(Color::Green),
        Some(b'-') if !text.starts_with("--- ") => Style::new().fg(Color::Red),
        Some(b'@') => Style::new().fg(Color::Cyan),
        _ => Style::new(),
    }
}

impl Panel {
    /// The rows of the complete panel.
    pub(super) fn height(&self) -> usize {
        self.body.len() + self.keys.len() + 1
    }

    /// The fewest rows in which the ask can be answered: the title, one line of the request and the
    /// keys.
    pub(super) fn min_height(&self) -> usize {
        self.keys.len() + 2
    }

    /// Draws the keys in full, and as much of the request as fits; `moves` names the keys that
    /// scroll it. Returns the cursor's position if words are being typed.
    pub(super) fn draw(
        self,
        buffer: &mut Buffer,
        area: Rect,
        view: &mut AskView,
        moves: &str,
    ) -> Option<Position> {
        let room = usize::from(area.height).saturating_sub(1 + self.keys.len());
        let hidden = self.body.len().saturating_sub(room);
        view.scroll = view.scroll.min(hidden);
        view.below = hidden - view.scroll;
        view.readable = room > 0;
        // The heading stays only if at least as many rows remain for the body.
        let fixed_rows =
            if self.heading <= HEADING_ROWS && self.heading * 2 <= room { self.heading } else { 0 };
        let mut title = self.title;
        if room == 0 {
            title.push_str(", the screen is too small to show it");
        } else if hidden > 0 {
            // Once scrolled, the shown lines no longer adjoin the heading, so it is not counted.
            let above = if view.scroll == 0 { 0 } else { view.scroll + fixed_rows };
            let (from, to) = (above + 1, view.scroll + room.min(self.body.len()));
            // In a narrow title, the scroll position is more important than the number of open
            // asks.
            let more = format!("lines {from}-{to} of {}: {moves}", self.body.len());
            // Two cells separate the texts, and the rule keeps four for itself.
            let fits = title.width() + more.width() + 6 <= usize::from(area.width);
            title = if fits { format!("{title}, {more}") } else { more };
        }
        let mut rest = put(buffer, area, &rule(area.width, &title, Tone::Waits.style()));
        let (heading, body) = self.body.split_at(fixed_rows);
        for line in heading.iter().chain(body.iter().skip(view.scroll).take(room - fixed_rows)) {
            rest = put(buffer, rest, line);
        }
        let keys = u16::try_from(self.keys.len()).unwrap_or_default();
        let at_end = Rect {
            y: (area.y + area.height).saturating_sub(keys).max(rest.y),
            height: keys.min(rest.height),
            ..area
        };
        self.keys.iter().fold(at_end, |rest, line| put(buffer, rest, line));
        position(at_end, self.caret?)
    }
}
