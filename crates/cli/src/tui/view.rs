//! Draws the state as a frame.

mod ask;
mod help;
mod hub;
mod session;
mod status;

use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Widget};
use unicode_width::UnicodeWidthStr;

use super::keymap::Action;
use super::state::{Overlay, State};
use super::wrap::wrap;
use crate::table::fit;
use crate::tone::Tone;

/// The rows that a notice may always take. On a large screen it may take a third of the rows.
const NOTICE_ROWS: usize = 4;

/// Draws the whole screen.
pub(crate) fn draw(frame: &mut Frame<'_>, state: &mut State) {
    let area = frame.area();
    state.asks().for_each(|view| view.readable = false);
    if area.width < 10 || area.height < 4 {
        return draw_too_small(frame.buffer_mut(), area);
    }
    let cursor = match state.session {
        Some(_) => session::draw(frame.buffer_mut(), area, state),
        None => hub::draw(frame.buffer_mut(), area, state),
    };
    let overlay = state.overlay.clone();
    if let Some(cursor) = cursor.filter(|_| overlay.is_none()) {
        // Sets the terminal's own cursor, because input methods show their text there.
        frame.set_cursor_position(cursor);
    }
    match overlay {
        Some(Overlay::Help { scroll }) => {
            let scroll = help::draw(frame.buffer_mut(), area, state, scroll);
            state.overlay = Some(Overlay::Help { scroll });
        }
        Some(Overlay::Leave { quits }) => {
            let name = state
                .session
                .as_ref()
                .map(|session| session.snapshot.settings.name.clone())
                .unwrap_or_default();
            let name = holdpoint_tools::shown::prose_line(&name).into_owned();
            let destination = if quits { "" } else { ", back to the hub" };
            let is_asking =
                state.session.as_ref().is_some_and(|session| !session.snapshot.asks.is_empty());
            let activity =
                if is_asking { "is waiting for your answer" } else { "is still working" };
            let lines = [
                format!("{name} {activity}."),
                String::new(),
                format!("[D] Detach: it keeps running{destination} (Enter)"),
                "[C] Close it: its work is interrupted".to_owned(),
                "[Esc] Stay".to_owned(),
            ];
            dialog(frame.buffer_mut(), area, &lines);
        }
        Some(Overlay::Delete { name, live, .. }) => {
            let name = holdpoint_tools::shown::prose_line(&name).into_owned();
            let question = match live {
                true => format!("Close {name}? Its work is interrupted; it stays saved."),
                false => format!("Delete {name} and its whole conversation?"),
            };
            dialog(
                frame.buffer_mut(),
                area,
                &[question, String::new(), "[Y] Yes  [N] No".to_owned()],
            );
        }
        Some(Overlay::Stopped { .. }) => {
            let lines = [
                "The daemon was stopped. Every session is saved.".to_owned(),
                String::new(),
                "[Enter] Start it again  [Q] Leave".to_owned(),
            ];
            dialog(frame.buffer_mut(), area, &lines);
        }
        None => {}
    }
}

/// Reports that the screen is too small, if the words fit.
fn draw_too_small(buffer: &mut Buffer, area: Rect) {
    let (width, height) = (usize::from(area.width), usize::from(area.height));
    let layouts: [&[&str]; 2] = [&["too small"], &["too", "small"]];
    let fits = |layout: &&&[&str]| {
        layout.len() <= height && layout.iter().all(|words| words.width() <= width)
    };
    let lines = layouts.iter().find(fits).copied().unwrap_or_default();
    lines.iter().fold(area, |rest, words| put(buffer, rest, &Line::raw(*words)));
}

/// Writes a line at the top of an area. Returns the area below it.
fn put(buffer: &mut Buffer, area: Rect, line: &Line<'_>) -> Rect {
    if area.height == 0 {
        return area;
    }
    buffer.set_line(area.x, area.y, line, area.width);
    Rect { y: area.y + 1, height: area.height - 1, ..area }
}

/// Converts a row and a column of an area to a position on the screen.
fn position(area: Rect, (row, column): (usize, usize)) -> Option<Position> {
    let (x, y) = (area.x + u16::try_from(column).ok()?, area.y + u16::try_from(row).ok()?);
    // A cursor after the last column stays inside the line.
    let x = x.min((area.x + area.width).saturating_sub(1));
    area.contains(Position { x, y }).then_some(Position { x, y })
}

/// A line of text, shortened to the width.
fn line(text: &str, tone: Tone, width: u16) -> Line<'static> {
    Line::styled(fit(text, usize::from(width)), tone.style())
}

