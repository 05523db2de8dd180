//! The tool `tasks`: what the session has set out to do, and what it wants to remember of it.

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

/// Tasks that one call may add.
const MOST: usize = 50;

/// The tool `tasks`: keeps the session's list of tasks, and its notes.
///
/// They are part of the session: whoever watches it sees them, and a restart keeps them. In a run, they are all that
/// one iteration knows of those before. One call adds at most 50 tasks.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Tasks;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// What to do.
    action: Action,
    /// For add: what is to be done, one line each; at most 50.
    titles: Option<Vec<String>>,
    /// For start, finish, drop and note: the number of the task. Left out, start begins the next one, finish and drop
    /// end the one that is being worked on.
    task: Option<u64>,
    /// For note: what is to be remembered.
    text: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Action {
    /// Add tasks.
    Add,
    /// Begin one.
    Start,
    /// One is done.
    Finish,
    /// One need not be done.
    Drop,
    /// List all, and the notes.
    List,
    /// Which one to work on.
    Next,
    /// Remember something.
    Note,
}

impl Tasks {
    /// The tool.
    #[must_use]
    pub fn new() -> Self {
        Self
    }

    fn input(input: &Value) -> Result<(Action, TaskRequest), ToolError> {
        let Input { action, titles, task, text } = parse(input)?;
        let task = task.map(TaskId);
        let to = |to| TaskRequest::Move { task, to };
        let request = match action {
            Action::Add => TaskRequest::Add { titles: check_titles(titles.unwrap_or_default())? },
            Action::Start => to(TaskState::Doing),
            Action::Finish => to(TaskState::Done),
            Action::Drop => to(TaskState::Dropped),
            Action::List | Action::Next => TaskRequest::Look,
            Action::Note => match text {
                Some(text) => TaskRequest::Note { text, task },
                None => return Err(ToolError::input("`text` is missing: what is to be remembered?")),
            },
        };
        Ok((action, request))
    }
}

fn check_titles(titles: Vec<String>) -> Result<Vec<String>, ToolError> {
    match titles.len() {
        0 => Err(ToolError::input(format!(
            "`titles` is missing: one line each, of at most {MAX_TASK_TITLE} bytes, for what is to be done"
        ))),
        many if many > MOST => Err(ToolError::input(format!("{many} tasks at once; {MOST} are the most"))),
        _ => Ok(titles),
    }
}

impl Tool for Tasks {
    fn name(&self) -> &str {
        "tasks"
    }

    fn description(&self) -> &str {
        "Keeps the list of tasks and the notes of this session: adds tasks, starts, finishes and drops them, says which \
         is next, takes notes. Use it for work of several parts. Where work goes on over several iterations, these are \
         all that a later one knows of an earlier one."
    }

    fn is_in_order(&self) -> bool {
        true
    }

    fn schema(&self) -> Value {
        schema_of::<Input>()
    }

    fn intent(&self, input: &Value, _: &Workspace) -> Result<Intent, ToolError> {
        Self::input(input)?;
        // They are the session's own.
        Ok(Intent::new(Act::Talk, "Look after the tasks?"))
    }

    fn call(&mut self, input: Value, context: &ToolContext) -> Result<ToolOutcome, ToolError> {
        let (action, request) = Self::input(&input)?;
        match context.tasks(request) {
            TasksResponse::Are(tasks) => Ok(ToolOutcome::text(told(action, &tasks))),
            TasksResponse::Refused(error) => Err(ToolError::failed(error.to_string())),
            TasksResponse::Interrupted => Err(ToolError::Interrupted),
        }
    }
}

/// What the model reads.
fn told(action: Action, list: &TaskList) -> String {
    match action {
        Action::List => all(list),
        Action::Note => "[noted]".to_owned(),
        Action::Next => match list.next() {
            Some(task) => line(task),
            None => "[no task is left]".to_owned(),
        },
        Action::Add | Action::Start | Action::Finish | Action::Drop => {
            let counts = list.counts();
            let next = list.next().map(|task| format!("; next: {}", line(task))).unwrap_or_default();
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
