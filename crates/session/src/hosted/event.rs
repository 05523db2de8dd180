//! The events of an agent turn.

use blake3::Hash;
use serde_json::Value;

use super::protocol::TurnReply;

/// A permission request.
#[derive(Debug, Clone)]
pub(super) struct Permission {
    /// The id of the request.
    pub(super) id: Value,
    /// The agent call that it is about.
    pub(super) call: String,
    pub(super) allow: Option<String>,
    pub(super) reject: Option<String>,
    /// Identifies the command that an approval of the user covers.
    pub(super) covers: Option<Hash>,
}

/// An event of an agent turn.
#[derive(Debug)]
pub(super) enum AgentEvent {
    Text(String),
    Thought(String),
    /// The call with this id begins.
    Begins(String),
    /// The call with this id has news, or a permission request.
    News(String),
    /// A request for a file or a terminal waits to become a call.
    Requested,
    /// The agent uses a terminal, or one has new output or has ended.
    Terminals,
    /// The turn has ended.
    Ended(TurnReply),
}

impl AgentEvent {
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Text(text) | Self::Thought(text) | Self::Begins(text) | Self::News(text) => {
                text.len()
            }
            Self::Requested | Self::Terminals | Self::Ended(_) => 0,
        }
    }
}
