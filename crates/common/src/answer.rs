//! Answers of clients to asks, and the errors of answers without an effect.

use std::borrow::Cow;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::ask::{AskRequest, AsksMode, PauseKind, QuestionReply, QuestionRequest};
use crate::client::Who;
use crate::id::AskId;

/// A client's answer to an ask.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "camelCase", deny_unknown_fields)]
pub enum Answer {
    /// Resumes a Continue: the tool proceeds.
    Resume,
    /// Approves a Confirm: the action may be done.
    Approve {
        /// Also approve later calls with the same key, for the life of the session.
        /// Default: `false`.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        always: bool,
    },
    /// Denies a Confirm: the action must not be done.
    Deny {
        /// Reason for the model, which reads it in the same step.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// Also deny later calls with the same key, for the life of the session.
        /// Default: `false`.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        always: bool,
    },
    /// Replies to the questions of an ask.
    Reply {
        /// One reply per question. The reply to a skipped question has the answer `null`.
        answers: Vec<QuestionReply>,
    },
    /// Declines to answer the questions of an ask. The turn continues; an interrupt would end it.
    Cancel,
}

impl Answer {
    /// Returns the stable name of the answer's kind.
    #[must_use]
    pub fn kind_name(&self) -> &'static str {
        match self {
            Self::Resume => "resume",
            Self::Approve { .. } => "approve",
            Self::Deny { .. } => "deny",
            Self::Reply { .. } => "reply",
            Self::Cancel => "cancel",
        }
    }

    /// Returns whether the answer also applies to later calls with the same key. Without effect if
    /// the ask has no key.
    #[must_use]
    pub fn is_always(&self) -> bool {
        match self {
            Self::Approve { always } | Self::Deny { always, .. } => *always,
            Self::Resume | Self::Reply { .. } | Self::Cancel => false,
        }
    }
}

impl AskRequest {
    /// Checks that `answer` has the kind that this ask waits for, and that it is complete.
    ///
    /// # Errors
    /// [`AnswerError::KindMismatch`] if the answer is of another kind. [`AnswerError::Incomplete`]
    /// if a question has no reply, two replies or an empty reply, or if a reply belongs to no
    /// question.
    pub fn accepts(&self, answer: &Answer) -> Result<(), AnswerError> {
        let mismatch = |expected: &'static str| {
            Err(AnswerError::KindMismatch {
                expected: expected.into(),
                given: answer.kind_name().into(),
            })
        };
        match (self, answer) {
            (Self::Pause(pause), answer) => match (pause.kind, answer) {
                (PauseKind::Continue, Answer::Resume)
                | (PauseKind::Confirm, Answer::Approve { .. } | Answer::Deny { .. }) => Ok(()),
                (PauseKind::Continue, _) => mismatch("resume"),
                (PauseKind::Confirm, _) => mismatch("approve or deny"),
            },
            (Self::Question(_), Answer::Cancel) => Ok(()),
            (Self::Question(request), Answer::Reply { answers }) => request.check_complete(answers),
            (Self::Question(_), _) => mismatch("reply or cancel"),
        }
    }
}

impl QuestionRequest {
    fn check_complete(&self, answers: &[QuestionReply]) -> Result<(), AnswerError> {
        for question in &self.questions {
            let mut replies = answers.iter().filter(|reply| reply.id == question.id);
            let problem = match (replies.next(), replies.next()) {
                (None, _) => "has no reply",
                (Some(_), Some(_)) => "has two replies",
                (Some(reply), None)
                    if reply.answer.as_ref().is_some_and(|answer| answer.trim().is_empty()) =>
                {
                    "has an empty reply"
                }
                (Some(_), None) => continue,
            };
            return Err(AnswerError::Incomplete {
                question: question.id.clone(),
                problem: problem.into(),
            });
        }
        let stray = answers
            .iter()
            .find(|reply| self.questions.iter().all(|question| question.id != reply.id));
        match stray {
            Some(reply) => Err(AnswerError::Incomplete {
                question: reply.id.clone(),
                problem: "was never asked".into(),
            }),
            None => Ok(()),
        }
    }
}

/// The origin of an answer: a client or a setting.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum AnsweredBy {
    /// A client gave the answer.
    Client(Who),
    /// The asks mode of the session gave the answer, without a person.
    Setting {
        /// The asks mode of the session, which is `deny` or `approve`.
        asks: AsksMode,
    },
}

impl fmt::Display for AnsweredBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Client(who) => f.write_str(&who.origin()),
            Self::Setting { asks } => write!(f, "by the setting asks = {asks}"),
        }
    }
}

/// The reason why an ask closed without an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum AskCloseCause {
    /// The turn was interrupted.
    Interrupted,
    /// The session was closed.
    SessionClosed,
    /// The tool call ended before the ask was answered.
    CallEnded,
    /// The program behind the question withdrew it or ended. The tool call continues.
    Withdrawn,
    /// The turn ended before the ask was answered.
    TurnEnded,
    /// The runtime was stopped.
    Shutdown,
    /// The runtime was restarted, and the tool that asked is gone.
    Restart,
    /// The session was moved to another folder, so the effect of the call is another one.
    Moved,
    /// The session's actor failed, and the tool that asked is gone.
    Panicked,
}

impl fmt::Display for AskCloseCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Interrupted => "the turn was interrupted",
            Self::SessionClosed => "the session was closed",
            Self::CallEnded => "its call ended",
            Self::Withdrawn => "it was withdrawn",
            Self::TurnEnded => "its turn ended",
            Self::Shutdown => "the runtime was stopped",
            Self::Restart => "the runtime was restarted",
            Self::Moved => "the session was moved",
            Self::Panicked => "the session failed",
        })
    }
}

/// The reason why an answer had no effect. The session is unchanged.
#[derive(Debug, Clone, PartialEq, Eq, Error, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "code", content = "details", rename_all = "camelCase")]
pub enum AnswerError {
    /// Another answer was first.
    #[error("ask {ask} was already answered {by}")]
    AlreadyAnswered {
        /// Id of the ask.
        ask: AskId,
        /// The client or setting that answered first.
        by: AnsweredBy,
    },
    /// The ask closed without an answer.
    #[error("ask {ask} is closed: {cause}")]
    #[serde(rename = "askClosed")]
    Closed {
        /// Id of the ask.
        ask: AskId,
        /// Reason why the ask closed.
        cause: AskCloseCause,
    },
    /// The session has never raised this ask.
    #[error("there is no ask {ask}")]
    #[serde(rename = "unknownAsk")]
    Unknown {
        /// Id that the session does not know.
        ask: AskId,
    },
    /// The answer does not fit the kind of the ask, which stays open.
    #[error("this ask waits for {expected}, not {given}")]
    KindMismatch {
        /// Kinds of answer that the ask accepts.
        expected: Cow<'static, str>,
        /// Kind of the refused answer.
        given: Cow<'static, str>,
    },
    /// A reply is missing, empty or one too many. The ask stays open.
    #[error("question `{question}` {problem}")]
    #[serde(rename = "incompleteAnswer")]
    Incomplete {
        /// Id of the question.
        question: String,
        /// Description of the fault, to follow the question's id.
        problem: Cow<'static, str>,
    },
    /// The client gave no ask id, and no ask has been shown to it.
    #[error("no ask has been shown to this client")]
    NothingShown,
}
