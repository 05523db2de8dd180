//! Messages from a tool to its session's actor: asks, which block the tool until the user answers,
//! and other requests.
//!
//! Nowhere else in the workspace may a thread block on a channel for an unlimited time. (The
//! browser's guard waits for the lookup of a local name, but only for a few seconds.)

use std::convert::Infallible;

use actix::WeakRecipient;
use actix::prelude::Message;
use crossbeam_channel::{Receiver, Sender, bounded, select_biased};
use holdpoint_common::{
    AskRequest, CallId, JobEnd, PauseRequest, PauseResponse, QuestionRequest, QuestionResponse,
    TaskError, TaskRequest, Tasks, TurnId,
};
use tokio_util::sync::CancellationToken;

/// A request that a tool sends to its session's actor.
#[derive(Debug, Message)]
#[rtype(result = "()")]
#[non_exhaustive]
pub enum ToolRequest {
    /// A tool asks the user and blocks until the ask is answered or dropped.
    Ask(ToolAsk),
    /// A tool reads or changes the session's tasks and notes, and blocks until `answering` is used
    /// or dropped.
    Tasks {
        /// The turn that the call belongs to.
        turn: TurnId,
        /// The call that sends the request.
        call: CallId,
        /// The requested change, or a request to read.
        request: TaskRequest,
        /// The answering end. If it is dropped without an answer, the tool reads *Interrupted*.
        answering: Answering<TasksReply>,
    },
    /// A call has started a background job, which has the id of the call.
    JobStarted {
        /// The turn that the call belongs to.
        turn: TurnId,
        /// The call that started the job.
        call: CallId,
        /// The command that the job runs.
        command: String,
    },
    /// A background job has ended. Sent after its start was reported, possibly after its turn has
    /// ended.
    JobEnded {
        /// The call that started the job.
        call: CallId,
        /// How the job ended.
        end: JobEnd,
    },
}

/// A tool's request to the user.
#[derive(Debug)]
pub struct ToolAsk {
    /// The turn that the call belongs to.
    pub turn: TurnId,
    /// The call that asks the user.
    pub call: CallId,
    /// The pause or the question.
    pub request: AskRequest,
    /// Whether a deny rule may apply to the request. Only a person can approve it then.
    pub may_be_denied: bool,
    /// The answering end. If it is dropped without an answer, the tool reads *Interrupted*.
    pub answering: Answering,
    /// Cancelled when the tool no longer waits. Present if the ask can be withdrawn: if it is still
    /// open then, it closes while the call continues.
    pub withdrawn: Option<CancellationToken>,
}

/// The sending half of the channel that a tool waits on. Only the session's actor holds it.
#[derive(Debug)]
pub struct Answering<Reply = AskReply>(Sender<Reply>);

impl<Reply> Answering<Reply> {
    /// Sends the reply and wakes the tool. If the tool is gone, this has no effect.
    pub fn answer(self, reply: Reply) {
        // The channel has room for exactly this one reply.
        let _ = self.0.try_send(reply);
    }
}

/// The reply to an ask.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum AskReply {
    /// The answer to a pause.
    Pause(PauseResponse),
    /// The answer to a question.
    Question(QuestionResponse),
    /// There is no answer: the turn was cut, or the session closed.
    Interrupted,
}

/// The current tasks and notes, or the reason why a request was refused.
pub type TasksReply = Result<Tasks, TaskError>;

/// Something that an ask is about and that can end by itself, such as an open page. Used by
/// [`ToolContext::pause_about`](crate::ToolContext::pause_about) and
/// [`ToolContext::ask_about`](crate::ToolContext::ask_about).
#[derive(Debug, Clone)]
pub struct Subject(Receiver<Infallible>);

/// Keeps a [`Subject`] alive. Its owner drops it when the subject ends.
#[derive(Debug)]
pub struct SubjectGuard {
    _lives: Sender<Infallible>,
}

impl Subject {
    /// Creates a subject that exists until its [`SubjectGuard`] is dropped.
    #[must_use]
    pub fn new() -> (SubjectGuard, Self) {
        let (lives, gone) = bounded(0);
        (SubjectGuard { _lives: lives }, Self(gone))
    }
}

/// A pause that was raised, and whose answer can be waited for on another thread.
#[derive(Debug)]
pub struct RaisedPause(Option<Receiver<AskReply>>);

impl RaisedPause {
    /// Waits until the user answers, the turn is cut or the subject ends; `None` if the subject ended
    /// first. The session closes the ask when the call ends.
    #[must_use]
    pub fn wait(self, subject: &Subject) -> Option<PauseResponse> {
        wait_about(subject, self.0).map(pause_response)
    }
}

/// The connection from one tool call to its session's actor.
///
/// The reference is weak: a waiting tool never keeps a dead session alive.
#[derive(Clone)]
pub struct Asker {
    session: WeakRecipient<ToolRequest>,
    turn: TurnId,
    call: CallId,
}

