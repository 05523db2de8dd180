//! The status bar: what the session is doing, in whole segments.

use std::time::Duration;

use holdpoint_common::{Hold, HoldCause, SessionStatus, Snapshot, TaskCounts, Timestamp};
use holdpoint_tools::shown::prose_line;
use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthStr;

use super::super::session::Session;
use super::super::style::Tone;
use crate::table::fit;

/// What turns, a quarter at a time.
const TURNS: [&str; 4] = ["◐", "◓", "◑", "◒"];
/// Milliseconds of each quarter.
const QUARTER: u64 = 125;
/// Cells that a session's name keeps where there is little room.
const NAME: usize = 12;

/// What spins, at this moment.
pub(super) fn spinner(now: Timestamp) -> &'static str {
    let turn = usize::try_from(now.0 / QUARTER).unwrap_or_default() % TURNS.len();
    TURNS[turn]
}

/// The bar at this width. The label of what it does is never cut; what does not fit beside it is left out, the least
/// telling first.
pub(super) fn bar(session: &Session, now: Timestamp, width: usize) -> Line<'static> {
    let (label, tone) = label(session, now, width);
    let label_cells = label.width() + usize::from(!label.is_empty());
    let Snapshot { settings, run, tasks, files_modified, .. } = &*session.snapshot;
    let name = prose_line(&settings.name).into_owned();
    let time = time(run.as_ref().map_or_else(|| session.snapshot.worked(now), |run| run.progress.worked(now)));
    let iteration = run.as_ref().map_or(0, |run| run.progress.iteration);
    let number = if iteration == 0 { String::new() } else { format!("#{iteration}") };
    let iteration = if iteration == 0 { String::new() } else { format!("Iteration {number}") };
    let tasks = TaskCounts::of(tasks);
    let tasks = if tasks.is_empty() { String::new() } else { tasks.to_string() };
    let files = match files_modified.len() {
        0 => String::new(),
        1 => "1 file modified".to_owned(),
        many => format!("{many} files modified"),
    };
    let few_files = files.split(' ').take(2).collect::<Vec<_>>().join(" ");
    let short_name = fit(&name, NAME);
    // From all of it to almost nothing.
    let ways: [&[&str]; 8] = [
        &["holdpoint", &name, &time, &iteration, &tasks, &files],
        &[&name, &time, &iteration, &tasks, &files],
        &[&short_name, &time, &iteration, &tasks, &few_files],
        &[&short_name, &time, &number, &tasks],
        &[&short_name, &time, &number],
        &[&short_name, &time],
        &[&short_name],
        &[],
    ];
    let text = |way: &[&str]| {
        let said: Vec<_> = way.iter().copied().filter(|segment| !segment.is_empty()).collect();
        said.join(" | ")
    };
    let fits = |text: &String| text.width() + label_cells <= width;
    let segments = ways.into_iter().map(text).find(fits).unwrap_or_default();
    let between = if segments.is_empty() || label.is_empty() { "" } else { " " };
    Line::from(vec![Span::styled(segments, Tone::Plain.style()), Span::raw(between), Span::styled(label, tone.style())])
}

/// What it does now.
fn label(session: &Session, now: Timestamp, width: usize) -> (String, Tone) {
    let snapshot = &session.snapshot;
    let spinner = spinner(now);
    if session.closed {
        return ("closed".to_owned(), Tone::Dim);
    }
    match (&snapshot.hold, snapshot.status) {
        (_, SessionStatus::Interrupted) => (format!("{spinner} interrupting"), Tone::Warning),
        // It does not get there before it is answered.
        (Hold::Requested { .. }, _) if !snapshot.asks.is_empty() => {
            let both = format!("{spinner} PAUSING..., asks you");
            (if both.width() > width { "⏸ asks you".to_owned() } else { both }, Tone::Waits)
        }
        (Hold::Requested { .. }, _) => (format!("{spinner} PAUSING..."), Tone::Waits),
        (Hold::Standing { cause: HoldCause::User { .. }, .. }, _) => ("⏸ PAUSED".to_owned(), Tone::Waits),
        (Hold::Standing { cause, .. }, _) => (format!("⏸ PAUSED: {cause}"), Tone::Waits),
        (Hold::Off, _) if !snapshot.asks.is_empty() => ("⏸ asks you".to_owned(), Tone::Waits),
        (Hold::Off, SessionStatus::Running) => (spinner.to_owned(), Tone::Accent),
        (Hold::Off, SessionStatus::Idle | SessionStatus::Paused) => (String::new(), Tone::Plain),
    }
}

/// Hours, minutes and seconds.
fn time(span: Duration) -> String {
    let seconds = span.as_secs();
    match seconds {
        0 => String::new(),
        _ => format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60),
    }
}
