//! The errors that clients of sessions get, whether a session is in this process or in a daemon.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::answer::AnswerError;
use crate::api::RequestError;
use crate::id::{PromptId, SessionId};
use crate::policy::PolicyError;
use crate::sandbox::SandboxLevel;
use crate::session::NameError;
use crate::tasks::TaskError;

/// The reason why an operation on sessions failed.
///
/// As JSON, an error has a stable name, `code`, and its fields in `details`. A daemon sends it in
/// an [`ErrorBody`](crate::api::ErrorBody).
#[derive(Debug, Clone, PartialEq, Eq, Error, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "code", content = "details", rename_all = "camelCase")]
pub enum SessionError {
    /// No session has this id or name.
    #[error("there is no session `{given}`")]
    UnknownSession {
        /// Id or name that was given.
        given: String,
    },
    /// Several sessions match: their ids begin with this, or they have this name.
    #[error("`{given}` matches several sessions: {}", ids.iter().map(SessionId::as_str).collect::<Vec<_>>().join(", "))]
    Ambiguous {
        /// Name or prefix that was given.
        given: String,
        /// Ids of the sessions that match.
        ids: Vec<SessionId>,
    },
    /// Only a prefix of the session's id was given, for an operation that needs the whole id.
    #[error("`{given}` is only a prefix of a session's id: {session}")]
    Inexact {
        /// Prefix that was given.
        given: String,
        /// Id of the session that has this prefix.
        session: SessionId,
    },
    /// A live session has this name.
    #[error("a live session is already called `{name}`")]
    NameTaken {
        /// Name that is taken.
        name: String,
    },
    /// The session has an actor, but only a saved session can be deleted.
    #[error("session {session} is live; only a saved one can be deleted")]
    Live {
        /// Id of the session.
        session: SessionId,
    },
    /// The session is only saved. It has to be opened first.
    #[error("session {session} is not live")]
    NotLive {
        /// Id of the session.
        session: SessionId,
    },
    /// There is no room for another live session.
    #[error(
        "too many live sessions: the limit is {limit}, and all of them are busy, held or attached"
    )]
    TooManySessions {
        /// Maximum number of live sessions.
        limit: usize,
    },
    /// The session has no room for another client.
    #[error("the limit of {limit} attached clients is reached")]
    TooManyClients {
        /// Maximum number of attached clients.
        limit: usize,
    },
    /// The session lacks the event that a client wants to continue from. The client attached to
    /// another session before, or the log is an older one from a backup.
    #[error("session {session} has no event {after}: its newest is {newest}")]
    UnknownEvent {
        /// Id of the session.
        session: SessionId,
        /// Number that the client wants to continue from.
        after: u64,
        /// Newest number of the session.
        newest: u64,
    },
    /// The workspace can't be used.
    #[error("can't work in {path}: {message}")]
    Workspace {
        /// Path of the folder.
        path: String,
        /// Reason why it can't be used.
        message: String,
    },
    /// The requested level of the sandbox does not work on this machine.
    #[error("the sandbox `{level}` does not work here: {message}")]
    Sandbox {
        /// Requested level.
        level: SandboxLevel,
        /// Reason why it does not work.
        message: String,
    },
    /// The model is not set up: its provider is unknown, or its key is missing.
    #[error("{message}")]
    ModelSetup {
        /// Setting that is missing or wrong.
        message: String,
        /// Advice on how to set it.
        hint: String,
    },
    /// The model can't be used.
    #[error("{message}")]
    Model {
        /// Reason why it can't be used.
        message: String,
    },
    /// A rule of the policy is invalid.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The store reported an error.
    #[error("the store failed: {message}")]
    Store {
        /// Description of the error and its cause.
        message: String,
    },
    /// Another machine has the session.
    #[error("session {session} is on the machine `{owner}`")]
    NotOwner {
        /// Id of the session.
        session: SessionId,
        /// Name of the machine.
        owner: String,
    },
    /// There is no machine with this name in the fleet, or this machine is in none.
    #[error("there is no machine `{machine}` in the fleet of this one")]
    UnknownMachine {
        /// Name that was given.
        machine: String,
    },
    /// Another machine of the fleet can't be reached, so the operation was not done.
    #[error("the machine `{machine}` can't be reached: {message}")]
    MachineUnreachable {
        /// Name of the machine.
        machine: String,
        /// Reason why it can't be reached.
        message: String,
    },
    /// The workspace of the session is on another machine, or in a place that this one does not have,
    /// so the session can't run on this one.
    #[error("session {session} works in a folder of `{home}`, and runs only there")]
    HomeAway {
        /// Id of the session.
        session: SessionId,
        /// Name of the machine, or of the place, with the workspace.
        home: String,
    },
    /// The session works in a place, and its folder there can't be used on a machine that has the place.
    #[error("session {session} can't work in {path} on the machine `{machine}`: {message}")]
    PlaceUnusable {
        /// Id of the session.
        session: SessionId,
        /// Name of the machine that was to open the session.
        machine: String,
        /// Path of the folder on that machine.
        path: String,
        /// Reason why it can't be used.
        message: String,
    },
    /// Too much of the session is lost to open it.
    #[error("session {session} is damaged: {message}")]
    Damaged {
        /// Id of the session.
        session: SessionId,
        /// Part that is lost.
        message: String,
    },
    /// The session's actor ended before it replied, so it is unknown whether the operation was
    /// done.
    #[error("session {session} ended before it replied")]
    Gone {
        /// Id of the session.
        session: SessionId,
    },
    /// The engine has stopped.
    #[error("the engine has stopped")]
    Stopped,
    /// The daemon can't be reached, so the operation was not done.
    #[error("the daemon can't be reached: {message}")]
    Unreachable {
        /// Reason why it can't be reached.
        message: String,
    },
    /// The connection to the daemon broke, so it is unknown whether the operation was done.
    #[error("the connection to the daemon broke: {message}")]
    Disconnected {
        /// Description of the failure.
        message: String,
    },
    /// The session refused the operation.
    #[error(transparent)]
    #[serde(untagged)]
    Refused(#[from] Refused),
    /// The daemon refused the HTTP request.
    #[error(transparent)]
    #[serde(untagged)]
    Request(#[from] RequestError),
    /// An error that this version does not know, from a later daemon.
    #[error("{message}")]
    #[serde(untagged)]
    #[schemars(skip)]
    Other {
        /// Name of the error.
        code: String,
        /// Description of the error.
        #[serde(skip)]
        message: String,
        /// Advice on how to solve the problem.
        #[serde(skip)]
        hint: Option<String>,
    },
}

/// The reason why a session refused an operation, which changed nothing.
#[derive(Debug, Clone, PartialEq, Eq, Error, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "code", content = "details", rename_all = "camelCase")]
pub enum Refused {
    /// The session is closed.
    #[error("the session is closed")]
    Closed,
    /// The queue is full.
    #[error("queue full: {waiting} prompts are waiting")]
    QueueFull {
        /// Number of queued prompts.
        waiting: usize,
    },
    /// The prompt is not in the queue: its turn has started, or it has ended.
    #[error("prompt {prompt} is not in the queue")]
    NotQueued {
        /// Id of the prompt.
        prompt: PromptId,
    },
    /// Saving has failed for so long that no more work is accepted.
    #[error("{unsaved} bytes are not saved; new work is refused until they are")]
    NotSaving {
        /// Number of bytes that wait to be saved.
        unsaved: usize,
    },
    /// The prompt is empty.
    #[error("the prompt is empty")]
    EmptyPrompt,
    /// The prompt or the goal is too long.
    #[error("the prompt has {bytes} bytes; at most {limit} are allowed")]
    PromptTooLong {
        /// Size of the text in bytes.
        bytes: usize,
        /// Maximum size in bytes.
        limit: usize,
    },
    /// The goal of a run is empty.
    #[error("the goal is empty")]
    EmptyGoal,
    /// The session has work, or was given some in the meantime.
    #[error("the session is in use")]
    InUse,
    /// The session already has a run in progress.
    #[error("a run is in progress in this session")]
    RunOpen,
    /// The session has an open turn.
    #[error("cannot start a run while a turn is open")]
    TurnOpen,
    /// The tasks or notes cannot be changed like this.
    #[error(transparent)]
    #[serde(rename = "badTask")]
    Task(#[from] TaskError),
    /// The name is not allowed for a session.
    #[error(transparent)]
    #[serde(rename = "badName")]
    Name(#[from] NameError),
    /// The answer has no effect.
    #[error(transparent)]
    #[serde(untagged)]
    Answer(#[from] AnswerError),
}

impl SessionError {
    /// Advice on how to solve the problem that holds for every kind of client.
    #[must_use]
    pub fn hint(&self) -> Option<&str> {
        match self {
            Self::ModelSetup { hint, .. } => Some(hint),
            Self::UnknownEvent { .. } => Some("leave out `after` to begin with the first event"),
            Self::Request(error) => error.hint(),
            Self::Other { hint, .. } => hint.as_deref(),
            _ => None,
        }
    }

    /// The stable name of the error.
    #[must_use]
    pub fn code(&self) -> String {
        let json = serde_json::to_value(self).unwrap_or_default();
        json["code"].as_str().unwrap_or_default().to_owned()
    }
}

impl From<AnswerError> for SessionError {
    fn from(error: AnswerError) -> Self {
        Self::Refused(Refused::Answer(error))
    }
}

impl From<NameError> for SessionError {
    fn from(error: NameError) -> Self {
        Self::Refused(Refused::Name(error))
    }
}
