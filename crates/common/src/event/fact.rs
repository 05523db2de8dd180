//! Facts: the events that are logged, grouped into families by subject.

use std::sync::Arc;

use super::kinds::{groups, kinds};
use crate::agent::AgentStart;
use crate::answer::{Answer, AnsweredBy, AskCloseCause};
use crate::ask::{Ask, AsksMode};
use crate::client::{RefusedClient, Who};
use crate::hold::Hold;
use crate::id::{AskId, CallId, IdempotencyKey, PromptId, TaskId, TurnId};
use crate::instructions::InstructionFile;
use crate::job::{Job, JobEnd};
use crate::message::{AssistantMessage, Omission, ToolResult};
use crate::policy::PolicyMode;
use crate::run::{RunEnd, RunLimits, RunProgress, RunSettings};
use crate::session::SessionSettings;
use crate::task::{Note, TaskState};
use crate::time::Timestamp;
use crate::turn::{CutCause, Outcome, Receipt, RestoreCause};
use crate::usage::{ContextFill, HistoryCut, Usage};

groups! {
    /// An event that is logged.
    pub enum Fact {
        /// A fact about the session as a whole.
        Session(SessionFact),
        /// A fact about a prompt.
        Prompt(PromptFact),
        /// A fact about a turn.
        Turn(TurnFact),
        /// A fact about a tool call.
        Tool(ToolFact),
        /// A fact about a background job.
        Job(JobFact),
        /// A fact about an ask.
        Ask(AskFact),
        /// A fact about a run.
        Run(RunFact),
        /// A fact about a task or a note.
        Task(TaskFact),
    }
}

impl Fact {
    /// Returns the turn that the fact starts, if it starts one.
    #[must_use]
    pub fn started_turn(&self) -> Option<TurnId> {
        match self {
            Self::Turn(TurnFact::Started { turn, .. })
            | Self::Run(RunFact::IterationStarted { turn, .. }) => Some(*turn),
            _ => None,
        }
    }
}

kinds! {
    /// Facts about the session as a whole: its lifecycle, settings and hold.
    pub enum SessionFact as "SessionFact" {
        /// The session was opened. This is the first fact of every log.
        "sessionOpened" => Opened {
            /// Settings of the session.
            settings: SessionSettings,
        },
        /// The session was rebuilt from its log.
        "sessionRestored" => Restored {
            /// Reason why the previous actor had ended.
            cause: RestoreCause,
        },
        /// The session was closed.
        "sessionClosed" => Closed {
            /// Client that closed the session.
            by: Who,
        },
        /// The session was renamed. The new name is also its title.
        "sessionRenamed" => Renamed {
            /// New name of the session.
            name: String,
            /// Client that renamed the session.
            by: Who,
        },
        /// The model of the session was changed, from its next turn on.
        "modelChanged" => ModelChanged {
            /// New model, as `provider/name`.
            model: String,
            /// Client that changed the model.
            by: Who,
        },
        /// The debug log of the session was turned on or off.
        "debugChanged" => DebugChanged {
            /// Whether the session is logged at debug level.
            enabled: bool,
            /// Client that changed the setting.
            by: Who,
        },
        /// The asks mode of the session was changed. The new mode also answered the open asks.
        "asksChanged" => AsksChanged {
            /// New asks mode.
            asks: AsksMode,
            /// Client that changed the mode.
            by: Who,
        },
        /// The policy mode of the session was changed. It judges the calls that follow; open asks
        /// stay open.
        "policyChanged" => PolicyChanged {
            /// New policy mode.
            policy: PolicyMode,
            /// Client that changed the mode.
            by: Who,
        },
        /// The session was moved to another folder. It is opened there, and its work continues.
        "sessionMoved" => Moved {
            /// Machine of the folder, in a fleet.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            machine: Option<String>,
            /// Path of the folder there.
            workspace: String,
            /// Client that moved the session.
            by: Who,
        },
        /// A hold was requested, took effect or was released.
        "holdChanged" => HoldChanged {
            /// New state of the hold.
            hold: Hold,
        },
        /// A process of a tool call sent a request to the daemon, which refused it. Recorded for
        /// the first ten different requests of each command.
        "clientRefused" => ClientRefused(RefusedClient),
    }
}

kinds! {
    /// Facts about the prompts of the user.
    pub enum PromptFact as "PromptFact" {
        /// A prompt was accepted. It starts a turn or waits in the queue.
        "promptAccepted" => Accepted {
            /// Id of the prompt.
            prompt: PromptId,
            /// Text of the prompt. Snapshots with this prompt in their queue share it.
            text: Arc<str>,
            /// Client that sent the prompt.
            by: Who,
            /// Number of bytes at the beginning of the text that the user has written, if it is not
            /// all of it. Only these can name content.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            typed_bytes: Option<usize>,
            /// Key that the client has given the request. Among the last 64 keys, a second request with
            /// the same one adds no prompt.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            idempotency_key: Option<IdempotencyKey>,
        },
        /// A queued prompt was handed back to its client and will not run.
        "promptReturned" => Returned {
            /// Id of the prompt.
            prompt: PromptId,
            /// Text of the prompt, so that the client can restore it.
            text: Arc<str>,
        },
        /// A prompt that was queued during a run was delivered to an iteration.
        "promptDelivered" => Delivered {
            /// Id of the prompt.
            prompt: PromptId,
            /// Iteration that received the prompt, counted from 1.
            iteration: u32,
        },
    }
}

