//! A conversation as a request to Anthropic's messages API.
//!
//! Roles alternate: tool results and the user's text after them share one message, results first.
//! Signed thoughts are sent back unchanged, at their place. Unsigned ones were cut or belong to
//! another provider, and are left out. If an answer begins with a thought that is left out, so are
//! its other thoughts: with a thinking budget, a message with thoughts must begin with one.

use std::borrow::Cow;

use holdpoint_common::{
    AssistantMessage, Block as AnswerBlock, BlockKind, ModelSettings, Part, ToolCall, ToolResult,
    ToolStatus,
};
use serde::Serialize;
use serde_json::Value;

use super::{REDACTED_PREFIX, SIGNATURE_PREFIX};
use crate::model::provider::remote::{CallIds, Endpoint, result_text, wire_name};
use crate::model::{Message, ModelRequest};

/// The default for `max_tokens`, which the API requires: the maximum that every current model
/// allows.
const MAX_TOKENS: u64 = 32_000;

/// The body of a request.
#[derive(Serialize)]
pub(super) struct Body<'a> {
    model: &'a str,
    max_tokens: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    system: Vec<Content<'a>>,
    messages: Vec<Entry<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<Thinking>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_config: Option<OutputConfig<'a>>,
    stream: bool,
}

/// A message of the request: consecutive content of one role.
#[derive(Serialize)]
struct Entry<'a> {
    role: Role,
    content: Vec<Content<'a>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Role {
    User,
    Assistant,
}

#[derive(Serialize)]
struct Content<'a> {
    #[serde(flatten)]
    block: Block<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<Marker>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block<'a> {
    Text {
        text: &'a str,
    },
    Thinking {
        thinking: &'a str,
        signature: &'a str,
    },
    RedactedThinking {
        data: &'a str,
    },
    ToolUse {
        id: Cow<'a, str>,
        name: Cow<'a, str>,
        input: &'a Value,
    },
    ToolResult {
        tool_use_id: Cow<'a, str>,
        content: ResultContent<'a>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    },
}

/// The content of a result.
#[derive(Serialize)]
#[serde(untagged)]
enum ResultContent<'a> {
    Text(String),
    /// The text, then the images.
    WithImages(Vec<ResultBlock<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ResultBlock<'a> {
    Text { text: String },
    Image { source: Source<'a> },
}

#[derive(Serialize)]
struct Source<'a> {
    r#type: &'static str,
    media_type: &'static str,
    data: &'a str,
}

/// Marks the end of a prefix that the provider should cache.
#[derive(Clone, Copy, Serialize)]
struct Marker {
    r#type: &'static str,
}

const MARKER: Option<Marker> = Some(Marker { r#type: "ephemeral" });

#[derive(Serialize)]
struct Tool<'a> {
    name: &'a str,
    description: &'a str,
    input_schema: &'a Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<Marker>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Thinking {
    Enabled { budget_tokens: u64 },
    Disabled,
}

#[derive(Serialize)]
struct OutputConfig<'a> {
    effort: &'a str,
}

/// The maximum number of tokens of an answer: `max_output`, or else at most half of the window, but
/// enough for the thoughts and an answer.
pub(super) fn max_tokens(settings: &ModelSettings) -> u64 {
    let half = settings.window.map_or(MAX_TOKENS, |window| window / 2);
    // The budget for thoughts is a part of the maximum, and must leave room for an answer.
    let thoughts = settings.thinking.map_or(0, |budget| budget.saturating_add(1024));
    settings.max_output.unwrap_or(MAX_TOKENS.min(half).max(thoughts))
}

impl<'a> Body<'a> {
    /// Builds the request to this endpoint.
    pub(super) fn new(endpoint: &'a Endpoint, request: &'a ModelRequest) -> Self {
        let settings = &endpoint.settings;
        let thinking = settings.thinking.map(|budget_tokens| match budget_tokens {
            0 => Thinking::Disabled,
            _ => Thinking::Enabled { budget_tokens },
        });
        let mut body = Self {
            model: &endpoint.model,
            max_tokens: max_tokens(settings),
            system: Some(request.system.as_ref())
                .filter(|text| !text.is_empty())
                .map(text)
                .into_iter()
                .collect(),
            messages: entries(&request.messages, &CallIds::new(endpoint, &request.messages)),
            tools: request.tools.iter().map(|spec| tool(spec)).collect(),
            thinking,
            output_config: settings.effort.as_deref().map(|effort| OutputConfig { effort }),
            stream: true,
        };
        body.mark();
        body
    }

