//! `anthropic/NAME`: Anthropic's messages.

use std::borrow::Cow;

use reqwest::{Client, RequestBuilder};
use rig_core::providers::anthropic::Messages as RigMessages;
use rig_core::providers::anthropic::streaming::MessagesDecoder;
use rig_core::wire::{Framing, Wire};
use serde::Deserialize;
use serde_json::Value;

use super::remote::{Endpoint, Protocol, is_nameless};
use crate::model::{ModelEvent, ModelRequest};

mod request;

/// The version of the messages' wire that is spoken.
const VERSION: &str = "2023-06-01";

/// Before the signature of a thought that was shown.
const SIGNED: &str = "anthropic:";
/// Before a thought that was withheld: it goes back as it came.
const REDACTED: &str = "anthropic-redacted:";

/// Anthropic's messages.
#[derive(Debug, Clone)]
pub(super) struct Messages(pub(super) Endpoint);

impl Protocol for Messages {
    type Reader = RigMessages;

    const FRAMING: Framing = Framing::Sse;

    fn endpoint(&self) -> &Endpoint {
        &self.0
    }

    fn decoder<'id>(&self) -> <RigMessages as Wire>::Decoder<'id> {
        MessagesDecoder::new(false)
    }

    fn max_output(&self) -> Option<u64> {
        Some(request::max_tokens(&self.0.settings))
    }

    fn request(&self, client: &Client, request: &ModelRequest) -> RequestBuilder {
        let post = self.0.post(client, "/v1/messages", &request::Body::of(&self.0, request));
        let post = post.header("anthropic-version", VERSION);
        if self.0.key.is_empty() { post } else { post.header("x-api-key", &self.0.key) }
    }

    fn plain(frame: &str) -> Option<Vec<ModelEvent>> {
        let Event { delta, .. } = serde_json::from_str(frame).ok()?;
        Some(match delta {
            Delta::TextDelta { text } if text.is_empty() => vec![],
            Delta::TextDelta { text } => vec![ModelEvent::Text(text.into_owned())],
            Delta::ThinkingDelta { thinking } if thinking.is_empty() => vec![],
            Delta::ThinkingDelta { thinking } => vec![ModelEvent::Thought(thinking.into_owned())],
        })
    }

    fn lost_call(document: &Value) -> bool {
        let lost = |block: &Value| block["type"] == "tool_use" && is_nameless(block, "/name");
        document["content"].as_array().is_some_and(|blocks| blocks.iter().any(lost))
    }

    fn signature(item: &Value) -> Option<String> {
        let text = |key: &str| item[key].as_str().filter(|text| !text.is_empty());
        match item["type"].as_str()? {
            "thinking" => text("signature").map(|signature| format!("{SIGNED}{signature}")),
            "redacted_thinking" => text("data").map(|data| format!("{REDACTED}{data}")),
            _ => None,
        }
    }
}

/// An event that holds text or thought and nothing else.
#[derive(Deserialize)]
struct Event<'a> {
    #[serde(rename = "type")]
    _type: BlockDelta,
    #[serde(borrow)]
    delta: Delta<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum BlockDelta {
    ContentBlockDelta,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Delta<'a> {
    TextDelta { text: Cow<'a, str> },
    ThinkingDelta { thinking: Cow<'a, str> },
}
