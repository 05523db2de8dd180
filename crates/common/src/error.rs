//! What can be wrong with what a client sends.

use thiserror::Error;

use crate::ask::{AnsweredBy, AskCloseCause};
use crate::id::AskId;

/// A name that names nothing.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum IdError {
    /// Not a session id.
    #[error("`{text}` is no session id (1 to 64 of a-z, 0-9 and -)")]
    Session {
        /// What was given.
        text: String,
    },
    /// Not an ask id.
    #[error("`{text}` is no ask id (session.number)")]
    Ask {
        /// What was given.
        text: String,
    },
    /// Not a status.
    #[error("`{text}` is no status (idle, running, interrupted, paused)")]
    Status {
        /// What was given.
        text: String,
    },
}

/// Why an answer had no effect. Whichever it is, nothing changed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum AnswerError {
    /// Someone was first.
    #[error("ask {ask} was already answered, by {by}")]
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
        expected: &'static str,
        /// What was given.
        given: &'static str,
    },
    /// A reply to a question is not whole; it stays open.
    #[error("question `{question}` {what}")]
    Incomplete {
        /// The question's id.
        question: String,
        /// What is wrong with its reply.
        what: &'static str,
    },
    /// An answer without an id from a client that was shown no ask.
    #[error("no ask has been shown to this client")]
    NothingShown,
}
