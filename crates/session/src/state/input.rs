//! What can happen to a session: the machine's inputs.

use std::sync::Arc;

use holdpoint_common::api::RunRequest;
use holdpoint_common::{
    Answer, AskId, AskRequest, AssistantMessage, CallId, ContextFill, EndedProcesses, Event, HistoryCut, HoldShown,
    JobEnd, Limits, Omission, Outcome, PauseKind, PauseRequest, RestoreCause, StoppedTool, TaskRequest, Timestamp,
    ToolResult, TurnId, Usage, Who,
};

/// What can happen to a session.
#[derive(Debug, Clone, PartialEq)]
pub enum Input {
    /// A client sends a prompt.
    Prompt {
        /// Its words.
        text: String,
        /// Who.
        by: Who,
    },
    /// A client begins a run.
    Run {
        /// What it is to reach, and what it may take.
        request: RunRequest,
        /// Who.
        by: Who,
    },
    /// A run has waited long enough after an iteration that failed.
    WaitOver {
        /// The turn of that iteration.
        turn: TurnId,
    },
    /// A client answers an ask.
    Answer {
        /// Which.
        ask: AskId,
        /// What.
        answer: Answer,
        /// Who.
        by: Who,
    },
    /// A client wants the open turn ended now.
    Interrupt {
        /// Only if it is this one.
        turn: Option<TurnId>,
        /// Who.
        by: Who,
    },
    /// A client wants the session to stop at its next boundary.
    Hold {
        /// Who.
        by: Who,
    },
    /// A client lets the session go on.
    Release,
    /// A client presses the key that holds and releases.
    Toggle {
        /// What it was showing.
        shown: HoldShown,
        /// Who.
        by: Who,
    },
    /// A client gives the session another name. That no other live session has it is seen to by whoever knows them.
    Rename {
        /// The name.
        name: String,
        /// Who.
        by: Who,
    },
    /// A client gives the session another model. That there is such a one is seen to by whoever knows them.
    Model {
        /// The model, as `provider/name`.
        model: String,
        /// Who.
        by: Who,
    },
    /// A client has the session logged at debug level, or not any more.
    Debug {
        /// Whether it is to be.
        enabled: bool,
        /// Who.
        by: Who,
    },
    /// A client ends the session.
    Close {
        /// Only if it has nothing to do, and was given and has begun nothing behind the fact of this number.
        unused_since: Option<u64>,
        /// Who.
        by: Who,
    },
    /// The runtime stops: what is open is cut and saved, and left as a restart can take it up again.
    Shutdown,
    /// A tool that runs asks the user.
    Ask {
        /// Its turn.
        turn: TurnId,
        /// Its call.
        call: CallId,
        /// What it asks.
        request: AskRequest,
    },
    /// A tool that runs wants something done to the tasks and notes.
    Tasks {
        /// Its turn.
        turn: TurnId,
        /// Its call.
        call: CallId,
        /// What it wants done.
        request: TaskRequest,
    },
    /// A call has started a background job.
    JobStarted {
        /// Its turn.
        turn: TurnId,
        /// The call, which the job goes by.
        call: CallId,
        /// What runs.
        command: String,
    },
    /// A background job is over.
    JobEnded {
        /// The call that had started it.
        job: CallId,
        /// How it ended.
        end: JobEnd,
    },
    /// The runner wants to begin something.
    Gate {
        /// Its turn.
        turn: TurnId,
        /// What.
        gate: Gate,
    },
    /// The runner tells what happened.
    Report {
        /// Its turn.
        turn: TurnId,
        /// What.
        report: Report,
    },
    /// The state was rebuilt from its log; what can't go on is to be ended.
    Restored {
        /// What had ended the actor.
        cause: RestoreCause,
        /// What was saved of an answer that was still coming: the deltas of its items.
        draft: Vec<Arc<Event>>,
    },
}

/// What a runner wants to begin.
#[derive(Debug, Clone, PartialEq)]
pub enum Gate {
    /// The next step: a model request. From the second on, also the boundary after the one before.
    Step,
    /// A tool call.
    Tool {
        /// Which.
        call: CallId,
        /// What the policy says of it.
        clearance: Clearance,
    },
}

/// What the policy says of a call that is not denied outright.
#[derive(Debug, Clone, PartialEq)]
pub enum Clearance {
    /// It may run.
    Allow,
    /// It may run if confirmed.
    Ask(Confirm),
}

/// What the user is to confirm before a call begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Confirm {
    /// The tool.
    pub tool_name: String,
    /// The question, one line.
    pub message: String,
    /// Exactly what would be done.
    pub details: Option<String>,
    /// What an *always* remembers.
    pub always: Option<String>,
    /// It is asked about because a rule may deny it: only a person approves that.
    pub may_be_denied: bool,
}

impl Confirm {
    /// What the user is shown.
    pub(super) fn request(&self) -> AskRequest {
        let Self { tool_name, message, details, .. } = self.clone();
        AskRequest::Pause(PauseRequest { kind: PauseKind::Confirm, tool_name, message, details })
    }
}

/// What a runner tells.
#[derive(Debug, Clone, PartialEq)]
pub enum Report {
    /// The model answered.
    Answered(AssistantMessage),
    /// A call ended.
    ToolFinished(ToolResult),
    /// A step ended.
    StepFinished {
        /// What it used.
        usage: Usage,
        /// How full the model's context is.
        context: Option<ContextFill>,
        /// The provider refused its request for what it was.
        refused: bool,
        /// The part that the next request leaves out, because the provider refused this one.
        omitted: Option<Omission>,
    },
    /// The workspace's `AGENTS.md` does not reach the model, or not all of it.
    ProjectCut {
        /// How much is missing, and why.
        reason: String,
    },
    /// The conversation was too long for the model: this was left out of its next request.
    HistoryCut(HistoryCut),
    /// Files have changed since the turn began.
    FilesChanged(Vec<String>),
    /// The turn ended. Nothing of it runs any more.
    Finished {
        /// How, if it was not cut.
        outcome: Outcome,
        /// What went wrong.
        error: Option<String>,
        /// The calls that the cut found running.
        tools: Vec<StoppedTool>,
        /// The processes that the cut ended.
        processes: EndedProcesses,
    },
}

/// What the machine knows besides its state.
#[derive(Debug, Clone, Copy)]
pub struct Moment<'a> {
    /// The time.
    pub now: Timestamp,
    /// The number the first fact will get; the others follow without a gap.
    pub next: u64,
    /// The bounds.
    pub limits: &'a Limits,
    /// About how many bytes every request has beside the conversation: the system prompt and the tools.
    pub fixed_bytes: u64,
}
