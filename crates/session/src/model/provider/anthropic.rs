//! `anthropic/NAME`: Anthropic's messages.

use reqwest::{Client, RequestBuilder};

use super::remote::{Endpoint, Framing, Protocol};
use crate::model::ModelRequest;

mod reader;
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
    type Reader = reader::Events;

    const FRAMING: Framing = Framing::Sse;

    fn endpoint(&self) -> &Endpoint {
        &self.0
    }

    fn max_output(&self) -> Option<u64> {
        Some(request::max_tokens(&self.0.settings))
    }

    fn request(&self, client: &Client, request: &ModelRequest) -> RequestBuilder {
        let post = self.0.post(client, "/v1/messages", &request::Body::of(&self.0, request));
        let post = post.header("anthropic-version", VERSION);
        if self.0.key.is_empty() { post } else { post.header("x-api-key", &self.0.key) }
    }
}
