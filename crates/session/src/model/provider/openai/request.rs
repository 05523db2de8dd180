//! A conversation as chat completions have it.

use std::borrow::Cow;

use holdpoint_common::AssistantMessage;
use serde::Serialize;
use serde_json::Value;

use crate::model::provider::remote::{Endpoint, call_id, result_text, wire_name};
use crate::model::{Message, ModelRequest};

/// A request.
#[derive(Serialize)]
pub(super) struct Body<'a> {
    model: &'a str,
    messages: Vec<Entry<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    stream: bool,
    stream_options: StreamOptions,
    /// OpenAI's own name for the most tokens of an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u64>,
    /// Everyone else's.
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
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<Call<'a>>,
    },
    Tool {
        tool_call_id: String,
        content: String,
    },
}

#[derive(Serialize)]
struct Call<'a> {
    id: String,
    r#type: &'static str,
    function: Function<'a>,
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
        let most = endpoint.settings.max_output;
        let (max_completion_tokens, max_tokens) = if endpoint.is_public() { (most, None) } else { (None, most) };
        Self {
            model: &endpoint.model,
            messages: system.into_iter().chain(request.messages.iter().filter_map(entry)).collect(),
            tools: request.tools.iter().map(tool).collect(),
            stream: true,
            stream_options: StreamOptions { include_usage: true },
            max_completion_tokens,
            max_tokens,
        }
    }
}

/// A message as it is sent; nothing for an answer that says nothing.
fn entry(message: &Message) -> Option<Entry<'_>> {
    Some(match message {
        Message::User(content) => Entry::User { content },
        Message::Assistant(answer) => return assistant(answer),
        Message::Tool(result) => Entry::Tool { tool_call_id: call_id(result.call), content: result_text(result) },
    })
}

fn assistant(answer: &AssistantMessage) -> Option<Entry<'_>> {
    let calls = answer.calls.iter().map(|call| Call {
        id: call_id(call.id),
        r#type: "function",
        function: Function { name: wire_name(&call.name), arguments: call.input.to_string() },
    });
    let (text, tool_calls) = (answer.text(), calls.collect::<Vec<_>>());
    let content = (!text.trim().is_empty()).then_some(text);
    (content.is_some() || !tool_calls.is_empty()).then_some(Entry::Assistant { content, tool_calls })
}

fn tool(spec: &holdpoint_tools::ToolSpec) -> Tool<'_> {
    let definition = Definition { name: &spec.name, description: &spec.description, parameters: &spec.schema };
    Tool { r#type: "function", function: definition }
}
