//! Runs and tasks as a person reads them: a line for each thing that happens to them.

use std::time::{Duration, SystemTime};

use holdpoint_common::{Fact, RunLimit, RunLimits, RunProgress, TaskState, Tasks, Timestamp};
use holdpoint_tools::shown::prose_line;

use crate::said::shorten;
use crate::ui::Style;

/// The line for a fact of a run or of tasks, which have taken it in already; `None` for others.
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
        Fact::RunExtended { limits } => (Style::Dim, format!("granted by now: {}", granted(limits))),
        Fact::RunFinished { end, progress } => (Style::Bold, format!("run {end}: {}", taken(progress))),
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

/// What a run may take: `100 iterations, 2h of work`.
fn granted(limits: &RunLimits) -> String {
    let RunLimits { iterations, tokens, time_ms } = limits.to_owned();
    let iterations = iterations.map(|count| RunLimit::Iterations { count: count.get() });
    let tokens = tokens.map(|count| RunLimit::Tokens { count: count.get() });
    let time = time_ms.map(|ms| RunLimit::Time { ms: ms.get() });
    let limits: Vec<_> = [iterations, tokens, time].iter().flatten().map(ToString::to_string).collect();
    if limits.is_empty() { "whatever it takes".to_owned() } else { limits.join(", ") }
}

/// What a run has taken: `3 iterations, 1200 tokens, 1h 2m of work`.
pub(crate) fn taken(progress: &RunProgress) -> String {
    let now = Timestamp::from(SystemTime::now());
    let many = if progress.iteration == 1 { "" } else { "s" };
    // Seconds are enough.
    let worked = Duration::from_secs(progress.worked(now).as_secs());
    let (count, tokens) = (progress.iteration, progress.tokens);
    format!("{count} iteration{many}, {tokens} tokens, {} of work", humantime::format_duration(worked))
}
