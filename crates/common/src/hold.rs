//! Holds: a person stops a session at its next boundary.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::client::Who;
use crate::run::RunLimit;
use crate::time::Timestamp;

/// Whether a session is held.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "state", rename_all = "camelCase")]
pub enum Hold {
    /// It goes on.
    #[default]
    Off,
    /// It will stop at its next boundary: shown as `PAUSING...`.
    Requested {
        /// Why it will.
        cause: HoldCause,
        /// Since when.
        since: Timestamp,
    },
    /// It has stopped: shown as `⏸ PAUSED`.
    Standing {
        /// Why it stands.
        cause: HoldCause,
        /// Since when.
        since: Timestamp,
    },
}

impl Hold {
    /// The state alone, as a client shows it.
    #[must_use]
    pub fn shown(&self) -> HoldShown {
        match self {
            Self::Off => HoldShown::Off,
            Self::Requested { .. } => HoldShown::Requested,
            Self::Standing { .. } => HoldShown::Standing,
        }
    }
}

/// The three states of a [`Hold`], as a client shows them and sends them back with a toggle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum HoldShown {
    /// No hold.
    #[default]
    Off,
    /// `PAUSING...`
    Requested,
    /// `⏸ PAUSED`
    Standing,
}

/// Why a hold stands, or will.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum HoldCause {
    /// A person holds it.
    User {
        /// Who.
        by: Who,
    },
    /// The session was restored with work waiting; nothing starts by itself.
    Restored,
    /// The run has taken what it was granted. A release grants as much again.
    Limit {
        /// What it has come to.
        #[serde(flatten)]
        reached: RunLimit,
    },
}

impl fmt::Display for HoldCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::User { by } => write!(f, "held {}", by.origin()),
            Self::Restored => f.write_str("restored"),
            Self::Limit { reached } => reached.fmt(f),
        }
    }
}
