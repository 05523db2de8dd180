//! The machine's inputs: everything that can happen to a session.

use std::sync::Arc;

use holdpoint_common::api::{AnswerRequest, Verb};
use holdpoint_common::{
    AgentStart, AskId, AskRequest, AssistantMessage, CallId, ContextFill, EndedProcesses, Event,
    HistoryCut, InstructionFile, JobEnd, Limits, Omission, Outcome, PauseKind, PauseRequest,
    Refused, RestoreCause, StoppedTool, TaskRequest, Timestamp, ToolResult, TurnId, Usage, Who,
};

use super::decide::DecisionBuilder;

/// Anything that can happen to a session. Each input is a type of its own, with its own reply: a
/// [`ByClient`] verb, or one of this module.
pub trait Input {
    /// The reply to the sender of the input.
    type Reply;

    /// Decides the input. Call [`decide`](super::decide) instead.
    ///
    /// # Errors
    /// Returns [`Refused`] if the state does not allow the input.
    #[doc(hidden)]
    fn decide(self, builder: &mut DecisionBuilder<'_>) -> Result<Self::Reply, Refused>;
}

/// A verb, with the client that sends it.
#[derive(Debug, Clone, PartialEq)]
pub struct ByClient<V> {
    /// The verb.
    pub verb: V,
    /// The client that sends it.
    pub by: Who,
}

/// The decision for a verb.
pub trait Decide: Verb {
    /// Decides the verb. Call [`decide`](super::decide) with a [`ByClient`] instead.
    ///
    /// # Errors
    /// Returns [`Refused`] if the state does not allow the verb.
    #[doc(hidden)]
    fn decide(&self, by: &Who, builder: &mut DecisionBuilder<'_>) -> Result<Self::Reply, Refused>;
}

impl<V: Decide> Input for &ByClient<V> {
    type Reply = V::Reply;

    fn decide(self, builder: &mut DecisionBuilder<'_>) -> Result<V::Reply, Refused> {
        self.verb.decide(&self.by, builder)
    }
}

/// The wait after a failed iteration is over.
#[derive(Debug, Clone, PartialEq)]
pub struct WaitOver {
    /// The turn of the failed iteration.
    pub turn: TurnId,
}

/// The runtime stops. Open work is cut and saved, so that a restart can continue it.
#[derive(Debug, Clone, PartialEq)]
pub struct Shutdown;

/// A client moves the session to another folder. Until nothing of it runs, it is held instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HandOver {
    /// The machine of the folder, in a fleet.
    pub machine: Option<String>,
    /// The path of the folder there.
    pub workspace: String,
    /// The client.
    pub by: Who,
}

/// A client answers an ask of a session without an actor, whose machine does not respond. The answer
/// takes effect when the session is opened there.
#[derive(Debug, Clone, PartialEq)]
pub struct AnswerAway<'a>(pub &'a ByClient<AnswerRequest>);

/// A running tool asks the user. The reply is the id of the ask; `None` if the ask is too late and
/// counts as interrupted.
#[derive(Debug, Clone, PartialEq)]
pub struct RaiseAsk {
    /// The turn of the call.
    pub turn: TurnId,
    /// The call that asks.
    pub call: CallId,
    /// The pause or the question.
    pub request: AskRequest,
    /// Whether a deny rule may apply to it. Only a person can approve it then.
    pub may_be_denied: bool,
}

/// A tool no longer waits for the answer to its ask. Stale if the ask is not open.
#[derive(Debug, Clone, PartialEq)]
pub struct WithdrawAsk {
    /// The ask.
    pub ask: AskId,
}

/// A running tool changes the tasks or notes.
#[derive(Debug, Clone, PartialEq)]
pub struct ChangeTasks {
    /// The turn of the call.
    pub turn: TurnId,
    /// The call that changes them.
    pub call: CallId,
    /// The change that it requests.
    pub request: TaskRequest,
}

/// A call has started a background job.
#[derive(Debug, Clone, PartialEq)]
pub struct JobStarted {
    /// The turn of the call.
    pub turn: TurnId,
    /// The call, which also identifies the job.
    pub call: CallId,
    /// The command that the job runs.
    pub command: String,
}

/// A background job has ended.
#[derive(Debug, Clone, PartialEq)]
pub struct JobEnded {
    /// The call that started the job.
    pub job: CallId,
    /// How the job ended.
    pub end: JobEnd,
}

/// A runner asks whether it may begin a step or a call.
#[derive(Debug, Clone, PartialEq)]
pub struct PassGate {
    /// The turn of the runner.
    pub turn: TurnId,
    /// The step or the call.
    pub gate: Gate,
}

