//! The heap memory of an event: all text whose length is not fixed by a type.
//!
//! The weight of a text is its length. Crates that derive a heap size use the capacity, but the
//! weight of a fact is part of the state of a session, so it must be the same when the fact is read
//! from the log.

use serde_json::Value;

use super::{
    AskFact, Delta, Fact, JobFact, PromptFact, RunFact, SessionFact, TaskFact, ToolFact, TurnFact,
};
use crate::answer::Answer;
use crate::ask::{Ask, AskRequest, Question, QuestionOption, QuestionReply};
use crate::image::Image;
use crate::message::{AssistantMessage, Block, FileMark, ToolCall, ToolResult};
use crate::output::HeadAndTail;
use crate::policy::{PolicyRules, Rule};
use crate::sandbox::SandboxSettings;
use crate::turn::Receipt;

pub(super) fn delta_bytes(delta: &Delta) -> usize {
    match delta {
        Delta::Text { text, .. } | Delta::Thought { text, .. } | Delta::Output { text, .. } => {
            text.len()
        }
        Delta::ItemSoFar { so_far, .. } => output_bytes(so_far),
        Delta::Retrying { reason, .. } | Delta::NotSaved { reason } => reason.len(),
        Delta::Status { .. } | Delta::Gap { .. } | Delta::SavedAgain => 0,
    }
}

/// Facts without text of unbounded length weigh 0.
pub(super) fn fact_bytes(fact: &Fact) -> usize {
    match fact {
        Fact::Session(fact) => session_fact_bytes(fact),
        Fact::Prompt(PromptFact::Accepted { text, .. } | PromptFact::Returned { text, .. }) => {
            text.len()
        }
        Fact::Prompt(PromptFact::Delivered { .. }) => 0,
        Fact::Turn(fact) => turn_fact_bytes(fact),
        Fact::Tool(ToolFact::Started { .. }) => 0,
        Fact::Tool(ToolFact::Finished(result)) => result_bytes(result),
        Fact::Job(JobFact::Started { job }) => job.command.len(),
        Fact::Job(JobFact::Ended { .. }) => 0,
        Fact::Ask(AskFact::Raised { ask }) => ask_bytes(ask),
        Fact::Ask(AskFact::Answered { answer, .. }) => answer_bytes(answer),
        Fact::Ask(AskFact::Closed { .. }) => 0,
        Fact::Run(fact) => run_fact_bytes(fact),
        Fact::Task(TaskFact::Added { title, .. }) => title.len(),
        Fact::Task(TaskFact::Moved { .. }) => 0,
        Fact::Task(TaskFact::NoteTaken { note }) => note.text.len(),
    }
}

fn session_fact_bytes(fact: &SessionFact) -> usize {
    match fact {
        SessionFact::Opened { settings, .. } => {
            let PolicyRules { allow, ask, deny } = &settings.rules;
            let rules = [allow, ask, deny].into_iter().flatten();
            let texts = settings.name.len() + settings.workspace.len() + settings.model.len();
            let SandboxSettings { level: _, writable, hidden, network: _ } = &settings.sandbox;
            let paths = writable.iter().chain(hidden).map(String::len);
            texts + rules.map(rule_bytes).sum::<usize>() + paths.sum::<usize>()
        }
        SessionFact::Renamed { name, .. } => name.len(),
        SessionFact::ModelChanged { model, .. } => model.len(),
        SessionFact::Moved { machine, workspace, .. } => {
            optional_text_bytes(machine) + workspace.len()
        }
        SessionFact::ClientRefused(refused) => refused.program.len() + refused.request.len(),
        SessionFact::Restored { .. }
        | SessionFact::Closed { .. }
        | SessionFact::DebugChanged { .. }
        | SessionFact::AsksChanged { .. }
        | SessionFact::PolicyChanged { .. }
        | SessionFact::HoldChanged { .. } => 0,
    }
}

fn rule_bytes(rule: &Rule) -> usize {
    rule.tool.len() + rule.pattern.as_deref().map_or(0, str::len)
}

fn run_fact_bytes(fact: &RunFact) -> usize {
    match fact {
        RunFact::Started { run, .. } => run.goal.len(),
        RunFact::FilesChanged { paths } => {
            paths.iter().map(|path| size_of_val(path) + path.len()).sum()
        }
        RunFact::IterationStarted { .. }
        | RunFact::Waiting { .. }
        | RunFact::Extended { .. }
        | RunFact::Finished { .. } => 0,
    }
}

