//! Events: everything that happens to a session, numbered.
//!
//! A [`Fact`] is logged; folding the facts gives the session's state. A [`Delta`] is not: it is a piece of
//! something whose whole a later fact carries, or news about the stream itself.

mod body;
mod kinds;
mod weight;

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::body::Body;
use self::kinds::kinds;
use crate::answer::{Answer, AnsweredBy, AskCloseCause};
use crate::ask::Ask;
use crate::client::Who;
use crate::hold::Hold;
use crate::id::{AskId, CallId, ItemId, PromptId, TaskId, TurnId};
use crate::job::{Job, JobEnd};
use crate::message::{AssistantMessage, BlockKind, Omission, ToolResult};
use crate::output::Kept;
use crate::run::{RunEnd, RunLimits, RunProgress, RunSettings};
use crate::session::SessionSettings;
use crate::status::SessionStatus;
use crate::task::{Note, TaskState};
use crate::time::Timestamp;
use crate::turn::{CutCause, Outcome, Receipt, RestoreCause};
use crate::usage::{ContextFill, HistoryCut, Usage};

/// Something that happened to a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Event {
    /// Its number: rising, never repeated, not always by one.
    pub seq: u64,
    /// When it happened.
    pub at: Timestamp,
    /// The turn it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnId>,
    /// The step of the turn, counted from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<u32>,
    /// What happened.
    pub body: Body,
}

impl Event {
    /// The fact, if it is one.
    #[must_use]
    pub fn fact(&self) -> Option<&Fact> {
        match &self.body {
            Body::Fact(fact) => Some(fact),
            Body::Delta(_) => None,
        }
    }

    /// The delta, if it is one.
    #[must_use]
    pub fn delta(&self) -> Option<&Delta> {
        match &self.body {
            Body::Delta(delta) => Some(delta),
            Body::Fact(_) => None,
        }
    }

    /// About how much memory the event takes, in bytes: what the output buffer counts.
    #[must_use]
    pub fn weight(&self) -> usize {
        size_of::<Self>()
            + match &self.body {
                Body::Delta(delta) => weight::of_delta(delta),
                Body::Fact(fact) => weight::of_fact(fact),
            }
    }
}

