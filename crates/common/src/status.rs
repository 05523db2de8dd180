//! What a session is doing, in one word.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// What a session is doing. Computed from its state, never stored.
///
/// The numbers and the words are stable: clients in other languages rely on them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[repr(u8)]
pub enum SessionStatus {
    /// Nothing runs and nothing waits.
    #[default]
    Idle = 0,
    /// A turn is open.
    Running = 1,
    /// A turn was cut and not everything of it is down yet.
    Interrupted = 2,
    /// An ask is open or a hold stands.
    Paused = 3,
}

impl SessionStatus {
    /// Every status, in the order of its number.
    pub const ALL: [Self; 4] = [Self::Idle, Self::Running, Self::Interrupted, Self::Paused];

    /// The status as its stable word.
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

/// A word or number that is no status.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{text}` is no status (idle, running, interrupted, paused)")]
pub struct UnknownStatus {
    /// What was given.
    pub text: String,
}
