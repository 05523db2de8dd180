//! Short descriptions of the machine's outcomes, for tables and comparisons.

use holdpoint_common::{
    AnswerError, AskFact, CutCause, Fact, Hold, HoldCause, JobFact, PromptFact, Receipt, Refused,
    RunFact, SessionFact, TaskFact, ToolFact, TurnFact,
};
use holdpoint_session::state::{Effect, GateReply, Handover};
use holdpoint_tools::AskReply;

use super::input::{Decision, Reply};

/// `reply | facts | effects`, or `refused: why`.
pub(super) fn outcome(outcome: &Result<Decision, Refused>) -> String {
    let decision = match outcome {
        Ok(decision) => decision,
        Err(refused) => return refusal(refused),
    };
    let facts: Vec<_> = decision.facts.iter().map(fact).collect();
    let effects: Vec<_> = decision.effects.iter().map(effect).collect();
    let mut parts = vec![reply(&decision.reply), facts.join(", "), effects.join(", ")];
    while parts.last().is_some_and(String::is_empty) {
        parts.pop();
    }
    parts.join(" | ")
}

pub(super) fn refusal(refused: &Refused) -> String {
    match refused {
        Refused::Closed => "refused: closed".to_owned(),
        Refused::QueueFull { waiting } => format!("refused: queue full, {waiting} waiting"),
        Refused::EmptyPrompt => "refused: empty".to_owned(),
        Refused::PromptTooLong { bytes, limit } => {
            format!("refused: {bytes} bytes, at most {limit}")
        }
        Refused::Answer(error) => match error {
            AnswerError::AlreadyAnswered { by, .. } => format!("refused: already answered {by}"),
            AnswerError::Closed { cause, .. } => format!("refused: ask closed, {cause}"),
            AnswerError::Unknown { .. } => "refused: unknown ask".to_owned(),
            AnswerError::KindMismatch { expected, given } => {
                format!("refused: {given}, expected {expected}")
            }
            AnswerError::Incomplete { problem, .. } => format!("refused: question {problem}"),
            other => format!("refused: {other}"),
        },
        other => format!("refused: {other}"),
    }
}

pub(super) fn reply(reply: &Reply) -> String {
    match reply {
        Reply::Prompted { prompt, position } => format!("Prompted {prompt} at {position}"),
        Reply::Unqueued => "Unqueued".to_owned(),
        Reply::RunStarted { turn: Some(turn) } => format!("RunStarted in {turn}"),
        Reply::RunStarted { turn: None } => "RunStarted, held".to_owned(),
        Reply::RunInterrupted => "RunInterrupted".to_owned(),
        Reply::Answered => "Answered".to_owned(),
        Reply::Interrupting { turn } => format!("Interrupting {turn}"),
        Reply::NotRunning => "NotRunning".to_owned(),
        Reply::Hold(is) => format!("Hold {}", hold(is)),
        Reply::Renamed => "Renamed".to_owned(),
        Reply::Handover(Handover::Done) => "Moves".to_owned(),
        Reply::Handover(Handover::Waits) => "Waits".to_owned(),
        Reply::Closing => "Closing".to_owned(),
        Reply::Stopping => "Stopping".to_owned(),
        Reply::Asked(ask) => format!("Asked {}", ask.seq),
        Reply::AskRefused => "AskRefused".to_owned(),
        Reply::Gate(GateReply::Go) => "Go".to_owned(),
        Reply::Gate(GateReply::Wait) => "Wait".to_owned(),
        Reply::Gate(GateReply::Denied { reason }) => format!("Denied `{reason}`"),
        Reply::Gate(GateReply::Limit { reason }) => format!("Limit `{reason}`"),
        Reply::Gate(GateReply::Cut) => "Cut".to_owned(),
        Reply::Noted => "Noted".to_owned(),
        Reply::Stale => "Stale".to_owned(),
    }
}

pub(super) fn hold(hold: &Hold) -> String {
    match hold {
        Hold::Off => "off".to_owned(),
        Hold::Requested { cause, .. } => format!("requested {}", held(cause)),
        Hold::Standing { cause, .. } => format!("standing {}", held(cause)),
    }
}

fn held(cause: &HoldCause) -> String {
    match cause {
        HoldCause::User { by } => format!("by {by}"),
        HoldCause::Move { by } => format!("to be moved by {by}"),
        HoldCause::Restored => "restored".to_owned(),
        HoldCause::Limit { reached } => format!("at {reached}"),
    }
}

fn cut(cause: &CutCause) -> &'static str {
    match cause {
        CutCause::User { .. } => "user",
        CutCause::Close { .. } => "close",
        CutCause::Shutdown => "shutdown",
        CutCause::Restart => "restart",
        CutCause::Panic => "panic",
    }
}

