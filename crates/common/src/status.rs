//! The status of a session.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The status of a session. It is computed from the state, never stored. If several conditions hold,
/// the first of interrupted, paused, running and idle counts.
///
/// The numbers and the names are stable, because clients in other languages rely on them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[repr(u8)]
pub enum SessionStatus {
    /// No turn is open and no run is under way.
    #[default]
    Idle = 0,
    /// A turn is open or a run is under way.
    Running = 1,
    /// The turn was cut, and some of its tools or processes have not ended yet.
    Interrupted = 2,
    /// An ask is open, or the session is held.
    Paused = 3,
}

impl SessionStatus {
    /// All statuses, in the order of their numbers.
    pub const ALL: [Self; 4] = [Self::Idle, Self::Running, Self::Interrupted, Self::Paused];

    /// Returns the stable name of the status.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Running => "running",
            Self::Interrupted => "interrupted",
            Self::Paused => "paused",
        }
    }
}

impl fmt::Display for SessionStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for SessionStatus {
    type Err = UnknownStatus;

    fn from_str(text: &str) -> Result<Self, UnknownStatus> {
        Self::ALL
            .into_iter()
            .find(|status| status.as_str() == text)
            .ok_or_else(|| UnknownStatus { text: text.to_owned() })
    }
}

impl TryFrom<u8> for SessionStatus {
    type Error = UnknownStatus;

    fn try_from(number: u8) -> Result<Self, UnknownStatus> {
        Self::ALL
            .into_iter()
            .find(|status| *status as u8 == number)
            .ok_or_else(|| UnknownStatus { text: number.to_string() })
    }
}

/// The error for a word or number that is not a status.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{text}` is not a status (idle, running, interrupted, paused)")]
pub struct UnknownStatus {
    /// The text or number that was given.
    pub text: String,
}
