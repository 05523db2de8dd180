//! Events: the numbered record of everything that happens to a session.
//!
//! A [`Fact`] is logged, and the state of a session is the fold of its facts. A [`Delta`] is not
//! logged: it is a piece of an item that a later fact carries as a whole, or a notice about the
//! stream itself.

mod body;
mod kinds;
mod weight;

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::body::Body;
use self::kinds::kinds;
use crate::answer::{Answer, AnsweredBy, AskCloseCause};
use crate::ask::{Ask, AsksMode};
use crate::client::Who;
use crate::hold::Hold;
use crate::id::{AskId, CallId, ItemId, PromptId, TaskId, TurnId};
use crate::job::{Job, JobEnd};
use crate::message::{AssistantMessage, BlockKind, Omission, ToolResult};
use crate::output::HeadAndTail;
use crate::run::{RunEnd, RunLimits, RunProgress, RunSettings};
use crate::session::SessionSettings;
use crate::status::SessionStatus;
use crate::task::{Note, TaskState};
use crate::time::Timestamp;
use crate::turn::{CutCause, Outcome, Receipt, RestoreCause};
use crate::usage::{ContextFill, HistoryCut, Usage};

/// An event of a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Event {
    /// Number of the event. Numbers rise strictly, but not always by one, and are never used again.
    pub seq: u64,
    /// Time of the event.
    pub at: Timestamp,
    /// Turn that the event belongs to; absent if it belongs to no turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnId>,
    /// Step of the turn, counted from 1; absent if the event belongs to no step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<u32>,
    /// Content of the event.
    pub body: Body,
}

impl Event {
    /// Returns the event's fact, or `None` for a delta.
    #[must_use]
    pub fn fact(&self) -> Option<&Fact> {
        match &self.body {
            Body::Fact(fact) => Some(fact),
            Body::Delta(_) => None,
        }
    }

    /// Returns the event's delta, or `None` for a fact.
    #[must_use]
    pub fn delta(&self) -> Option<&Delta> {
        match &self.body {
            Body::Delta(delta) => Some(delta),
            Body::Fact(_) => None,
        }
    }

    /// Estimates the memory that the event takes, in bytes. The output buffer is bounded by it.
    #[must_use]
    pub fn weight(&self) -> usize {
        size_of::<Self>()
            + match &self.body {
                Body::Delta(delta) => weight::delta_bytes(delta),
                Body::Fact(fact) => weight::fact_bytes(fact),
            }
    }
}