/// The key hints, in order, that fit into the width.
fn hints(hints: &[(String, &str)], width: usize) -> Line<'static> {
    let mut line = Line::default();
    let mut cells = 0;
    for (key, does) in hints {
        let between = if cells == 0 { "" } else { "  " };
        let needed = between.width() + key.width() + 1 + does.width();
        if cells + needed > width {
            continue;
        }
        cells += needed;
        line.spans.push(Span::styled(format!("{between}{key}"), Tone::Accent.style()));
        line.spans.push(Span::styled(format!(" {does}"), Tone::Dim.style()));
    }
    line
}

/// The last lines of the screen: a notice or the key hints.
fn foot(state: &State, key_hints: &[(String, &str)], area: Rect) -> Vec<Line<'static>> {
    let width = area.width;
    if let Some(prefix) = state.prefix {
        let mut spans = vec![Span::styled(format!("{prefix} "), Tone::Strong.style())];
        let hint =
            |action, does| state.keymap.key_after_prefix(prefix, action).map(|key| (key, does));
        let hold = if is_held(state) { "play" } else { "pause" };
        let of_session =
            [(Action::Hold, hold), (Action::Detach, "detach"), (Action::Sessions, "sessions")];
        let of_all = [(Action::Inbox, "inbox"), (Action::New, "new"), (Action::Help, "help")];
        let of_session = of_session.into_iter().filter(|_| state.session.is_some());
        let mut all: Vec<_> =
            of_session.chain(of_all).filter_map(|(action, does)| hint(action, does)).collect();
        all.push(("Esc".to_owned(), "cancel"));
        let used: usize = spans.iter().map(Span::width).sum();
        spans.extend(hints(&all, usize::from(width).saturating_sub(used)).spans);
        return vec![Line::from(spans)];
    }
    if let Some(notice) = &state.notice {
        let mut lines = Vec::new();
        wrap(
            &Line::styled(notice.text.clone(), notice.tone.style()),
            usize::from(width),
            "",
            &mut lines,
        );
        let max_rows = usize::from(area.height / 3).max(NOTICE_ROWS);
        if lines.len() > max_rows {
            // The middle is cut, because the end of a message is often the hint.
            let cut = Line::styled("…", notice.tone.style());
            lines.splice(max_rows / 2..lines.len() - (max_rows - 1) / 2, [cut]);
        }
        return lines;
    }
    if !state.daemon {
        return vec![line("the daemon is gone; restarting it", Tone::Warning, width)];
    }
    vec![hints(key_hints, usize::from(width))]
}

/// Whether the shown session is held, or will be at its next boundary.
fn is_held(state: &State) -> bool {
    let hold =
        state.session.as_ref().map(|session| session.snapshot.hold.shown()).unwrap_or_default();
    hold != holdpoint_common::HoldState::Off
}

/// Draws a box with a few lines in the middle of the screen.
fn dialog(buffer: &mut Buffer, area: Rect, texts: &[String]) {
    let widest = texts.iter().map(|text| text.width()).max().unwrap_or_default();
    let width = (widest + 4).min(usize::from(area.width));
    let mut lines = Vec::new();
    for text in texts {
        wrap(&Line::raw(text.clone()), width.saturating_sub(4), "", &mut lines);
    }
    let inside = open_box(buffer, area, width, lines.len(), "");
    lines.iter().fold(inside, |rest, line| put(buffer, rest, line));
}

/// Draws an empty box for this many lines in the middle of the screen. Returns the area inside.
fn open_box(buffer: &mut Buffer, area: Rect, width: usize, lines: usize, title: &str) -> Rect {
    let width = u16::try_from(width).unwrap_or(area.width).min(area.width);
    let height = u16::try_from(lines + 2).unwrap_or(area.height).min(area.height);
    let outer = Rect { x: (area.width - width) / 2, y: (area.height - height) / 2, width, height };
    Clear.render(outer, buffer);
    let block = Block::bordered().border_style(Tone::Accent.style()).title(title.to_owned());
    let inner = block.inner(outer);
    block.render(outer, buffer);
    Rect { x: inner.x + 1, width: inner.width.saturating_sub(2), ..inner }
}

/// A horizontal rule with a title.
fn rule(width: u16, text: &str, style: Style) -> Line<'static> {
    let text = fit(text, usize::from(width).saturating_sub(4));
    let begin = if text.is_empty() { "─".to_owned() } else { format!("─ {text} ") };
    let rest = usize::from(width).saturating_sub(begin.width());
    Line::styled(format!("{begin}{}", "─".repeat(rest)), style)
}

#[cfg(test)]
mod tests;
