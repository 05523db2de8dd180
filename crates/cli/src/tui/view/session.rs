//! Draws a session: the transcript, the ask, the prompt and the status line.

use holdpoint_common::AsksMode;
use holdpoint_tools::shown::prose_line;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::Modifier;
use ratatui::text::{Line, Span};
use ratatui::widgets::Widget;
use ratatui_textarea::CursorMove;
use unicode_width::UnicodeWidthStr;

use super::super::keymap::Action;
use super::super::layout::LayoutOptions;
use super::super::session::Session;
use super::super::state::State;
use super::super::update::candidates;
use super::super::wrap::wrap;
use super::{ask, foot, is_held, position, put, rule, status};
use crate::summaries::{self, asks_mode, first_line_summary};
use crate::table::fit;
use crate::tone::Tone;

/// The most rows of the prompt.
const MAX_PROMPT_ROWS: u16 = 8;
/// The width of the prompt's mark, in cells.
const MARK_WIDTH: u16 = 2;
/// The width of a command in the list, in cells.
const COMMAND_WIDTH: usize = 14;
/// How many queued prompts are shown.
const MAX_QUEUED: usize = 3;
/// Rows of the transcript that stay visible above an ask.
const MIN_TRANSCRIPT_ROWS: u16 = 3;
/// On a screen with fewer rows, an ask takes the whole screen.
const SHORT_SCREEN_ROWS: u16 = 16;

/// Draws the session. Returns the cursor's position if text is being typed.
pub(super) fn draw(buffer: &mut Buffer, area: Rect, state: &mut State) -> Option<Position> {
    let now = state.now.time;
    let completions = match &state.session {
        Some(session) if state.prefix.is_none() && session.open_ask.is_none() => {
            completion_lines(session, area)
        }
        _ => vec![],
    };
    let foot = if completions.is_empty() { foot(state, &hints(state), area) } else { completions };
    let foot_rows = u16::try_from(foot.len()).unwrap_or_default();
    let session = state.session.as_mut()?;
    let queue = queue(session, area.width);
    let prompt_rows =
        prompt_rows(session, area.width).min(MAX_PROMPT_ROWS.min(area.height / 3).max(1));
    // Two rows are the rule above the prompt and the status line.
    let below = 2 + foot_rows + u16::try_from(queue.len()).unwrap_or_default() + prompt_rows;
    let room = area.height.saturating_sub(below);
    let ask_room = room.saturating_sub(MIN_TRANSCRIPT_ROWS.min(room / 3));
    let mut panel = session.open_ask.as_ref().map(|view| {
        let panel = ask::panel(view, session.snapshot.asks.len(), None, area.width);
        // Without room below the transcript, the ask takes the whole screen.
        let large = view.large
            || area.height < SHORT_SCREEN_ROWS
            || panel.min_height() > usize::from(ask_room);
        (panel, large)
    });
    let ask_rows = panel.as_ref().map_or(0, |(panel, large)| {
        let wanted = u16::try_from(panel.height()).unwrap_or(u16::MAX);
        let max_rows = if *large { area.height.saturating_sub(1 + foot_rows) } else { ask_room };
        wanted.min(max_rows)
    });
    let large = panel.as_ref().is_some_and(|(_, large)| *large);

    // The parts are drawn from the top down.
    let rows = if large { 0 } else { room - ask_rows };
    let mut rest = draw_transcript(buffer, Rect { height: rows, ..area }, session);
    rest.height = area.height - rows;
    let mut cursor = None;
    if let (Some((panel, _)), Some(view)) = (panel.take(), &mut session.open_ask) {
        cursor =
            panel.draw(buffer, Rect { height: ask_rows.min(rest.height), ..rest }, view, "↑ ↓ Tab");
        let taken = ask_rows.min(rest.height);
        rest = Rect { y: rest.y + taken, height: rest.height - taken, ..rest };
    }
    if !large {
        for line in &queue {
            rest = put(buffer, rest, line);
        }
        let more = if session.below { "↓ more below: Ctrl+End" } else { "" };
        rest = put(buffer, rest, &rule(area.width, more, Tone::Dim.style()));
        let prompt_area = Rect { height: prompt_rows.min(rest.height), ..rest };
        cursor = cursor.or(draw_prompt(buffer, prompt_area, session));
        rest = Rect {
            y: rest.y + prompt_area.height,
            height: rest.height - prompt_area.height,
            ..rest
        };
    }
    let bottom_rows = 1 + foot_rows;
    let at_end = Rect {
        y: (area.y + area.height).saturating_sub(bottom_rows).max(rest.y),
        height: bottom_rows.min(rest.height),
        ..area
    };
    let rest = draw_status_line(buffer, at_end, session, now);
    foot.iter().fold(rest, |rest, line| put(buffer, rest, line));
    cursor
}