    /// Marks the prefixes that the next request shares: the tools and system prompt, and the
    /// conversation up to its end. The user's message before the last is marked again: a cached
    /// prefix may end there, too far back for the provider to find it from the last mark.
    fn mark(&mut self) {
        match (self.system.last_mut(), self.tools.last_mut()) {
            (Some(system), _) => system.cache_control = MARKER,
            (None, Some(tool)) => tool.cache_control = MARKER,
            (None, None) => {}
        }
        let last_two =
            self.messages.iter_mut().rev().filter(|entry| entry.role == Role::User).take(2);
        for content in last_two.filter_map(|entry| entry.content.last_mut()) {
            content.cache_control = MARKER;
        }
    }
}

fn entries<'a>(messages: &'a [Message], ids: &CallIds<'a>) -> Vec<Entry<'a>> {
    let mut entries: Vec<Entry<'a>> = Vec::with_capacity(messages.len());
    for message in messages {
        let (role, content) = match message {
            Message::User(words) => (Role::User, vec![text(words)]),
            Message::Assistant(answer) => (Role::Assistant, answer_blocks(answer, ids)),
            Message::Tool(result) => {
                let block = Block::ToolResult {
                    tool_use_id: ids.get(result.call),
                    content: result_content(result),
                    is_error: result.status != ToolStatus::Ok,
                };
                (Role::User, vec![block.into()])
            }
        };
        match entries.last_mut() {
            Some(entry) if entry.role == role => entry.content.extend(content),
            _ if content.is_empty() => {}
            _ => entries.push(Entry { role, content }),
        }
    }
    entries
}

fn result_content(result: &ToolResult) -> ResultContent<'_> {
    let text = result_text(result);
    if result.images.is_empty() {
        return ResultContent::Text(text);
    }
    let images = result.images.iter().map(|image| ResultBlock::Image {
        source: Source {
            r#type: "base64",
            media_type: image.media_type.as_str(),
            data: &image.data,
        },
    });
    ResultContent::WithImages([ResultBlock::Text { text }].into_iter().chain(images).collect())
}

fn answer_blocks<'a>(answer: &'a AssistantMessage, ids: &CallIds<'a>) -> Vec<Content<'a>> {
    let part = |part| match part {
        Part::Block(answer_block) => block(answer_block),
        Part::Call(ToolCall { id, name, input, .. }) => {
            Some(Block::ToolUse { id: ids.get(*id), name: wire_name(name), input })
        }
    };
    let begins_with_left_out_thought = matches!(
        answer.parts().next(),
        Some(Part::Block(first)) if first.kind == BlockKind::Thought && block(first).is_none()
    );
    let blocks = answer.parts().filter_map(part);
    blocks
        .filter(|block| !(begins_with_left_out_thought && block.is_thought()))
        .map(Content::from)
        .collect()
}

fn block(answer_block: &AnswerBlock) -> Option<Block<'_>> {
    match (answer_block.kind, answer_block.signature.as_deref()) {
        (BlockKind::Text, _) if answer_block.text.trim().is_empty() => None,
        (BlockKind::Text, _) => Some(Block::Text { text: &answer_block.text }),
        (BlockKind::Thought, signature) => {
            let signature = signature?;
            let signed = signature.strip_prefix(SIGNATURE_PREFIX);
            let signed =
                signed.map(|signature| Block::Thinking { thinking: &answer_block.text, signature });
            signed.or_else(|| {
                signature.strip_prefix(REDACTED_PREFIX).map(|data| Block::RedactedThinking { data })
            })
        }
    }
}

fn text(text: &str) -> Content<'_> {
    Block::Text { text }.into()
}

fn tool(spec: &holdpoint_tools::ToolSpec) -> Tool<'_> {
    Tool {
        name: &spec.name,
        description: &spec.description,
        input_schema: &spec.schema,
        cache_control: None,
    }
}

impl Block<'_> {
    fn is_thought(&self) -> bool {
        matches!(self, Self::Thinking { .. } | Self::RedactedThinking { .. })
    }
}

impl<'a> From<Block<'a>> for Content<'a> {
    fn from(block: Block<'a>) -> Self {
        Self { block, cache_control: None }
    }
}
