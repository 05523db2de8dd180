//! Tasks, notes and counts of tasks.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::TaskId;

/// A task of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Task {
    /// Id of the task.
    pub id: TaskId,
    /// Title of the task, on one line.
    pub title: String,
    /// State of the task.
    pub state: TaskState,
}

/// The state of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TaskState {
    /// The task has not been started.
    Todo,
    /// The task is being worked on.
    Doing,
    /// The task is finished.
    Done,
    /// The task was given up and need not be done.
    Dropped,
}

impl TaskState {
    /// Whether the task still has to be done.
    #[must_use]
    pub fn is_open(self) -> bool {
        matches!(self, Self::Todo | Self::Doing)
    }
}

impl fmt::Display for TaskState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Todo => "todo",
            Self::Doing => "doing",
            Self::Done => "done",
            Self::Dropped => "dropped",
        })
    }
}

/// A note that the model leaves for later iterations.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Note {
    /// Text of the note.
    pub text: String,
    /// Task that the note is about, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    /// Iteration in which the note was taken; absent outside of a run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iteration: Option<u32>,
}

/// The numbers of tasks, by state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct TaskCounts {
    /// Number of finished tasks.
    pub done: usize,
    /// Number of tasks being worked on.
    pub doing: usize,
    /// Number of tasks not started.
    pub todo: usize,
    /// Number of tasks given up.
    pub dropped: usize,
}

impl TaskCounts {
    /// Counts the tasks by state.
    #[must_use]
    pub fn from_tasks(tasks: &[Task]) -> Self {
        tasks.iter().fold(Self::default(), |mut counts, task| {
            *match task.state {
                TaskState::Todo => &mut counts.todo,
                TaskState::Doing => &mut counts.doing,
                TaskState::Done => &mut counts.done,
                TaskState::Dropped => &mut counts.dropped,
            } += 1;
            counts
        })
    }

    /// Returns the number of tasks, without the dropped ones.
    #[must_use]
    pub fn total(self) -> usize {
        self.done + self.doing + self.todo
    }

    /// Returns the number of tasks that still have to be done.
    #[must_use]
    pub fn open(self) -> usize {
        self.doing + self.todo
    }

    /// Returns the number of finished and dropped tasks.
    #[must_use]
    pub fn closed(self) -> usize {
        self.done + self.dropped
    }

    /// Whether there are no tasks.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Formats the counts as in the status bar: `✓2 ●1 ○3`.
impl fmt::Display for TaskCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "✓{} ●{} ○{}", self.done, self.doing, self.todo)
    }
}
