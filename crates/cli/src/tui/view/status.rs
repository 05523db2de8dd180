//! The status bar: a session's progress, activity and usage, in as many segments as fit.

use std::path::Path;
use std::time::Duration;

use holdpoint_common::{
    AskRequest, AsksMode, Hold, HoldCause, PauseKind, SandboxLevel, SessionStatus, Snapshot,
    TaskCounts, Timestamp,
};
use holdpoint_tools::shown::prose_line;
use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthStr;

use super::super::session::Session;
use crate::table::fit;
use crate::tone::Tone;

/// The frames of the spinner.
const SPINNER_FRAMES: [&str; 4] = ["◐", "◓", "◑", "◒"];
/// Milliseconds per frame of the spinner.
const FRAME_MILLIS: u64 = 125;
/// The label of a hold in force.
const PAUSED: &str = "⏸ PAUSED";
/// The label of an open ask if there is no room for the kind of answer it waits for.
const WAITING: &str = "⏸ waiting";
/// The mark of a hold and of an open ask.
const PAUSE: &str = "⏸";
/// The width of a shortened session name, in cells.
const SHORT_NAME_WIDTH: usize = 12;

/// The spinner's frame at this moment.
pub(super) fn spinner(now: Timestamp) -> &'static str {
    let frame = usize::try_from(now.0 / FRAME_MILLIS).unwrap_or_default() % SPINNER_FRAMES.len();
    SPINNER_FRAMES[frame]
}

/// The bar at this width. The label of the activity is never cut; segments that do not fit beside
/// it are left out, the least important first.
pub(super) fn bar(session: &Session, now: Timestamp, width: usize) -> Line<'static> {
    // Without a connection, the clock and the spinner stop.
    let now = session.lost.unwrap_or(now);
    let (label, tone) = label(session, now, width);
    let label_cells = label.width() + usize::from(!label.is_empty());
    let Snapshot { settings, run, tasks, files_modified, .. } = &*session.snapshot;
    let name = prose_line(&settings.name).into_owned();
    let time = time(
        run.as_ref().map_or_else(|| session.snapshot.worked(now), |run| run.progress.worked(now)),
    );
    let iteration = run.as_ref().map_or(0, |run| run.progress.iteration);
    let number = if iteration == 0 { String::new() } else { format!("#{iteration}") };
    let iteration = if iteration == 0 { String::new() } else { format!("Iteration {number}") };
    let tasks = TaskCounts::from_tasks(tasks);
    let tasks = if tasks.is_empty() { String::new() } else { tasks.to_string() };
    let files = match files_modified.len() {
        0 => String::new(),
        1 => "1 file modified".to_owned(),
        count => format!("{count} files modified"),
    };
    let short_files = files.split(' ').take(2).collect::<Vec<_>>().join(" ");
    let short_name = fit(&name, SHORT_NAME_WIDTH);
    // From the most to the least detail.
    let layouts: [&[&str]; 8] = [
        &["holdpoint", &name, &time, &iteration, &tasks, &files],
        &[&name, &time, &iteration, &tasks, &files],
        &[&short_name, &time, &iteration, &tasks, &short_files],
        &[&short_name, &time, &number, &tasks],
        &[&short_name, &time, &number],
        &[&short_name, &time],
        &[&short_name],
        &[],
    ];
    let text = |layout: &[&str]| {
        let filled: Vec<_> = layout.iter().copied().filter(|segment| !segment.is_empty()).collect();
        filled.join(" | ")
    };
    let fits = |text: &String| text.width() + label_cells <= width;
    let segments = layouts.into_iter().map(text).find(fits).unwrap_or_default();
    let between = if segments.is_empty() || label.is_empty() { "" } else { " " };
    Line::from(vec![
        Span::styled(segments, Tone::Plain.style()),
        Span::raw(between),
        Span::styled(label, tone.style()),
    ])
}

