//! What can go wrong for whoever uses sessions.

mod wire;

use holdpoint_common::api::ErrorBody;
use holdpoint_common::{AnswerError, SessionId};
use holdpoint_tools::PolicyError;
use thiserror::Error;

use crate::model::ModelError;
use crate::state::Refused;
use crate::store::StoreError;

/// Why something was not done.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SessionError {
    /// There is no such session.
    #[error("there is no session `{what}`")]
    Unknown {
        /// What was named.
        what: String,
    },
    /// Several sessions may be meant: their ids begin with this, or they are called so.
    #[error("`{what}` may be any of several sessions: {}", ids.iter().map(SessionId::as_str).collect::<Vec<_>>().join(", "))]
    Ambiguous {
        /// What was named.
        what: String,
        /// The sessions.
        ids: Vec<SessionId>,
    },
    /// Only a prefix of the session's id was given, for something that needs all of it.
    #[error("`{what}` is only a prefix of a session's id: {session}")]
    Inexact {
        /// What was named.
        what: String,
        /// The session with that prefix.
        session: SessionId,
    },
    /// A live session has this name.
    #[error("a live session is already called `{name}`")]
    NameTaken {
        /// The name.
        name: String,
    },
    /// The session has an actor, and only a saved one, which has none, can be deleted.
    #[error("session {session} is live; only a saved one can be deleted")]
    Live {
        /// The session.
        session: SessionId,
    },
    /// There is no room.
    #[error("{most} sessions are live, the limit, and all of them are busy, held or attached")]
    TooManySessions {
        /// The bound.
        most: usize,
    },
    /// The session has no room for another client.
    #[error("{most} clients are attached to this session, the limit")]
    TooManyClients {
        /// The bound.
        most: usize,
    },
    /// The session has not come to the event that a client would go on from: that was of another session, or of a time
    /// that its log, taken from a backup, knows nothing of.
    #[error("session {session} has no event {after}: its newest is {newest}")]
    UnknownEvent {
        /// The session.
        session: SessionId,
        /// Where the client would go on.
        after: u64,
        /// The last number there is.
        newest: u64,
    },
    /// The workspace can't be used.
    #[error("can't work in {path}: {message}")]
    Workspace {
        /// The folder.
        path: String,
        /// What is wrong with it.
        message: String,
    },
    /// The model can't be used.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// A rule of the policy can't be kept.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The session would not do it.
    #[error(transparent)]
    Refused(Refused),
    /// The answer has no effect.
    #[error(transparent)]
    Answer(AnswerError),
    /// The store failed.
    #[error("the store failed: {0}")]
    Store(StoreError),
    /// Too much of the session is lost for it to be opened.
    #[error("session {session} is damaged: {message}")]
    Damaged {
        /// The session.
        session: SessionId,
        /// What is lost.
        message: String,
    },
    /// The session's actor ended before it replied: it is not known whether it was done.
    #[error("session {session} ended before it replied")]
    Gone {
        /// The session.
        session: SessionId,
    },
    /// The engine has stopped.
    #[error("the engine has stopped")]
    Stopped,
    /// It is only saved: whoever opens it says what with.
    #[error("session {session} is not live")]
    NotLive {
        /// The session.
        session: SessionId,
    },
    /// The daemon can't be reached: nothing was done.
    #[error("the daemon can't be reached: {message}")]
    Unreachable {
        /// Why.
        message: String,
    },
    /// The connection to the daemon broke: it is not known here whether it was done.
    #[error("the connection to the daemon broke: {message}")]
    Disconnected {
        /// How.
        message: String,
    },
    /// The daemon says so.
    #[error("{}", .0.message)]
    Elsewhere(Box<ErrorBody>),
}

impl From<StoreError> for SessionError {
    fn from(error: StoreError) -> Self {
        match error {
            // It was deleted meanwhile.
            StoreError::Unknown { session } => Self::Unknown { what: session.to_string() },
            other => Self::Store(other),
        }
    }
}

impl From<Refused> for SessionError {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Answer(error) => Self::Answer(error),
            other => Self::Refused(other),
        }
    }
}