/// A runner reports progress.
#[derive(Debug, Clone, PartialEq)]
pub struct RunnerReport {
    /// The turn of the runner.
    pub turn: TurnId,
    /// The content of the report.
    pub report: Report,
}

/// The state was rebuilt from its log. Work that cannot continue has to be ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Restore {
    /// The reason why the previous actor ended.
    pub cause: RestoreCause,
    /// The saved deltas of an answer that was still streaming.
    pub draft: Vec<Arc<Event>>,
}

/// A start for which a runner needs the actor's permission.
#[derive(Debug, Clone, PartialEq)]
pub enum Gate {
    /// The next step, which is a model request. From the second step on, the gate is also the
    /// boundary after the step before.
    Step,
    /// A call of a tool.
    Tool {
        /// The id of the call.
        call: CallId,
        /// The policy's verdict on the call.
        clearance: Clearance,
    },
}

/// The policy's verdict on a call that is not denied outright.
#[derive(Debug, Clone, PartialEq)]
pub enum Clearance {
    /// The call may run, unless the user has denied its key.
    Allow {
        /// The key that an *always* remembers.
        always: Option<String>,
    },
    /// The call may run if the user confirms it.
    Ask(Confirm),
}

impl Clearance {
    /// The key of the call, if it has one.
    pub(super) fn key(&self) -> Option<&str> {
        match self {
            Self::Allow { always } | Self::Ask(Confirm { always, .. }) => always.as_deref(),
        }
    }
}

/// The Confirm that the user has to approve before a call begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Confirm {
    /// The name of the tool.
    pub tool_name: String,
    /// The question to the user, in one line.
    pub message: String,
    /// The exact effect of the call.
    pub details: Option<String>,
    /// The key that an *always* remembers.
    pub always: Option<String>,
    /// Whether the policy asks because a rule may deny the call. Only a person can approve such a
    /// call.
    pub may_be_denied: bool,
}

impl Confirm {
    /// The ask that the user sees.
    pub(super) fn request(&self) -> AskRequest {
        let Self { tool_name, message, details, .. } = self.clone();
        AskRequest::Pause(PauseRequest { kind: PauseKind::Confirm, tool_name, message, details })
    }
}

/// A runner's report to the actor.
#[derive(Debug, Clone, PartialEq)]
pub enum Report {
    /// The model has answered.
    Answered(AssistantMessage),
    /// A tool call has ended.
    ToolFinished(ToolResult),
    /// A step has ended.
    StepFinished {
        /// The usage of the step.
        usage: Usage,
        /// How full the model's context is.
        context: Option<ContextFill>,
        /// Whether the provider refused the request because of its content.
        refused: bool,
        /// The part that the next request leaves out, because the provider refused this one.
        omitted: Option<Omission>,
    },
    /// The turn has found these instruction files.
    InstructionsRead(Vec<InstructionFile>),
    /// The model does not receive an instruction file, or only a part of it.
    ProjectCut {
        /// How much is missing, and why.
        reason: String,
    },
    /// Tools are missing.
    ToolsMissing {
        /// Which tools, and why.
        reason: String,
    },
    /// Content that the prompt names was read.
    ContentAdded {
        /// The names of the content, as the prompt has them.
        name: String,
        /// The content.
        text: Arc<str>,
    },
    /// The hosted agent was started.
    AgentStarted {
        /// The id of the agent's own session.
        session: String,
        /// How the agent gets the conversation.
        how: AgentStart,
    },
    /// The conversation was too long for the model: this part was left out of its next request.
    HistoryCut(HistoryCut),
    /// These files have changed since the turn began.
    FilesChanged(Vec<String>),
    /// The turn has ended, and nothing of it runs any more.
    Finished {
        /// The outcome, unless the turn was cut.
        outcome: Outcome,
        /// The error, if there was one.
        error: Option<String>,
        /// The calls that the cut found running.
        tools: Vec<StoppedTool>,
        /// The processes that the cut ended.
        processes: EndedProcesses,
    },
}

/// Everything the machine knows besides its state.
#[derive(Debug, Clone, Copy)]
pub struct Moment<'a> {
    /// The time of the input.
    pub now: Timestamp,
    /// The number of the first new fact; the others follow without a gap.
    pub next: u64,
    /// The limits that the machine enforces.
    pub limits: &'a Limits,
    /// The approximate size in bytes of the part that all requests share: the system prompt and the
    /// tools.
    pub fixed_bytes: u64,
}
