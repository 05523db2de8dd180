//! The context of a tool call: its workspace, asker, sink, processes, background jobs and cancel
//! token.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use holdpoint_common::{
    AskRequest, CallId, EndedProcesses, PauseKind, PauseRequest, PauseResponse, QuestionRequest,
    QuestionResponse, TaskError, TaskRequest, Tasks,
};
use tokio_util::sync::CancellationToken;

use crate::ask::{Asker, RaisedPause, Subject};
use crate::background::{BackgroundJobs, JobOutput};
use crate::policy::Judgement;
use crate::process::{ProcessSpec, Processes};
use crate::sandbox::Sandbox;
use crate::workspace::Workspace;

/// The destination of a running call's output.
pub trait Sink: Send + Sync {
    /// Accepts the next piece of output. May block while the session is behind, and returns at once
    /// when the turn has ended.
    fn output(&self, text: &str);
}

/// The result of a request about tasks and notes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TasksResponse {
    /// The request succeeded, and these are the current tasks and notes.
    Tasks(Tasks),
    /// The request failed and had no effect.
    Refused(TaskError),
    /// The turn was cut, or the session closed.
    Interrupted,
}

/// Everything that one tool call may use. It is passed explicitly; there is no ambient state.
pub struct ToolContext {
    pub(crate) tool_name: String,
    pub(crate) workspace: Arc<Workspace>,
    pub(crate) asker: Asker,
    pub(crate) sink: Arc<dyn Sink>,
    pub(crate) processes: Processes,
    pub(crate) background: BackgroundJobs,
    pub(crate) cancel: CancellationToken,
    /// The Confirm with which the user approved the call, and whether with *always*.
    pub(crate) approved: Option<(AskRequest, bool)>,
    /// The processes of the session that the call has ended.
    pub(crate) ended: Mutex<EndedProcesses>,
}

impl ToolContext {
    /// Creates the context of one call.
    pub fn new(
        tool_name: impl Into<String>,
        workspace: Arc<Workspace>,
        asker: Asker,
        sink: Arc<dyn Sink>,
        processes: Processes,
        background: BackgroundJobs,
        cancel: CancellationToken,
    ) -> Self {
        let tool_name = tool_name.into();
        Self {
            tool_name,
            workspace,
            asker,
            sink,
            processes,
            background,
            cancel,
            approved: None,
            ended: Mutex::default(),
        }
    }

    /// Sets the policy Confirm with which the user approved the call before it began, and whether
    /// with *always*.
    #[must_use]
    pub fn with_approved(self, approved: Option<(AskRequest, bool)>) -> Self {
        Self { approved, ..self }
    }

    /// The id of the call. A background job that it starts has the same.
    #[must_use]
    pub fn call_id(&self) -> CallId {
        self.asker.call()
    }

    /// The workspace of the session.
    #[must_use]
    pub fn workspace(&self) -> &Workspace {
        &self.workspace
    }

    /// The workspace folder: absolute, links resolved.
    #[must_use]
    pub fn root(&self) -> &Path {
        self.workspace.root()
    }

    /// Streams a piece of output to all clients. The head and the tail of the output become part of
    /// the result.
    pub fn output(&self, text: &str) {
        self.sink.output(text);
    }

    /// The processes of this call. They end with it, and with the turn.
    #[must_use]
    pub fn processes(&self) -> &Processes {
        &self.processes
    }

