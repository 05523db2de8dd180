//! `openai/NAME`: any server that speaks OpenAI's chat completions.

use reqwest::{Client, RequestBuilder};
use rig_core::providers::openai::wire::{self as rig, OPENAI, OpenAIConfig, Quirks};
use rig_core::wire::{Framing, Wire};

use serde_json::Value;

use super::remote::{Endpoint, Protocol, is_nameless};
use crate::model::{ModelEvent, ModelRequest};

mod plain;
mod request;

/// Chat completions, as lenient as compatible servers need them.
#[derive(Debug, Clone)]
pub(super) struct Chat(pub(super) Endpoint);

impl Protocol for Chat {
    type Reader = rig::Chat;

    const FRAMING: Framing = Framing::Sse;

    fn endpoint(&self) -> &Endpoint {
        &self.0
    }

    fn decoder<'id>(&self) -> <rig::Chat as Wire>::Decoder<'id> {
        // No finish reason before `[DONE]`: some servers send none.
        let dialect = OPENAI.with_quirks(Quirks::openai().done_without_finish_reason());
        rig::Chat::new(OpenAIConfig::with_key(&dialect, ""), self.0.model.as_str()).decoder()
    }

    fn request(&self, client: &Client, request: &ModelRequest) -> RequestBuilder {
        let post = self.0.post(client, "/chat/completions", &request::Body::of(&self.0, request));
        // Local servers like it without.
        if self.0.key.is_empty() { post } else { post.bearer_auth(&self.0.key) }
    }

    fn plain(frame: &str) -> Option<Vec<ModelEvent>> {
        plain::read(frame)
    }

    fn lost_call(document: &Value) -> bool {
        let message = &document["choices"][0]["message"];
        // What calls were before there were tools.
        let legacy = message["function_call"].is_object();
        let nameless = |call: &Value| ["/function/name", "/custom/name"].iter().all(|name| is_nameless(call, name));
        legacy || message["tool_calls"].as_array().is_some_and(|calls| calls.iter().any(nameless))
    }
}
