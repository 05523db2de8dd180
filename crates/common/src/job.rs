//! Background jobs: commands that go on when the call that started them has come back.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::{CallId, TurnId};
use crate::time::Timestamp;

/// A background job that runs. It ends with its session at the latest, and with an interrupt of its turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Job {
    /// The call that started it; the job goes by this name.
    pub id: CallId,
    /// The turn of that call.
    pub turn: TurnId,
    /// What runs: the command.
    pub command: String,
    /// Since when.
    pub since: Timestamp,
}

/// How a background job ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum JobEnd {
    /// By itself, with this exit code.
    Exited {
        /// The code.
        code: i32,
    },
    /// By a signal of somebody else's.
    Signalled {
        /// Its number.
        signal: i32,
    },
    /// The model stopped it.
    Stopped,
    /// Its time was up.
    TimedOut,
    /// Its turn was interrupted.
    Interrupted,
    /// The session was closed.
    SessionClosed,
    /// The runtime was stopped.
    Shutdown,
    /// What watched it is gone: the runtime was restarted, or the session failed.
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
            Self::Lost => f.write_str("lost: what watched it is gone"),
        }
    }
}
