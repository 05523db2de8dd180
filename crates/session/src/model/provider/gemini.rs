//! `gemini/NAME`: Gemini's `streamGenerateContent`.

use std::borrow::Cow;

use reqwest::{Client, RequestBuilder};
use rig_core::providers::gemini::completion::GenerateContent;
use rig_core::providers::gemini::streaming::GenerateContentDecoder;
use rig_core::wire::{Framing, Wire};
use serde::Deserialize;
use serde_json::Value;

use super::remote::{Endpoint, Protocol, is_nameless};
use crate::model::{ModelEvent, ModelRequest};

mod request;

/// Before a signature of Gemini's.
const SIGNED: &str = "gemini:";

/// Gemini's contents.
#[derive(Debug, Clone)]
pub(super) struct Contents(pub(super) Endpoint);

impl Protocol for Contents {
    type Reader = GenerateContent;

    const FRAMING: Framing = Framing::Sse;

    fn endpoint(&self) -> &Endpoint {
        &self.0
    }

    fn decoder<'id>(&self) -> <GenerateContent as Wire>::Decoder<'id> {
        GenerateContentDecoder::default()
    }

    fn request(&self, client: &Client, request: &ModelRequest) -> RequestBuilder {
        let path = format!("/v1beta/models/{}:streamGenerateContent?alt=sse", self.0.model);
        let post = self.0.post(client, &path, &request::Body::of(&self.0, request));
        // In a header, for an address ends up in logs.
        if self.0.key.is_empty() { post } else { post.header("x-goog-api-key", &self.0.key) }
    }

    fn plain(frame: &str) -> Option<Vec<ModelEvent>> {
        let Chunk { candidates: [Candidate { content: Content { parts: [part], .. }, .. }], .. } =
            serde_json::from_str(frame).ok()?;
        Some(match part {
            // A thought keeps the signature that came with it: rig would put the next thought before it.
            Part { text, thought: true, signature: Some(signature) } if !signature.is_empty() => {
                let thought = (!text.is_empty()).then(|| ModelEvent::Thought(text.into_owned()));
                thought.into_iter().chain([ModelEvent::ThoughtSignature(format!("{SIGNED}{signature}"))]).collect()
            }
            Part { text, signature, .. } if text.is_empty() || signature.is_some() => return None,
            Part { text, thought: true, .. } => vec![ModelEvent::Thought(text.into_owned())],
            Part { text, thought: false, .. } => vec![ModelEvent::Text(text.into_owned())],
        })
    }

    fn is_fault(reason: &str) -> bool {
        // All that is neither the end nor the most tokens: a call that came out wrong, a recitation, what it can't say.
        !reason.is_empty()
    }

    fn lost_call(document: &Value) -> bool {
        let lost = |part: &Value| part["functionCall"].is_object() && is_nameless(part, "/functionCall/name");
        document["candidates"][0]["content"]["parts"].as_array().is_some_and(|parts| parts.iter().any(lost))
    }

    fn signature(item: &Value) -> Option<String> {
        let signature = item["thoughtSignature"].as_str().filter(|signature| !signature.is_empty())?;
        Some(format!("{SIGNED}{signature}"))
    }
}

/// A chunk that holds text or a thought, with its signature, and nothing else. Fields that are not here say nothing that is used, or, as the
/// usage, are said again in the last chunk.
#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(borrow)]
    candidates: [Candidate<'a>; 1],
    #[serde(default, rename = "error")]
    _error: (),
    #[serde(default, rename = "promptFeedback")]
    _prompt_feedback: (),
}

#[derive(Deserialize)]
struct Candidate<'a> {
    #[serde(borrow)]
    content: Content<'a>,
    #[serde(default, rename = "finishReason")]
    _finish_reason: (),
}

#[derive(Deserialize)]
struct Content<'a> {
    #[serde(borrow)]
    parts: [Part<'a>; 1],
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Part<'a> {
    text: Cow<'a, str>,
    #[serde(default)]
    thought: bool,
    #[serde(default, borrow, rename = "thoughtSignature")]
    signature: Option<Cow<'a, str>>,
}
