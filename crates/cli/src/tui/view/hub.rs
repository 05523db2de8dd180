//! Draws the hub: open asks, Resume, New session, all sessions and Quit.

use std::path::Path;

use holdpoint_common::{AskRequest, SessionSummary, Timestamp};
use holdpoint_tools::shown::prose_line;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthStr;

use super::super::hub::{Hub, Row};
use super::super::keymap::Action;
use super::super::state::State;
use super::super::style::selected;
use super::super::wrap::wrap;
use super::status::spinner;
use super::{ask, foot, position, put, rule};
use crate::summaries::AskSummary;
use crate::summaries::session::{absence, folder, on_its_machine, presence, status};
use crate::table::{fit, span};
use crate::tone::Tone;

const RESUME: &str = "  Resume ";
const NEW: &str = "  New session";
/// From this width on, each session shows its model and folder in columns; below it, only the
/// session under the cursor does.
const WIDE_SCREEN_WIDTH: usize = 110;
/// The widths of the columns with the model and the folder, in cells.
const MODEL_WIDTH: usize = 24;
const FOLDER_WIDTH: usize = 16;
/// The usual width of the activity column, in cells; longer texts widen it if there is room.
const ACTIVITY_WIDTH: usize = 22;

/// Draws the hub. Returns the cursor's position if text is being typed.
pub(super) fn draw(buffer: &mut Buffer, area: Rect, state: &mut State) -> Option<Position> {
    state.hub.restore_cursor();
    let hints = if let Some(view) = &state.hub.panel_ask {
        // With several questions, Tab moves to the next one.
        let key = if view.has_several_questions() {
            state.keymap.key(Action::Sessions)
        } else {
            "Tab".to_owned()
        };
        vec![(key, "back to the list")]
    } else if state.hub.followed_session.is_some() {
        vec![("Tab".to_owned(), "back to the list")]
    } else {
        let row = state.hub.row();
        let session = row.as_ref().and_then(Row::session).and_then(|id| state.hub.get(id));
        let mut hints = vec![("↑↓".to_owned(), "choose"), ("Enter".to_owned(), "open")];
        if session.is_some_and(|session| session.waits_for.is_some()) {
            hints.push(("Tab".to_owned(), "answer here"));
        }
        if let (Some(Row::Session(_)), Some(session)) = (&row, session) {
            hints.push(("Ctrl+D".to_owned(), if session.live { "close" } else { "delete" }));
        }
        hints.push((state.keymap.key(Action::Help), "help"));
        hints.push(if state.hub.filter.is_empty() {
            ("type".to_owned(), "to filter")
        } else {
            ("Esc".to_owned(), "clear filter")
        });
        hints
    };
    let foot = foot(state, &hints, area);
    let now = state.now.time;
    let opening = state.opening.is_some();
    let hub = &mut state.hub;
    let head = head(hub, area.width);
    let filter_cursor =
        (!hub.filter.is_empty()).then(|| position(area, (0, head.width()))).flatten();
    let mut rest = put(buffer, area, &head);
    let foot_rows = u16::try_from(foot.len()).unwrap_or_default().min(rest.height);
    let last = Rect { y: area.y + area.height - foot_rows, height: foot_rows, ..area };
    foot.iter().fold(last, |rest, line| put(buffer, rest, line));
    rest.height -= foot_rows;

    let panel = peek(hub, now, area.width, rest.height / 2);
    let panel_rows = panel.height().min(rest.height);
    let list = Rect { height: rest.height - panel_rows, ..rest };
    draw_list(buffer, list, hub, now, opening);
    let panel_area = Rect { y: list.y + list.height, height: panel_rows, ..rest };
    match panel {
        Peek::Nothing => filter_cursor,
        // The panel's own hint omits Tab, because here it returns to the list.
        Peek::Ask { panel, .. } => panel.draw(buffer, panel_area, hub.panel_ask.as_mut()?, "↑ ↓"),
        Peek::Lines(lines) => {
            lines.iter().fold(panel_area, |rest, line| put(buffer, rest, line));
            filter_cursor.filter(|_| !hub.has_panel())
        }
    }
}

