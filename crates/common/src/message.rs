//! What models and tools say: the parts that facts are made of.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::id::{CallId, ItemId};
use crate::output::{Kept, is_zero};
use crate::usage::Usage;

/// One whole answer of a model: what a step's request brought.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AssistantMessage {
    /// Text and thoughts, in the order they came.
    pub blocks: Vec<Block>,
    /// The tools it wants called, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<ToolCall>,
    /// The answer was cut before its end: this is what had come.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub partial: bool,
    /// The model that gave it, as `provider/name`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The tokens that its request used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
}

impl AssistantMessage {
    /// Whether there is nothing in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty() && self.calls.is_empty()
    }

    /// Whether it says or does something. Thoughts alone do not: no provider takes them back.
    #[must_use]
    pub fn says_something(&self) -> bool {
        let says = |block: &Block| block.kind == BlockKind::Text && !block.text.trim().is_empty();
        !self.calls.is_empty() || self.blocks.iter().any(says)
    }

    /// Its blocks and calls, in the order in which the model wrote them.
    pub fn parts(&self) -> impl Iterator<Item = Part<'_>> {
        let mut blocks = self.blocks.iter().peekable();
        let mut calls = self.calls.iter();
        let mut written = 0;
        std::iter::from_fn(move || {
            if let Some(block) = blocks.next_if(|block| block.calls_before <= written) {
                return Some(Part::Block(block));
            }
            match calls.next() {
                Some(call) => {
                    written += 1;
                    Some(Part::Call(call))
                }
                None => blocks.next().map(Part::Block),
            }
        })
    }

    /// Its text without its thoughts.
    #[must_use]
    pub fn text(&self) -> String {
        self.blocks.iter().filter(|block| block.kind == BlockKind::Text).map(|block| block.text.as_str()).collect()
    }
}

/// One part of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part<'a> {
    /// Text or thought.
    Block(&'a Block),
    /// A call.
    Call(&'a ToolCall),
}

/// What a block of an answer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum BlockKind {
    /// Said to the user.
    Text,
    /// Thought aloud.
    Thought,
}

/// One stretch of text or thought: an item, and what its deltas add up to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Block {
    /// The item its deltas name.
    pub item: ItemId,
    /// Text or thought.
    pub kind: BlockKind,
    /// All of it.
    pub text: String,
    /// What the provider wants back unchanged with a thought.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
    /// How many calls of the answer the model had written before it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub calls_before: u32,
}

/// A tool that a model wants called.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolCall {
    /// Our own name for the call.
    pub id: CallId,
    /// The provider's name for it, which it is sent back under.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_id: Option<String>,
    /// The tool.
    pub name: String,
    /// Its arguments: an object.
    pub input: Value,
    /// What the provider wants back unchanged with the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
}

/// A part that is left out of a conversation which a provider has refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Omitted {
    /// The calls of the last answer: they and their results are sent as text.
    Calls,
    /// The thoughts of the last answer.
    Thoughts,
    /// The results of the last calls.
    Results,
    /// All calls, which are sent as text, and all thoughts.
    History,
}

/// An omission and its reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Omission {
    /// The part that is left out.
    pub what: Omitted,
    /// The provider's refusal of the conversation with it.
    pub reason: String,
}

impl fmt::Display for Omitted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Calls => "with its last tool calls as text",
            Self::Thoughts => "without its last thoughts",
            Self::Results => "without the last results of tools",
            Self::History => "with all tool calls as text and without thoughts",
        })
    }
}

/// How a tool call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ToolStatus {
    /// It did what it was called for.
    Ok,
    /// It could not; the result says why.
    Error,
    /// It was not allowed to begin.
    Denied,
    /// The turn was cut before it came back.
    Interrupted,
    /// It panicked.
    Panicked,
}

/// The end of a tool call: what the model reads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolResult {
    /// The call.
    pub call: CallId,
    /// How it ended.
    pub status: ToolStatus,
    /// What is kept of what it streamed: the call's finished item.
    #[serde(default, skip_serializing_if = "Kept::is_empty")]
    pub output: Kept,
    /// What it said at its end.
    pub result: String,
    /// Files it read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub read: Vec<FileMark>,
    /// Files it wrote.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub wrote: Vec<FileMark>,
}

impl ToolResult {
    /// A result without output, for a call that did not run.
    pub fn unrun(call: CallId, status: ToolStatus, result: impl Into<String>) -> Self {
        Self { call, status, output: Kept::default(), result: result.into(), read: vec![], wrote: vec![] }
    }

    /// The whole as the model reads it: the output, then what the tool said.
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

/// A file as a tool saw it or left it: enough to notice that someone else has changed it since.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileMark {
    /// Its path, relative to the workspace where it lies inside.
    pub path: String,
    /// Its size in bytes.
    pub size: u64,
    /// When it was last changed, in nanoseconds since 1970.
    pub modified: u64,
    /// What is in it: the first 128 bits of its BLAKE3 hash, in hexadecimal. Not of a file above 64 MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
}
