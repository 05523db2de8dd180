//! How a tool asks the user: by a message to its session's actor, blocking until the answer comes; and what else it
//! tells the session.
//!
//! The one place of the workspace where a thread blocks on a channel for as long as it takes. (Where the browser may go, a
//! name of this network is waited for, for a few seconds at most.)

use std::convert::Infallible;

use actix::WeakRecipient;
use actix::prelude::Message;
use crossbeam_channel::{Receiver, Sender, bounded, select_biased};
use holdpoint_common::{
    AskRequest, CallId, JobEnd, PauseRequest, PauseResponse, QuestionRequest, QuestionResponse, TaskError, TaskRequest,
    Tasks, TurnId,
};

/// What a tool sends to its session's actor.
#[derive(Debug, Message)]
#[rtype(result = "()")]
#[non_exhaustive]
pub enum ToolRequest {
    /// A tool asks the user and blocks until `answering` is used or dropped.
    Ask {
        /// The turn it runs in.
        turn: TurnId,
        /// The call it serves.
        call: CallId,
        /// What it asks.
        request: AskRequest,
        /// The pieces of output its call had handed over by then, by [`Sink::pieces`](crate::Sink::pieces). Whoever
        /// shows the ask shows these first: they go another way than this message and may come later.
        after: u64,
        /// The answering end. Dropped without an answer, it reads as *Interrupted*.
        answering: Answering,
    },
    /// A tool wants something done to the session's tasks and notes, and blocks until `answering` is used or dropped.
    Tasks {
        /// The turn it runs in.
        turn: TurnId,
        /// The call it serves.
        call: CallId,
        /// What it wants done.
        request: TaskRequest,
        /// The answering end. Dropped without an answer, it reads as *Interrupted*.
        answering: Answering<TasksReply>,
    },
    /// A call has started a background job, which goes by the call.
    JobStarted {
        /// The turn it runs in.
        turn: TurnId,
        /// The call.
        call: CallId,
        /// What runs.
        command: String,
    },
    /// A background job is over. Told after its start, but not always while its turn is open.
    JobEnded {
        /// The call that had started it.
        call: CallId,
        /// How it ended.
        end: JobEnd,
    },
}

/// The end of an ask that answers: held by the session's actor alone.
#[derive(Debug)]
pub struct Answering<Reply = AskReply>(Sender<Reply>);

impl<Reply> Answering<Reply> {
    /// Answers. The tool wakes; if it is gone, nothing happens.
    pub fn answer(self, reply: Reply) {
        // The channel has room for exactly this one reply.
        let _ = self.0.try_send(reply);
    }
}

/// What an ask is answered with.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum AskReply {
    /// The answer to a pause.
    Pause(PauseResponse),
    /// The answer to a question.
    Question(QuestionResponse),
    /// Not answered: the turn was cut, or the session closed.
    Interrupted,
}

/// The tasks and notes as they are now, or why nothing was done.
pub type TasksReply = Result<Tasks, TaskError>;

/// What a pause is about, where that can end by itself: an open page, say. For
/// [`ToolContext::pause_about`](crate::ToolContext::pause_about).
#[derive(Debug, Clone)]
pub struct Subject(Receiver<Infallible>);

/// Keeps a [`Subject`]: whoever has it drops it when the subject is gone.
#[derive(Debug)]
pub struct SubjectKept {
    _lives: Sender<Infallible>,
}

impl Subject {
    /// One that is there until what keeps it is dropped.
    #[must_use]
    pub fn new() -> (SubjectKept, Self) {
        let (lives, gone) = bounded(0);
        (SubjectKept { _lives: lives }, Self(gone))
    }
}

/// The way from one tool call to its session's actor.
///
/// Weak: a tool that waits never keeps a dead session alive.
#[derive(Clone)]
pub struct Asker {
    session: WeakRecipient<ToolRequest>,
    turn: TurnId,
    call: CallId,
}

impl Asker {
    /// The way for this call.
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

    /// Tells the session, if it is still there.
    pub(crate) fn tell(&self, request: ToolRequest) {
        if let Some(session) = self.session.upgrade() {
            // Bounded: two for each background job.
            session.do_send(request);
        }
    }

    pub(crate) fn pause(&self, request: PauseRequest, after: u64) -> PauseResponse {
        pause_response(self.ask(AskRequest::Pause(request), after))
    }

    /// `None`: what it is about was gone first. The session closes the ask with its call.
    pub(crate) fn pause_about(&self, subject: &Subject, request: PauseRequest, after: u64) -> Option<PauseResponse> {
        let Some(answer) = self.send(|answering| self.asking(AskRequest::Pause(request), after, answering)) else {
            return Some(PauseResponse::Interrupted);
        };
        select_biased! {
            recv(answer) -> reply => Some(pause_response(reply.unwrap_or(AskReply::Interrupted))),
            recv(subject.0) -> _ => None,
        }
    }

    pub(crate) fn question(&self, request: QuestionRequest, after: u64) -> QuestionResponse {
        match self.ask(AskRequest::Question(request), after) {
            AskReply::Question(response) => response,
            AskReply::Pause(_) | AskReply::Interrupted => QuestionResponse::Interrupted,
        }
    }

    fn ask(&self, request: AskRequest, after: u64) -> AskReply {
        self.wait(|answering| self.asking(request, after, answering)).unwrap_or(AskReply::Interrupted)
    }

    fn asking(&self, request: AskRequest, after: u64, answering: Answering) -> ToolRequest {
        ToolRequest::Ask { turn: self.turn, call: self.call, request, after, answering }
    }

    /// `None`: the turn was cut, or the session closed.
    pub(crate) fn tasks(&self, request: TaskRequest) -> Option<TasksReply> {
        let (turn, call) = (self.turn, self.call);
        self.wait(|answering| ToolRequest::Tasks { turn, call, request, answering })
    }

    /// Sends a request and waits for its answer; `None` if it gets none.
    fn wait<Reply>(&self, request: impl FnOnce(Answering<Reply>) -> ToolRequest) -> Option<Reply> {
        self.send(request)?.recv().ok()
    }

    /// Sends a request, and says where its answer comes; `None` if the session is gone.
    fn send<Reply>(&self, request: impl FnOnce(Answering<Reply>) -> ToolRequest) -> Option<Receiver<Reply>> {
        let (answering, answer) = bounded(1);
        // Dropped before anybody waits: a strong recipient would keep a dead session's actor alive.
        let session = self.session.upgrade()?;
        // Bounded by construction: a call has one thread, and that thread waits for the answer.
        session.do_send(request(Answering(answering)));
        Some(answer)
    }
}

fn pause_response(reply: AskReply) -> PauseResponse {
    match reply {
        AskReply::Pause(response) => response,
        AskReply::Question(_) | AskReply::Interrupted => PauseResponse::Interrupted,
    }
}
