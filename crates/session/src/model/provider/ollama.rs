//! `ollama/NAME`: models behind the chat API of an Ollama server.

use reqwest::{Client, RequestBuilder};

use super::remote::{Endpoint, Framing, Protocol};
use crate::model::ModelRequest;

mod reader;
mod request;
mod think;

/// The protocol of Ollama's own chat API.
#[derive(Debug, Clone)]
pub(super) struct Chat(pub(super) Endpoint);

impl Protocol for Chat {
    type Reader = reader::Records;

    const FRAMING: Framing = Framing::Lines;

    fn endpoint(&self) -> &Endpoint {
        &self.0
    }

    fn request(&self, client: &Client, request: &ModelRequest) -> RequestBuilder {
        let post = self.0.post(client, "/api/chat", &request::Body::new(&self.0, request));
        if self.0.key.is_empty() { post } else { post.bearer_auth(self.0.key.expose()) }
    }
}
