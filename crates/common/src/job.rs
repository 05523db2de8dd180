//! Background jobs: commands that outlive the tool call that started them.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::{CallId, TurnId};
use crate::time::Timestamp;

/// A running background job. It ends with its session at the latest, or when its turn is
/// interrupted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Job {
    /// Tool call that started the job, which is also the id of the job.
    pub id: CallId,
    /// Turn of that call.
    pub turn: TurnId,
    /// Shell command that runs.
    pub command: String,
    /// Time at which the job started.
    pub since: Timestamp,
}

/// The reason why a background job ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum JobEnd {
    /// The command exited by itself.
    Exited {
        /// Exit code of the command.
        code: i32,
    },
    /// The command was ended by a signal that Holdpoint did not send.
    Signalled {
        /// Number of the signal.
        signal: i32,
    },
    /// The model stopped the job.
    Stopped,
    /// The job reached its time limit.
    TimedOut,
    /// The job's turn was interrupted.
    Interrupted,
    /// The session was closed.
    SessionClosed,
    /// The runtime was stopped.
    Shutdown,
    /// The end was not observed, because the runtime was restarted or the session failed.
    Lost,
}

impl fmt::Display for JobEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited { code } => write!(f, "exit code {code}"),
            Self::Signalled { signal } => write!(f, "ended by signal {signal}"),
            Self::Stopped => f.write_str("stopped"),
            Self::TimedOut => f.write_str("timed out"),
            Self::Interrupted => f.write_str("ended with its turn"),
            Self::SessionClosed => f.write_str("ended with the session"),
            Self::Shutdown => f.write_str("ended with the runtime"),
            Self::Lost => f.write_str("lost: its end was not observed"),
        }
    }
}
