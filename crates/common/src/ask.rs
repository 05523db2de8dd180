//! Asks: what a tool may ask the user, how it is shown, and how it is answered.

use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::id::{AskId, CallId};
use crate::time::Timestamp;

/// What kind of answer a pause waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PauseKind {
    /// The tool goes on when the user says so.
    Continue,
    /// The tool goes on only if the user approves.
    Confirm,
}

/// A tool stops and waits for the user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PauseRequest {
    /// What kind of answer it waits for.
    pub kind: PauseKind,
    /// The tool that asks.
    pub tool_name: String,
    /// One line for the user.
    pub message: String,
    /// What the user needs to see before answering: the exact command, an address, a diff.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<String>,
}

/// What a tool is told after it asked for a pause.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum PauseResponse {
    /// A Continue was answered: go on.
    Resumed,
    /// A Confirm was approved.
    Approved,
    /// A Confirm was denied.
    Denied {
        /// Why, in the user's words. It belongs into the tool's result, where the model reads it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// The turn was cut, the session closed, or its actor is gone: end now.
    Interrupted,
}

/// One thing a tool wants to know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Question {
    /// Names the question within its request; the reply carries it.
    pub id: String,
    /// A few words to head it with.
    pub header: String,
    /// The question itself.
    pub question: String,
    /// Ready answers; free text is always possible too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<QuestionOption>,
}

/// A ready answer to a [`Question`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct QuestionOption {
    /// The answer.
    pub label: String,
    /// What choosing it means.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
}

/// A tool asks for words or a choice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct QuestionRequest {
    /// The tool that asks.
    pub tool_name: String,
    /// What it asks, each to be answered by its id.
    pub questions: Vec<Question>,
}

/// The reply to one [`Question`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct QuestionReply {
    /// The question's id.
    pub id: String,
    /// An option's label or free text, never empty; none (`null`) if the user skips the question.
    #[serde(deserialize_with = "Option::deserialize")]
    #[schemars(schema_with = "text_or_null")]
    pub answer: Option<String>,
}

/// A text that may be `null` and can't be left out.
fn text_or_null(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": ["string", "null"] })
}

/// What a tool is told after it asked a question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum QuestionResponse {
    /// The replies, one for each question, in the questions' order.
    Replied {
        /// The replies.
        replies: Vec<QuestionReply>,
    },
    /// The user declined to answer. This is an answer: the turn goes on.
    Declined,
    /// Nobody is there to answer: the session was opened with `asks = deny` or `approve`.
    Unanswerable,
    /// The turn was cut, the session closed, or its actor is gone: end now.
    Interrupted,
}

/// What is asked: a pause or a question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum AskRequest {
    /// A tool stops and waits.
    Pause(PauseRequest),
    /// A tool wants words or a choice.
    Question(QuestionRequest),
}

impl AskRequest {
    /// What it is about, in one line of the asking tool's words.
    #[must_use]
    pub fn message(&self) -> &str {
        match self {
            Self::Pause(pause) => &pause.message,
            Self::Question(request) => request.questions.first().map_or("", |question| &question.question),
        }
    }

    /// The tool that asks.
    #[must_use]
    pub fn tool_name(&self) -> &str {
        match self {
            Self::Pause(pause) => &pause.tool_name,
            Self::Question(question) => &question.tool_name,
        }
    }
}

/// Where an ask comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AskOrigin {
    /// The policy wants a call confirmed; the call's tool has not begun.
    Policy,
    /// A tool that is running asks.
    Tool,
}

/// An open ask: what a client needs to show it and to answer it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Ask {
    /// Names it for ever.
    pub id: AskId,
    /// The tool call it belongs to.
    pub call: CallId,
    /// Where it comes from.
    pub origin: AskOrigin,
    /// Since when it is open.
    pub since: Timestamp,
    /// What is asked.
    pub request: AskRequest,
    /// What an *always* would remember, in words; without it, *always* counts as once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub always: Option<String>,
}

impl Ask {
    /// The ask as a pause, if it is one.
    #[must_use]
    pub fn pause(&self) -> Option<PauseState> {
        let AskRequest::Pause(request) = &self.request else { return None };
        Some(PauseState { id: self.id.clone(), call: self.call, since: self.since, request: request.clone() })
    }
}

/// An open pause, flat: what `sessionGetPauseState` answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PauseState {
    /// Names the ask for ever.
    pub id: AskId,
    /// The tool call it belongs to.
    pub call: CallId,
    /// Since when it is open.
    pub since: Timestamp,
    /// What the tool wants.
    #[serde(flatten)]
    pub request: PauseRequest,
}

/// Who answers a session's asks: a property of the session, given when it opens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AsksMode {
    /// A person does, however long it takes.
    #[default]
    Wait,
    /// Nobody: a Continue goes on, a Confirm is denied, a question is an error to the model.
    Deny,
    /// Nobody: a Continue goes on, a Confirm is approved, unless a rule may deny it; a question is an error to the
    /// model.
    Approve,
}

impl fmt::Display for AsksMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Wait => "wait",
            Self::Deny => "deny",
            Self::Approve => "approve",
        })
    }
}
