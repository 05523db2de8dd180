//! The phase of a session with its open turn, and the stages of tool calls.

use std::collections::VecDeque;

use holdpoint_common::{
    AskId, AskRequest, CallId, CutCause, PromptId, ToolCall, TurnId, Usage, Who,
};
use serde::{Deserialize, Serialize};

/// The phase of a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Phase {
    /// No turn is open.
    Idle,
    /// A turn is open.
    Running(Turn),
    /// A turn was cut and is ending.
    Interrupting(Turn, Cut),
    /// The session has ended.
    Closed,
}

/// A turn that has not ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Turn {
    /// The id of the turn.
    pub id: TurnId,
    /// The prompt it works on; `None` for an iteration of a run.
    pub prompt: Option<PromptId>,
    /// The current step, or 0 before the first has begun.
    pub step: u32,
    /// The calls of the last answer that have no result yet, each with its stage, in their order.
    /// Most calls end near the front.
    pub calls: VecDeque<(ToolCall, CallStage)>,
    /// The usage of the steps that have ended.
    pub usage: Usage,
    /// The open step, if there is one.
    pub open_step: Option<OpenStep>,
}

/// A step that has not ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct OpenStep {
    /// The size of the answer in bytes.
    pub answer_bytes: u64,
    /// The usage that the answer reports.
    pub usage: Option<Usage>,
}

/// The stage of a call that has no result yet.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum CallStage {
    /// The model has requested the call.
    Proposed,
    /// A policy Confirm for it is open.
    Asking,
    /// The Confirm was approved.
    Approved {
        /// The ask that the user saw. The call may do nothing else.
        shown: AskRequest,
        /// Whether it was approved with *always*.
        always: bool,
    },
    /// The Confirm was denied.
    Denied {
        /// The text that the model receives.
        why: String,
    },
    /// The tool of the call has started.
    Started,
}

/// The cut of a turn, with everything that it released.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cut {
    /// The cause of the cut.
    pub cause: CutCause,
    /// The asks that the cut closed.
    pub asks: Vec<AskId>,
    /// The prompts that the cut handed back.
    pub prompts: Vec<PromptId>,
    /// The client that closes the session, if the session ends with the turn.
    pub closing: Option<Who>,
    /// Whether the runtime stops, so that the actor ends with the turn.
    pub stopping: bool,
}

impl Turn {
    pub(super) fn call(&self, id: CallId) -> Option<&(ToolCall, CallStage)> {
        self.calls.iter().find(|(call, _)| call.id == id)
    }

    /// Whether a policy Confirm for one of the turn's calls is open.
    pub(super) fn has_open_confirm(&self) -> bool {
        self.calls.iter().any(|(_, stage)| *stage == CallStage::Asking)
    }

    /// Whether the call's tool has started and has not returned.
    pub(crate) fn has_begun(&self, id: CallId) -> bool {
        self.call(id).is_some_and(|(_, stage)| matches!(stage, CallStage::Started))
    }

    pub(super) fn stage_mut(&mut self, id: CallId) -> Option<&mut CallStage> {
        self.calls.iter_mut().find(|(call, _)| call.id == id).map(|(_, stage)| stage)
    }
}
