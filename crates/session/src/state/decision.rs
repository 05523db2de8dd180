//! What an input does to a session: the machine's answers.

use holdpoint_common::{AnswerError, AskId, Fact, Hold, NameError, PromptId, TaskError, TurnId};
use holdpoint_tools::AskReply;
use thiserror::Error;

/// What an input does.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// What is now a fact, in order.
    pub facts: Vec<Fact>,
    /// What is to be done, in order, once the facts are saved. [`Effect::Cancel`] and [`Effect::Abandon`] never wait, and
    /// are done before anything else.
    pub effects: Vec<Effect>,
    /// What the sender is told.
    pub reply: Reply,
}

/// Something to be done outside the machine.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Start the runner of this turn.
    Start {
        /// The turn.
        turn: TurnId,
    },
    /// Cut the runner of this turn: at once, before anything is saved. Its gates are answered
    /// [`GateReply::Cut`], and the tools that wait on asks wake as interrupted.
    Cancel {
        /// The turn.
        turn: TurnId,
    },
    /// Cut the runner likewise, and hear nothing more of it: its turn stays open, for a restart.
    Abandon,
    /// Come back with [`Input::WaitOver`](super::Input::WaitOver) after this.
    Wait {
        /// The turn of the iteration that failed.
        turn: TurnId,
        /// Milliseconds.
        wait_ms: u64,
    },
    /// Wake the tool that waits on this ask.
    Wake {
        /// The ask.
        ask: AskId,
        /// With this.
        reply: AskReply,
    },
    /// End the actor.
    Stop,
}

/// What the sender of an input is told.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    /// The prompt was accepted.
    Prompted {
        /// Its name.
        prompt: PromptId,
        /// 0 = started, 1 = next.
        position: usize,
    },
    /// The run began.
    RunStarted {
        /// The turn of its first iteration; nothing if the session is held.
        turn: Option<TurnId>,
    },
    /// The answer counted.
    Answered,
    /// The turn is being cut.
    Interrupting {
        /// Which.
        turn: TurnId,
    },
    /// The run was between two turns, and is over.
    RunInterrupted,
    /// There was no such turn to cut.
    NotRunning,
    /// The hold is now this.
    Hold(Hold),
    /// The session has that name.
    Renamed,
    /// The session is ending or has ended.
    Closing,
    /// The actor ends, at once or with its turn.
    Stopping,
    /// The ask is open, under this id.
    Asked(AskId),
    /// The ask came too late: it counts as interrupted.
    AskRefused,
    /// What the runner is told.
    Gate(GateReply),
    /// Taken in.
    Noted,
    /// It belongs to a turn that is over.
    Stale,
}

/// Why an input changed nothing.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Refused {
    /// The session has ended.
    #[error("the session is closed")]
    Closed,
    /// The queue has no place.
    #[error("queue full: {waiting} prompts wait already")]
    QueueFull {
        /// How many wait.
        waiting: usize,
    },
    /// Saving has failed for so long that nothing more is taken on.
    #[error("{unsaved} bytes could not be saved; nothing more is taken on until they are")]
    NotSaving {
        /// How much waits to be saved, in bytes.
        unsaved: usize,
    },
    /// There is nothing in the prompt.
    #[error("the prompt is empty")]
    EmptyPrompt,
    /// There is too much in the prompt.
    #[error("the prompt has {bytes} bytes; at most {most} are taken")]
    PromptTooLong {
        /// Its size.
        bytes: usize,
        /// The bound.
        most: usize,
    },
    /// There is nothing in the goal of a run.
    #[error("the goal is empty")]
    EmptyGoal,
    /// It has something to do, or was given something to do meanwhile.
    #[error("the session was given more to do")]
    InUse,
    /// A run is under way.
    #[error("a run is under way in this session")]
    RunOpen,
    /// A turn is open.
    #[error("a turn is open; a run begins when there is none")]
    TurnOpen,
    /// The tasks and notes can't be changed so.
    #[error(transparent)]
    Task(#[from] TaskError),
    /// A session can't be called that.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The answer has no effect.
    #[error(transparent)]
    Answer(#[from] AnswerError),
}

/// What a runner is told at a gate.
#[derive(Debug, Clone, PartialEq)]
pub enum GateReply {
    /// Begin: the start is a fact.
    Go,
    /// Not yet: the gate is asked again when something has changed.
    Wait,
    /// The user said no to the call.
    Denied {
        /// What the model is told.
        reason: String,
    },
    /// The turn has taken what it may: it ends.
    Limit {
        /// What it has come to.
        reason: String,
    },
    /// Begin nothing any more.
    Cut,
}