kinds! {
    /// An event that is logged.
    #[derive(Debug, Clone, PartialEq)]
    pub enum Fact as "Fact" {
        /// The session began. The first fact of every log.
        SessionOpened {
            /// With what settings.
            settings: SessionSettings,
        },
        /// The session was rebuilt from its log.
        SessionRestored {
            /// What had ended it.
            cause: RestoreCause,
        },
        /// The session ended.
        SessionClosed {
            /// Who closed it.
            by: Who,
        },
        /// The session was given another name, which is its title, too, from now on.
        SessionRenamed {
            /// The name.
            name: String,
            /// Who gave it.
            by: Who,
        },
        /// The session was given another model, from its next turn on.
        ModelChanged {
            /// The model, as `provider/name`.
            model: String,
            /// Who gave it.
            by: Who,
        },
        /// The session is to be looked at closely, or not any more: whether it is logged at debug level.
        DebugChanged {
            /// Whether it is.
            enabled: bool,
            /// Who wants it.
            by: Who,
        },
        /// A prompt was accepted and waits for its turn.
        PromptAccepted {
            /// Its name.
            prompt: PromptId,
            /// Its words. Shared with the snapshots that show it waiting.
            text: Arc<str>,
            /// Whose it is.
            by: Who,
        },
        /// A queued prompt was handed back instead of run.
        PromptReturned {
            /// Its name.
            prompt: PromptId,
            /// Its words, so that nothing typed is lost.
            text: Arc<str>,
        },
        /// A prompt that came while a run was under way was given to it.
        PromptDelivered {
            /// Its name.
            prompt: PromptId,
            /// The iteration it was given to.
            iteration: u32,
        },
        /// A run began: a goal, worked through in iterations.
        RunStarted {
            /// With what.
            run: RunSettings,
            /// Who began it.
            by: Who,
        },
        /// The turn of a run's iteration began. What the model is told of earlier ones is the run's tasks and notes.
        IterationStarted {
            /// The turn.
            turn: TurnId,
            /// Which iteration, counted from 1.
            iteration: u32,
            /// A restart had cut it: it goes on, with all that was said in it.
            #[serde(default, skip_serializing_if = "std::ops::Not::not")]
            resumed: bool,
        },
        /// An iteration has failed, and the next one begins later.
        RunWaiting {
            /// When.
            until: Timestamp,
        },
        /// The hold of a run at its limit was released: it may go on.
        RunExtended {
            /// What it may take from now on.
            limits: RunLimits,
        },
        /// A run ended.
        RunFinished {
            /// How.
            end: RunEnd,
            /// How far it was.
            progress: RunProgress,
            /// Who interrupted it between two iterations. In an iteration, its turn was cut, and tells it.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            by: Option<Who>,
        },
        /// A task was added.
        TaskAdded {
            /// Its name.
            task: TaskId,
            /// What is to be done.
            title: String,
        },
        /// A task was begun, done, dropped, or put back.
        TaskMoved {
            /// The task.
            task: TaskId,
            /// How far it is now.
            to: TaskState,
        },
        /// A note was taken.
        NoteTaken {
            /// The note.
            note: Note,
        },
        /// A prompt's turn began.
        TurnStarted {
            /// The turn.
            turn: TurnId,
            /// The prompt it works on.
            prompt: PromptId,
        },
        /// A model request is about to be sent.
        StepStarted,
        /// A model answered.
        AssistantMessage(AssistantMessage),
        /// A tool call is about to run.
        ToolStarted {
            /// The call.
            call: CallId,
        },
        /// A tool call ended, or will never run.
        ToolFinished(ToolResult),
        /// What the workspace's `AGENTS.md` says does not reach the model in this turn, or not all of it.
        ProjectCut {
            /// How much is missing, and why: one line.
            reason: String,
        },
        /// The conversation is too long for the model: the oldest of it is left out of this turn's requests.
        HistoryCut(HistoryCut),
        /// Files have changed in this iteration of a run, by the word of git: also such as no tool has told of.
        FilesChanged {
            /// Their paths, relative to the workspace.
            paths: Vec<String>,
        },
        /// A background job runs. It may go on when its turn is over.
        JobStarted {
            /// Which, and what it runs.
            job: Job,
        },
        /// A background job ended.
        JobEnded {
            /// The call that had started it.
            job: CallId,
            /// How.
            end: JobEnd,
        },
        /// A step ended.
        StepFinished {
            /// What it used.
            usage: Usage,
            /// How full the model's context is.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            context: Option<ContextFill>,
            /// The provider refused its request, and no omission helped: the user's words since the last answer are left out
            /// of later ones.
            #[serde(default, skip_serializing_if = "std::ops::Not::not")]
            refused: bool,
            /// The provider refused its request, and the conversation is sent again without this.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            omitted: Option<Omission>,
        },
        /// A tool or the policy asks the user.
        AskRaised {
            /// What a client needs to show it.
            ask: Ask,
        },
        /// An ask was answered.
        AskAnswered {
            /// The ask.
            ask: AskId,
            /// The answer.
            answer: Answer,
            /// Whose it was.
            by: AnsweredBy,
        },
        /// An ask closed without an answer.
        AskClosed {
            /// The ask.
            ask: AskId,
            /// Why.
            cause: AskCloseCause,
        },
        /// A hold was requested, stands, or is off.
        HoldChanged {
            /// What it is now.
            hold: Hold,
        },
        /// The turn was cut: nothing of it starts any more.
        TurnCut {
            /// Why.
            cause: CutCause,
        },
        /// The turn ended. Always its last event.
        TurnFinished {
            /// How.
            outcome: Outcome,
            /// What went wrong, in words, where something did.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            error: Option<String>,
            /// Why it was cut, if it was.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            cause: Option<CutCause>,
            /// What the cut found and ended, if it was cut.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            receipt: Option<Receipt>,
            /// What the whole turn used.
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
            /// The item it adds to.
            item: ItemId,
            /// At most 4 KiB; at an attach up to 68 KiB, where pieces that are no longer buffered are joined.
            text: String,
        },
        /// A piece of a model's thought.
        Thought {
            /// The item it adds to.
            item: ItemId,
            /// At most 4 KiB; at an attach up to 68 KiB, where pieces that are no longer buffered are joined.
            text: String,
        },
        /// A piece of a tool's output.
        Output {
            /// The item it adds to: the call's.
            item: ItemId,
            /// At most 32 KiB.
            text: String,
        },
        /// The session's status changed.
        Status {
            /// To this.
            status: SessionStatus,
        },
        /// What an item had come to at this number: replaces all its earlier deltas. At an attach deltas with more of it
        /// may follow, for it is sent in parts.
        ItemSoFar {
            /// The item.
            item: ItemId,
            /// What it is.
            kind: ItemKind,
            /// Its text so far: for text and thoughts in the head, for output head and tail.
            so_far: Kept,
        },
        /// A request to the model failed, and is tried again after a wait.
        Retrying {
            /// Which try is next, counted from 1.
            #[serde(rename = "try")]
            next: u32,
            /// How many there are at most.
            tries: u32,
            /// Milliseconds until then.
            wait_ms: u64,
            /// Why the last one failed.
            reason: String,
        },
        /// Facts from `from` to `to` can't be read.
        Gap {
            /// The first missing number.
            from: u64,
            /// The last missing number.
            to: u64,
        },
        /// What happens is not being saved; the session goes on.
        NotSaved {
            /// Why.
            reason: String,
        },
        /// Saving works again, and everything up to here is saved.
        SavedAgain,
    }
}

/// What an item is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ItemKind {
    /// A model's text.
    Text,
    /// A model's thought.
    Thought,
    /// A tool's output.
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
