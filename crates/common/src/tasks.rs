//! Tasks and notes: what a session has set out to do, and what it wants to remember of it.

use std::sync::Arc;

use thiserror::Error;

use crate::event::Fact;
use crate::id::TaskId;
use crate::task::{Note, Task, TaskCounts, TaskState};

/// Tasks that one session may have, done and dropped ones included.
pub const MAX_TASKS: usize = 500;

/// Bytes of one task's title.
pub const MAX_TASK_TITLE: usize = 500;

/// Bytes of one note.
pub const MAX_NOTE: usize = 2_000;

/// Notes that are kept at hand, the newest. The log has them all.
pub const NOTES_KEPT: usize = 20;

/// What is to become of a session's tasks and notes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskRequest {
    /// Adds tasks, to be done after those there are.
    Add {
        /// Their titles.
        titles: Vec<String>,
    },
    /// Moves a task.
    Move {
        /// Which; without it, the one that is next in line for that: see [`Tasks::next_for`].
        task: Option<TaskId>,
        /// To this.
        to: TaskState,
    },
    /// Takes a note.
    Note {
        /// Its words.
        text: String,
        /// The task it is about.
        task: Option<TaskId>,
    },
    /// Changes nothing: the list is wanted.
    Look,
}

fn none_left(to: TaskState) -> String {
    match to {
        TaskState::Done | TaskState::Dropped => format!("no task is started: name the one that is {to}"),
        TaskState::Todo | TaskState::Doing => "no task is left that could be started".to_owned(),
    }
}

/// Why a request changed nothing.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TaskError {
    /// There is no such task.
    #[error("there is no task {task}")]
    Unknown {
        /// What was named.
        task: TaskId,
    },
    /// No task was named, and none is next.
    #[error("{}", none_left(*to))]
    NoneLeft {
        /// What it was to become.
        to: TaskState,
    },
    /// There are too many.
    #[error("there can be {MAX_TASKS} tasks, and there are {there} already")]
    TooMany {
        /// How many there are.
        there: usize,
    },
    /// There is nothing in it.
    #[error("{what} is empty")]
    Empty {
        /// The title, or the note.
        what: &'static str,
    },
    /// There is too much in it.
    #[error("{what} has {bytes} bytes; at most {most} are taken")]
    TooLong {
        /// The title, or the note.
        what: &'static str,
        /// Its size.
        bytes: usize,
        /// The bound.
        most: usize,
    },
}

/// The tasks and notes of a session, as its facts make them. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tasks {
    /// The tasks, the oldest first.
    pub tasks: Arc<Vec<Task>>,
    /// The newest notes, at most [`NOTES_KEPT`], the oldest first.
    pub notes: Arc<Vec<Note>>,
}

impl Tasks {
    /// Takes a fact in; most change nothing.
    pub fn apply(&mut self, fact: &Fact) {
        match fact {
            Fact::TaskAdded { task, title } => {
                let task = Task { id: *task, title: title.clone(), state: TaskState::Todo };
                Arc::make_mut(&mut self.tasks).push(task);
            }
            Fact::TaskMoved { task, to } => {
                let tasks = Arc::make_mut(&mut self.tasks);
                tasks.iter_mut().filter(|known| known.id == *task).for_each(|known| known.state = *to);
            }
            Fact::NoteTaken { note } => {
                let notes = Arc::make_mut(&mut self.notes);
                notes.push(note.clone());
                let old = notes.len().saturating_sub(NOTES_KEPT);
                notes.drain(..old);
            }
            _ => {}
        }
    }

    /// What a request makes facts of, in this iteration of a run, if it is one.
    ///
    /// # Errors
    /// [`TaskError`] if it can't be done; nothing of it is, then.
    pub fn decide(&self, request: TaskRequest, iteration: Option<u32>) -> Result<Vec<Fact>, TaskError> {
        match request {
            TaskRequest::Add { titles } => self.add(titles),
            TaskRequest::Move { task, to } => {
                let task = match task {
                    Some(id) => self.tasks.iter().find(|task| task.id == id).ok_or(TaskError::Unknown { task: id })?,
                    None => self.next_for(to).ok_or(TaskError::NoneLeft { to })?,
                };
                let moved = (task.state != to).then_some(Fact::TaskMoved { task: task.id, to });
                Ok(moved.into_iter().collect())
            }
            TaskRequest::Note { text, task } => {
                check("the note", &text, MAX_NOTE)?;
                if let Some(task) = task.filter(|id| self.tasks.iter().all(|task| task.id != *id)) {
                    return Err(TaskError::Unknown { task });
                }
                Ok(vec![Fact::NoteTaken { note: Note { text, task, iteration } }])
            }
            TaskRequest::Look => Ok(Vec::new()),
        }
    }

    fn add(&self, titles: Vec<String>) -> Result<Vec<Fact>, TaskError> {
        let there = self.tasks.len();
        if there + titles.len() > MAX_TASKS {
            return Err(TaskError::TooMany { there });
        }
        let next = self.tasks.last().map_or(TaskId(1), |task| task.id.next());
        let ids = std::iter::successors(Some(next), |id| Some(id.next()));
        let added = ids.zip(titles).map(|(task, title)| {
            check("the title", &title, MAX_TASK_TITLE)?;
            // One line each, in every list.
            let title = title.split_whitespace().collect::<Vec<_>>().join(" ");
            Ok(Fact::TaskAdded { task, title })
        });
        added.collect()
    }

    /// The task that is meant where none is named: to be begun, the first that is not; else the first that is being
    /// worked on.
    #[must_use]
    pub fn next_for(&self, to: TaskState) -> Option<&Task> {
        let from = if to == TaskState::Doing { TaskState::Todo } else { TaskState::Doing };
        self.tasks.iter().find(|task| task.state == from)
    }

    /// The task to work on: the first that is being worked on, else the first that is not begun.
    #[must_use]
    pub fn next(&self) -> Option<&Task> {
        let of = |state| self.tasks.iter().find(move |task| task.state == state);
        of(TaskState::Doing).or_else(|| of(TaskState::Todo))
    }

    /// How many there are of each.
    #[must_use]
    pub fn counts(&self) -> TaskCounts {
        TaskCounts::of(&self.tasks)
    }
}

/// Whether these words are some, and not too many.
fn check(what: &'static str, text: &str, most: usize) -> Result<(), TaskError> {
    match text.len() {
        _ if text.trim().is_empty() => Err(TaskError::Empty { what }),
        bytes if bytes > most => Err(TaskError::TooLong { what, bytes, most }),
        _ => Ok(()),
    }
}
