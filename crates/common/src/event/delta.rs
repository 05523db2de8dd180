//! Deltas: the events that are not logged.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::kinds::kinds;
use crate::id::ItemId;
use crate::message::BlockKind;
use crate::output::HeadAndTail;
use crate::status::SessionStatus;

kinds! {
    /// An event that is not logged.
    pub enum Delta as "Delta" {
        /// A piece of a model's text.
        "text" => Text {
            /// Item that the piece belongs to.
            item: ItemId,
            /// The piece, at most 4 KiB. At an attach it may have up to 68 KiB, where pieces that
            /// left the buffer are joined.
            text: String,
        },
        /// A piece of a model's thought.
        "thought" => Thought {
            /// Item that the piece belongs to.
            item: ItemId,
            /// The piece, at most 4 KiB. At an attach it may have up to 68 KiB, where pieces that
            /// left the buffer are joined.
            text: String,
        },
        /// A piece of a tool's output.
        "output" => Output {
            /// Item that the piece belongs to: the output of the call.
            item: ItemId,
            /// The piece, at most 32 KiB.
            text: String,
        },
        /// The status of the session changed.
        "status" => Status {
            /// New status of the session.
            status: SessionStatus,
        },
        /// The text of an item up to this number, which replaces all its earlier deltas. At an
        /// attach the text is sent in parts, and deltas with the rest may follow.
        "itemSoFar" => ItemSoFar {
            /// Id of the item.
            item: ItemId,
            /// Kind of the item.
            kind: ItemKind,
            /// Text so far. For text and thoughts it is in the head; output has a head and a tail.
            so_far: HeadAndTail,
        },
        /// A request to the model failed, and is tried again after a wait.
        "retrying" => Retrying {
            /// Number of the next try, counted from 1.
            #[serde(rename = "try")]
            next: u32,
            /// Maximum number of tries.
            tries: u32,
            /// Milliseconds until the next try.
            wait_ms: u64,
            /// Reason why the last try failed.
            reason: String,
        },
        /// The facts from `from` to `to` can't be read.
        "gap" => Gap {
            /// Number of the first missing fact.
            from: u64,
            /// Number of the last missing fact.
            to: u64,
        },
        /// Saving fails or is late. The session continues.
        "notSaved" => NotSaved {
            /// Reason why events are not saved.
            reason: String,
        },
        /// Saving works again. All events up to this one are saved.
        "savedAgain" => SavedAgain,
    }
}

/// The kind of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ItemKind {
    /// Text that a model wrote.
    Text,
    /// A thought that a model wrote.
    Thought,
    /// Output of a tool call.
    Output,
}

impl From<BlockKind> for ItemKind {
    fn from(kind: BlockKind) -> Self {
        match kind {
            BlockKind::Text => Self::Text,
            BlockKind::Thought => Self::Thought,
        }
    }
}
