//! Answers: what clients answer to asks, who gave them, and why one had no effect.

use std::borrow::Cow;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::ask::{AskRequest, AsksMode, PauseKind, QuestionReply, QuestionRequest};
use crate::client::Who;
use crate::id::AskId;

/// What a client answers to an ask.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "camelCase", deny_unknown_fields)]
pub enum Answer {
    /// Go on: answers a Continue.
    Resume,
    /// Do it: answers a Confirm.
    Approve {
        /// Also approve the same thing for as long as this session lives.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        always: bool,
    },
    /// Do not do it: answers a Confirm.
    Deny {
        /// Why; the model reads it in the same step.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// Words: answers a question.
    Reply {
        /// One reply for each question; the reply to one that is skipped has no answer.
        answers: Vec<QuestionReply>,
    },
    /// Declines a question. The turn goes on; to end it, interrupt.
    Cancel,
}

impl Answer {
    /// The answer's stable word.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Resume => "resume",
            Self::Approve { .. } => "approve",
            Self::Deny { .. } => "deny",
            Self::Reply { .. } => "reply",
            Self::Cancel => "cancel",
        }
    }
}

impl AskRequest {
    /// Whether `answer` is of the kind this waits for, and whole.
    ///
    /// # Errors
    /// [`AnswerError::KindMismatch`] if it is of another kind, [`AnswerError::Incomplete`] if a question is
    /// left without a reply, answered twice, answered with nothing, or was never asked.
    pub fn accepts(&self, answer: &Answer) -> Result<(), AnswerError> {
        let mismatch = |expected: &'static str| {
            Err(AnswerError::KindMismatch { expected: expected.into(), given: answer.word().into() })
        };
        match (self, answer) {
            (Self::Pause(pause), answer) => match (pause.kind, answer) {
                (PauseKind::Continue, Answer::Resume)
                | (PauseKind::Confirm, Answer::Approve { .. } | Answer::Deny { .. }) => Ok(()),
                (PauseKind::Continue, _) => mismatch("resume"),
                (PauseKind::Confirm, _) => mismatch("approve or deny"),
            },
            (Self::Question(_), Answer::Cancel) => Ok(()),
            (Self::Question(request), Answer::Reply { answers }) => request.complete(answers),
            (Self::Question(_), _) => mismatch("reply or cancel"),
        }
    }
}

impl QuestionRequest {
    fn complete(&self, answers: &[QuestionReply]) -> Result<(), AnswerError> {
        for question in &self.questions {
            let mut given = answers.iter().filter(|reply| reply.id == question.id);
            let what = match (given.next(), given.next()) {
                (None, _) => "has no reply",
                (Some(_), Some(_)) => "has two replies",
                (Some(reply), None) if reply.answer.as_ref().is_some_and(|answer| answer.trim().is_empty()) => {
                    "has an empty reply"
                }
                (Some(_), None) => continue,
            };
            return Err(AnswerError::Incomplete { question: question.id.clone(), what: what.into() });
        }
        let stray = answers.iter().find(|reply| self.questions.iter().all(|question| question.id != reply.id));
        match stray {
            Some(reply) => Err(AnswerError::Incomplete { question: reply.id.clone(), what: "was never asked".into() }),
            None => Ok(()),
        }
    }
}

/// Who gave an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum AnsweredBy {
    /// A client.
    Client(Who),
    /// The session's own setting, because nobody is asked.
    Setting {
        /// The setting.
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

/// Why an ask closed without an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum AskCloseCause {
    /// The turn was interrupted.
    Interrupted,
    /// The session was closed.
    SessionClosed,
    /// The call ended without waiting for it: what it was about is gone.
    CallEnded,
    /// The turn ended without waiting for it.
    TurnEnded,
    /// The runtime was stopped.
    Shutdown,
    /// The runtime was restarted and the asking tool is gone.
    Restart,
    /// The session failed and the asking tool is gone.
    Panicked,
}

impl fmt::Display for AskCloseCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Interrupted => "the turn was interrupted",
            Self::SessionClosed => "the session was closed",
            Self::CallEnded => "its call ended",
            Self::TurnEnded => "its turn ended",
            Self::Shutdown => "the runtime was stopped",
            Self::Restart => "the runtime was restarted",
            Self::Panicked => "the session failed",
        })
    }
}

/// Why an answer had no effect. Whichever it is, nothing changed.
#[derive(Debug, Clone, PartialEq, Eq, Error, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "camelCase")]
#[non_exhaustive]
pub enum AnswerError {
    /// Someone was first.
    #[error("ask {ask} was already answered {by}")]
    AlreadyAnswered {
        /// The ask.
        ask: AskId,
        /// Who answered it.
        by: AnsweredBy,
    },
    /// The ask closed without an answer.
    #[error("ask {ask} is closed: {cause}")]
    Closed {
        /// The ask.
        ask: AskId,
        /// Why.
        cause: AskCloseCause,
    },
    /// There never was such an ask in this session.
    #[error("there is no ask {ask}")]
    Unknown {
        /// What was named.
        ask: AskId,
    },
    /// The ask waits for another kind of answer; it stays open.
    #[error("this ask waits for {expected}, not {given}")]
    KindMismatch {
        /// What it waits for.
        expected: Cow<'static, str>,
        /// What was given.
        given: Cow<'static, str>,
    },
    /// A reply to a question is not whole; it stays open.
    #[error("question `{question}` {what}")]
    Incomplete {
        /// The question's id.
        question: String,
        /// What is wrong with its reply.
        what: Cow<'static, str>,
    },
    /// An answer without an id from a client that was shown no ask.
    #[error("no ask has been shown to this client")]
    NothingShown,
}
