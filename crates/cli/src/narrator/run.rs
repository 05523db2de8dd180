//! Words about runs and their tasks.

use holdpoint_common::{Fact, RunLimit, RunLimits, TaskState, Tasks, Timestamp};
use holdpoint_tools::shown::prose_line;

use super::Remark;
use crate::summaries::runs::taken;
use crate::summaries::shorten;
use crate::tone::Tone;

/// The remark about a fact of a run or its tasks, which `tasks` already includes; `None` for other
/// facts.
pub(super) fn remark(fact: &Fact, at: Timestamp, tasks: &Tasks) -> Option<Remark> {
    let (tone, text) = match fact {
        Fact::RunStarted { run, .. } => {
            let goal =
                run.goal.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
            (Tone::Strong, format!("run: {}", shorten(&prose_line(goal))))
        }
        Fact::IterationStarted { iteration, resumed, .. } => {
            let again = if *resumed { ", where it was cut" } else { "" };
            (Tone::Strong, format!("── iteration {iteration}{again} ──"))
        }
        Fact::PromptDelivered { prompt, iteration } => {
            (Tone::Dim, format!("prompt {prompt} is delivered to iteration {iteration}"))
        }
        Fact::RunWaiting { until } => (
            Tone::Warning,
            format!("the next iteration begins in {:.0} s", until.since(at).as_secs_f64().ceil()),
        ),
        Fact::RunExtended { limits } => (Tone::Dim, format!("new limits: {}", granted(limits))),
        Fact::RunFinished { end, progress, by } => {
            let by =
                by.as_ref().map(|by| format!("Agent interrupted {}; ", prose_line(&by.origin())));
            (Tone::Strong, format!("{}run {end}: {}", by.unwrap_or_default(), taken(progress)))
        }
        Fact::TaskAdded { task, title } => {
            (Tone::Dim, format!("○ task {task}: {}", prose_line(title)))
        }
        Fact::TaskMoved { task, to } => {
            let mark = match to {
                TaskState::Todo => "○",
                TaskState::Doing => "●",
                TaskState::Done => "✓",
                TaskState::Dropped => "−",
            };
            let title =
                tasks.tasks.iter().find(|known| known.id == *task).map(|task| task.title.as_str());
            (
                Tone::Dim,
                format!("{mark} task {task} {to}: {}", prose_line(title.unwrap_or_default())),
            )
        }
        Fact::NoteTaken { note } => {
            (Tone::Dim, format!("note: {}", shorten(&prose_line(&note.text))))
        }
        _ => return None,
    };
    Some(Remark::new(tone, text))
}

/// The limits of a run: `100 iterations, 2h of work`.
fn granted(limits: &RunLimits) -> String {
    let RunLimits { iterations, tokens, time_ms } = limits.to_owned();
    let iterations = iterations.map(|count| RunLimit::Iterations { count: count.get() });
    let tokens = tokens.map(|count| RunLimit::Tokens { count: count.get() });
    let time = time_ms.map(|ms| RunLimit::Time { ms: ms.get() });
    let limits: Vec<_> =
        [iterations, tokens, time].iter().flatten().map(ToString::to_string).collect();
    if limits.is_empty() { "none".to_owned() } else { limits.join(", ") }
}
