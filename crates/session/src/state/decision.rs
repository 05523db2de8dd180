//! The machine's output: decisions with their effects and replies.

use holdpoint_common::{AskId, Fact, TurnId};
use holdpoint_tools::AskReply;

/// The result of one input.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision<R> {
    /// The new facts, in order.
    pub facts: Vec<Fact>,
    /// The effects, to be carried out in order once the facts are saved. [`Effect::Cancel`] and
    /// [`Effect::Abandon`] never wait for that, and are carried out before the others.
    pub effects: Vec<Effect>,
    /// The reply to the sender of the input.
    pub reply: R,
}

/// An action to be carried out outside the machine.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Start the runner of this turn.
    Start {
        /// The id of the turn.
        turn: TurnId,
    },
    /// Cut the runner of this turn at once, before anything is saved. Its gates are answered with
    /// [`GateReply::Cut`], and tools that wait on asks wake as interrupted.
    Cancel {
        /// The id of the turn.
        turn: TurnId,
    },
    /// Cut the runner of the open turn as [`Effect::Cancel`] does, and ignore its reports. The turn
    /// stays open for a restart.
    Abandon,
    /// Wait after a failed iteration, then send [`WaitOver`](super::WaitOver).
    Wait {
        /// The turn of the iteration that failed.
        turn: TurnId,
        /// The delay in milliseconds.
        wait_ms: u64,
    },
    /// Wake the tool that waits on this ask.
    Wake {
        /// The ask that was answered.
        ask: AskId,
        /// The reply that the tool receives.
        reply: AskReply,
    },
    /// End the session's actor.
    Stop,
}

/// The reply to the request to hand a session over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Handover {
    /// The session has moved, and its actor ends.
    Done,
    /// The session can't move yet. It is held at its next boundary.
    Waits,
}

/// The reply to an input that only reports something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reception {
    /// The input was accepted.
    Noted,
    /// The input came too late, for example from a turn that has ended.
    Stale,
}

/// The machine's answer to a runner at a gate.
#[derive(Debug, Clone, PartialEq)]
pub enum GateReply {
    /// Begin: the start is recorded as a fact.
    Go,
    /// Not yet: the gate is asked again after a change.
    Wait,
    /// The call was denied.
    Denied {
        /// The text that the model receives.
        reason: String,
    },
    /// The turn has reached a limit, and ends.
    Limit {
        /// The limit, and the amount used.
        reason: String,
    },
    /// The turn was cut: start nothing more.
    Cut,
}
