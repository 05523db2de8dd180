//! An ask: what it wants, all of it within reach, and the keys that answer it.

use holdpoint_common::{AskRequest, PauseKind, Question};
use holdpoint_tools::shown::{line as exact_line, prose, prose_line};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Style};
use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthStr;

use super::super::ask::AskView;
use super::super::style::Tone;
use super::super::wrap::{wrap, wrap_exact};
use super::{put, rule};
use crate::asking::{Asking, Entry, behind};
use crate::table::fit;

/// Rows at most of what is remembered: a command is shown whole above.
const ALWAYS: usize = 2;
/// Rows at most of a heading that stays while the rest is read.
const HEADING: usize = 2;
/// Rows at most of what is typed: the last ones.
const TYPED: usize = 3;

/// Before each line of what somebody else wrote, and before the rows it goes on in: nothing in it can pass for a line of
/// its own.
const BAR: &str = "│ ";
const GOES_ON: &str = "┆ ";

/// An ask, laid out.
pub(super) struct Panel {
    /// What it wants: scrolls.
    body: Vec<Line<'static>>,
    /// So many rows of it, the first, say what it is.
    heading: usize,
    /// How to answer: always there.
    keys: Vec<Line<'static>>,
    title: String,
}

/// Lays an ask out, one of so many that are `open`.
pub(super) fn panel(view: &AskView, open: usize, width: u16) -> Panel {
    let width = usize::from(width);
    let waiting = open.saturating_sub(usize::from(view.over().is_none()));
    let asking = &view.asking;
    let (mut body, mut heading) = (Vec::new(), 0);
    let mut keys = Vec::new();
    let tool = prose_line(asking.ask().request.tool_name()).into_owned();
    // Nothing waits for what is typed on for it.
    let tool = if view.over().is_some() { tool } else { format!("⏸ {tool}") };
    let title = behind(waiting).map_or(tool.clone(), |waits| format!("{tool}, {waits}"));
    match &asking.ask().request {
        AskRequest::Pause(pause) => {
            let hint = if pause.kind == PauseKind::Continue { " (Press Enter to continue)" } else { "" };
            let message = format!("{}{hint}", prose_line(&pause.message));
            wrap(&Line::styled(message, Tone::Waits.style()), width, "  ", &mut body);
            heading = body.len();
            let details = pause.details.as_deref().unwrap_or_default();
            let is_diff = details.starts_with("--- ");
            for text in details.split('\n').filter(|_| !details.is_empty()) {
                let style = if is_diff { of_diff(text) } else { Style::new() };
                behind_bar(text, style, width, &mut body);
            }
            if pause.kind == PauseKind::Confirm {
                confirm_keys(asking, width, &mut keys);
            } else {
                keys.push(Line::styled("[Enter] Continue (Esc to interrupt)", Tone::Strong.style()));
            }
        }
        AskRequest::Question(_) => {
            if let Some((question, number, of)) = asking.question() {
                let place = if of > 1 { format!(" ({number} of {of})") } else { String::new() };
                heading = question_lines(question, &place, width, &mut body);
                let skip = if of > 1 { "Skip all" } else { "Skip" };
                match asking.entry() {
                    Entry::Words { chosen } => {
                        typed_line(asking, width, &mut keys);
                        let esc = if chosen { "Esc to go back" } else { "Esc to interrupt" };
                        let text = format!("Your words, then Enter (Ctrl+D: {skip}, {esc})");
                        wrap(&Line::styled(text, Tone::Dim.style()), width, "", &mut keys);
                    }
                    Entry::Choice => {
                        let most = question.options.len().min(9);
                        let text = format!("[1-{most}] Choose [W] Your own words [S] {skip} (Esc to interrupt)");
                        wrap(&Line::styled(text, Tone::Strong.style()), width, "", &mut keys);
                    }
                }
            }
        }
    }
    if let Some(over) = view.over() {
        keys.clear();
        typed_line(asking, width, &mut keys);
        let text = format!("{}: nothing is sent (Esc to leave)", prose_line(over));
        wrap(&Line::styled(text, Tone::Warning.style()), width, "", &mut keys);
    }
    Panel { body, heading, keys, title }
}

fn confirm_keys(asking: &Asking, width: usize, keys: &mut Vec<Line<'static>>) {
    if let Entry::Words { .. } = asking.entry() {
        typed_line(asking, width, keys);
        let text = "Why not, then Enter (Esc to go back)";
        return wrap(&Line::styled(text, Tone::Dim.style()), width, "", keys);
    }
    if let Some(always) = &asking.ask().always {
        let text = format!("[A] Approve always in this session: {}", exact_line(always));
        let mut rows = Vec::new();
        wrap_exact(&Line::raw(text), width, "   ", &mut rows);
        let is_cut = rows.len() > ALWAYS;
        rows.truncate(ALWAYS);
        if let Some(last) = rows.last_mut().filter(|_| is_cut) {
            *last = Line::raw(fit(&format!("{last}…"), width));
        }
        keys.extend(rows);
    }
    keys.push(Line::raw("[R] Deny and say why"));
    let text = "[Y] Approve [N] Deny (Esc to interrupt)";
    wrap(&Line::styled(text, Tone::Strong.style()), width, "", keys);
}