/// The keys that the last line names, with their effects.
fn hints(state: &State) -> Vec<(String, &'static str)> {
    let (hold, help) = (state.keymap.key(Action::Hold), state.keymap.key(Action::Help));
    let hold_hint = (hold, if is_held(state) { "play" } else { "pause" });
    let help_hint = (help, "help");
    let esc = |does| ("Esc".to_owned(), does);
    match &state.session {
        Some(session) if session.open_ask.is_some() => vec![hold_hint, help_hint],
        Some(session) if session.layouts.calls.chosen().is_some() => {
            let back = if session.can_be_interrupted() { esc("interrupt") } else { esc("back") };
            vec![
                ("Enter".to_owned(), "open or fold"),
                ("ctrl+↑↓".to_owned(), "choose"),
                back,
                hold_hint,
            ]
        }
        Some(session) if session.closed => {
            vec![("Enter".to_owned(), "open again"), esc("sessions"), help_hint]
        }
        Some(session) if session.can_be_interrupted() => {
            vec![esc("interrupt"), hold_hint, help_hint]
        }
        Some(session) if !session.prompt.is_empty() => {
            vec![
                ("Enter".to_owned(), "send"),
                ("Ctrl+J".to_owned(), "new line"),
                hold_hint,
                help_hint,
                esc("clear"),
            ]
        }
        _ => vec![hold_hint, esc("sessions"), help_hint, ("/".to_owned(), "commands")],
    }
}

/// Completions of a typed command, in at most a quarter of the rows.
fn completion_lines(session: &Session, area: Rect) -> Vec<Line<'static>> {
    // A command is one line, without a paste.
    let [typed] = session.prompt.area().lines() else { return vec![] };
    let all: Vec<_> = candidates(typed).collect();
    let rows = usize::from(area.height / 4).max(2);
    let shown = if all.len() > rows { rows - 1 } else { all.len() };
    let mut lines: Vec<_> = all
        .iter()
        .take(shown)
        .map(|(command, does)| {
            let command = Span::styled(format!("{command:COMMAND_WIDTH$}"), Tone::Accent.style());
            let does = fit(does, usize::from(area.width).saturating_sub(COMMAND_WIDTH + 1));
            Line::from(vec![command, Span::styled(format!(" {does}"), Tone::Dim.style())])
        })
        .collect();
    if all.len() > shown {
        let more = format!("and {} more: type on, or /help; Tab completes", all.len() - shown);
        lines.push(Line::styled(fit(&more, usize::from(area.width)), Tone::Dim.style()));
    }
    lines
}

/// Draws the status bar, with the usage at its right end.
fn draw_status_line(
    buffer: &mut Buffer,
    area: Rect,
    session: &Session,
    now: holdpoint_common::Timestamp,
) -> Rect {
    let width = usize::from(area.width);
    let bar = status::bar(session, now, width);
    let used = status::used(session, width.saturating_sub(bar.width() + 2));
    let rest = put(buffer, area, &bar);
    if !used.is_empty() && area.height > 0 {
        let x = area.x + area.width - u16::try_from(used.width()).unwrap_or_default();
        let tone = if session.snapshot.saved { Tone::Dim } else { Tone::Warning };
        buffer.set_string(x, area.y, &used, tone.style());
    }
    rest
}

/// Draws the visible part of the transcript. Returns the empty area at its end.
fn draw_transcript(buffer: &mut Buffer, area: Rect, session: &mut Session) -> Rect {
    let (width, height) = (usize::from(area.width), usize::from(area.height));
    session.drawn_size = (width, height);
    let options = LayoutOptions { width, steps: session.steps };
    let (lines, below) =
        session.layouts.window(&session.received.transcript, options, &mut session.scroll, height);
    session.below = below;
    if lines.is_empty() && session.pending.is_none() {
        draw_welcome(buffer, area, session);
    }
    // A short transcript is at the bottom, next to the prompt.
    let free = u16::try_from(height - lines.len().min(height)).unwrap_or_default();
    let rest = Rect { y: area.y + free, height: area.height - free, ..area };
    lines.iter().fold(rest, |rest, line| put(buffer, rest, line));
    Rect { y: area.y + area.height, height: 0, ..area }
}

