//! A task, a note, and how tasks are counted.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::TaskId;

/// Something a session has set out to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Task {
    /// Its name.
    pub id: TaskId,
    /// What is to be done, on one line.
    pub title: String,
    /// How far it is.
    pub state: TaskState,
}

/// How far a task is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TaskState {
    /// Not begun.
    Todo,
    /// Being worked on.
    Doing,
    /// Done.
    Done,
    /// Given up: it need not be done.
    Dropped,
}

impl TaskState {
    /// Whether something is left to do.
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

/// Something a session wants to remember.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Note {
    /// Its words.
    pub text: String,
    /// The task it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    /// The iteration it was taken in, if it was in a run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iteration: Option<u32>,
}

/// Tasks, counted by how far they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct TaskCounts {
    /// Done.
    pub done: usize,
    /// Being worked on.
    pub doing: usize,
    /// Not begun.
    pub todo: usize,
    /// Given up.
    pub dropped: usize,
}

impl TaskCounts {
    /// Counts.
    #[must_use]
    pub fn of(tasks: &[Task]) -> Self {
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

    /// All but those that were given up.
    #[must_use]
    pub fn total(self) -> usize {
        self.done + self.doing + self.todo
    }

    /// What is left to do.
    #[must_use]
    pub fn open(self) -> usize {
        self.doing + self.todo
    }

    /// What is done or given up.
    #[must_use]
    pub fn closed(self) -> usize {
        self.done + self.dropped
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// As a status bar has it: `✓2 ●1 ○3`.
impl fmt::Display for TaskCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "✓{} ●{} ○{}", self.done, self.doing, self.todo)
    }
}
