//! `gemini/NAME`: models behind Gemini's `streamGenerateContent`.

use reqwest::{Client, RequestBuilder};

use super::remote::{Endpoint, Framing, Protocol};
use crate::model::ModelRequest;

mod reader;
pub(super) mod request;

/// Marks signatures that Gemini made. Signatures of other models, which remain after a change of
/// model, are not sent to it.
const SIGNATURE_PREFIX: &str = "gemini:";

/// The protocol of Gemini's `streamGenerateContent`.
#[derive(Debug, Clone)]
pub(super) struct Contents(pub(super) Endpoint);

impl Protocol for Contents {
    type Reader = reader::Chunks;

    const FRAMING: Framing = Framing::Sse;

    fn endpoint(&self) -> &Endpoint {
        &self.0
    }

    fn request(&self, client: &Client, request: &ModelRequest) -> RequestBuilder {
        let path = format!("/v1beta/models/{}:streamGenerateContent?alt=sse", self.0.model);
        let post = self.0.post(client, &path, &request::Body::new(&self.0, request));
        // The key is in a header, because URLs are logged.
        if self.0.key.is_empty() {
            post
        } else {
            post.header("x-goog-api-key", self.0.key.expose())
        }
    }
}
