//! The status bar: what the session is doing, in whole segments.

use std::path::Path;
use std::time::Duration;

use holdpoint_common::{AsksMode, Hold, HoldCause, SessionStatus, Snapshot, TaskCounts, Timestamp};
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
/// That it stands, or waits for an answer, and the mark of both.
const PAUSED: &str = "⏸ PAUSED";
const ASKS: &str = "⏸ asks you";
const PAUSE: &str = "⏸";
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
    let now = session.lost.unwrap_or(now);
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

/// The model, folder and usage of the session, for the right end of the line: whole segments, each with its label. Where
/// there is no room for all, the least important is left out first. That not all is saved goes before everything.
pub(super) fn used(session: &Session, width: usize) -> String {
    let Snapshot { settings, usage, context, saved, .. } = &*session.snapshot;
    let asks = match settings.asks {
        AsksMode::Wait => String::new(),
        other => format!("asks: {other}"),
    };
    if !saved {
        return first_that_fits(&[&[&asks, "not saved"], &["not saved"][..]], width);
    }
    let model = format!("model {}", prose_line(&settings.model));
    let folder =
        Path::new(&settings.workspace).file_name().map(|name| prose_line(&name.to_string_lossy()).into_owned());
    let folder = format!("folder {}", folder.as_deref().unwrap_or("/"));
    let branch = session.branch.as_ref().map(|branch| format!("branch {}", prose_line(branch))).unwrap_or_default();
    let context = context.filter(|context| context.limit > 0);
    let percent = context.map(|context| context.tokens.saturating_mul(100).div_ceil(context.limit).min(100));
    let percent = percent.map(|percent| format!("context {percent}%")).unwrap_or_default();
    let window = context.map(|context| format!("{percent} of {}", short(context.limit))).unwrap_or_default();
    let tokens = match usage.total() {
        0 => String::new(),
        total => format!("{} tokens", short(total)),
    };
    let cost = usage.cost.map(|cost| format!("cost {:.4}", cost as f64 / 1e6)).unwrap_or_default();
    let ways: [&[&str]; 8] = [
        &[&asks, &model, &folder, &branch, &window, &tokens, &cost],
        &[&asks, &model, &branch, &window, &tokens, &cost],
        &[&asks, &model, &window, &tokens, &cost],
        &[&asks, &model, &percent, &tokens, &cost],
        &[&asks, &percent, &tokens, &cost],
        &[&asks, &percent, &cost],
        &[&asks, &percent],
        &[&asks],
    ];
    first_that_fits(&ways, width)
}

/// The first of these lines that fits, without its empty segments.
fn first_that_fits(ways: &[&[&str]], width: usize) -> String {
    let mut lines = ways.iter().map(|way| {
        let filled: Vec<_> = way.iter().copied().filter(|segment| !segment.is_empty()).collect();
        filled.join("  ")
    });
    lines.find(|line| line.width() <= width).unwrap_or_default()
}

/// A number of tokens in few cells.
fn short(tokens: u64) -> String {
    match tokens {
        few @ 0..1_000 => few.to_string(),
        some @ 1_000..1_000_000 => format!("{:.1}k", some as f64 / 1e3).replace(".0k", "k"),
        many => format!("{:.1}M", many as f64 / 1e6).replace(".0M", "M"),
    }
}

/// What it does now: in the most words that there is room for, in the end by its mark alone.
fn label(session: &Session, now: Timestamp, width: usize) -> (String, Tone) {
    let snapshot = &session.snapshot;
    let spinner = spinner(now);
    if session.closed {
        return ("closed".to_owned(), Tone::Dim);
    }
    let (words, tone): (&[&str], _) = match (&snapshot.hold, snapshot.status) {
        (_, SessionStatus::Interrupted) => (&[&format!("{spinner} interrupting"), spinner], Tone::Warning),
        // It does not get there before it is answered.
        (Hold::Requested { .. }, _) if !snapshot.asks.is_empty() => {
            (&[&format!("{spinner} PAUSING..., asks you"), ASKS, PAUSE], Tone::Waits)
        }
        (Hold::Requested { .. }, _) => (&[&format!("{spinner} PAUSING..."), spinner], Tone::Waits),
        // The call it asks about is of a turn that goes on to its boundary.
        (Hold::Standing { cause: HoldCause::Restored, .. }, _) if !snapshot.asks.is_empty() => {
            (&[&format!("{ASKS}, then PAUSED: restored"), ASKS, PAUSE], Tone::Waits)
        }
        (Hold::Standing { cause: HoldCause::User { .. }, .. }, _) => (&[PAUSED, PAUSE], Tone::Waits),
        (Hold::Standing { cause, .. }, _) => (&[&format!("{PAUSED}: {cause}"), PAUSED, PAUSE], Tone::Waits),
        (Hold::Off, _) if !snapshot.asks.is_empty() => (&[ASKS, PAUSE], Tone::Waits),
        (Hold::Off, SessionStatus::Running) => (&[spinner], Tone::Accent),
        (Hold::Off, SessionStatus::Idle | SessionStatus::Paused) => (&[], Tone::Plain),
    };
    let fits = words.iter().find(|words| words.width() <= width);
    (fits.map(ToString::to_string).unwrap_or_default(), tone)
}

/// Hours, minutes and seconds.
fn time(span: Duration) -> String {
    let seconds = span.as_secs();
    match seconds {
        0 => String::new(),
        _ => format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60),
    }
}

#[cfg(test)]
mod tests {
    use holdpoint_common::RunLimit;

    use super::super::super::scene::{Scene, standing, user};
    use super::*;

    fn labels(scene: &mut Scene, width: usize) -> String {
        let now = scene.now().time;
        label(scene.state.session.as_ref().unwrap(), now, width).0
    }

    #[test]
    fn m_d6_no_label_is_cut_however_narrow_it_is() {
        let mut held = Scene::session();
        held.turn("Go.").hold(standing(HoldCause::Limit { reached: RunLimit::Failures { count: 3 } }));
        let mut pausing = Scene::session();
        pausing.turn("Go.").hold(Hold::Requested { cause: HoldCause::User { by: user() }, since: Timestamp(0) });
        let mut asks = Scene::session();
        asks.turn("Go.")
            .hold(Hold::Requested { cause: HoldCause::User { by: user() }, since: Timestamp(0) })
            .confirms("ls");
        let mut cut = Scene::session();
        cut.snapshot.status = SessionStatus::Interrupted;
        cut.delta(holdpoint_common::Delta::SavedAgain);
        for (mut scene, words) in [
            (held, &["⏸ PAUSED", "⏸"][..]),
            (pausing, &["◐ PAUSING...", "◐"]),
            (asks, &["◐ PAUSING..., asks you", "⏸ asks you", "⏸"]),
            (cut, &["◐ interrupting", "◐"]),
        ] {
            let longest = labels(&mut scene, 200);
            for width in 1..longest.width() {
                let most = words.iter().find(|words| words.width() <= width).unwrap();
                assert_eq!(labels(&mut scene, width), *most, "{width}: {longest}");
            }
            // And it is what the screen says.
            let shown = labels(&mut scene, 12);
            let screen = scene.screen(12, 24);
            assert!(screen.lines().any(|line| line.ends_with(&shown)), "{screen}");
        }
    }
}
