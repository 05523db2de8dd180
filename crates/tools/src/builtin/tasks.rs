//! The tool `tasks`: the task list and the notes of a session.

use std::fmt::Write;

use holdpoint_common::{MAX_TASK_TITLE, Task, TaskId, TaskRequest, TaskState, Tasks as TaskList};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::act::Act;
use crate::context::{TasksResponse, ToolContext};
use crate::error::ToolError;
use crate::input::{parse, schema_of};
use crate::tool::{Intent, Tool, ToolOutcome};
use crate::workspace::Workspace;

/// The most tasks that one call may add.
const MAX_TITLES: usize = 50;

/// The tool `tasks`: keeps the session's task list and its notes.
///
/// Both are part of the session: clients see them, and a restart keeps them. In a run, they are all
/// that an iteration knows of earlier ones. One call adds at most 50 tasks.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Tasks;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// The action.
    action: Action,
    /// For add: the titles of the new tasks, one line each, at most 50.
    titles: Option<Vec<String>>,
    /// For start, finish, drop and note: the number of the task. Default: the next task for start,
    /// the current task for finish and drop.
    task: Option<u64>,
    /// For note: the text of the note.
    text: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Action {
    /// Add tasks.
    Add,
    /// Start a task.
    Start,
    /// Mark a task as done.
    Finish,
    /// Drop a task that need not be done.
    Drop,
    /// List all tasks and notes.
    List,
    /// Show the next task to work on.
    Next,
    /// Add a note.
    Note,
}

impl Tasks {
    /// Creates an instance of the tool.
    #[must_use]
    pub fn new() -> Self {
        Self
    }

    fn input(input: &Value) -> Result<(Action, TaskRequest), ToolError> {
        let Input { action, titles, task, text } = parse(input)?;
        let task = task.map(TaskId);
        let move_to = |to| TaskRequest::Move { task, to };
        let request = match action {
            Action::Add => TaskRequest::Add { titles: check_titles(titles.unwrap_or_default())? },
            Action::Start => move_to(TaskState::Doing),
            Action::Finish => move_to(TaskState::Done),
            Action::Drop => move_to(TaskState::Dropped),
            Action::List | Action::Next => TaskRequest::List,
            Action::Note => match text {
                Some(text) => TaskRequest::Note { text, task },
                None => {
                    return Err(ToolError::input("`text` is missing: give the text of the note"));
                }
            },
        };
        Ok((action, request))
    }
}

fn check_titles(titles: Vec<String>) -> Result<Vec<String>, ToolError> {
    match titles.len() {
        0 => Err(ToolError::input(format!(
            "`titles` is missing: give a title for each task, one line of at most {MAX_TASK_TITLE} bytes"
        ))),
        many if many > MAX_TITLES => {
            Err(ToolError::input(format!("{many} tasks at once; the limit is {MAX_TITLES}")))
        }
        _ => Ok(titles),
    }
}

impl Tool for Tasks {
    fn name(&self) -> &str {
        "tasks"
    }

    fn description(&self) -> &str {
        "Manages the task list and the notes of this session: adds, starts, finishes and drops tasks, shows the next \
         one, and adds notes. Use it for work with several parts. In a run of several iterations, the tasks and notes \
         are all that an iteration knows of earlier ones."
    }

    fn is_in_order(&self) -> bool {
        true
    }

    fn schema(&self) -> Value {
        schema_of::<Input>()
    }

    fn intent(&self, input: &Value, _: &Workspace) -> Result<Intent, ToolError> {
        Self::input(input)?;
        // Tasks and notes belong to the session.
        Ok(Intent::new(Act::Internal, "Manage the tasks?"))
    }

    fn call(&mut self, input: Value, context: &ToolContext) -> Result<ToolOutcome, ToolError> {
        let (action, request) = Self::input(&input)?;
        match context.tasks(request) {
            TasksResponse::Tasks(tasks) => Ok(ToolOutcome::text(reply_text(action, &tasks))),
            TasksResponse::Refused(error) => Err(ToolError::failed(error.to_string())),
            TasksResponse::Interrupted => Err(ToolError::Interrupted),
        }
    }
}

/// The text that the model gets after an action.
fn reply_text(action: Action, list: &TaskList) -> String {
    match action {
        Action::List => all(list),
        Action::Note => "[noted]".to_owned(),
        Action::Next => match list.next() {
            Some(task) => line(task),
            None => "[no task is left]".to_owned(),
        },
        Action::Add | Action::Start | Action::Finish | Action::Drop => {
            let counts = list.counts();
            let next =
                list.next().map(|task| format!("; next: {}", line(task))).unwrap_or_default();
            format!("[{} done, {} doing, {} to do{next}]", counts.done, counts.doing, counts.todo)
        }
    }
}

fn all(list: &TaskList) -> String {
    let mut text: String = list.tasks.iter().map(|task| line(task) + "\n").collect();
    if text.is_empty() {
        text.push_str("[no tasks]\n");
    }
    for note in list.notes.iter() {
        let about = note.task.map(|task| format!(" on task {task}")).unwrap_or_default();
        // Writing to a string does not fail.
        let _ = writeln!(text, "note{about}: {}", note.text);
    }
    text.truncate(text.trim_end().len());
    text
}

fn line(task: &Task) -> String {
    format!("task {} [{}] {}", task.id, task.state, task.title)
}