fn turn_fact_bytes(fact: &TurnFact) -> usize {
    match fact {
        TurnFact::AssistantMessage(message) => message_bytes(message),
        TurnFact::StepFinished { omitted, .. } => {
            omitted.as_ref().map_or(0, |omission| omission.reason.len())
        }
        TurnFact::InstructionsRead { files } => files
            .iter()
            .map(|file| size_of_val(file) + file.path.len() + optional_text_bytes(&file.reason))
            .sum(),
        TurnFact::ProjectCut { reason } | TurnFact::ToolsMissing { reason } => reason.len(),
        TurnFact::ContentAdded { name, text } => name.len() + text.len(),
        TurnFact::AgentStarted { session, .. } => session.len(),
        TurnFact::Finished { error, receipt, .. } => {
            optional_text_bytes(error) + receipt.as_ref().map_or(0, receipt_bytes)
        }
        TurnFact::Started { .. }
        | TurnFact::StepStarted
        | TurnFact::HistoryCut(_)
        | TurnFact::Cut { .. } => 0,
    }
}

fn message_bytes(message: &AssistantMessage) -> usize {
    let block_bytes = |block: &Block| {
        size_of_val(block) + block.text.len() + optional_text_bytes(&block.signature)
    };
    let call_bytes = |call: &ToolCall| {
        let provider_data =
            optional_text_bytes(&call.provider_id) + optional_text_bytes(&call.signature);
        size_of_val(call) + call.name.len() + json_bytes(&call.input) + provider_data
    };
    let blocks: usize = message.blocks.iter().map(block_bytes).sum();
    let calls: usize = message.calls.iter().map(call_bytes).sum();
    blocks + calls + optional_text_bytes(&message.model)
}

fn result_bytes(result: &ToolResult) -> usize {
    let mark_bytes =
        |mark: &FileMark| size_of_val(mark) + mark.path.len() + optional_text_bytes(&mark.hash);
    let marks: usize = result.read.iter().chain(&result.wrote).map(mark_bytes).sum();
    let image_bytes = |image: &Image| size_of_val(image) + image.data.len();
    let images: usize = result.images.iter().map(image_bytes).sum();
    output_bytes(&result.output) + result.result.len() + images + marks
}

fn ask_bytes(ask: &Ask) -> usize {
    let option_bytes = |option: &QuestionOption| {
        size_of_val(option) + option.label.len() + option.description.len()
    };
    let question_bytes = |question: &Question| {
        let texts = question.id.len() + question.header.len() + question.question.len();
        size_of_val(question) + texts + question.options.iter().map(option_bytes).sum::<usize>()
    };
    optional_text_bytes(&ask.always)
        + ask.request.tool_name().len()
        + match &ask.request {
            AskRequest::Pause(pause) => pause.message.len() + optional_text_bytes(&pause.details),
            AskRequest::Question(request) => request.questions.iter().map(question_bytes).sum(),
        }
}

fn answer_bytes(answer: &Answer) -> usize {
    let reply_bytes = |reply: &QuestionReply| {
        size_of_val(reply) + reply.id.len() + optional_text_bytes(&reply.answer)
    };
    match answer {
        Answer::Deny { reason, .. } => optional_text_bytes(reason),
        Answer::Reply { answers } => answers.iter().map(reply_bytes).sum(),
        Answer::Resume | Answer::Approve { .. } | Answer::Cancel => 0,
    }
}

fn receipt_bytes(receipt: &Receipt) -> usize {
    let tools: usize = receipt.tools.iter().map(|tool| size_of_val(tool) + tool.name.len()).sum();
    tools
        + size_of_val(&*receipt.asks)
        + size_of_val(&*receipt.prompts)
        + size_of_val(&*receipt.processes.not_ended)
}

fn output_bytes(output: &HeadAndTail) -> usize {
    output.head.len() + output.tail.len()
}

fn optional_text_bytes(text: &Option<String>) -> usize {
    text.as_ref().map_or(0, String::len)
}

fn json_bytes(value: &Value) -> usize {
    size_of_val(value)
        + match value {
            Value::String(text) => text.len(),
            Value::Array(values) => values.iter().map(json_bytes).sum(),
            Value::Object(map) => {
                map.iter().map(|(key, value)| key.len() + json_bytes(value)).sum()
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        }
}
