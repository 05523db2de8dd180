//! Holds, which stop a session at its next boundary.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::client::Who;
use crate::run::RunLimit;
use crate::time::Timestamp;

/// The hold of a session.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "state", rename_all = "camelCase")]
pub enum Hold {
    /// The session is not held.
    #[default]
    Off,
    /// The session stops at its next boundary. Clients show `PAUSING...`.
    Requested {
        /// Reason for the hold.
        cause: HoldCause,
        /// Time of the request.
        since: Timestamp,
    },
    /// The session has stopped. Clients show `⏸ PAUSED`.
    Standing {
        /// Reason for the hold.
        cause: HoldCause,
        /// Time at which the session stopped.
        since: Timestamp,
    },
}

impl Hold {
    /// Whether the session is held only to be moved.
    #[must_use]
    pub fn is_for_move(&self) -> bool {
        match self {
            Self::Requested { cause, .. } | Self::Standing { cause, .. } => {
                matches!(cause, HoldCause::Move { .. })
            }
            Self::Off => false,
        }
    }

    /// Returns the state without its cause and time.
    #[must_use]
    pub fn shown(&self) -> HoldState {
        match self {
            Self::Off => HoldState::Off,
            Self::Requested { .. } => HoldState::Requested,
            Self::Standing { .. } => HoldState::Standing,
        }
    }
}

/// The three states of a hold, as clients show them and send them back with a toggle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum HoldState {
    /// The session is not held.
    #[default]
    Off,
    /// The session stops at its next boundary: `PAUSING...`.
    Requested,
    /// The session has stopped: `⏸ PAUSED`.
    Standing,
}

/// The reason for a hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum HoldCause {
    /// A person holds the session.
    User {
        /// Client that requested the hold.
        by: Who,
    },
    /// The session is about to move to another folder, where it is released.
    Move {
        /// Client that moves it.
        by: Who,
    },
    /// The session was restored with waiting work, which does not start by itself.
    Restored,
    /// The run reached one of its limits. A release grants the same amount again.
    Limit {
        /// Limit that the run reached.
        #[serde(flatten)]
        reached: RunLimit,
    },
}

impl fmt::Display for HoldCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::User { by } => write!(f, "held {}", by.origin()),
            Self::Move { by } => write!(f, "to be moved {}", by.origin()),
            Self::Restored => f.write_str("restored"),
            Self::Limit { reached } => reached.fmt(f),
        }
    }
}