/// What is typed; behind it a cursor, while there can be more.
fn typed_line(asking: &Asking, width: usize, keys: &mut Vec<Line<'static>>) {
    let (mark, cursor) = if asking.is_over() {
        (Tone::Dim, Tone::Plain.style())
    } else {
        (Tone::Accent, super::super::style::selected())
    };
    let line = Line::from(vec![
        Span::styled("> ", mark.style()),
        Span::raw(prose_line(asking.typed()).into_owned()),
        Span::styled(" ", cursor),
    ]);
    let mut rows = Vec::new();
    wrap(&line, width, "  ", &mut rows);
    let hidden = rows.len().saturating_sub(TYPED);
    keys.extend(rows.into_iter().skip(hidden));
}

/// A question, and its options. How many rows its first line takes.
fn question_lines(question: &Question, place: &str, width: usize, body: &mut Vec<Line<'static>>) -> usize {
    let mut lines = question.question.trim().split('\n');
    let first = prose_line(lines.next().unwrap_or_default()).into_owned();
    let text = format!("{}: {first}{place}", prose_line(&question.header));
    wrap(&Line::styled(text, Tone::Waits.style()), width, "  ", body);
    let heading = body.len();
    for line in lines {
        behind_bar(line, Style::new(), width, body);
    }
    for (number, option) in (1..).zip(&question.options) {
        let mut spans = vec![
            Span::styled(format!("  {number}. "), Tone::Accent.style()),
            Span::raw(prose_line(&option.label).into_owned()),
        ];
        if !option.description.is_empty() {
            spans.push(Span::styled(format!(" - {}", prose_line(&option.description)), Tone::Dim.style()));
        }
        wrap(&Line::from(spans), width, "     ", body);
    }
    heading
}

/// A line that somebody else wrote, with every space in it.
fn behind_bar(text: &str, style: Style, width: usize, body: &mut Vec<Line<'static>>) {
    let bar = Span::styled(BAR, Tone::Dim.style());
    wrap_exact(&Line::from(vec![bar, Span::styled(prose(text).into_owned(), style)]), width, GOES_ON, body);
}

/// How a line of a diff looks.
fn of_diff(text: &str) -> Style {
    match text.as_bytes().first() {
        Some(b'+') if !text.starts_with("+++ ") => Style::new().fg(Color::Green),
        Some(b'-') if !text.starts_with("--- ") => Style::new().fg(Color::Red),
        Some(b'@') => Style::new().fg(Color::Cyan),
        _ => Style::new(),
    }
}

impl Panel {
    /// Rows it would take.
    pub(super) fn height(&self) -> usize {
        self.body.len() + self.keys.len() + 1
    }

    /// Rows without which it can't be answered: a line of what it wants, and the keys.
    pub(super) fn least(&self) -> usize {
        self.keys.len() + 2
    }

    /// Draws as much of it as there is room for: of what it wants a part, which `moves` move, its keys whole.
    pub(super) fn draw(self, buffer: &mut Buffer, area: Rect, view: &mut AskView, moves: &str) {
        let room = usize::from(area.height).saturating_sub(1 + self.keys.len());
        let hidden = self.body.len().saturating_sub(room);
        view.scroll = view.scroll.min(hidden);
        view.below = hidden - view.scroll;
        view.in_sight = room > 0;
        // Beside at least as much of the rest.
        let stays = if self.heading <= HEADING && self.heading * 2 <= room { self.heading } else { 0 };
        let mut title = self.title;
        if room == 0 {
            title.push_str(", the screen is too low to show it");
        } else if hidden > 0 {
            let above = if view.scroll == 0 { 0 } else { view.scroll + stays };
            let (from, to) = (above + 1, view.scroll + room.min(self.body.len()));
            // Where there is little room, that there is more goes before how much else waits.
            let more = format!("lines {from}-{to} of {}: {moves}", self.body.len());
            let fits = title.width() + more.width() + 6 <= usize::from(area.width);
            title = if fits { format!("{title}, {more}") } else { more };
        }
        let mut rest = put(buffer, area, &rule(area.width, &title, Tone::Waits.style()));
        let (heading, body) = self.body.split_at(stays);
        for line in heading.iter().chain(body.iter().skip(view.scroll).take(room - stays)) {
            rest = put(buffer, rest, line);
        }
        let keys = u16::try_from(self.keys.len()).unwrap_or_default();
        let at_end =
            Rect { y: (area.y + area.height).saturating_sub(keys).max(rest.y), height: keys.min(rest.height), ..area };
        self.keys.iter().fold(at_end, |rest, line| put(buffer, rest, line));
    }
}