    /// Counts processes of the session that the call has ended, for the receipt of its turn.
    #[cfg_attr(not(feature = "mcp"), allow(dead_code, reason = "for servers"))]
    pub(crate) fn count_ended(&self, processes: EndedProcesses) {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner).add(processes);
    }

    /// Ends all processes of the call and waits until they are gone, as [`Processes::finish`] does.
    /// Returns their count, together with that of other processes that the call has ended.
    #[must_use]
    pub fn finish_processes(&self) -> EndedProcesses {
        let mut ended = self.processes.finish();
        ended.add(self.ended.lock().unwrap_or_else(PoisonError::into_inner).clone());
        ended
    }

    /// Runs `write`, which writes a file with this content. Commands that run in the sandbox are not
    /// taken for the author of the change.
    pub(crate) fn writing(
        &self,
        path: &Path,
        content: &[u8],
        write: impl FnOnce() -> io::Result<File>,
    ) -> io::Result<File> {
        match self.processes.sandbox().and_then(Sandbox::protected_files) {
            Some(files) => files.write(path, content, write),
            None => write(),
        }
    }

    /// The background jobs of the session, which keep running after this call has returned.
    #[must_use]
    pub fn background(&self) -> &BackgroundJobs {
        &self.background
    }

    /// Starts a background job for this call. The job has the id of the call, and ends after
    /// `timeout`, if there is one.
    ///
    /// # Errors
    /// The system's error if the process can't be started. Also fails if
    /// [`MAX_JOBS`](crate::MAX_JOBS) are running, if this call has started a job before, or if the
    /// turn or the session has ended.
    pub fn start_job(
        &self,
        spec: ProcessSpec,
        command: &str,
        timeout: Option<Duration>,
    ) -> io::Result<CallId> {
        let processes = self.processes.with_same_settings();
        self.background.start(&self.asker, &self.cancel, processes, spec, command, timeout)
    }

    /// Reads up to `max_bytes` of a job's output from offset `from` on; without an offset, the
    /// newest output. Waits until the deadline for new output or the end of the job; without a
    /// deadline, does not wait. `None` if there is no such job.
    #[must_use]
    pub fn read_job(
        &self,
        id: CallId,
        from: Option<u64>,
        max_bytes: usize,
        deadline: Option<Instant>,
    ) -> Option<JobOutput> {
        self.background.read(&self.cancel, id, from, max_bytes, deadline)
    }

    /// Whether the turn was cut. A tool that works for long checks this regularly and returns
    /// [`ToolError::Interrupted`](crate::ToolError::Interrupted).
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.cancel.is_cancelled()
    }

    /// Waits until the turn is cut, for tools that wait on several things. See
    /// [`is_cancelled`](Self::is_cancelled).
    pub fn cancelled(&self) -> impl Future<Output = ()> + Send {
        self.cancel.cancelled()
    }

    /// Waits for `future` until the turn is cut; `None` if it was cut first.
    pub async fn until_cancelled<F: Future>(&self, future: F) -> Option<F::Output> {
        self.cancel.run_until_cancelled(future).await
    }

    /// Whether the user has approved the call with a Confirm that contained these words, so that
    /// they need no further approval.
    #[must_use]
    pub fn is_approved(&self, words: &str) -> bool {
        let details = match &self.approved {
            Some((AskRequest::Pause(pause), _)) => pause.details.as_deref(),
            Some((AskRequest::Question(_), _)) | None => None,
        };
        details.is_some_and(|details| details.contains(words))
    }

    /// Whether the user has approved the call with *always*.
    #[must_use]
    pub fn is_always_approved(&self) -> bool {
        self.approved.as_ref().is_some_and(|(_, always)| *always)
    }

    /// Blocks until the user continues, or approves or denies, without a timeout.
    ///
    /// `details` from a model or a file must first go through [`shown`](crate::shown), so that the
    /// user sees exactly the text that is approved.
    ///
    /// On [`PauseResponse::Interrupted`] the tool must return at once.
    pub fn pause(
        &self,
        kind: PauseKind,
        message: impl Into<String>,
        details: Option<String>,
    ) -> PauseResponse {
        self.asker.pause(self.pause_request(kind, message.into(), details))
    }

    /// Like [`pause`](Self::pause), but about a subject that may end before the user answers.
    /// Returns `None` if the subject has ended. The tool then returns an error that says so, which
    /// closes the ask.
    pub fn pause_about(
        &self,
        subject: &Subject,
        kind: PauseKind,
        message: impl Into<String>,
        details: Option<String>,
    ) -> Option<PauseResponse> {
        self.asker.pause_about(subject, self.pause_request(kind, message.into(), details))
    }

    /// Raises a Confirm that the policy requires while the call runs, without waiting for the answer.
    /// If a deny rule may apply to it, only a person can approve it.
    #[must_use]
    pub fn raise_confirm(
        &self,
        judgement: &Judgement,
        message: impl Into<String>,
        details: Option<String>,
    ) -> RaisedPause {
        let request = self.pause_request(PauseKind::Confirm, message.into(), details);
        self.asker.raise_pause(request, judgement.may_be_denied())
    }

    fn pause_request(
        &self,
        kind: PauseKind,
        message: String,
        details: Option<String>,
    ) -> PauseRequest {
        PauseRequest { kind, tool_name: self.tool_name.clone(), message, details }
    }

    /// Reads or changes the session's tasks and notes. When this returns, a change has been saved.
    ///
    /// On [`TasksResponse::Interrupted`] the tool must return at once.
    pub fn tasks(&self, request: TaskRequest) -> TasksResponse {
        match self.asker.tasks(request) {
            Some(Ok(tasks)) => TasksResponse::Tasks(tasks),
            Some(Err(error)) => TasksResponse::Refused(error),
            None => TasksResponse::Interrupted,
        }
    }

    /// Blocks until the user has answered or declined the questions.
    ///
    /// On [`QuestionResponse::Interrupted`] the tool must return at once.
    pub fn ask(&self, request: QuestionRequest) -> QuestionResponse {
        self.asker.question(request)
    }

    /// Like [`ask`](Self::ask), but about a subject that may end before the user answers. Returns
    /// `None` if the subject has ended. The session then closes the ask as withdrawn, and the tool
    /// can continue.
    pub fn ask_about(
        &self,
        subject: &Subject,
        request: QuestionRequest,
    ) -> Option<QuestionResponse> {
        self.asker.question_about(subject, request)
    }
}