kinds! {
    /// An event that is logged.
    #[derive(Debug, Clone, PartialEq)]
    pub enum Fact as "Fact" {
        /// The session was opened. This is the first fact of every log.
        SessionOpened {
            /// Settings of the session.
            settings: SessionSettings,
        },
        /// The session was rebuilt from its log.
        SessionRestored {
            /// Reason why the previous actor had ended.
            cause: RestoreCause,
        },
        /// The session was closed.
        SessionClosed {
            /// Client that closed the session.
            by: Who,
        },
        /// The session was renamed. The new name is also its title.
        SessionRenamed {
            /// New name of the session.
            name: String,
            /// Client that renamed the session.
            by: Who,
        },
        /// The model of the session was changed, from its next turn on.
        ModelChanged {
            /// New model, as `provider/name`.
            model: String,
            /// Client that changed the model.
            by: Who,
        },
        /// The debug log of the session was turned on or off.
        DebugChanged {
            /// Whether the session is logged at debug level.
            enabled: bool,
            /// Client that changed the setting.
            by: Who,
        },
        /// The asks mode of the session was changed. The new mode also answered the open asks.
        AsksChanged {
            /// New asks mode.
            asks: AsksMode,
            /// Client that changed the mode.
            by: Who,
        },
        /// A prompt was accepted. It starts a turn or waits in the queue.
        PromptAccepted {
            /// Id of the prompt.
            prompt: PromptId,
            /// Text of the prompt. Snapshots with this prompt in their queue share it.
            text: Arc<str>,
            /// Client that sent the prompt.
            by: Who,
        },
        /// A queued prompt was handed back to its client and will not run.
        PromptReturned {
            /// Id of the prompt.
            prompt: PromptId,
            /// Text of the prompt, so that the client can restore it.
            text: Arc<str>,
        },
        /// A prompt that was queued during a run was delivered to an iteration.
        PromptDelivered {
            /// Id of the prompt.
            prompt: PromptId,
            /// Iteration that received the prompt, counted from 1.
            iteration: u32,
        },
        /// A run started: a goal that is worked through in iterations.
        RunStarted {
            /// Goal, limits and hold boundary of the run.
            run: RunSettings,
            /// Client that started the run.
            by: Who,
        },
        /// The turn of a run's iteration started. The model gets the tasks and notes of earlier
        /// iterations, not their conversation.
        IterationStarted {
            /// Turn of the iteration.
            turn: TurnId,
            /// Number of the iteration, counted from 1.
            iteration: u32,
            /// Whether the iteration was cut by a restart and now continues, with its conversation.
            #[serde(default, skip_serializing_if = "std::ops::Not::not")]
            resumed: bool,
        },
        /// An iteration failed. The next one starts after a wait.
        RunWaiting {
            /// Time at which the next iteration starts.
            until: Timestamp,
        },
        /// The limits of a run were raised, because its hold at a limit was released.
        RunExtended {
            /// New limits of the run.
            limits: RunLimits,
        },
        /// A run reached its end.
        RunFinished {
            /// Reason why the run ended.
            end: RunEnd,
            /// Progress of the run at its end.
            progress: RunProgress,
            /// Client that interrupted the run between two iterations. If the run ended with a
            /// turn, the cause of the turn's cut names the client.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            by: Option<Who>,
        },
        /// A task was added.
        TaskAdded {
            /// Id of the task.
            task: TaskId,
            /// Title of the task, on one line.
            title: String,
        },
        /// A task was started, finished, dropped or reopened.
        TaskMoved {
            /// Id of the task.
            task: TaskId,
            /// New state of the task.
            to: TaskState,
        },
        /// A note was taken.
        NoteTaken {
            /// Text of the note, with its task and iteration.
            note: Note,
        },
        /// The turn of a prompt started.
        TurnStarted {
            /// Id of the turn.
            turn: TurnId,
            /// Prompt that the turn works on.
            prompt: PromptId,
        },
        /// A step started: a model request is about to be sent.
        StepStarted,
        /// A model answered a request.
        AssistantMessage(AssistantMessage),
        /// A tool call is about to run.
        ToolStarted {
            /// Id of the call.
            call: CallId,
        },
        /// A tool call ended, or will never run.
        ToolFinished(ToolResult),
        /// Some or all of the workspace's `AGENTS.md` does not reach the model in this turn.
        ProjectCut {
            /// Description of the missing part and the reason, on one line.
            reason: String,
        },
        /// The conversation is too long for the model. The requests of this turn leave out its
        /// oldest part.
        HistoryCut(HistoryCut),
        /// Git found changed files in this iteration of a run, including changes that no tool
        /// reported.
        FilesChanged {
            /// Paths of the files, relative to the workspace.
            paths: Vec<String>,
        },
        /// A background job started. It may outlive its turn.
        JobStarted {
            /// Id, turn and command of the job.
            job: Job,
        },
        /// A background job ended.
        JobEnded {
            /// Tool call that started the job.
            job: CallId,
            /// Reason why the job ended.
            end: JobEnd,
        },
        /// A step of the turn ended.
        StepFinished {
            /// Usage of the step.
            usage: Usage,
            /// Fill level of the model's context; absent if it is not known.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            context: Option<ContextFill>,
            /// Whether the provider refused the request, and nothing that could be left out helped.
            /// Later requests leave out the user's words since the last answer.
            #[serde(default, skip_serializing_if = "std::ops::Not::not")]
            refused: bool,
            /// Part that is left out when the conversation is sent again, because the provider
            /// refused the request.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            omitted: Option<Omission>,
        },
        /// A tool or the policy asks the user.
        AskRaised {
            /// The ask, with everything that a client needs to show it.
            ask: Ask,
        },
        /// An ask was answered.
        AskAnswered {
            /// Id of the ask.
            ask: AskId,
            /// The answer to the ask.
            answer: Answer,
            /// Client or setting that answered.
            by: AnsweredBy,
        },
        /// An ask closed without an answer.
        AskClosed {
            /// Id of the ask.
            ask: AskId,
            /// Reason why the ask closed.
            cause: AskCloseCause,
        },
        /// A hold was requested, took effect or was released.
        HoldChanged {
            /// New state of the hold.
            hold: Hold,
        },
        /// The turn was cut: nothing of it starts any more.
        TurnCut {
            /// Reason for the cut.
            cause: CutCause,
        },
        /// The turn ended. This is always the last event of the turn.
        TurnFinished {
            /// Outcome of the turn.
            outcome: Outcome,
            /// Description of the error, if there was one.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            error: Option<String>,
            /// Reason for the cut; absent if the turn was not cut.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            cause: Option<CutCause>,
            /// What the cut found and ended; absent if the turn was not cut.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            receipt: Option<Receipt>,
            /// Usage of the whole turn.
            usage: Usage,
        },
    }
}