fn head(hub: &Hub, width: u16) -> Line<'static> {
    if !hub.filter.is_empty() {
        let text = fit(
            &format!("filter: {}", prose_line(&hub.filter)),
            usize::from(width).saturating_sub(1),
        );
        return Line::styled(text, Tone::Strong.style());
    }
    let waiting = match hub.count_asks() {
        0 => String::new(),
        1 => " | 1 ask needs you".to_owned(),
        count => format!(" | {count} asks need you"),
    };
    let spans = vec![
        Span::styled("holdpoint", Tone::Strong.style()),
        Span::styled(waiting, Tone::Waits.style()),
    ];
    Line::from(spans)
}

/// The panel below the list, usually with details of the row under the cursor.
enum Peek {
    Nothing,
    Ask { panel: ask::Panel, rows: u16 },
    Lines(Vec<Line<'static>>),
}

impl Peek {
    fn height(&self) -> u16 {
        match self {
            Self::Nothing => 0,
            Self::Ask { rows, .. } => *rows,
            Self::Lines(lines) => u16::try_from(lines.len()).unwrap_or_default(),
        }
    }
}

fn peek(hub: &Hub, now: Timestamp, width: u16, max_rows: u16) -> Peek {
    if let Some(view) = &hub.panel_ask {
        let id = &view.form.ask().id.session;
        let (asks, name) =
            hub.get(id).map_or((0, id.as_str()), |session| (session.asks, &session.name));
        let panel = ask::panel(view, asks, Some(name), width);
        let rows = u16::try_from(panel.height()).unwrap_or(u16::MAX).min(max_rows.max(8));
        return Peek::Ask { panel, rows };
    }
    if let Some(session) = hub.followed_session.as_ref().and_then(|id| hub.get(id)) {
        return Peek::Lines(running_panel(session, now, width));
    }
    if hub.is_empty() && max_rows >= 4 {
        return Peek::Lines(first_start(hub, width));
    }
    let row = hub.row();
    let Some(session) = row.as_ref().and_then(Row::session).and_then(|id| hub.get(id)) else {
        return Peek::Nothing;
    };
    if max_rows < 4 {
        return Peek::Nothing;
    }
    let dim = |text: String| Line::styled(fit(&text, usize::from(width)), Tone::Dim.style());
    let mut lines = vec![rule(width, &prose_line(&session.title), Tone::Dim.style())];
    if let Some(ask) = &session.waits_for {
        lines.push(Line::styled(ask_line(&ask.request, usize::from(width)), Tone::Waits.style()));
    }
    if let Some(absence) = absence(session.machine.as_deref(), session.away, now) {
        lines.push(Line::styled(fit(&absence, usize::from(width)), Tone::Warning.style()));
    }
    if !session.gaps.is_empty() {
        lines.push(Line::styled(
            fit(&session.gaps.to_string(), usize::from(width)),
            Tone::Fault.style(),
        ));
    }
    lines.push(dim(format!("{} in {}", prose_line(&session.model), folder(session))));
    if let Some(line) = &session.last_line {
        lines.push(Line::raw(fit(&prose_line(line), usize::from(width))));
    }
    if let Some(error) = session.last_turn.as_ref().and_then(|turn| turn.error.as_ref()) {
        lines.push(Line::styled(fit(&prose_line(error), usize::from(width)), Tone::Fault.style()));
    }
    lines.truncate(usize::from(max_rows));
    Peek::Lines(lines)
}

/// The panel of a running session whose next ask is awaited.
fn running_panel(session: &SessionSummary, now: Timestamp, width: u16) -> Vec<Line<'static>> {
    let title = format!("{} {}: {}", spinner(now), prose_line(&session.name), status(session));
    let text = fit("Its next ask will appear here.", usize::from(width));
    vec![rule(width, &title, Tone::Accent.style()), Line::styled(text, Tone::Dim.style())]
}

