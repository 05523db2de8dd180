//! A conversation as chat completions have it.
//!
//! A model that thinks gets its thoughts back in the field in which they came: those of the turn that is under way, and
//! those before a call. DeepSeek, Kimi and GLM refuse a conversation without them, and no other model is sent them.

use std::borrow::Cow;
use std::collections::BTreeMap;

use holdpoint_common::{AssistantMessage, Block, BlockKind, MaxTokensField};
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::{EXTRA, FIELD};
use crate::model::provider::remote::{CallIds, Endpoint, result_text, wire_name};
use crate::model::{Message, ModelRequest};

/// A request.
#[derive(Serialize)]
pub(super) struct Body<'a> {
    model: &'a str,
    messages: Vec<Entry<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<&'a str>,
    /// OpenAI's own name for the most tokens of an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u64>,
    /// The name that compatible servers know.
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u64>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

// Text goes as one string, never as a list of parts, which older servers refuse.
#[derive(Serialize)]
#[serde(tag = "role", rename_all = "lowercase")]
enum Entry<'a> {
    System {
        content: &'a str,
    },
    User {
        content: &'a str,
    },
    Assistant {
        content: Option<String>,
        /// A thought, by the name of its field.
        #[serde(flatten)]
        thoughts: BTreeMap<&'a str, String>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<Call<'a>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        extra_content: Option<&'a RawValue>,
    },
    Tool {
        tool_call_id: Cow<'a, str>,
        content: String,
    },
}

#[derive(Serialize)]
struct Call<'a> {
    id: Cow<'a, str>,
    r#type: &'static str,
    function: Function<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    extra_content: Option<&'a RawValue>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: Cow<'a, str>,
    /// An object, as JSON text.
    arguments: String,
}

#[derive(Serialize)]
struct Tool<'a> {
    r#type: &'static str,
    function: Definition<'a>,
}

#[derive(Serialize)]
struct Definition<'a> {
    name: &'a str,
    description: &'a str,
    parameters: &'a Value,
}

impl<'a> Body<'a> {
    /// The request to this endpoint.
    pub(super) fn of(endpoint: &'a Endpoint, request: &'a ModelRequest) -> Self {
        let system = (!request.system.is_empty()).then_some(Entry::System { content: &request.system });
        let settings = &endpoint.settings;
        let (most, field) = (settings.max_output, settings.max_tokens_field);
        let field = field.unwrap_or(if endpoint.is_public() {
            MaxTokensField::MaxCompletionTokens
        } else {
            MaxTokensField::MaxTokens
        });
        let (max_completion_tokens, max_tokens) = match field {
            MaxTokensField::MaxCompletionTokens => (most, None),
            MaxTokensField::MaxTokens => (None, most),
        };
        let ids = CallIds::of(endpoint, &request.messages);
        let turn = request.messages.iter().rposition(Message::is_prompt).unwrap_or(0);
        let entry = |(at, message): (usize, &'a Message)| match message {
            Message::User(content) => Some(Entry::User { content }),
            Message::Assistant(answer) => {
                let whose = if endpoint.answered(answer) { Whose::Own { of_turn: at > turn } } else { Whose::Others };
                assistant(answer, &ids, whose)
            }
            Message::Tool(result) => {
                Some(Entry::Tool { tool_call_id: ids.get(result.call), content: result_text(result) })
            }
        };
        Self {
            model: &endpoint.model,
            messages: system.into_iter().chain(request.messages.iter().enumerate().filter_map(entry)).collect(),
            tools: request.tools.iter().map(tool).collect(),
            stream: true,
            stream_options: settings.stream_options.unwrap_or(true).then_some(StreamOptions { include_usage: true }),
            reasoning_effort: settings.effort.as_deref(),
            max_completion_tokens,
            max_tokens,
        }
    }
}

/// Which model gave an answer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Whose {
    /// The one that the request goes to. `of_turn`: in the turn that is under way.
    Own { of_turn: bool },
    /// Another one, or it is not known.
    Others,
}

/// An answer as it is sent; nothing for one that says nothing.
fn assistant<'a>(answer: &'a AssistantMessage, ids: &CallIds<'a>, whose: Whose) -> Option<Entry<'a>> {
    let extra = |signature: &'a Option<String>| extra(signature.as_deref().filter(|_| whose != Whose::Others)?);
    let calls = answer.calls.iter().map(|call| Call {
        id: ids.get(call.id),
        r#type: "function",
        function: Function { name: wire_name(&call.name), arguments: call.input.to_string() },
        extra_content: extra(&call.signature),
    });
    let (text, tool_calls) = (answer.text(), calls.collect::<Vec<_>>());
    let content = (!text.trim().is_empty()).then_some(text);
    let extra_content = answer.blocks.iter().rev().find_map(|block| extra(&block.signature));
    let thinks = match whose {
        Whose::Own { of_turn } => of_turn || !tool_calls.is_empty(),
        Whose::Others => false,
    };
    let thoughts = if thinks { thoughts(&answer.blocks) } else { BTreeMap::new() };
    let says = content.is_some() || !tool_calls.is_empty();
    says.then_some(Entry::Assistant { content, thoughts, tool_calls, extra_content })
}

/// The thoughts of an answer, each whole in its field.
fn thoughts(blocks: &[Block]) -> BTreeMap<&str, String> {
    let mut thoughts: BTreeMap<&str, String> = BTreeMap::new();
    for block in blocks.iter().filter(|block| block.kind == BlockKind::Thought) {
        if let Some(field) = block.signature.as_deref().and_then(|signature| signature.strip_prefix(FIELD)) {
            thoughts.entry(field).or_default().push_str(&block.text);
        }
    }
    thoughts
}

/// Gemini's `extra_content`, unchanged.
fn extra(signature: &str) -> Option<&RawValue> {
    serde_json::from_str(signature.strip_prefix(EXTRA)?).ok()
}

fn tool(spec: &holdpoint_tools::ToolSpec) -> Tool<'_> {
    let definition = Definition { name: &spec.name, description: &spec.description, parameters: &spec.schema };
    Tool { r#type: "function", function: definition }
}
