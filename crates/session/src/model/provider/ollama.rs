//! `ollama/NAME`: the chat of an Ollama daemon.

use reqwest::{Client, RequestBuilder};
use rig_core::providers::ollama::chat::Chat as RigChat;
use rig_core::providers::ollama::streaming::ChatDecoder;
use rig_core::wire::{Framing, Wire};
use serde_json::Value;

use super::remote::{Endpoint, Protocol, is_nameless};
use crate::model::ModelRequest;

mod request;

/// Ollama's own chat. Its text goes the long way: some models think aloud between tags in it.
#[derive(Debug, Clone)]
pub(super) struct Chat(pub(super) Endpoint);

impl Protocol for Chat {
    type Reader = RigChat;

    const FRAMING: Framing = Framing::Ndjson;

    fn endpoint(&self) -> &Endpoint {
        &self.0
    }

    fn decoder<'id>(&self) -> <RigChat as Wire>::Decoder<'id> {
        ChatDecoder::default()
    }

    fn request(&self, client: &Client, request: &ModelRequest) -> RequestBuilder {
        let post = self.0.post(client, "/api/chat", &request::Body::of(&self.0, request));
        if self.0.key.is_empty() { post } else { post.bearer_auth(&self.0.key) }
    }

    fn lost_call(document: &Value) -> bool {
        let lost = |call: &Value| is_nameless(call, "/function/name");
        document["message"]["tool_calls"].as_array().is_some_and(|calls| calls.iter().any(lost))
    }
}