/// The panel while there are no sessions: the model of new sessions, the reason for it, and how to
/// change it.
fn first_start(hub: &Hub, width: u16) -> Vec<Line<'static>> {
    let mut lines = vec![rule(width, "", Tone::Dim.style())];
    let Some(model) = &hub.model else { return lines };
    let texts = [
        format!("New sessions use the model {}: {}.", prose_line(&model.name), prose_line(&model.why)),
        "Set `model = \"PROVIDER/NAME\"` in the configuration to change it; `holdpoint models` lists all.".to_owned(),
    ];
    for text in texts {
        wrap(&Line::styled(text, Tone::Dim.style()), usize::from(width), "", &mut lines);
    }
    lines
}

fn draw_list(buffer: &mut Buffer, area: Rect, hub: &Hub, now: Timestamp, opening: bool) {
    let rows = hub.rows();
    let activity_width = activity_width(&rows, hub, usize::from(area.width));
    // Each group of rows begins with a heading. The blank ones differ, so that each adds a row.
    let mut lines: Vec<(Option<usize>, Line<'static>)> = Vec::new();
    let mut heading = "";
    for (at, row) in rows.iter().enumerate() {
        let above = match row {
            Row::Waiting(_) => "Needs you",
            Row::Resume(_) | Row::New => " ",
            Row::Session(_) => "Sessions",
            Row::Quit => "  ",
        };
        if above != heading {
            heading = above;
            if !lines.is_empty() || !above.trim().is_empty() {
                lines.push((None, Line::styled(above, Tone::Dim.style())));
            }
        }
        lines.push((Some(at), row_line(row, hub, now, area.width, activity_width)));
    }
    if !hub.loaded {
        lines.push((None, Line::styled("loading sessions", Tone::Dim.style())));
    } else if rows.is_empty() {
        lines.push((None, Line::styled("no session matches", Tone::Dim.style())));
    }
    if opening {
        lines.push((None, Line::styled("opening", Tone::Accent.style())));
    }
    let cursor = lines.iter().position(|(at, _)| *at == Some(hub.cursor)).unwrap_or_default();
    let height = usize::from(area.height);
    // The row below the cursor is visible too.
    let skip = (cursor + 2).saturating_sub(height).min(lines.len().saturating_sub(height));
    let mut rest = area;
    for (at, line) in lines.iter().skip(skip) {
        let y = rest.y;
        let full = rest.height > 0;
        rest = put(buffer, rest, line);
        if *at == Some(hub.cursor) && full && !hub.has_panel() {
            buffer.set_style(Rect { y, height: 1, ..area }, selected());
        }
    }
}

/// The width of the activity column: the longest text, within limits that leave room for the other
/// columns.
fn activity_width(rows: &[Row], hub: &Hub, width: usize) -> usize {
    let listed = rows.iter().filter_map(|row| match row {
        Row::Session(id) => hub.get(id),
        _ => None,
    });
    let least = ACTIVITY_WIDTH.min(width / 3);
    let longest = listed.map(|session| status(session).width()).max().unwrap_or_default();
    longest.clamp(least, least.max(width * 2 / 5))
}

fn row_line(
    row: &Row,
    hub: &Hub,
    now: Timestamp,
    width: u16,
    activity_width: usize,
) -> Line<'static> {
    let width = usize::from(width);
    let session = row.session().and_then(|id| hub.get(id));
    match (row, session) {
        (Row::New, _) => {
            let details = hub.model.as_ref().map(|model| {
                format!("  {} in {}", prose_line(&model.name), prose_line(&hub.folder))
            });
            let details = fit(&details.unwrap_or_default(), width.saturating_sub(NEW.width()));
            Line::from(vec![Span::raw(NEW), Span::styled(details, Tone::Dim.style())])
        }
        (Row::Quit, _) => Line::raw("  Quit"),
        (Row::Resume(_), Some(session)) => {
            let title = prose_line(&session.title).into_owned();
            let folder = if hub.is_here(session) {
                String::new()
            } else {
                format!(" in {}", folder(session))
            };
            let folder = fit(&folder, width / 2);
            let left = width.saturating_sub(RESUME.width() + folder.width());
            Line::raw(format!("{RESUME}{}{folder}", fit(&title, left)))
        }
        (Row::Waiting(_), Some(session)) => waiting_line(session, now, width),
        (Row::Session(_), Some(session)) => session_line(session, now, width, activity_width),
        (_, None) => Line::default(),
    }
}

