//! A conversation as a request for a chat completion.
//!
//! A model gets its own thoughts back in the field in which they arrived: those of the open turn,
//! and those before a call. DeepSeek, Kimi and GLM refuse a conversation without them. Thoughts are
//! never sent to another model.

use std::borrow::Cow;
use std::collections::BTreeMap;

use holdpoint_common::{AssistantMessage, Block, BlockKind, Image, MaxTokensField};
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::{DETAILS_PREFIX, EXTRA_PREFIX, FIELD_PREFIX};
use crate::model::provider::remote::{CallIds, Endpoint, IMAGES, result_text, wire_name};
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
    stream_options: Option<StreamOptions>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<&'a str>,
    /// OpenAI's own name for the maximum number of tokens of an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u64>,
    /// The name that compatible servers use.
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u64>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

// Text is sent as one string, never as a list of parts, which older servers refuse. Results of
// tools can have no images, so these follow the results of an answer as a message of the user.
#[derive(Serialize)]
#[serde(tag = "role", rename_all = "lowercase")]
enum Entry<'a> {
    System {
        content: &'a str,
    },
    User {
        content: &'a str,
    },
    #[serde(rename = "user")]
    Images {
        content: Vec<Part<'a>>,
    },
    Assistant {
        content: Option<String>,
        /// The thoughts, by the names of their fields.
        #[serde(flatten)]
        thoughts: BTreeMap<&'a str, String>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<Call<'a>>,
        /// Gemini's signature of the answer.
        #[serde(skip_serializing_if = "Option::is_none")]
        extra_content: Option<&'a RawValue>,
        /// OpenRouter's form of the thoughts.
        #[serde(skip_serializing_if = "Option::is_none")]
        reasoning_details: Option<&'a RawValue>,
    },
    Tool {
        tool_call_id: Cow<'a, str>,
        content: String,
    },
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Part<'a> {
    Text { text: &'a str },
    ImageUrl { image_url: ImageUrl },
}

#[derive(Serialize)]
struct ImageUrl {
    url: String,
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
    /// Builds the request to this endpoint.
    pub(super) fn new(endpoint: &'a Endpoint, request: &'a ModelRequest) -> Self {
        let settings = &endpoint.settings;
        let max_output = settings.max_output;
        let field = settings.max_tokens_field.unwrap_or(if endpoint.is_providers_own() {
            MaxTokensField::MaxCompletionTokens
        } else {
            MaxTokensField::MaxTokens
        });
        let (max_completion_tokens, max_tokens) = match field {
            MaxTokensField::MaxCompletionTokens => (max_output, None),
            MaxTokensField::MaxTokens => (None, max_output),
        };
        Self {
            model: &endpoint.model,
            messages: entries(endpoint, request),
            tools: request.tools.iter().map(|spec| tool(spec)).collect(),
            stream: true,
            stream_options: settings
                .stream_options
                .unwrap_or(true)
                .then_some(StreamOptions { include_usage: true }),
            reasoning_effort: settings.effort.as_deref(),
            max_completion_tokens,
            max_tokens,
        }
    }
}

fn entries<'a>(endpoint: &Endpoint, request: &'a ModelRequest) -> Vec<Entry<'a>> {
    let ids = CallIds::new(endpoint, &request.messages);
    let turn_start = request.messages.iter().rposition(Message::is_prompt).unwrap_or(0);
    let mut entries = Vec::with_capacity(request.messages.len() + 1);
    if !request.system.is_empty() {
        entries.push(Entry::System { content: &request.system });
    }
    // The images of the results before.
    let mut images: Vec<&Image> = Vec::new();
    for (at, message) in request.messages.iter().enumerate() {
        if !matches!(message, Message::Tool(_)) {
            entries.extend(images_entry(&mut images));
        }
        match message {
            Message::User(content) => entries.push(Entry::User { content }),
            Message::Assistant(answer) => {
                let origin = if endpoint.answered(answer) {
                    AnswerOrigin::Own { in_open_turn: at > turn_start }
                } else {
                    AnswerOrigin::Others
                };
                entries.extend(assistant(answer, &ids, origin));
            }
            Message::Tool(result) => {
                images.extend(&result.images);
                entries.push(Entry::Tool {
                    tool_call_id: ids.get(result.call),
                    content: result_text(result),
                });
            }
        }
    }
    entries.extend(images_entry(&mut images));
    entries
}