pub(super) fn fact(fact: &Fact) -> String {
    match fact {
        Fact::Session(SessionFact::Opened { .. }) => "SessionOpened".to_owned(),
        Fact::Session(SessionFact::Restored { cause }) => format!("SessionRestored({cause:?})"),
        Fact::Session(SessionFact::Closed { .. }) => "SessionClosed".to_owned(),
        Fact::Session(SessionFact::Renamed { name, .. }) => format!("SessionRenamed({name})"),
        Fact::Session(SessionFact::Moved { workspace, .. }) => format!("SessionMoved({workspace})"),
        Fact::Session(SessionFact::ModelChanged { model, .. }) => format!("ModelChanged({model})"),
        Fact::Session(SessionFact::DebugChanged { enabled, .. }) => {
            format!("DebugChanged({enabled})")
        }
        Fact::Session(SessionFact::AsksChanged { asks, .. }) => format!("AsksChanged({asks})"),
        Fact::Session(SessionFact::PolicyChanged { policy, .. }) => {
            format!("PolicyChanged({policy})")
        }
        Fact::Session(SessionFact::ClientRefused(refused)) => {
            format!("ClientRefused({})", refused.program)
        }
        Fact::Prompt(PromptFact::Accepted { prompt, .. }) => format!("PromptAccepted({prompt})"),
        Fact::Prompt(PromptFact::Returned { prompt, .. }) => format!("PromptReturned({prompt})"),
        Fact::Prompt(PromptFact::Delivered { prompt, iteration }) => {
            format!("PromptDelivered({prompt} to {iteration})")
        }
        Fact::Run(RunFact::Started { .. }) => "RunStarted".to_owned(),
        Fact::Run(RunFact::IterationStarted { turn, iteration, resumed }) => {
            format!(
                "IterationStarted({iteration} as {turn}{})",
                if *resumed { ", resumed" } else { "" }
            )
        }
        Fact::Run(RunFact::Waiting { .. }) => "RunWaiting".to_owned(),
        Fact::Run(RunFact::Extended { .. }) => "RunExtended".to_owned(),
        Fact::Run(RunFact::Finished { end, .. }) => format!("RunFinished({end})"),
        Fact::Task(TaskFact::Added { task, .. }) => format!("TaskAdded({task})"),
        Fact::Task(TaskFact::Moved { task, to }) => format!("TaskMoved({task} {to})"),
        Fact::Task(TaskFact::NoteTaken { .. }) => "NoteTaken".to_owned(),
        Fact::Turn(TurnFact::Started { turn, prompt }) => {
            format!("TurnStarted({turn} on {prompt})")
        }
        Fact::Turn(TurnFact::StepStarted) => "StepStarted".to_owned(),
        Fact::Turn(TurnFact::AssistantMessage(_)) => "AssistantMessage".to_owned(),
        Fact::Tool(ToolFact::Started { call }) => format!("ToolStarted({call})"),
        Fact::Tool(ToolFact::Finished(result)) => {
            format!("ToolFinished({} {:?})", result.call, result.status)
        }
        Fact::Turn(TurnFact::InstructionsRead { files }) => {
            format!("InstructionsRead({})", files.len())
        }
        Fact::Turn(TurnFact::ProjectCut { reason }) => format!("ProjectCut({reason})"),
        Fact::Turn(TurnFact::ToolsMissing { reason }) => format!("ToolsMissing({reason})"),
        Fact::Turn(TurnFact::ContentAdded { name, .. }) => format!("ContentAdded({name})"),
        Fact::Turn(TurnFact::AgentStarted { session, how }) => {
            format!("AgentStarted({session} {how:?})")
        }
        Fact::Turn(TurnFact::HistoryCut(cut)) => format!("HistoryCut({})", cut.messages),
        Fact::Run(RunFact::FilesChanged { paths }) => format!("FilesChanged({})", paths.join(" ")),
        Fact::Job(JobFact::Started { job }) => format!("JobStarted({})", job.id),
        Fact::Job(JobFact::Ended { job, end }) => format!("JobEnded({job} {end})"),
        Fact::Turn(TurnFact::StepFinished { .. }) => "StepFinished".to_owned(),
        Fact::Ask(AskFact::Raised { ask }) => format!("AskRaised({:?})", ask.origin),
        Fact::Ask(AskFact::Answered { answer, by, .. }) => {
            format!("AskAnswered({} {by})", answer.kind_name())
        }
        Fact::Ask(AskFact::Closed { cause, .. }) => format!("AskClosed({cause:?})"),
        Fact::Session(SessionFact::HoldChanged { hold: is }) => {
            format!("HoldChanged({})", hold(is))
        }
        Fact::Turn(TurnFact::Cut { cause }) => format!("TurnCut({})", cut(cause)),
        Fact::Turn(TurnFact::Finished { outcome, cause, receipt, .. }) => {
            let cause = cause.as_ref().map_or(String::new(), |cause| format!(" by {}", cut(cause)));
            let receipt = match receipt {
                Some(Receipt { asks, prompts, .. }) => {
                    let asks: Vec<_> = asks.iter().map(|ask| ask.seq.to_string()).collect();
                    let prompts: Vec<_> = prompts.iter().map(|prompt| prompt.to_string()).collect();
                    format!("; asks [{}] prompts [{}]", asks.join(" "), prompts.join(" "))
                }
                None => String::new(),
            };
            format!("TurnFinished({outcome}{cause}{receipt})")
        }
    }
}

fn effect(effect: &Effect) -> String {
    match effect {
        Effect::Start { turn } => format!("Start {turn}"),
        Effect::Wait { turn, .. } => format!("Wait after {turn}"),
        Effect::Cancel { turn } => format!("Cancel {turn}"),
        Effect::Wake { ask, reply } => {
            let word = match reply {
                AskReply::Pause(response) => format!("{response:?}"),
                AskReply::Question(response) => format!("{response:?}"),
                other => format!("{other:?}"),
            };
            let word = word.split([' ', '{']).next().unwrap_or_default();
            format!("Wake {} {word}", ask.seq)
        }
        Effect::Abandon => "Abandon".to_owned(),
        Effect::Stop => "Stop".to_owned(),
    }
}
