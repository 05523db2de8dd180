//! Words about runs and their tasks.

use holdpoint_common::{RunFact, RunLimit, RunLimits, TaskFact, TaskState, Tasks, Timestamp};
use holdpoint_tools::shown::prose_line;

use super::Remark;
use crate::summaries::runs::taken;
use crate::summaries::shorten;
use crate::tone::Tone;

/// The remark about a fact of a run, if it needs one.
pub(super) fn run_remark(fact: &RunFact, at: Timestamp) -> Option<Remark> {
    Some(match fact {
        RunFact::Started { run, .. } => {
            let goal =
                run.goal.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
            Remark::new(Tone::Strong, format!("run: {}", shorten(&prose_line(goal))))
        }
        RunFact::IterationStarted { iteration, resumed, .. } => {
            let again = if *resumed { ", where it was cut" } else { "" };
            Remark::new(Tone::Strong, format!("── iteration {iteration}{again} ──"))
        }
        RunFact::Waiting { until } => {
            let seconds = until.since(at).as_secs_f64().ceil();
            Remark::new(Tone::Warning, format!("the next iteration begins in {seconds:.0} s"))
        }
        RunFact::Extended { limits } => {
            Remark::new(Tone::Dim, format!("new limits: {}", granted(limits)))
        }
        RunFact::Finished { end, progress, by } => {
            let by =
                by.as_ref().map(|by| format!("Agent interrupted {}; ", prose_line(&by.origin())));
            let text = format!("{}run {end}: {}", by.unwrap_or_default(), taken(progress));
            Remark::new(Tone::Strong, text)
        }
        RunFact::FilesChanged { .. } => return None,
    })
}

/// The remark about a fact of a task, which `tasks` already includes.
pub(super) fn task_remark(fact: &TaskFact, tasks: &Tasks) -> Remark {
    let text = match fact {
        TaskFact::Added { task, title } => format!("○ task {task}: {}", prose_line(title)),
        TaskFact::Moved { task, to } => {
            let mark = match to {
                TaskState::Todo => "○",
                TaskState::Doing => "●",
                TaskState::Done => "✓",
                TaskState::Dropped => "−",
            };
            let title =
                tasks.tasks.iter().find(|known| known.id == *task).map(|task| task.title.as_str());
            format!("{mark} task {task} {to}: {}", prose_line(title.unwrap_or_default()))
        }
        TaskFact::NoteTaken { note } => format!("note: {}", shorten(&prose_line(&note.text))),
    };
    Remark::new(Tone::Dim, text)
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
