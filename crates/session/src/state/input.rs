//! The machine's inputs: everything that can happen to a session.

use std::sync::Arc;

use holdpoint_common::api::RunRequest;
use holdpoint_common::{
    Answer, AskId, AskRequest, AssistantMessage, CallId, ContextFill, EndedProcesses, Event, HistoryCut, HoldShown,
    JobEnd, Limits, Omission, Outcome, PauseKind, PauseRequest, RestoreCause, StoppedTool, TaskRequest, Timestamp,
    ToolResult, TurnId, Usage, Who,
};

/// Anything that can happen to a session.
#[derive(Debug, Clone, PartialEq)]
pub enum Input {
    /// A client sends a prompt.
    Prompt {
        /// The text of the prompt.
        text: String,
        /// The client that sends it.
        by: Who,
    },
    /// A client starts a run.
    Run {
        /// The goal, the tasks and the limits of the run.
        request: RunRequest,
        /// The client that starts it.
        by: Who,
    },
    /// The wait after a failed iteration is over.
    WaitOver {
        /// The turn of the failed iteration.
        turn: TurnId,
    },
    /// A client answers an ask.
    Answer {
        /// The ask that is answered.
        ask: AskId,
        /// The answer to that ask.
        answer: Answer,
        /// The client that answers it.
        by: Who,
    },
    /// A client interrupts the open turn.
    Interrupt {
        /// The only turn that may be interrupted; `None` means any turn.
        turn: Option<TurnId>,
        /// The client that interrupts it.
        by: Who,
    },
    /// A client holds the session at its next boundary.
    Hold {
        /// The client that holds it.
        by: Who,
    },
    /// A client releases the session.
    Release,
    /// A client presses the key that toggles the hold.
    Toggle {
        /// The hold that the client was showing.
        shown: HoldShown,
        /// The client that presses it.
        by: Who,
    },
    /// A client renames the session. The sender has to ensure that no other live session has the
    /// name.
    Rename {
        /// The new name of the session.
        name: String,
        /// The client that renames it.
        by: Who,
    },
    /// A client changes the session's model. The sender has to ensure that the model exists.
    Model {
        /// The model, as `provider/name`.
        model: String,
        /// The client that changes it.
        by: Who,
    },
    /// A client turns the session's debug log on or off.
    Debug {
        /// Whether the debug log is on.
        enabled: bool,
        /// The client that changes it.
        by: Who,
    },
    /// A client closes the session.
    Close {
        /// Closes the session only if it has no work, and neither received nor began any after the
        /// fact with this number.
        unused_since: Option<u64>,
        /// The client that closes it.
        by: Who,
    },
    /// The runtime stops. Open work is cut and saved, so that a restart can continue it.
    Shutdown,
    /// A running tool asks the user.
    Ask {
        /// The turn of the call.
        turn: TurnId,
        /// The call that asks.
        call: CallId,
        /// The pause or the question.
        request: AskRequest,
    },
    /// A running tool changes the tasks or notes.
    Tasks {
        /// The turn of the call.
        turn: TurnId,
        /// The call that changes them.
        call: CallId,
        /// The change that it requests.
        request: TaskRequest,
    },
    /// A call has started a background job.
    JobStarted {
        /// The turn of the call.
        turn: TurnId,
        /// The call, which also identifies the job.
        call: CallId,
        /// The command that the job runs.
        command: String,
    },
    /// A background job has ended.
    JobEnded {
        /// The call that started the job.
        job: CallId,
        /// How the job ended.
        end: JobEnd,
    },
    /// A runner asks whether it may begin a step or a call.
    Gate {
        /// The turn of the runner.
        turn: TurnId,
        /// The step or the call.
        gate: Gate,
    },
    /// A runner reports progress.
    Report {
        /// The turn of the runner.
        turn: TurnId,
        /// The content of the report.
        report: Report,
    },
    /// The state was rebuilt from its log. Work that cannot continue has to be ended.
    Restored {
        /// The reason why the previous actor ended.
        cause: RestoreCause,
        /// The saved deltas of an answer that was still streaming.
        draft: Vec<Arc<Event>>,
    },
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
    /// The call may run.
    Allow,
    /// The call may run if the user confirms it.
    Ask(Confirm),
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
    /// Whether the policy asks because a rule may deny the call. Only a person can approve that.
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
    /// The model does not receive the workspace's `AGENTS.md`, or only a part of it.
    ProjectCut {
        /// How much is missing, and why.
        reason: String,
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
