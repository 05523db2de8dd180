//! Model answers, tool calls and tool results, which are parts of facts.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::id::{CallId, ItemId};
use crate::image::Image;
use crate::output::{HeadAndTail, is_zero};
use crate::usage::Usage;

/// One answer of a model, received in one step.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AssistantMessage {
    /// Text and thoughts, in the order in which they arrived.
    pub blocks: Vec<Block>,
    /// Tool calls, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<ToolCall>,
    /// Whether the answer was cut before its end.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub partial: bool,
    /// Model that answered, as `provider/name`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Tokens used by the request and the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
}

impl AssistantMessage {
    /// Whether the answer has no block and no call.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty() && self.calls.is_empty()
    }

    /// Whether the answer has text or calls. An answer with thoughts alone can't be sent back to
    /// any provider.
    #[must_use]
    pub fn has_text_or_calls(&self) -> bool {
        let is_non_blank_text =
            |block: &Block| block.kind == BlockKind::Text && !block.text.trim().is_empty();
        !self.calls.is_empty() || self.blocks.iter().any(is_non_blank_text)
    }

    /// Iterates over the blocks and calls in the order in which the model wrote them.
    pub fn parts(&self) -> impl Iterator<Item = Part<'_>> {
        let mut blocks = self.blocks.iter().peekable();
        let mut calls = self.calls.iter();
        let mut calls_written = 0;
        std::iter::from_fn(move || {
            if let Some(block) = blocks.next_if(|block| block.calls_before <= calls_written) {
                return Some(Part::Block(block));
            }
            match calls.next() {
                Some(call) => {
                    calls_written += 1;
                    Some(Part::Call(call))
                }
                None => blocks.next().map(Part::Block),
            }
        })
    }

    /// Returns the text without the thoughts.
    #[must_use]
    pub fn text(&self) -> String {
        self.blocks
            .iter()
            .filter(|block| block.kind == BlockKind::Text)
            .map(|block| block.text.as_str())
            .collect()
    }
}

/// A block or a call of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part<'a> {
    /// A block of text or thought.
    Block(&'a Block),
    /// A call of a tool.
    Call(&'a ToolCall),
}

/// The kind of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum BlockKind {
    /// Text for the user.
    Text,
    /// A thought of the model.
    Thought,
}

/// One block of text or thought. It is an item, and the sum of the item's deltas.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Block {
    /// Id of the item.
    pub item: ItemId,
    /// Kind of the block.
    pub kind: BlockKind,
    /// Whole text of the block.
    pub text: String,
    /// Opaque data that the provider expects back unchanged with a thought.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
    /// Number of calls in the answer that the model wrote before this block.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub calls_before: u32,
}

/// A request of a model to call a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolCall {
    /// Id of the call in the session.
    pub id: CallId,
    /// Id of the call at the provider, which is sent back with the result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_id: Option<String>,
    /// Name of the tool.
    pub name: String,
    /// Arguments of the call, as an object.
    pub input: Value,
    /// Opaque data that the provider expects back unchanged with the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
}

/// The part of a refused conversation that is left out when it is sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Omitted {
    /// The calls of the last answer. They and their results are sent as text instead.
    Calls,
    /// The thoughts of the last answer.
    Thoughts,
    /// The results of the last calls.
    Results,
    /// All calls and all thoughts. The calls are sent as text instead.
    History,
}

/// A part that is left out, with the reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Omission {
    /// The part that is left out.
    pub what: Omitted,
    /// Provider's refusal of the conversation that contained the part.
    pub reason: String,
}

impl fmt::Display for Omitted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Calls => "with its last tool calls as text",
            Self::Thoughts => "without its last thoughts",
            Self::Results => "without the last tool results",
            Self::History => "with all tool calls as text and without thoughts",
        })
    }
}

/// The way a tool call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ToolStatus {
    /// The call has succeeded.
    Ok,
    /// The call failed. The result says why.
    Error,
    /// The call was denied and did not run.
    Denied,
    /// The turn was cut before the call returned.
    Interrupted,
    /// The tool panicked during the call.
    Panicked,
}

/// The end of a tool call, as the model reads it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolResult {
    /// Id of the call.
    pub call: CallId,
    /// Way the call ended.
    pub status: ToolStatus,
    /// Kept part of the output that the call streamed.
    #[serde(default, skip_serializing_if = "HeadAndTail::is_empty")]
    pub output: HeadAndTail,
    /// Text that the tool returned at its end.
    pub result: String,
    /// Images that the tool returned. The text names each of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Image>,
    /// Files that the call read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub read: Vec<FileMark>,
    /// Files that the call wrote.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub wrote: Vec<FileMark>,
}

impl ToolResult {
    /// Creates a result without output, for a call that did not run.
    pub fn not_run(call: CallId, status: ToolStatus, result: impl Into<String>) -> Self {
        Self {
            call,
            status,
            output: HeadAndTail::default(),
            result: result.into(),
            images: vec![],
            read: vec![],
            wrote: vec![],
        }
    }

    /// Returns the text for the model: the output followed by the tool's result.
    #[must_use]
    pub fn to_text(&self) -> String {
        if self.output.is_empty() {
            return self.result.clone();
        }
        let mut text = self.output.to_text();
        if !self.result.is_empty() {
            if !text.ends_with('\n') {
                text.push('\n');
            }
            text.push_str(&self.result);
        }
        text
    }
}

/// The state of a file as a tool read or left it, which shows later changes by others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileMark {
    /// Path of the file, relative to the workspace if it is inside.
    pub path: String,
    /// Size of the file in bytes.
    pub size: u64,
    /// Time of the last modification, in nanoseconds since 1970.
    pub modified: u64,
    /// First 128 bits of the content's BLAKE3 hash, in hexadecimal; absent for files larger than
    /// 64 MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
}