kinds! {
    /// An event that is not logged.
    #[derive(Debug, Clone, PartialEq)]
    pub enum Delta as "Delta" {
        /// A piece of a model's text.
        Text {
            /// Item that the piece belongs to.
            item: ItemId,
            /// The piece, at most 4 KiB. At an attach it may have up to 68 KiB, where pieces that
            /// left the buffer are joined.
            text: String,
        },
        /// A piece of a model's thought.
        Thought {
            /// Item that the piece belongs to.
            item: ItemId,
            /// The piece, at most 4 KiB. At an attach it may have up to 68 KiB, where pieces that
            /// left the buffer are joined.
            text: String,
        },
        /// A piece of a tool's output.
        Output {
            /// Item that the piece belongs to: the output of the call.
            item: ItemId,
            /// The piece, at most 32 KiB.
            text: String,
        },
        /// The status of the session changed.
        Status {
            /// New status of the session.
            status: SessionStatus,
        },
        /// The text of an item up to this number, which replaces all its earlier deltas. At an
        /// attach the text is sent in parts, and deltas with the rest may follow.
        ItemSoFar {
            /// Id of the item.
            item: ItemId,
            /// Kind of the item.
            kind: ItemKind,
            /// Text so far. For text and thoughts it is in the head; output has a head and a tail.
            so_far: HeadAndTail,
        },
        /// A request to the model failed, and is tried again after a wait.
        Retrying {
            /// Number of the next try, counted from 1.
            #[serde(rename = "try")]
            next: u32,
            /// Maximum number of tries.
            tries: u32,
            /// Milliseconds until the next try.
            wait_ms: u64,
            /// Reason why the last try failed.
            reason: String,
        },
        /// The facts from `from` to `to` can't be read.
        Gap {
            /// Number of the first missing fact.
            from: u64,
            /// Number of the last missing fact.
            to: u64,
        },
        /// Saving fails or is late. The session continues.
        NotSaved {
            /// Reason why events are not saved.
            reason: String,
        },
        /// Saving works again. All events up to this one are saved.
        SavedAgain,
    }
}

/// The kind of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ItemKind {
    /// Text that a model wrote.
    Text,
    /// A thought that a model wrote.
    Thought,
    /// Output of a tool call.
    Output,
}

impl From<BlockKind> for ItemKind {
    fn from(kind: BlockKind) -> Self {
        match kind {
            BlockKind::Text => Self::Text,
            BlockKind::Thought => Self::Thought,
        }
    }
}