/// The model, folder and usage of the session, for the right end of the line. Segments that do not
/// fit are left out, the least important first. "not saved" replaces everything but the asks mode.
pub(super) fn used(session: &Session, width: usize) -> String {
    let Snapshot { settings, usage, context, saved, .. } = &*session.snapshot;
    let asks = match settings.asks {
        AsksMode::Wait => String::new(),
        other => format!("asks: {other}"),
    };
    let sandbox = match settings.sandbox.level {
        SandboxLevel::Off => "no sandbox",
        _ => "",
    };
    if !saved {
        return first_that_fits(&[&[&asks, "not saved"], &["not saved"][..]], width);
    }
    let model = format!("model {}", prose_line(&settings.model));
    let folder = Path::new(&settings.workspace)
        .file_name()
        .map(|name| prose_line(&name.to_string_lossy()).into_owned());
    let folder = format!("folder {}", folder.as_deref().unwrap_or("/"));
    let branch = session
        .branch
        .as_ref()
        .map(|branch| format!("branch {}", prose_line(branch)))
        .unwrap_or_default();
    let context = context.filter(|context| context.limit > 0);
    let percent =
        context.map(|context| context.tokens.saturating_mul(100).div_ceil(context.limit).min(100));
    let percent = percent.map(|percent| format!("context {percent}%")).unwrap_or_default();
    let window = context
        .map(|context| format!("{percent} of {}", abbreviate(context.limit)))
        .unwrap_or_default();
    let tokens = match usage.total() {
        0 => String::new(),
        total => format!("{} tokens", abbreviate(total)),
    };
    let cost = usage.cost.map(|cost| format!("cost {:.4}", cost as f64 / 1e6)).unwrap_or_default();
    let layouts: [&[&str]; 9] = [
        &[&asks, sandbox, &model, &folder, &branch, &window, &tokens, &cost],
        &[&asks, sandbox, &model, &branch, &window, &tokens, &cost],
        &[&asks, sandbox, &model, &window, &tokens, &cost],
        &[&asks, sandbox, &model, &percent, &tokens, &cost],
        &[&asks, sandbox, &percent, &tokens, &cost],
        &[&asks, sandbox, &percent, &cost],
        &[&asks, sandbox, &percent],
        &[&asks, sandbox],
        &[&asks],
    ];
    first_that_fits(&layouts, width)
}

/// The first line that fits, without its empty segments.
fn first_that_fits(layouts: &[&[&str]], width: usize) -> String {
    let mut lines = layouts.iter().map(|layout| {
        let filled: Vec<_> = layout.iter().copied().filter(|segment| !segment.is_empty()).collect();
        filled.join("  ")
    });
    lines.find(|line| line.width() <= width).unwrap_or_default()
}

/// Abbreviates a number of tokens.
fn abbreviate(tokens: u64) -> String {
    match tokens {
        few @ 0..1_000 => few.to_string(),
        // From 999,950 on, a `k` would round to `1000k`.
        some @ 1_000..999_950 => format!("{:.1}k", some as f64 / 1e3).replace(".0k", "k"),
        many => format!("{:.1}M", many as f64 / 1e6).replace(".0M", "M"),
    }
}

/// The activity label: the longest form that fits, at last only its mark.
fn label(session: &Session, now: Timestamp, width: usize) -> (String, Tone) {
    let snapshot = &session.snapshot;
    let spinner = spinner(now);
    if session.closed {
        return ("closed".to_owned(), Tone::Dim);
    }
    let waiting = snapshot.asks.first().map(|ask| awaited_answer(&ask.request));
    let ask_label = waiting.map(|waiting| format!("{PAUSE} {waiting}")).unwrap_or_default();
    let (variants, tone): (&[&str], _) = match (&snapshot.hold, snapshot.status, waiting) {
        (_, SessionStatus::Interrupted, _) => {
            (&[&format!("{spinner} interrupting"), spinner], Tone::Warning)
        }
        // The hold takes effect only after the ask is answered.
        (Hold::Requested { .. }, _, Some(waiting)) => (
            &[&format!("{spinner} PAUSING..., {waiting}"), &ask_label, WAITING, PAUSE],
            Tone::Waits,
        ),
        (Hold::Requested { .. }, ..) => (&[&format!("{spinner} PAUSING..."), spinner], Tone::Waits),
        // The ask belongs to a restored turn, which continues to its boundary before the hold.
        (Hold::Standing { cause: HoldCause::Restored, .. }, _, Some(_)) => (
            &[&format!("{ask_label}, then PAUSED: restored"), &ask_label, WAITING, PAUSE],
            Tone::Waits,
        ),
        (Hold::Standing { cause: HoldCause::User { .. }, .. }, ..) => {
            (&[PAUSED, PAUSE], Tone::Waits)
        }
        (Hold::Standing { cause, .. }, ..) => {
            (&[&format!("{PAUSED}: {cause}"), PAUSED, PAUSE], Tone::Waits)
        }
        (Hold::Off, _, Some(_)) => (&[&ask_label, WAITING, PAUSE], Tone::Waits),
        (Hold::Off, SessionStatus::Running, None) => (&[spinner], Tone::Accent),
        (Hold::Off, SessionStatus::Idle | SessionStatus::Paused, None) => (&[], Tone::Plain),
    };
    let longest = variants.iter().find(|variant| variant.width() <= width);
    (longest.map(ToString::to_string).unwrap_or_default(), tone)
}

