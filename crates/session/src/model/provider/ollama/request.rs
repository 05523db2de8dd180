//! A conversation as a request to Ollama's chat API.

use std::borrow::Cow;
use std::collections::HashMap;

use holdpoint_common::{AssistantMessage, BlockKind, CallId};
use serde::Serialize;
use serde_json::Value;

use crate::model::provider::remote::{CallIds, Endpoint, result_text, wire_name};
use crate::model::{Message, ModelRequest};

/// The body of a request.
#[derive(Serialize)]
pub(super) struct Body<'a> {
    model: &'a str,
    messages: Vec<Entry<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    think: Option<Think<'a>>,
    options: Options,
}

/// Whether the model should think, or how much.
#[derive(Serialize)]
#[serde(untagged)]
enum Think<'a> {
    Whether(bool),
    Effort(&'a str),
}

#[derive(Serialize)]
struct Options {
    /// Ollama silently cuts input beyond its window, and its default window is small.
    #[serde(skip_serializing_if = "Option::is_none")]
    num_ctx: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    num_predict: Option<u64>,
}

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
        content: String,
        #[serde(skip_serializing_if = "String::is_empty")]
        thinking: String,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<Call<'a>>,
    },
    Tool {
        content: String,
        tool_name: Cow<'a, str>,
        tool_call_id: Cow<'a, str>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        images: Vec<&'a str>,
    },
}

#[derive(Serialize)]
struct Call<'a> {
    id: Cow<'a, str>,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: Cow<'a, str>,
    arguments: &'a Value,
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
    /// Builds the request to this endpoint.
    pub(super) fn new(endpoint: &'a Endpoint, request: &'a ModelRequest) -> Self {
        let system =
            (!request.system.is_empty()).then_some(Entry::System { content: &request.system });
        // The tool of each call, which the result has to name as well.
        let calls = request.messages.iter().filter_map(|message| match message {
            Message::Assistant(answer) => Some(&answer.calls),
            Message::User(_) | Message::Tool(_) => None,
        });
        let tools: HashMap<CallId, &str> =
            calls.flatten().map(|call| (call.id, call.name.as_str())).collect();
        let ids = CallIds::new(endpoint, &request.messages);
        let entry = |message: &'a Message| match message {
            Message::User(content) => Some(Entry::User { content }),
            Message::Assistant(answer) => assistant(answer, &ids),
            Message::Tool(result) => Some(Entry::Tool {
                content: result_text(result),
                tool_name: wire_name(tools.get(&result.call).copied().unwrap_or_default()),
                tool_call_id: ids.get(result.call),
                images: result.images.iter().map(|image| &*image.data).collect(),
            }),
        };
        let settings = &endpoint.settings;
        // Ollama has no budget for thoughts.
        let thinks = settings.thinking.map(|tokens| tokens > 0);
        Self {
            model: &endpoint.model,
            messages: system.into_iter().chain(request.messages.iter().filter_map(entry)).collect(),
            tools: request.tools.iter().map(|spec| tool(spec)).collect(),
            stream: true,
            think: settings.effort.as_deref().map(Think::Effort).or(thinks.map(Think::Whether)),
            options: Options { num_ctx: settings.window, num_predict: settings.max_output },
        }
    }
}

/// The entry for an answer; `None` if it has neither text nor calls. All thoughts are sent,
/// whichever model had them: Ollama's are plain text without a signature.
fn assistant<'a>(answer: &'a AssistantMessage, ids: &CallIds<'a>) -> Option<Entry<'a>> {
    let thoughts = answer.blocks.iter().filter(|block| block.kind == BlockKind::Thought);
    let calls = answer.calls.iter().map(|call| Call {
        id: ids.get(call.id),
        function: Function { name: wire_name(&call.name), arguments: &call.input },
    });
    let content = answer.text();
    let tool_calls: Vec<_> = calls.collect();
    let thinking = thoughts.map(|block| block.text.as_str()).collect();
    (!content.trim().is_empty() || !tool_calls.is_empty()).then_some(Entry::Assistant {
        content,
        thinking,
        tool_calls,
    })
}

fn tool(spec: &holdpoint_tools::ToolSpec) -> Tool<'_> {
    let definition =
        Definition { name: &spec.name, description: &spec.description, parameters: &spec.schema };
    Tool { r#type: "function", function: definition }
}