kinds! {
    /// Facts about a turn and its steps.
    pub enum TurnFact as "TurnFact" {
        /// The turn of a prompt started.
        "turnStarted" => Started {
            /// Id of the turn.
            turn: TurnId,
            /// Prompt that the turn works on.
            prompt: PromptId,
        },
        /// A step started: a model request is about to be sent.
        "stepStarted" => StepStarted,
        /// A model answered a request.
        "assistantMessage" => AssistantMessage(Arc<AssistantMessage>),
        /// A step of the turn ended.
        "stepFinished" => StepFinished {
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
        /// The turn found other instruction files than the last one, or the model gets another part
        /// of one.
        "instructionsRead" => InstructionsRead {
            /// All instruction files that were found, the user's first and the nearest one last.
            files: Vec<InstructionFile>,
        },
        /// Because of a fault, some or all of an instruction file does not reach the model in this
        /// turn.
        "projectCut" => ProjectCut {
            /// Description of the missing part and the reason, on one line.
            reason: String,
        },
        /// Tools are missing in this turn, for example because an MCP server did not start.
        "toolsMissing" => ToolsMissing {
            /// Description of the missing tools and the reason, on one line.
            reason: String,
        },
        /// Content that the prompt names was added to it, for example a resource of an MCP server. It
        /// follows the prompt in the model's request.
        "contentAdded" => ContentAdded {
            /// Names of the content, as the prompt has them, on one line.
            name: String,
            /// Text of the content.
            text: Arc<str>,
        },
        /// The hosted agent was started.
        "agentStarted" => AgentStarted {
            /// Id of the agent's own session, which a later start continues.
            session: String,
            /// How the agent gets the conversation.
            how: AgentStart,
        },
        /// The conversation is too long for the model. The requests of this turn leave out its
        /// oldest part.
        "historyCut" => HistoryCut(HistoryCut),
        /// The turn was cut: nothing of it starts any more.
        "turnCut" => Cut {
            /// Reason for the cut.
            cause: CutCause,
        },
        /// The turn ended. This is always the last event of the turn.
        "turnFinished" => Finished {
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
    /// Facts about tool calls.
    pub enum ToolFact as "ToolFact" {
        /// A tool call is about to run.
        "toolStarted" => Started {
            /// Id of the call.
            call: CallId,
        },
        /// A tool call ended, or will never run.
        "toolFinished" => Finished(Arc<ToolResult>),
    }
}

kinds! {
    /// Facts about background jobs.
    pub enum JobFact as "JobFact" {
        /// A background job started. It may outlive its turn.
        "jobStarted" => Started {
            /// Id, turn and command of the job.
            job: Job,
        },
        /// A background job ended.
        "jobEnded" => Ended {
            /// Tool call that started the job.
            job: CallId,
            /// Reason why the job ended.
            end: JobEnd,
        },
    }
}

kinds! {
    /// Facts about asks.
    pub enum AskFact as "AskFact" {
        /// A tool or the policy asks the user.
        "askRaised" => Raised {
            /// The ask, with everything that a client needs to show it.
            ask: Ask,
        },
        /// An ask was answered.
        "askAnswered" => Answered {
            /// Id of the ask.
            ask: AskId,
            /// The answer to the ask.
            answer: Answer,
            /// Client or setting that answered.
            by: AnsweredBy,
            /// Whether the ask was answered while the session was not live and its machine did not
            /// respond. The answer takes effect when the session is opened there. Default: `false`.
            #[serde(default, skip_serializing_if = "std::ops::Not::not")]
            while_away: bool,
        },
        /// An ask closed without an answer.
        "askClosed" => Closed {
            /// Id of the ask.
            ask: AskId,
            /// Reason why the ask closed.
            cause: AskCloseCause,
        },
    }
}

kinds! {
    /// Facts about a run and its iterations.
    pub enum RunFact as "RunFact" {
        /// A run started: a goal that is worked through in iterations.
        "runStarted" => Started {
            /// Goal, limits and hold boundary of the run.
            run: RunSettings,
            /// Client that started the run.
            by: Who,
        },
        /// The turn of a run's iteration started. The model gets the tasks and notes of earlier
        /// iterations, not their conversation.
        "iterationStarted" => IterationStarted {
            /// Turn of the iteration.
            turn: TurnId,
            /// Number of the iteration, counted from 1.
            iteration: u32,
            /// Whether the iteration was cut by a restart and now continues, with its conversation.
            #[serde(default, skip_serializing_if = "std::ops::Not::not")]
            resumed: bool,
        },
        /// An iteration failed. The next one starts after a wait.
        "runWaiting" => Waiting {
            /// Time at which the next iteration starts.
            until: Timestamp,
        },
        /// The limits of a run were raised, because its hold at a limit was released.
        "runExtended" => Extended {
            /// New limits of the run.
            limits: RunLimits,
        },
        /// A run reached its end.
        "runFinished" => Finished {
            /// Reason why the run ended.
            end: RunEnd,
            /// Progress of the run at its end.
            progress: RunProgress,
            /// Client that interrupted the run between two iterations. If the run ended with a
            /// turn, the cause of the turn's cut names the client.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            by: Option<Who>,
        },
        /// Git found changed files in this iteration of a run, including changes that no tool
        /// reported.
        "filesChanged" => FilesChanged {
            /// Paths of the files, relative to the workspace.
            paths: Vec<String>,
        },
    }
}

kinds! {
    /// Facts about the tasks and notes of a run.
    pub enum TaskFact as "TaskFact" {
        /// A task was added.
        "taskAdded" => Added {
            /// Id of the task.
            task: TaskId,
            /// Title of the task, on one line.
            title: String,
        },
        /// A task was started, finished, dropped or reopened.
        "taskMoved" => Moved {
            /// Id of the task.
            task: TaskId,
            /// New state of the task.
            to: TaskState,
        },
        /// A note was taken.
        "noteTaken" => NoteTaken {
            /// Text of the note, with its task and iteration.
            note: Note,
        },
    }
}
