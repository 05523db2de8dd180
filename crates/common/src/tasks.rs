//! The task list and the notes of a session, and the requests that change them.

use std::borrow::Cow;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::event::TaskFact;
use crate::id::TaskId;
use crate::task::{Note, Task, TaskCounts, TaskState};

/// Maximum number of tasks of one session, including finished and dropped ones.
pub const MAX_TASKS: usize = 500;

/// Maximum length of a task's title in bytes.
pub const MAX_TASK_TITLE: usize = 500;

/// Maximum length of a note in bytes.
pub const MAX_NOTE: usize = 2_000;

/// Number of the newest notes that the state keeps. The log has all notes.
pub const NOTES_KEPT: usize = 20;

/// A request to change the tasks or notes of a session, or to read them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskRequest {
    /// Adds tasks at the end of the list.
    Add {
        /// Titles of the tasks.
        titles: Vec<String>,
    },
    /// Changes the state of a task.
    Move {
        /// The task, or `None` for the one that [`Tasks::next_for`] returns.
        task: Option<TaskId>,
        /// New state of the task.
        to: TaskState,
    },
    /// Takes a note for later iterations.
    Note {
        /// Text of the note.
        text: String,
        /// Task that the note is about, if any.
        task: Option<TaskId>,
    },
    /// Reads the list and changes nothing.
    List,
}

fn none_left_message(to: TaskState) -> String {
    match to {
        TaskState::Done | TaskState::Dropped => {
            format!("no task is started: give the id of the task to mark as {to}")
        }
        TaskState::Todo | TaskState::Doing => "no task is left to start".to_owned(),
    }
}

/// The reason why a request changed nothing.
#[derive(Debug, Clone, PartialEq, Eq, Error, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "camelCase")]
pub enum TaskError {
    /// The session has no such task.
    #[error("there is no task {task}")]
    Unknown {
        /// Id that the session does not know.
        task: TaskId,
    },
    /// The request names no task, and no task is in the right state.
    #[error("{}", none_left_message(*to))]
    NoneLeft {
        /// State that the task was to get.
        to: TaskState,
    },
    /// The session would have too many tasks.
    #[error("a session can have at most {MAX_TASKS} tasks; this one has {count}")]
    TooMany {
        /// Number of tasks in the list.
        count: usize,
    },
    /// A title or note is blank.
    #[error("{field} is empty")]
    Empty {
        /// Name of the text: the title, or the note.
        field: Cow<'static, str>,
    },
    /// A title or note is too long.
    #[error("{field} has {bytes} bytes; at most {limit} are allowed")]
    TooLong {
        /// Name of the text: the title, or the note.
        field: Cow<'static, str>,
        /// Length of the text in bytes.
        bytes: usize,
        /// Maximum length in bytes.
        limit: usize,
    },
}

/// The tasks and notes of a session, folded from its facts. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Tasks {
    /// Tasks, the oldest first.
    pub tasks: Arc<Vec<Task>>,
    /// Newest notes, at most [`NOTES_KEPT`], the oldest first.
    pub notes: Arc<Vec<Note>>,
}

impl Tasks {
    /// Applies a fact.
    pub fn apply(&mut self, fact: &TaskFact) {
        match fact {
            TaskFact::Added { task, title } => {
                let task = Task { id: *task, title: title.clone(), state: TaskState::Todo };
                Arc::make_mut(&mut self.tasks).push(task);
            }
            TaskFact::Moved { task, to } => {
                let tasks = Arc::make_mut(&mut self.tasks);
                tasks
                    .iter_mut()
                    .filter(|known| known.id == *task)
                    .for_each(|known| known.state = *to);
            }
            TaskFact::NoteTaken { note } => {
                let notes = Arc::make_mut(&mut self.notes);
                notes.push(note.clone());
                let excess = notes.len().saturating_sub(NOTES_KEPT);
                notes.drain(..excess);
            }
        }
    }

    /// Returns the facts that follow from a request. `iteration` is the current iteration, if the
    /// session has a run.
    ///
    /// # Errors
    /// [`TaskError`] if the request is refused. No part of it takes effect then.
    pub fn decide(
        &self,
        request: TaskRequest,
        iteration: Option<u32>,
    ) -> Result<Vec<TaskFact>, TaskError> {
        match request {
            TaskRequest::Add { titles } => self.decide_add(titles),
            TaskRequest::Move { task, to } => {
                let task = match task {
                    Some(id) => self
                        .tasks
                        .iter()
                        .find(|task| task.id == id)
                        .ok_or(TaskError::Unknown { task: id })?,
                    None => self.next_for(to).ok_or(TaskError::NoneLeft { to })?,
                };
                let moved = (task.state != to).then_some(TaskFact::Moved { task: task.id, to });
                Ok(moved.into_iter().collect())
            }
            TaskRequest::Note { text, task } => {
                check_text("the note", &text, MAX_NOTE)?;
                if let Some(task) = task.filter(|id| self.tasks.iter().all(|task| task.id != *id)) {
                    return Err(TaskError::Unknown { task });
                }
                Ok(vec![TaskFact::NoteTaken { note: Note { text, task, iteration } }])
            }
            TaskRequest::List => Ok(Vec::new()),
        }
    }

    fn decide_add(&self, titles: Vec<String>) -> Result<Vec<TaskFact>, TaskError> {
        let count = self.tasks.len();
        if count + titles.len() > MAX_TASKS {
            return Err(TaskError::TooMany { count });
        }
        let next = self.tasks.last().map_or(TaskId(1), |task| task.id.next());
        let ids = std::iter::successors(Some(next), |id| Some(id.next()));
        let added = ids.zip(titles).map(|(task, title)| {
            check_text("the title", &title, MAX_TASK_TITLE)?;
            // Lists show each title on one line.
            let title = title.split_whitespace().collect::<Vec<_>>().join(" ");
            Ok(TaskFact::Added { task, title })
        });
        added.collect()
    }

    /// Returns the task that a request means if it names none: for [`TaskState::Doing`] the first
    /// task that is not started, for any other state the first one being worked on.
    #[must_use]
    pub fn next_for(&self, to: TaskState) -> Option<&Task> {
        let from = if to == TaskState::Doing { TaskState::Todo } else { TaskState::Doing };
        self.tasks.iter().find(|task| task.state == from)
    }

    /// Returns the task to work on: the first one being worked on, else the first one not started.
    #[must_use]
    pub fn next(&self) -> Option<&Task> {
        let first_in = |state| self.tasks.iter().find(move |task| task.state == state);
        first_in(TaskState::Doing).or_else(|| first_in(TaskState::Todo))
    }

    /// Returns the numbers of tasks, by state.
    #[must_use]
    pub fn counts(&self) -> TaskCounts {
        TaskCounts::from_tasks(&self.tasks)
    }
}

/// Checks that a text is not blank and has at most `limit` bytes.
fn check_text(field: &'static str, text: &str, limit: usize) -> Result<(), TaskError> {
    match text.len() {
        _ if text.trim().is_empty() => Err(TaskError::Empty { field: field.into() }),
        bytes if bytes > limit => Err(TaskError::TooLong { field: field.into(), bytes, limit }),
        _ => Ok(()),
    }
}
