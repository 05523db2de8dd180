//! The first message of an iteration: the goal, the tasks and the newest notes, but no conversation
//! of earlier iterations.

use std::fmt::Write;

use holdpoint_common::{RunSettings, Task, TaskState, Tasks};

/// The maximum number of open tasks in the list. The oldest are listed.
const MAX_OPEN_TASKS: usize = 100;

/// The maximum number of done or dropped tasks in the list. The newest are listed.
const MAX_CLOSED_TASKS: usize = 10;

/// The text for the model when its iteration continues after a restart.
const RESUMED: &str = "[The runtime was restarted in the middle of this iteration. The effects of its calls so far \
remain, and no call is repeated automatically. Check the current state before you repeat a call, then continue.]";

/// The text for the model on how to work.
const WORK: &str = "Work on one task: call `tasks` with action start, do the task, and call `tasks` with action finish \
when it is done, or with action drop if it is not needed. Add missing tasks. Write a note of anything that a later \
iteration must know but cannot see in the workspace. Then end your answer, and the next iteration begins. The run ends \
when no task is left.";

/// The first message of an iteration. `resumed` means that it continues after a restart.
pub(super) fn opening(run: &RunSettings, tasks: &Tasks, iteration: u32, resumed: bool) -> String {
    let mut text = String::new();
    if resumed {
        text.push_str(RESUMED);
        text.push_str("\n\n");
    }
    // Writing to a string can't fail.
    let _ = write!(
        text,
        "You work towards a goal in iterations; this is iteration {iteration}. Each iteration starts with a new \
         conversation: of the earlier ones, you have only this message and their changes to the workspace.\n\n\
         # Goal\n\n{}\n\n# Tasks\n\n{}",
        run.goal.trim(),
        list(&tasks.tasks)
    );
    if !tasks.notes.is_empty() {
        text.push_str("\n# Notes (newest last)\n\n");
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
        return "There are no tasks yet. Start by adding some, each small enough to finish in one iteration.\n"
            .to_owned();
    }
    let open = || tasks.iter().filter(|task| task.state.is_open());
    let closed = || tasks.iter().filter(|task| !task.state.is_open());
    let mut text = String::new();
    let earlier = closed().count().saturating_sub(MAX_CLOSED_TASKS);
    if earlier > 0 {
        let _ = writeln!(text, "({earlier} earlier tasks are done or dropped)");
    }
    // The task in progress is listed even if it is far down the list.
    let (doing, todo): (Vec<_>, Vec<_>) = open().partition(|task| task.state == TaskState::Doing);
    let listed = doing.into_iter().chain(todo).take(MAX_OPEN_TASKS);
    for task in closed().skip(earlier).chain(listed) {
        let mark = match task.state {
            TaskState::Todo => " ",
            TaskState::Doing => ">",
            TaskState::Done => "x",
            TaskState::Dropped => "-",
        };
        let _ = writeln!(text, "[{mark}] {}. {}", task.id, task.title);
    }
    let later = open().count().saturating_sub(MAX_OPEN_TASKS);
    if later > 0 {
        let _ = writeln!(text, "(and {later} more; action list shows them)");
    }
    text
}
