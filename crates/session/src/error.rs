//! The errors that clients of sessions get.

mod wire;

use holdpoint_common::api::ErrorBody;
use holdpoint_common::{AnswerError, SessionId};
use holdpoint_tools::PolicyError;
use thiserror::Error;

use crate::model::ModelError;
use crate::state::Refused;
use crate::store::StoreError;

/// The reason why an operation on sessions failed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SessionError {
    /// There is no such session.
    #[error("there is no session `{what}`")]
    Unknown {
        /// The id or name that was given.
        what: String,
    },
    /// Several sessions match: their ids begin with this, or they have this name.
    #[error("`{what}` matches several sessions: {}", ids.iter().map(SessionId::as_str).collect::<Vec<_>>().join(", "))]
    Ambiguous {
        /// The name or prefix that was given.
        what: String,
        /// The ids of these sessions.
        ids: Vec<SessionId>,
    },
    /// Only a prefix of the session's id was given, for an operation that needs the whole id.
    #[error("`{what}` is only a prefix of a session's id: {session}")]
    Inexact {
        /// The prefix that was given.
        what: String,
        /// The session that has this prefix.
        session: SessionId,
    },
    /// A live session has this name.
    #[error("a live session is already called `{name}`")]
    NameTaken {
        /// The name that is taken.
        name: String,
    },
    /// The session has an actor, but only a saved session can be deleted.
    #[error("session {session} is live; only a saved one can be deleted")]
    Live {
        /// The id of the session.
        session: SessionId,
    },
    /// There is no room for another live session.
    #[error("too many live sessions: the limit is {most}, and all of them are busy, held or attached")]
    TooManySessions {
        /// The limit of live sessions.
        most: usize,
    },
    /// The session has no room for another client.
    #[error("the limit of {most} attached clients is reached")]
    TooManyClients {
        /// The limit of attached clients.
        most: usize,
    },
    /// The session lacks the event that a client wants to continue from. The client attached to
    /// another session before, or the log is an older one from a backup.
    #[error("session {session} has no event {after}: its newest is {newest}")]
    UnknownEvent {
        /// The id of the session.
        session: SessionId,
        /// The number that the client wants to continue from.
        after: u64,
        /// The newest number of the session.
        newest: u64,
    },
    /// The workspace can't be used.
    #[error("can't work in {path}: {message}")]
    Workspace {
        /// The path of the folder.
        path: String,
        /// Why it can't be used.
        message: String,
    },
    /// The model can't be used.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// A rule of the policy is invalid.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The session refused the operation.
    #[error(transparent)]
    Refused(Refused),
    /// The answer has no effect.
    #[error(transparent)]
    Answer(AnswerError),
    /// The store reported an error.
    #[error("the store failed: {0}")]
    Store(StoreError),
    /// Too much of the session is lost to open it.
    #[error("session {session} is damaged: {message}")]
    Damaged {
        /// The id of the session.
        session: SessionId,
        /// Which part is lost.
        message: String,
    },
    /// The session's actor ended before it replied, so it is unknown whether the operation was
    /// done.
    #[error("session {session} ended before it replied")]
    Gone {
        /// The id of the session.
        session: SessionId,
    },
    /// The engine has stopped.
    #[error("the engine has stopped")]
    Stopped,
    /// The session is only saved, and the caller has to open it first.
    #[error("session {session} is not live")]
    NotLive {
        /// The id of the session.
        session: SessionId,
    },
    /// The daemon can't be reached, so the operation was not done.
    #[error("the daemon can't be reached: {message}")]
    Unreachable {
        /// Why it can't be reached.
        message: String,
    },
    /// The connection to the daemon broke, so it is unknown whether the operation was done.
    #[error("the connection to the daemon broke: {message}")]
    Disconnected {
        /// How the connection broke.
        message: String,
    },
    /// The daemon reported any other error.
    #[error("{}", .0.message)]
    Remote(Box<ErrorBody>),
}

impl From<StoreError> for SessionError {
    fn from(error: StoreError) -> Self {
        match error {
            // The session was deleted in the meantime.
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
