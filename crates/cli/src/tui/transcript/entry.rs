//! The entries of a transcript.

use holdpoint_common::{HeadAndTail, ItemId, ToolCall, ToolStatus};

use crate::narrator::Remark;

/// One entry of a transcript.
#[derive(Debug)]
pub(crate) struct Entry {
    /// Identifies the entry even after earlier ones are removed.
    pub(crate) key: Key,
    /// Rises with every change.
    pub(crate) version: u32,
    pub(crate) kind: Kind,
}

/// The identity of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Key {
    Item(ItemId),
    /// The number of the event that added the entry.
    Event(u64),
    /// The summary of a turn: the number of the event that ended the turn.
    End(u64),
}

#[derive(Debug)]
pub(crate) enum Kind {
    Prompt { text: String, by: Option<String> },
    Text { text: String, open: bool },
    Thought { text: String, open: bool },
    Tool(Box<Tool>),
    Note(Remark),
}

/// A tool call, with its asks and its result.
#[derive(Debug)]
pub(crate) struct Tool {
    pub(crate) call: ToolCall,
    /// The settled asks of the call, one line each.
    pub(crate) asks: Vec<Remark>,
    pub(crate) output: HeadAndTail,
    pub(crate) state: ToolState,
}

#[derive(Debug)]
pub(crate) enum ToolState {
    Waits,
    Runs,
    Ended { status: ToolStatus, result: String },
}

impl Kind {
    /// Whether the entry is an intermediate step, which can be hidden. A call with a settled ask is
    /// always shown.
    pub(crate) fn is_step(&self) -> bool {
        match self {
            Self::Tool(tool) => tool.asks.is_empty(),
            Self::Thought { .. } => true,
            Self::Prompt { .. } | Self::Text { .. } | Self::Note(_) => false,
        }
    }
}