impl Asker {
    /// Creates the connection for one call.
    #[must_use]
    pub fn new(session: WeakRecipient<ToolRequest>, turn: TurnId, call: CallId) -> Self {
        Self { session, turn, call }
    }

    pub(crate) fn turn(&self) -> TurnId {
        self.turn
    }

    pub(crate) fn call(&self) -> CallId {
        self.call
    }

    /// Sends a request without waiting, if the session still exists.
    pub(crate) fn send_without_reply(&self, request: ToolRequest) {
        if let Some(session) = self.session.upgrade() {
            // The number of messages is bounded: two for each background job.
            session.do_send(request);
        }
    }

    pub(crate) fn pause(&self, request: PauseRequest) -> PauseResponse {
        pause_response(self.ask(AskRequest::Pause(request)))
    }

    /// Pauses until the user answers, the turn is cut or the subject ends; `None` if the subject
    /// ended first. The session closes the ask when the call ends.
    pub(crate) fn pause_about(
        &self,
        subject: &Subject,
        request: PauseRequest,
    ) -> Option<PauseResponse> {
        self.raise_pause(request, false).wait(subject)
    }

    /// Raises a pause without waiting for the answer.
    pub(crate) fn raise_pause(&self, request: PauseRequest, may_be_denied: bool) -> RaisedPause {
        let request = AskRequest::Pause(request);
        let message = |answering| self.ask_message(request, may_be_denied, None, answering);
        RaisedPause(self.send(message))
    }

    pub(crate) fn question(&self, request: QuestionRequest) -> QuestionResponse {
        question_response(self.ask(AskRequest::Question(request)))
    }

    /// Asks until the user answers, the turn is cut or the subject ends; `None` if the subject
    /// ended first. The session then closes the ask, and the call continues.
    pub(crate) fn question_about(
        &self,
        subject: &Subject,
        request: QuestionRequest,
    ) -> Option<QuestionResponse> {
        let waiting = CancellationToken::new();
        let withdrawn = Some(waiting.clone());
        let _withdraw = waiting.drop_guard();
        let request = AskRequest::Question(request);
        let message = |answering| self.ask_message(request, false, withdrawn, answering);
        wait_about(subject, self.send(message)).map(question_response)
    }

    fn ask(&self, request: AskRequest) -> AskReply {
        let message = |answering| self.ask_message(request, false, None, answering);
        self.wait(message).unwrap_or(AskReply::Interrupted)
    }

    fn ask_message(
        &self,
        request: AskRequest,
        may_be_denied: bool,
        withdrawn: Option<CancellationToken>,
        answering: Answering,
    ) -> ToolRequest {
        let (turn, call) = (self.turn, self.call);
        ToolRequest::Ask(ToolAsk { turn, call, request, may_be_denied, answering, withdrawn })
    }

    /// Reads or changes the tasks and notes; `None` if the turn was cut or the session closed.
    pub(crate) fn tasks(&self, request: TaskRequest) -> Option<TasksReply> {
        let (turn, call) = (self.turn, self.call);
        self.wait(|answering| ToolRequest::Tasks { turn, call, request, answering })
    }

    /// Sends a request and waits for its answer. `None` if it gets none.
    fn wait<Reply>(&self, request: impl FnOnce(Answering<Reply>) -> ToolRequest) -> Option<Reply> {
        self.send(request)?.recv().ok()
    }

    /// Sends a request and returns the receiver of its answer. `None` if the session is gone.
    fn send<Reply>(
        &self,
        request: impl FnOnce(Answering<Reply>) -> ToolRequest,
    ) -> Option<Receiver<Reply>> {
        let (answering, answer) = bounded(1);
        // This strong recipient is dropped before the tool waits. Otherwise it would keep a dead
        // session's actor alive.
        let session = self.session.upgrade()?;
        // Bounded by construction: a thread waits for each answer, and a call has few threads.
        session.do_send(request(Answering(answering)));
        Some(answer)
    }
}

/// Waits for an answer or the end of the subject; `None` if the subject ended first.
fn wait_about(subject: &Subject, answer: Option<Receiver<AskReply>>) -> Option<AskReply> {
    let Some(answer) = answer else { return Some(AskReply::Interrupted) };
    select_biased! {
        recv(answer) -> reply => Some(reply.unwrap_or(AskReply::Interrupted)),
        recv(subject.0) -> _ => None,
    }
}

fn question_response(reply: AskReply) -> QuestionResponse {
    match reply {
        AskReply::Question(response) => response,
        AskReply::Pause(_) | AskReply::Interrupted => QuestionResponse::Interrupted,
    }
}

fn pause_response(reply: AskReply) -> PauseResponse {
    match reply {
        AskReply::Pause(response) => response,
        AskReply::Question(_) | AskReply::Interrupted => PauseResponse::Interrupted,
    }
}
