//! `anthropic/NAME`: models behind Anthropic's messages API.

use reqwest::{Client, RequestBuilder};

use super::remote::{Endpoint, Framing, Protocol};
use crate::model::ModelRequest;

mod reader;
mod request;

/// The version of the messages API.
const VERSION: &str = "2023-06-01";

/// The prefix for the signature of a visible thought.
const SIGNATURE_PREFIX: &str = "anthropic:";
/// The prefix for a redacted thought, which is sent back unchanged.
const REDACTED_PREFIX: &str = "anthropic-redacted:";

/// The protocol of Anthropic's messages API.
#[derive(Debug, Clone)]
pub(super) struct Messages(pub(super) Endpoint);

impl Protocol for Messages {
    type Reader = reader::Events;

    const FRAMING: Framing = Framing::Sse;

    fn endpoint(&self) -> &Endpoint {
        &self.0
    }

    fn max_output(&self) -> Option<u64> {
        Some(request::max_tokens(&self.0.settings))
    }

    fn request(&self, client: &Client, request: &ModelRequest) -> RequestBuilder {
        let post = self.0.post(client, "/v1/messages", &request::Body::new(&self.0, request));
        let post = post.header("anthropic-version", VERSION);
        if self.0.key.is_empty() { post } else { post.header("x-api-key", self.0.key.expose()) }
    }
}