fn waiting_line(session: &SessionSummary, now: Timestamp, width: usize) -> Line<'static> {
    let Some(ask) = &session.waits_for else { return Line::default() };
    let name = column(&prose_line(&session.name), (width / 4).clamp(8, 20));
    let since = span(now.since(ask.since));
    let more =
        if session.asks > 1 { format!(" ({} more)", session.asks - 1) } else { String::new() };
    // The mark and three spaces take four cells.
    let used = 4 + name.width() + since.width().max(4) + more.width();
    let left = width.saturating_sub(used);
    Line::from(vec![
        Span::styled("⏸ ", Tone::Waits.style()),
        Span::styled(name, Tone::Strong.style()),
        Span::styled(format!(" {since:>4} "), Tone::Dim.style()),
        Span::raw(ask_line(&ask.request, left)),
        Span::styled(more, Tone::Waits.style()),
    ])
}

/// The session's activity in at most `cells`, if possible. Shortens a longer text to the outcome,
/// without `idle`; if that is still too long, a saved session's becomes `saved`, and `not
/// responding` if its machine does not respond.
fn activity_in(session: &SessionSummary, cells: usize) -> String {
    let all = status(session);
    let Some((before, ended)) = all.split_once("idle (").filter(|_| all.width() > cells) else {
        return all;
    };
    let short = format!("{before}{}", ended.replacen(')', "", 1));
    match presence(session).strip_suffix(", ") {
        Some(presence) if short.width() > cells => presence.to_owned(),
        _ => short,
    }
}

fn session_line(
    session: &SessionSummary,
    now: Timestamp,
    width: usize,
    activity_width: usize,
) -> Line<'static> {
    let name = column(&prose_line(&session.name), (width / 4).clamp(8, 20));
    let activity = column(&activity_in(session, activity_width), activity_width);
    let since = format!(" {:>4}  ", span(now.since(session.since)));
    let is_shown_live = session.live && session.away.is_none();
    let tone = match (is_shown_live, &session.waits_for) {
        (_, Some(_)) => Tone::Waits,
        (true, None) if session.status == holdpoint_common::SessionStatus::Running => Tone::Accent,
        (true, None) => Tone::Plain,
        (false, None) => Tone::Dim,
    };
    let model_and_folder = if width < WIDE_SCREEN_WIDTH {
        String::new()
    } else {
        let folder =
            Path::new(&session.workspace).file_name().unwrap_or_default().to_string_lossy();
        let folder = on_its_machine(session, &folder);
        format!(
            "{} {} ",
            column(&prose_line(&session.model), MODEL_WIDTH),
            column(&folder, FOLDER_WIDTH)
        )
    };
    // The spaces around the name take three cells.
    let used = 3 + name.width() + activity.width() + since.width() + model_and_folder.width();
    let rest = width.saturating_sub(used);
    let title = prose_line(&session.title).into_owned();
    let mut description = if title == session.name { folder(session) } else { title };
    if let Some(line) = &session.last_line {
        description.push_str(&format!(" · {}", prose_line(line)));
    }
    Line::from(vec![
        Span::raw("  "),
        Span::raw(name),
        Span::raw(" "),
        Span::styled(activity, tone.style()),
        Span::styled(since, Tone::Dim.style()),
        Span::styled(model_and_folder, Tone::Dim.style()),
        Span::styled(fit(&description, rest), Tone::Dim.style()),
    ])
}

/// Pads or shortens a text to a column's width.
fn column(text: &str, cells: usize) -> String {
    let fitted = fit(text, cells);
    let pad = cells.saturating_sub(fitted.width());
    format!("{fitted}{}", " ".repeat(pad))
}

/// The tool and the subject of an ask, shortened to this many cells.
fn ask_line(request: &AskRequest, cells: usize) -> String {
    let tool = fit(&format!("{}: ", prose_line(request.tool_name())), cells);
    let left = cells.saturating_sub(tool.width());
    format!("{tool}{}", AskSummary::new(request).fit(left))
}
