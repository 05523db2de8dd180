//! What a tool call is given: its workspace, its way to the user, its sink, its processes, its session's background
//! jobs, its cancel token.

use std::path::Path;
use std::sync::Arc;

use holdpoint_common::{
    AskRequest, PauseKind, PauseRequest, PauseResponse, QuestionRequest, QuestionResponse, TaskError, TaskRequest,
    Tasks,
};
use tokio_util::sync::CancellationToken;

use crate::ask::{Asker, Subject};
use crate::background::Background;
use crate::process::Processes;
use crate::workspace::Workspace;

/// Where a call's output goes while it runs.
pub trait Sink: Send + Sync {
    /// Takes a piece of output, in order. May block while the session is behind; returns at once when the
    /// turn is over.
    fn output(&self, text: &str);

    /// How many pieces it has taken so far. An ask is shown behind that many.
    fn pieces(&self) -> u64;
}

/// What became of a request for tasks and notes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TasksResponse {
    /// It was done, and they are this now.
    Are(Tasks),
    /// It could not be done: nothing has changed.
    Refused(TaskError),
    /// The turn was cut, or the session closed.
    Interrupted,
}

/// What one tool call may use. Given to it explicitly; there is no ambient state.
pub struct ToolContext {
    pub(crate) tool_name: String,
    pub(crate) workspace: Arc<Workspace>,
    pub(crate) asker: Asker,
    pub(crate) sink: Arc<dyn Sink>,
    pub(crate) processes: Processes,
    pub(crate) background: Background,
    pub(crate) cancel: CancellationToken,
    pub(crate) approved: Option<AskRequest>,
}

impl ToolContext {
    /// A context for one call.
    pub fn new(
        tool_name: impl Into<String>,
        workspace: Arc<Workspace>,
        asker: Asker,
        sink: Arc<dyn Sink>,
        processes: Processes,
        background: Background,
        cancel: CancellationToken,
    ) -> Self {
        let tool_name = tool_name.into();
        Self { tool_name, workspace, asker, sink, processes, background, cancel, approved: None }
    }

    /// The same for a call that the user has approved before it began, by this Confirm of the policy's.
    #[must_use]
    pub fn with_approved(self, approved: Option<AskRequest>) -> Self {
        Self { approved, ..self }
    }

    /// Where the session works, and what holds there.
    #[must_use]
    pub fn workspace(&self) -> &Workspace {
        &self.workspace
    }

    /// The folder the session works in: absolute, links resolved.
    #[must_use]
    pub fn root(&self) -> &Path {
        self.workspace.root()
    }

    /// Streams a piece of output to whoever watches. Its head and tail become part of the result.
    pub fn output(&self, text: &str) {
        self.sink.output(text);
    }

    /// The processes of this call. They end with it, and with the turn.
    #[must_use]
    pub fn processes(&self) -> &Processes {
        &self.processes
    }

    /// The background jobs of the session: what goes on when this call has come back.
    #[must_use]
    pub fn background(&self) -> &Background {
        &self.background
    }

    /// Whether the turn was cut: a tool that works for long looks now and then, and returns
    /// [`ToolError::Interrupted`](crate::ToolError::Interrupted).
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.cancel.is_cancelled()
    }

    /// Waits for what [`is_cancelled`](Self::is_cancelled) tells, for tools that wait on several things.
    pub fn cancelled(&self) -> impl Future<Output = ()> + Send {
        self.cancel.cancelled()
    }

    /// Whether the user was shown these very words before the call began, and has approved it: what they say need not
    /// be asked again.
    #[must_use]
    pub fn is_approved(&self, words: &str) -> bool {
        let details = match &self.approved {
            Some(AskRequest::Pause(pause)) => pause.details.as_deref(),
            Some(AskRequest::Question(_)) | None => None,
        };
        details.is_some_and(|details| details.contains(words))
    }

    /// Stops until the user goes on, or approves or denies, however long that takes.
    ///
    /// `details` that come from a model or a file go through [`shown`](crate::shown) first, so that what is approved
    /// is what is there.
    ///
    /// On [`PauseResponse::Interrupted`] the tool ends at once.
    pub fn pause(&self, kind: PauseKind, message: impl Into<String>, details: Option<String>) -> PauseResponse {
        self.asker.pause(self.pause_request(kind, message.into(), details), self.sink.pieces())
    }

    /// The same about something that may end before the user has answered. `None` if it has: then the tool ends with an
    /// error that says so, which closes the ask.
    pub fn pause_about(
        &self,
        subject: &Subject,
        kind: PauseKind,
        message: impl Into<String>,
        details: Option<String>,
    ) -> Option<PauseResponse> {
        self.asker.pause_about(subject, self.pause_request(kind, message.into(), details), self.sink.pieces())
    }

    fn pause_request(&self, kind: PauseKind, message: String, details: Option<String>) -> PauseRequest {
        PauseRequest { kind, tool_name: self.tool_name.clone(), message, details }
    }

    /// Changes the session's tasks and notes, or looks at them. What was changed is saved by then.
    ///
    /// On [`TasksResponse::Interrupted`] the tool ends at once.
    pub fn tasks(&self, request: TaskRequest) -> TasksResponse {
        match self.asker.tasks(request) {
            Some(Ok(tasks)) => TasksResponse::Are(tasks),
            Some(Err(error)) => TasksResponse::Refused(error),
            None => TasksResponse::Interrupted,
        }
    }

    /// Stops until the user has replied to the questions or declined.
    ///
    /// On [`QuestionResponse::Interrupted`] the tool ends at once.
    pub fn ask(&self, request: QuestionRequest) -> QuestionResponse {
        self.asker.question(request, self.sink.pieces())
    }
}
