//! A conversation as a request to Gemini.
//!
//! Responses to calls are one content, and the user's text after them is another, because Gemini
//! answers poorly if they share one. Signed parts are sent back unchanged; unsigned thoughts are
//! left out.

use holdpoint_common::{
    AssistantMessage, Block, BlockKind, CallId, Image, Part as AnswerPart, ToolStatus,
};
use serde::Serialize;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::HashMap;

use super::SIGNATURE_PREFIX;
use crate::model::provider::remote::{CallIds, Endpoint, IMAGES, result_text, wire_name};
use crate::model::{Message, ModelRequest};

/// The body of a request.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Body<'a> {
    contents: Vec<Content<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    system_instruction: Option<Instruction<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<[Tools<'a>; 1]>,
    generation_config: GenerationConfig<'a>,
}

#[derive(Serialize)]
struct Instruction<'a> {
    parts: [Part<'a>; 1],
}

#[derive(Serialize)]
struct Content<'a> {
    role: Role,
    parts: Vec<Part<'a>>,
}

#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "lowercase")]
enum Role {
    User,
    Model,
}

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Part<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'a str>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    thought: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    function_call: Option<FunctionCall<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    function_response: Option<FunctionResponse<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    inline_data: Option<InlineData<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thought_signature: Option<&'a str>,
}

#[derive(Serialize)]
struct FunctionCall<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<Cow<'a, str>>,
    name: Cow<'a, str>,
    args: &'a Value,
}

#[derive(Serialize)]
struct FunctionResponse<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<Cow<'a, str>>,
    name: Cow<'a, str>,
    response: Response,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    parts: Vec<Part<'a>>,
}

/// An image.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct InlineData<'a> {
    mime_type: &'static str,
    data: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum Response {
    Output(String),
    Error(String),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Tools<'a> {
    function_declarations: Vec<Declaration<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Declaration<'a> {
    name: &'a str,
    description: &'a str,
    parameters_json_schema: &'a Value,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct GenerationConfig<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_config: Option<ThinkingConfig<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ThinkingConfig<'a> {
    include_thoughts: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_budget: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_level: Option<&'a str>,
}

impl<'a> Body<'a> {
    /// Builds the request to this endpoint.
    pub(super) fn new(endpoint: &'a Endpoint, request: &'a ModelRequest) -> Self {
        let generation = generation(&endpoint.model);
        let declarations: Vec<_> = request.tools.iter().map(|spec| declaration(spec)).collect();
        let settings = &endpoint.settings;
        // Models before 2.5 have no thoughts, and refuse a request for them.
        let thinks = generation.is_none_or(|generation| generation >= (2, 5));
        let thinking_config = thinks.then_some(ThinkingConfig {
            // Vertex AI refuses a request for the thoughts of a model that should not think.
            include_thoughts: settings.thinking != Some(0),
            thinking_budget: settings.thinking,
            thinking_level: settings.effort.as_deref(),
        });
        // Models before 3 accept no ids, and no images inside of a response.
        let is_new = generation.is_none_or(|(major, _)| major >= 3);
        let ids = is_new.then(|| CallIds::new(endpoint, &request.messages));
        Self {
            contents: contents(&request.messages, ids.as_ref()),
            system_instruction: (!request.system.is_empty()).then(|| Instruction {
                parts: [Part { text: Some(&request.system), ..Part::default() }],
            }),
            tools: (!declarations.is_empty())
                .then_some([Tools { function_declarations: declarations }]),
            generation_config: GenerationConfig {
                max_output_tokens: settings.max_output,
                thinking_config,
            },
        }
    }
}

/// Converts the messages. `ids` has the ids of calls and their responses, if they carry any. Images
/// are then parts of their response, and otherwise follow the responses.
fn contents<'a>(messages: &'a [Message], ids: Option<&CallIds<'a>>) -> Vec<Content<'a>> {
    let id = |call: CallId| ids.map(|ids| ids.get(call));
    // The tool of each call, which the response has to name as well.
    let mut tools: HashMap<CallId, &str> = HashMap::new();
    let mut contents: Vec<Content<'a>> = Vec::with_capacity(messages.len());
    // The images of the responses before, if they are not parts of these.
    let mut images: Vec<Part<'a>> = Vec::new();
    for message in messages {
        if !matches!(message, Message::Tool(_)) {
            contents.extend(images_content(&mut images));
        }
        let (role, parts) = match message {
            Message::User(words) => {
                (Role::User, vec![Part { text: Some(words), ..Part::default() }])
            }
            Message::Assistant(answer) => {
                tools.extend(answer.calls.iter().map(|call| (call.id, call.name.as_str())));
                (Role::Model, answer_parts(answer, id))
            }
            Message::Tool(result) => {
                let text = result_text(result);
                let response = if result.status == ToolStatus::Ok {
                    Response::Output(text)
                } else {
                    Response::Error(text)
                };
                let name = wire_name(tools.get(&result.call).copied().unwrap_or_default());
                let mut parts: Vec<_> = result.images.iter().map(image).collect();
                if ids.is_none() {
                    images.append(&mut parts);
                }
                let function_response =
                    Some(FunctionResponse { id: id(result.call), name, response, parts });
                let part = Part { function_response, ..Part::default() };
                match contents.last_mut() {
                    Some(last)
                        if last.parts.iter().any(|part| part.function_response.is_some()) =>
                    {
                        last.parts.push(part);
                        continue;
                    }
                    _ => (Role::User, vec![part]),
                }
            }
        };
        if !parts.is_empty() {
            contents.push(Content { role, parts });
        }
    }
    contents.extend(images_content(&mut images));
    contents
}

/// The content with these images, in the order of the responses; `None` if there are none.
fn images_content<'a>(images: &mut Vec<Part<'a>>) -> Option<Content<'a>> {
    let title = Part { text: Some(IMAGES), ..Part::default() };
    let has_images = !images.is_empty();
    has_images.then(|| Content {
        role: Role::User,
        parts: [title].into_iter().chain(images.drain(..)).collect(),
    })
}