/// Draws the session's settings in place of an empty transcript.
fn draw_welcome(buffer: &mut Buffer, area: Rect, session: &Session) {
    let settings = &session.snapshot.settings;
    let offline = match &*settings.model {
        "rehearsal" => ": plays scripts and needs no key; /model PROVIDER/NAME sets a real one",
        _ => "",
    };
    let lines = [
        Line::styled(prose_line(&settings.name).into_owned(), Tone::Strong.style()),
        Line::styled(format!("in {}", prose_line(&settings.workspace)), Tone::Dim.style()),
        Line::styled(format!("model {}{offline}", prose_line(&settings.model)), Tone::Dim.style()),
        Line::styled(format!("policy {}", policy(settings.policy)), Tone::Dim.style()),
        Line::styled(
            format!("sandbox {}", summaries::sandbox(&settings.sandbox)),
            Tone::Dim.style(),
        ),
    ];
    let unattended = (settings.asks != AsksMode::Wait).then(|| asks_mode(settings.asks));
    let asks = unattended.map(|asks| Line::styled(asks, Tone::Warning.style()));
    let mut shown = Vec::new();
    lines
        .iter()
        .chain(&asks)
        .for_each(|line| wrap(line, usize::from(area.width).saturating_sub(2), "", &mut shown));
    let rest = Rect { x: area.x + 1, width: area.width.saturating_sub(2), ..area };
    shown.iter().fold(rest, |rest, line| put(buffer, rest, line));
}

fn policy(mode: holdpoint_common::PolicyMode) -> &'static str {
    use holdpoint_common::PolicyMode;
    match mode {
        PolicyMode::Ask => {
            "ask: reading inside the folder is allowed; the rest needs your approval"
        }
        PolicyMode::Edits => {
            "edits: reading and writing inside the folder is allowed; the rest needs your approval"
        }
        PolicyMode::Sandboxed => {
            "sandboxed: editing inside the folder and commands in the sandbox are allowed; the rest \
             needs your approval"
        }
        PolicyMode::All => "all: everything is allowed unless a rule denies it",
        PolicyMode::Readonly => "readonly: reading is allowed; the rest is denied",
    }
}

/// The queued prompts.
fn queue(session: &Session, width: u16) -> Vec<Line<'static>> {
    let queued = &session.snapshot.queue;
    let shown = if queued.len() > MAX_QUEUED { MAX_QUEUED - 1 } else { queued.len() };
    let style = Tone::Dim.style().add_modifier(Modifier::ITALIC);
    let text = |text: String| Line::styled(fit(&text, usize::from(width)), style);
    let mut lines: Vec<_> = queued
        .iter()
        .take(shown)
        .map(|prompt| text(format!("queued: {}", first_line_summary(&prompt.text))))
        .collect();
    if queued.len() > shown {
        lines.push(text(format!("and {} more queued", queued.len() - shown)));
    }
    lines
}

/// The rows that the typed text takes.
fn prompt_rows(session: &Session, width: u16) -> u16 {
    // The text area wraps lines in its own way, so the position of its end is read from it.
    let mut field = session.prompt.area().clone();
    field.move_cursor(CursorMove::Jump(u16::MAX, u16::MAX));
    let row = Rect { x: 0, y: 0, width: width.saturating_sub(MARK_WIDTH), height: 1 };
    (&field).render(row, &mut Buffer::empty(row));
    u16::try_from(field.screen_cursor().row + 1).unwrap_or(MAX_PROMPT_ROWS)
}

/// Draws the prompt. Returns the cursor's position, unless an ask takes the keys.
fn draw_prompt(buffer: &mut Buffer, area: Rect, session: &Session) -> Option<Position> {
    if area.height == 0 || area.width < 4 {
        return None;
    }
    let has_ask = session.open_ask.is_some();
    let mark = if has_ask { Tone::Dim } else { Tone::User };
    buffer.set_line(area.x, area.y, &Line::from(Span::styled("› ", mark.style())), MARK_WIDTH);
    let inside = Rect { x: area.x + MARK_WIDTH, width: area.width - MARK_WIDTH, ..area };
    let field = session.prompt.area();
    let mut field = field.clone();
    field.set_cursor_style(Tone::Plain.style());
    if has_ask {
        field.set_style(Tone::Dim.style());
        field.set_placeholder_text("");
    } else if session.closed {
        field.set_placeholder_text("Closed: Enter opens it again");
    }
    (&field).render(inside, buffer);
    let (cursor, above) = (field.screen_cursor(), usize::from(field.scroll_offset().0));
    position(inside, (cursor.row.saturating_sub(above), cursor.col)).filter(|_| !has_ask)
}
