//! What a session is at: idle, at a turn, or cutting one; and how far each call of a turn is.

use holdpoint_common::{AnsweredBy, AskId, AskRequest, CallId, CutCause, PromptId, ToolCall, TurnId, Usage, Who};

/// What a session is at.
#[derive(Debug, Clone, PartialEq)]
pub enum Phase {
    /// No turn is open.
    Idle,
    /// A turn is open.
    Running(Turn),
    /// A turn was cut and is going down.
    Interrupting(Turn, Cut),
    /// The session has ended.
    Closed,
}

/// An open turn.
#[derive(Debug, Clone, PartialEq)]
pub struct Turn {
    /// Its name.
    pub id: TurnId,
    /// The prompt it works on; nothing where it is an iteration of a run.
    pub prompt: Option<PromptId>,
    /// Its step: 0 before the first has begun.
    pub step: u32,
    /// The calls of its last answer that have no result yet, and how far each is.
    pub calls: Vec<(ToolCall, CallStage)>,
    /// What its steps have used, the open one left out.
    pub usage: Usage,
    /// The step that is open.
    pub open_step: Option<OpenStep>,
}

/// A step that is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OpenStep {
    /// Bytes of its answer.
    pub said: u64,
    /// Its usage, once it is answered.
    pub usage: Option<Usage>,
}

/// How far a call without a result is.
#[derive(Debug, Clone, PartialEq)]
pub enum CallStage {
    /// The model wants it.
    Proposed,
    /// The policy's Confirm for it is open.
    Asking,
    /// It was confirmed.
    Approved {
        /// What the user was shown. Nothing else may run for it.
        shown: AskRequest,
    },
    /// It was denied.
    Denied {
        /// Why.
        reason: Option<String>,
        /// By whom.
        by: AnsweredBy,
    },
    /// Its tool has begun.
    Started,
}

/// A cut, and what it released.
#[derive(Debug, Clone, PartialEq)]
pub struct Cut {
    /// Why.
    pub cause: CutCause,
    /// The asks it answered.
    pub asks: Vec<AskId>,
    /// The prompts it handed back.
    pub prompts: Vec<PromptId>,
    /// The session is to end with the turn.
    pub closing: Option<Who>,
    /// The runtime stops: the actor is to end with the turn.
    pub stopping: bool,
}

impl Turn {
    pub(super) fn call(&self, id: CallId) -> Option<&(ToolCall, CallStage)> {
        self.calls.iter().find(|(call, _)| call.id == id)
    }

    /// Whether a policy's Confirm for one of its calls stands.
    pub(super) fn stands(&self) -> bool {
        self.calls.iter().any(|(_, stage)| *stage == CallStage::Asking)
    }

    /// Whether the call's tool has begun and not come back.
    pub(super) fn has_begun(&self, id: CallId) -> bool {
        self.call(id).is_some_and(|(_, stage)| matches!(stage, CallStage::Started))
    }

    pub(super) fn stage_mut(&mut self, id: CallId) -> Option<&mut CallStage> {
        self.calls.iter_mut().find(|(call, _)| call.id == id).map(|(_, stage)| stage)
    }
}