fn image(image: &Image) -> Part<'_> {
    let data = InlineData { mime_type: image.media_type.as_str(), data: &image.data };
    Part { inline_data: Some(data), ..Part::default() }
}

fn answer_parts<'a>(
    answer: &'a AssistantMessage,
    id: impl Fn(CallId) -> Option<Cow<'a, str>>,
) -> Vec<Part<'a>> {
    let part = |part| match part {
        AnswerPart::Block(answer_block) => block(answer_block),
        AnswerPart::Call(call) => Some(Part {
            function_call: Some(FunctionCall {
                id: id(call.id),
                name: wire_name(&call.name),
                args: &call.input,
            }),
            thought_signature: signature(call.signature.as_deref()),
            ..Part::default()
        }),
    };
    answer.parts().filter_map(part).collect()
}

fn block(answer_block: &Block) -> Option<Part<'_>> {
    let thought_signature = signature(answer_block.signature.as_deref());
    // A thought without text only holds a signature, such as that of the text before it.
    let thought = answer_block.kind == BlockKind::Thought && !answer_block.text.is_empty();
    let is_sent = thought_signature.is_some() || (!thought && !answer_block.text.trim().is_empty());
    is_sent.then(|| Part {
        text: Some(&answer_block.text),
        thought,
        thought_signature,
        ..Part::default()
    })
}

fn signature(signature: Option<&str>) -> Option<&str> {
    signature?.strip_prefix(SIGNATURE_PREFIX)
}

fn declaration(spec: &holdpoint_tools::ToolSpec) -> Declaration<'_> {
    Declaration {
        name: &spec.name,
        description: &spec.description,
        parameters_json_schema: &spec.schema,
    }
}

/// The generation in a model's name, such as `gemini-2.5-pro`; `None` for a name without one, which
/// means the newest.
pub(in crate::model::provider) fn generation(model: &str) -> Option<(u32, u32)> {
    let version = model.strip_prefix("gemini-")?.split('-').next()?;
    let (major, minor) = version.split_once('.').unwrap_or((version, "0"));
    Some((major.parse().ok()?, minor.parse().ok()?))
}
