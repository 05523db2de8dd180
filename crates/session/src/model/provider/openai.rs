//! `openai/NAME`: models of any server that implements OpenAI's chat completions.

use reqwest::{Client, RequestBuilder};

use super::remote::{Endpoint, Framing, Protocol};
use crate::model::ModelRequest;

mod calls;
mod reader;
mod request;
mod thought_details;

/// The prefix for the name of the field in which a server sent a thought, and expects it back.
const FIELD_PREFIX: &str = "openai:";

/// The prefix for the `extra_content` of a call or an answer, as JSON text.
const EXTRA_PREFIX: &str = "openai-extra:";

/// The prefix for the `reasoning_details` of an answer, as JSON text.
const DETAILS_PREFIX: &str = "openai-details:";

/// The protocol of chat completions, as lenient as compatible servers require.
#[derive(Debug, Clone)]
pub(super) struct Chat(pub(super) Endpoint);

impl Protocol for Chat {
    type Reader = reader::Chunks;

    const FRAMING: Framing = Framing::Sse;

    fn endpoint(&self) -> &Endpoint {
        &self.0
    }

    fn request(&self, client: &Client, request: &ModelRequest) -> RequestBuilder {
        let post = self.0.post(client, "/chat/completions", &request::Body::new(&self.0, request));
        // Local servers may need no key.
        if self.0.key.is_empty() { post } else { post.bearer_auth(self.0.key.expose()) }
    }
}
