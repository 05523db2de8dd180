//! What there is to be shown.

use holdpoint_common::{ItemId, Kept, ToolCall, ToolStatus};

use super::super::style::Tone;

/// One thing that is shown.
#[derive(Debug)]
pub(crate) struct Entry {
    /// Names it, whatever was left out before it.
    pub(crate) key: Key,
    /// Rises with every change.
    pub(crate) version: u32,
    pub(crate) kind: Kind,
}

/// What names an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Key {
    Item(ItemId),
    /// The event it came with.
    Event(u64),
    /// The event that ended its turn.
    End(u64),
}

#[derive(Debug)]
pub(crate) enum Kind {
    Prompt { text: String, by: String },
    Text { text: String, open: bool },
    Thought { text: String, open: bool },
    Tool(Box<Tool>),
    Note { tone: Tone, text: String },
}

/// A tool call, and what came of it.
#[derive(Debug)]
pub(crate) struct Tool {
    pub(crate) call: ToolCall,
    /// What it has asked, and how each was settled.
    pub(crate) asks: Vec<String>,
    pub(crate) output: Kept,
    pub(crate) state: ToolState,
}

#[derive(Debug)]
pub(crate) enum ToolState {
    Waits,
    Runs,
    Ended { status: ToolStatus, result: String },
}

impl Kind {
    /// Whether it is one of the steps on the way, which can be hidden. A call that was answered by a person is shown.
    pub(crate) fn is_step(&self) -> bool {
        match self {
            Self::Tool(tool) => tool.asks.is_empty(),
            Self::Thought { .. } => true,
            Self::Prompt { .. } | Self::Text { .. } | Self::Note { .. } => false,
        }
    }
}