/// Describes the answer that an ask waits for.
fn awaited_answer(request: &AskRequest) -> &'static str {
    match request {
        AskRequest::Pause(pause) if pause.kind == PauseKind::Confirm => "waiting for approval",
        AskRequest::Pause(_) => "waiting to continue",
        AskRequest::Question(_) => "waiting for an answer",
    }
}

/// Formats a duration as hours, minutes and seconds.
fn time(span: Duration) -> String {
    let seconds = span.as_secs();
    match seconds {
        0 => String::new(),
        _ => format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60),
    }
}

#[cfg(test)]
mod tests {
    use holdpoint_common::{Question, QuestionRequest, RunLimit};

    use super::super::super::scene::{Scene, pause, standing, user};
    use super::*;

    fn label_text(scene: &mut Scene, width: usize) -> String {
        let now = scene.now().time;
        label(scene.state.session.as_ref().unwrap(), now, width).0
    }

    #[test]
    fn m_d6_a_narrow_bar_never_cuts_its_label() {
        let mut held = Scene::session();
        held.turn("Go.")
            .hold(standing(HoldCause::Limit { reached: RunLimit::Failures { count: 3 } }));
        let mut pausing = Scene::session();
        pausing
            .turn("Go.")
            .hold(Hold::Requested { cause: HoldCause::User { by: user() }, since: Timestamp(0) });
        let mut asks = Scene::session();
        asks.turn("Go.")
            .hold(Hold::Requested { cause: HoldCause::User { by: user() }, since: Timestamp(0) })
            .confirms("ls");
        let mut cut = Scene::session();
        cut.snapshot.status = SessionStatus::Interrupted;
        // Any event brings the changed snapshot to the screen.
        cut.delta(holdpoint_common::Delta::SavedAgain);
        for (mut scene, variants) in [
            (held, &["⏸ PAUSED", "⏸"][..]),
            (pausing, &["◐ PAUSING...", "◐"]),
            (
                asks,
                &["◐ PAUSING..., waiting for approval", "⏸ waiting for approval", "⏸ waiting", "⏸"],
            ),
            (cut, &["◐ interrupting", "◐"]),
        ] {
            let longest = label_text(&mut scene, 200);
            for width in 1..longest.width() {
                let expected = variants.iter().find(|variant| variant.width() <= width).unwrap();
                assert_eq!(label_text(&mut scene, width), *expected, "{width}: {longest}");
            }
            // The whole screen shows the same label.
            let shown = label_text(&mut scene, 12);
            let screen = scene.screen(12, 24);
            assert!(screen.lines().any(|line| line.ends_with(&shown)), "{screen}");
        }
    }

    #[test]
    fn m_d6_the_label_of_an_ask_names_the_answer_it_waits_for() {
        let question = Question {
            id: "a".into(),
            header: "a".into(),
            question: "Why?".into(),
            options: vec![],
        };
        let question =
            QuestionRequest { tool_name: "ask_user".to_owned(), questions: vec![question] };
        for (request, expected) in [
            (pause(PauseKind::Confirm, "ls"), "⏸ waiting for approval"),
            (pause(PauseKind::Continue, ""), "⏸ waiting to continue"),
            (AskRequest::Question(question), "⏸ waiting for an answer"),
        ] {
            let mut scene = Scene::session();
            scene.turn("Go.").asks(request);
            assert_eq!(label_text(&mut scene, 80), expected);
        }
    }

    #[test]
    fn abbreviated_numbers_have_at_most_three_digits_before_the_point() {
        for (tokens, expected) in [
            (999, "999"),
            (1_000, "1k"),
            (4_833, "4.8k"),
            (999_949, "999.9k"),
            (999_950, "1M"),
            (999_999, "1M"),
            (1_000_000, "1M"),
            (1_250_001, "1.3M"),
        ] {
            assert_eq!(abbreviate(tokens), expected);
        }
    }
}
