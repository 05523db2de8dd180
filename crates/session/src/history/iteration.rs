//! How an iteration of a run begins: with the goal, the tasks and the newest notes, and nothing else of those before.

use std::fmt::Write;

use holdpoint_common::{RunSettings, Task, TaskState, Tasks};

/// Open tasks that are listed, the oldest.
const OPEN: usize = 100;

/// Tasks listed that are done or dropped, the newest.
const OVER: usize = 10;

/// What the model is told when its iteration goes on after a restart.
const RESUMED: &str = "[The runtime was restarted in the middle of this iteration. What its calls had begun by then \
stands, and none of them is run again by itself. Look at what there is before you do any of it again, then go on.]";

/// What the model is told of how to work.
const WORK: &str = "Work on one task: call `tasks` with action start, do the task, and call it with action finish when \
it is done, or drop if it need not be done. Add the tasks that are missing. Take a note of what a later iteration has \
to know and can't see for itself. Then end your answer: the next iteration begins. When no task is left, the run is \
over.";

/// The first message of an iteration.
pub(super) fn opening(run: &RunSettings, tasks: &Tasks, iteration: u32, resumed: bool) -> String {
    let mut text = String::new();
    if resumed {
        text.push_str(RESUMED);
        text.push_str("\n\n");
    }
    // Writing to a string does not fail.
    let _ = write!(
        text,
        "You work towards a goal in iterations; this is iteration {iteration}. Each begins afresh: of those before you \
         know what is written here, and what they have left in the workspace.\n\n# Goal\n\n{}\n\n# Tasks\n\n{}",
        run.goal.trim(),
        list(&tasks.tasks)
    );
    if !tasks.notes.is_empty() {
        text.push_str("\n# Notes, the newest last\n\n");
        for note in tasks.notes.iter() {
            let task = note.task.map(|task| format!(" (task {task})")).unwrap_or_default();
            let _ = writeln!(text, "- {}{task}", note.text.trim());
        }
    }
    let _ = write!(text, "\n# How to work\n\n{WORK}");
    text
}

fn list(tasks: &[Task]) -> String {
    if tasks.is_empty() {
        return "There are none yet. Begin by adding them: small ones, each of which one iteration can finish.\n"
            .to_owned();
    }
    let of = |open: bool| tasks.iter().filter(move |task| task.state.is_open() == open);
    let mut text = String::new();
    let earlier = of(false).count().saturating_sub(OVER);
    if earlier > 0 {
        let _ = writeln!(text, "({earlier} earlier ones are done or dropped)");
    }
    for task in of(false).skip(earlier).chain(of(true).take(OPEN)) {
        let mark = match task.state {
            TaskState::Todo => " ",
            TaskState::Doing => ">",
            TaskState::Done => "x",
            TaskState::Dropped => "-",
        };
        let _ = writeln!(text, "[{mark}] {}. {}", task.id, task.title);
    }
    let later = of(true).count().saturating_sub(OPEN);
    if later > 0 {
        let _ = writeln!(text, "(and {later} more: action list shows them)");
    }
    text
}
