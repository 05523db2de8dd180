//! Asks: the pauses and questions of tools, and their answers.

use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::id::{AskId, CallId};
use crate::time::Timestamp;

/// The kind of a pause, which determines the answers it accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PauseKind {
    /// The user may look before the tool proceeds. The answer is resume.
    Continue,
    /// The user decides whether something may be done. The answer is approve or deny.
    Confirm,
}

/// A pause: a tool waits for the user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PauseRequest {
    /// Kind of the pause.
    pub kind: PauseKind,
    /// Name of the tool that asks.
    pub tool_name: String,
    /// Message for the user, on one line.
    pub message: String,
    /// Text that the user needs before answering, such as the exact command, an address or a diff.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<String>,
}

/// The reply to a tool that paused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum PauseResponse {
    /// The user resumed a Continue.
    Resumed,
    /// The user approved a Confirm.
    Approved,
    /// The user denied a Confirm.
    Denied {
        /// The user's reason. The tool puts it into its result, so that the model reads it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// The turn was cut, the session was closed or its actor is gone. The tool must end now.
    Interrupted,
}

/// A question to the user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Question {
    /// Id of the question, unique in its request. The reply refers to it.
    pub id: String,
    /// Short heading of the question.
    pub header: String,
    /// Text of the question.
    pub question: String,
    /// Suggested answers. The user can always reply with other words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<QuestionOption>,
}

/// A suggested answer to a question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct QuestionOption {
    /// Text of the answer.
    pub label: String,
    /// Explanation of the consequences of this choice.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
}

/// A request for words or a choice from the user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct QuestionRequest {
    /// Name of the tool that asks.
    pub tool_name: String,
    /// Questions, each answered by its id.
    pub questions: Vec<Question>,
}

/// The reply to one question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct QuestionReply {
    /// Id of the question.
    pub id: String,
    /// Label of an option or free text, not blank; `null` if the user skips the question.
    // `deserialize_with` makes the field required. By default, serde reads a missing one as `None`.
    #[serde(deserialize_with = "Option::deserialize")]
    #[schemars(schema_with = "text_or_null")]
    pub answer: Option<String>,
}

/// Schema of a required text that may be `null`.
fn text_or_null(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": ["string", "null"] })
}

/// The reply to a tool that asked a question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum QuestionResponse {
    /// The user replied to the questions.
    Replied {
        /// One reply per question, in the order of the questions.
        replies: Vec<QuestionReply>,
    },
    /// The user declined to answer. The turn continues.
    Declined,
    /// No person answers: the asks mode of the session is `deny` or `approve`.
    Unanswerable,
    /// The turn was cut, the session was closed or its actor is gone. The tool must end now.
    Interrupted,
}

/// The request of an ask: a pause or a question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum AskRequest {
    /// A tool pauses until the user answers.
    Pause(PauseRequest),
    /// A tool asks for words or a choice.
    Question(QuestionRequest),
}

impl AskRequest {
    /// Returns the message of a pause or the text of the first question.
    #[must_use]
    pub fn message(&self) -> &str {
        match self {
            Self::Pause(pause) => &pause.message,
            Self::Question(request) => {
                request.questions.first().map_or("", |question| &question.question)
            }
        }
    }

    /// Returns the name of the tool that asks.
    #[must_use]
    pub fn tool_name(&self) -> &str {
        match self {
            Self::Pause(pause) => &pause.tool_name,
            Self::Question(question) => &question.tool_name,
        }
    }
}

/// The origin of an ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AskOrigin {
    /// The policy asks for approval of a call. Its tool has not started.
    Policy,
    /// A running tool asks.
    Tool,
}

/// An open ask, with everything that a client needs to show and answer it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Ask {
    /// Id of the ask, which is never used again.
    pub id: AskId,
    /// Tool call that the ask belongs to.
    pub call: CallId,
    /// Origin of the ask.
    pub origin: AskOrigin,
    /// Time at which the ask was raised.
    pub since: Timestamp,
    /// The pause or the questions.
    pub request: AskRequest,
    /// Description of the calls that *always* would cover. If it is absent, an answer with *always*
    /// applies to this call alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub always: Option<String>,
    /// Whether a deny rule may apply to the call. Only a person can approve it then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub may_be_denied: bool,
}

impl Ask {
    /// Returns the ask as a pause, or `None` for a question.
    #[must_use]
    pub fn pause(&self) -> Option<PauseState> {
        let AskRequest::Pause(request) = &self.request else { return None };
        Some(PauseState {
            id: self.id.clone(),
            call: self.call,
            since: self.since,
            request: request.clone(),
        })
    }
}

/// An open pause in one flat object, as `sessionGetPauseState` of the Node.js package returns it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PauseState {
    /// Id of the ask, which is never used again.
    pub id: AskId,
    /// Tool call that the ask belongs to.
    pub call: CallId,
    /// Time at which the ask was raised.
    pub since: Timestamp,
    /// Kind, tool, message and details of the pause.
    #[serde(flatten)]
    pub request: PauseRequest,
}

/// The asks mode of a session, which clients can change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AsksMode {
    /// Asks wait for a person, without a timeout.
    #[default]
    Wait,
    /// Asks are answered at once: a Continue is resumed, a Confirm is denied, and a question
    /// returns an error to the model.
    Deny,
    /// Asks are answered at once: a Continue is resumed, a Confirm is approved unless a deny rule
    /// may apply to it, and a question returns an error to the model.
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
