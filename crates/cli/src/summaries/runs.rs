//! One-line texts about runs and tasks.

use std::time::{Duration, SystemTime};

use holdpoint_common::{Fact, RunLimit, RunLimits, RunProgress, TaskState, Tasks, Timestamp};
use holdpoint_tools::shown::prose_line;

use super::shorten;
use crate::ui::Style;

/// The line for a fact of a run or its tasks, which `tasks` already includes; `None` for other
/// facts.
pub(crate) fn line(fact: &Fact, at: Timestamp, tasks: &Tasks) -> Option<(Style, String)> {
    Some(match fact {
        Fact::RunStarted { run, .. } => {
            let goal = run.goal.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
            (Style::Bold, format!("run: {}", shorten(&prose_line(goal))))
        }
        Fact::IterationStarted { iteration, resumed, .. } => {
            let again = if *resumed { ", where it was cut" } else { "" };
            (Style::Bold, format!("── iteration {iteration}{again} ──"))
        }
        Fact::PromptDelivered { prompt, iteration } => {
            (Style::Dim, format!("prompt {prompt} is delivered to iteration {iteration}"))
        }
        Fact::RunWaiting { until } => {
            (Style::Warning, format!("the next iteration begins in {:.0} s", until.since(at).as_secs_f64().ceil()))
        }
        Fact::RunExtended { limits } => (Style::Dim, format!("new limits: {}", granted(limits))),
        Fact::RunFinished { end, progress, by } => {
            let by = by.as_ref().map(|by| format!("Agent interrupted {}; ", prose_line(&by.origin())));
            (Style::Bold, format!("{}run {end}: {}", by.unwrap_or_default(), taken(progress)))
        }
        Fact::TaskAdded { task, title } => (Style::Dim, format!("○ task {task}: {}", prose_line(title))),
        Fact::TaskMoved { task, to } => {
            let mark = match to {
                TaskState::Todo => "○",
                TaskState::Doing => "●",
                TaskState::Done => "✓",
                TaskState::Dropped => "−",
            };
            let title = tasks.tasks.iter().find(|known| known.id == *task).map(|task| task.title.as_str());
            (Style::Dim, format!("{mark} task {task} {to}: {}", prose_line(title.unwrap_or_default())))
        }
        Fact::NoteTaken { note } => (Style::Dim, format!("note: {}", shorten(&prose_line(&note.text)))),
        _ => return None,
    })
}

/// The limits of a run: `100 iterations, 2h of work`.
fn granted(limits: &RunLimits) -> String {
    let RunLimits { iterations, tokens, time_ms } = limits.to_owned();
    let iterations = iterations.map(|count| RunLimit::Iterations { count: count.get() });
    let tokens = tokens.map(|count| RunLimit::Tokens { count: count.get() });
    let time = time_ms.map(|ms| RunLimit::Time { ms: ms.get() });
    let limits: Vec<_> = [iterations, tokens, time].iter().flatten().map(ToString::to_string).collect();
    if limits.is_empty() { "none".to_owned() } else { limits.join(", ") }
}

/// The total of a finished run: `3 iterations, 1200 tokens, 1h 2m of work`.
pub(crate) fn taken(progress: &RunProgress) -> String {
    let many = if progress.iteration == 1 { "" } else { "s" };
    format!("{} iteration{many}, {}", progress.iteration, spent(progress))
}

/// The progress of a run: `iteration 3, 1200 tokens, 1h 2m of work`.
pub(crate) fn so_far(progress: &RunProgress) -> String {
    match progress.iteration {
        0 => "before its first iteration".to_owned(),
        iteration => format!("iteration {iteration}, {}", spent(progress)),
    }
}

fn spent(progress: &RunProgress) -> String {
    let now = Timestamp::from(SystemTime::now());
    // Whole seconds are precise enough.
    let worked = Duration::from_secs(progress.worked(now).as_secs());
    format!("{} tokens, {} of work", progress.tokens, humantime::format_duration(worked))
}
