//! Error responses.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::error::SessionError;

/// The body of an error response. A client that knows the error has the same value as the daemon.
/// It uses the message and the hint only for errors that it does not know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ErrorBody {
    /// The error: its `code`, and its fields in `details`.
    #[serde(flatten)]
    pub error: SessionError,
    /// Description of the error, for people.
    pub message: String,
    /// Advice on how to solve the problem, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl From<SessionError> for ErrorBody {
    fn from(error: SessionError) -> Self {
        let (message, hint) = (error.to_string(), error.hint().map(str::to_owned));
        Self { error, message, hint }
    }
}

impl From<ErrorBody> for SessionError {
    fn from(body: ErrorBody) -> Self {
        match body.error {
            Self::Other { code, .. } => {
                Self::Other { code, message: body.message, hint: body.hint }
            }
            error => error,
        }
    }
}

/// An error of the HTTP request itself, not of the operation that it requests.
#[derive(Debug, Clone, PartialEq, Eq, Error, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "code", content = "details", rename_all = "camelCase")]
pub enum RequestError {
    /// The request can't be read.
    #[error("{message}")]
    Malformed {
        /// Description of the fault and its position.
        message: String,
    },
    /// The body is too large.
    #[error("the body is larger than the limit of {limit} bytes")]
    TooLarge {
        /// Maximum size in bytes.
        limit: usize,
    },
    /// The body did not arrive in time.
    #[error("the rest of the body did not arrive in time")]
    TooSlow,
    /// Too many connections are open.
    #[error("the limit of {limit} open connections, besides streams, is reached")]
    TooManyConnections {
        /// Maximum number of open connections.
        limit: usize,
    },
    /// Too many streams are open.
    #[error("the limit of {limit} open streams is reached")]
    TooManyStreams {
        /// Maximum number of open streams.
        limit: usize,
    },
    /// Too many imports are in progress.
    #[error("the limit of {limit} concurrent imports is reached")]
    TooManyImports {
        /// Maximum number of imports at the same time.
        limit: usize,
    },
    /// The client uses another version of the API.
    #[error("this daemon speaks version {supported} of the API, not {requested}")]
    OtherVersion {
        /// Version of the daemon.
        supported: u32,
        /// Version that the client requested.
        requested: String,
    },
    /// The client runs as another user, or its user is unknown.
    #[error("this daemon serves another user")]
    Forbidden,
    /// The client's process was started by a tool call, which must not act as the user.
    #[error("a command that an agent has started can't use holdpoint as the user")]
    FromTool,
    /// The system does not show whether a tool call has started the client's process.
    #[error("the client's process can't be identified: {message}")]
    Unverified {
        /// Reason why it can't be identified.
        message: String,
    },
    /// The path does not exist.
    #[error("no such path: {path}")]
    UnknownPath {
        /// Path of the request.
        path: String,
    },
    /// The path does not support the method.
    #[error("{path} does not support {method}")]
    UnknownMethod {
        /// Path of the request.
        path: String,
        /// Method of the request.
        method: String,
    },
    /// The daemon could not carry out the request.
    #[error("{message}")]
    Failed {
        /// Description of the failure.
        message: String,
    },
}

impl RequestError {
    /// The client's process can't be identified, because of this error.
    pub fn unverified(error: impl std::fmt::Display) -> Self {
        Self::Unverified { message: error.to_string() }
    }

    /// Advice on how to solve the problem, for the user of the API.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::TooManyConnections { .. } => Some("try again"),
            Self::TooManyStreams { .. } => Some("detach a client and try again"),
            Self::TooManyImports { .. } => Some("try again when one of them is done"),
            Self::OtherVersion { .. } => {
                Some("only `status`, the list of sessions and `stop` are the same in all versions")
            }
            Self::UnknownPath { .. } | Self::UnknownMethod { .. } => {
                Some("/v1/openapi.json lists every path")
            }
            Self::FromTool => Some(
                "run it in a terminal of your own; a command of an agent can use a daemon of its \
                 own, with `--state-dir DIR`",
            ),
            Self::Unverified { .. } => Some(
                "a client must run in the same container as the daemon, until it has the response",
            ),
            Self::Malformed { .. }
            | Self::TooLarge { .. }
            | Self::TooSlow
            | Self::Forbidden
            | Self::Failed { .. } => None,
        }
    }
}