/// The message with these images, in the order of the results; `None` if there are none.
fn images_entry<'a>(images: &mut Vec<&Image>) -> Option<Entry<'a>> {
    if images.is_empty() {
        return None;
    }
    let url = |image: &Image| format!("data:{};base64,{}", image.media_type.as_str(), image.data);
    let parts =
        images.drain(..).map(|image| Part::ImageUrl { image_url: ImageUrl { url: url(image) } });
    Some(Entry::Images {
        content: [Part::Text { text: IMAGES }].into_iter().chain(parts).collect(),
    })
}

/// Whether an answer is from the model that the request goes to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AnswerOrigin {
    /// From that model. `in_open_turn` says whether the answer belongs to the open turn.
    Own { in_open_turn: bool },
    /// From another model, or an unknown one.
    Others,
}

/// The entry for an answer; `None` if it has neither text nor calls.
fn assistant<'a>(
    answer: &'a AssistantMessage,
    ids: &CallIds<'a>,
    origin: AnswerOrigin,
) -> Option<Entry<'a>> {
    let extra = |signature| {
        signature_json(EXTRA_PREFIX, signature).filter(|_| origin != AnswerOrigin::Others)
    };
    let calls = answer.calls.iter().map(|call| Call {
        id: ids.get(call.id),
        r#type: "function",
        function: Function { name: wire_name(&call.name), arguments: call.input.to_string() },
        extra_content: extra(&call.signature),
    });
    let text = answer.text();
    let tool_calls: Vec<_> = calls.collect();
    let content = (!text.trim().is_empty()).then_some(text);
    // If several blocks have a signature, the last one counts.
    let signatures = || answer.blocks.iter().rev().map(|block| &block.signature);
    let extra_content = signatures().find_map(extra);
    let sends_thoughts = match origin {
        AnswerOrigin::Own { in_open_turn } => in_open_turn || !tool_calls.is_empty(),
        AnswerOrigin::Others => false,
    };
    let reasoning_details = if sends_thoughts {
        signatures().find_map(|signature| signature_json(DETAILS_PREFIX, signature))
    } else {
        None
    };
    // The details have the same thoughts.
    let thoughts = if sends_thoughts && reasoning_details.is_none() {
        thoughts(&answer.blocks)
    } else {
        BTreeMap::new()
    };
    let is_sent = content.is_some() || !tool_calls.is_empty();
    is_sent.then_some(Entry::Assistant {
        content,
        thoughts,
        tool_calls,
        extra_content,
        reasoning_details,
    })
}

/// The thoughts of an answer, joined for each field.
fn thoughts(blocks: &[Block]) -> BTreeMap<&str, String> {
    let mut thoughts: BTreeMap<&str, String> = BTreeMap::new();
    for block in blocks.iter().filter(|block| block.kind == BlockKind::Thought) {
        if let Some(field) =
            block.signature.as_deref().and_then(|signature| signature.strip_prefix(FIELD_PREFIX))
        {
            thoughts.entry(field).or_default().push_str(&block.text);
        }
    }
    thoughts
}

/// The JSON behind this prefix of a signature, unchanged.
fn signature_json<'a>(prefix: &str, signature: &'a Option<String>) -> Option<&'a RawValue> {
    serde_json::from_str(signature.as_deref()?.strip_prefix(prefix)?).ok()
}

fn tool(spec: &holdpoint_tools::ToolSpec) -> Tool<'_> {
    let definition =
        Definition { name: &spec.name, description: &spec.description, parameters: &spec.schema };
    Tool { r#type: "function", function: definition }
}
