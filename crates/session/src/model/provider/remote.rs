//! A model behind HTTP: what all providers have in common.
//!
//! A [`Protocol`] is one wire. It writes requests in one pass over the conversation, and its [`Reader`] reads the frames
//! of an answer, without I/O. Everything else is here: the client, the request and its body, which is cut into frames,
//! and what the end of an answer means.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use holdpoint_common::{AssistantMessage, Certificates, ModelSettings, Proxies, ToolResult};
use reqwest::{Client, RequestBuilder, Url};
use serde::Serialize;
use serde_json::Value;

use self::client::Slot;
use super::{Access, Provider};
use crate::model::{Model, ModelError, ModelEvent, ModelRequest, ModelStream};

pub(super) use call::OpenCall;
pub(super) use call_ids::CallIds;
pub(super) use frames::Framing;
pub(super) use json::{Arguments, Count, Lenient, Text, malformed, object};
#[cfg(test)]
pub(super) use reader::tests as try_reader;
pub(super) use reader::{Counts, End, Finish, Held, Pieces, Reader, WholeCalls, is_fault, is_no_input};

mod answer;
mod blame;
mod call;
mod call_ids;
mod client;
mod error;
mod fault;
mod frames;
mod http;
mod json;
mod no_proxy;
mod proxy;
mod reader;
mod roots;
mod surrogates;
mod switches;
mod tls;
mod words;

/// Bytes that one event of an answer may have. A whole file written by one call is far below it.
const MOST_EVENT: usize = 4 * 1024 * 1024;

/// How one provider is spoken to.
pub(super) trait Protocol: Clone + fmt::Debug + Send + Sync + 'static {
    /// What reads one answer.
    type Reader: Reader;

    /// How its answers are cut into frames.
    const FRAMING: Framing;

    /// Where it is, and which of its models this is.
    fn endpoint(&self) -> &Endpoint;

    /// The most tokens that its requests let an answer have; nothing where they leave it to the provider.
    fn max_output(&self) -> Option<u64> {
        self.endpoint().settings.max_output
    }

    /// A request, ready to be sent.
    fn request(&self, client: &Client, request: &ModelRequest) -> RequestBuilder;
}

/// One model of one provider, and how it is reached.
#[derive(Clone)]
pub(super) struct Endpoint {
    pub(super) provider: Provider,
    pub(super) model: String,
    pub(super) key: String,
    /// Without a slash at its end.
    pub(super) base_url: String,
    pub(super) proxies: Proxies,
    pub(super) certificates: Certificates,
    pub(super) settings: ModelSettings,
}

impl Endpoint {
    pub(super) fn new(
        provider: Provider,
        model: &str,
        access: &Access,
        settings: &ModelSettings,
    ) -> Result<Self, ModelError> {
        let base_url = access.base_url.trim().trim_end_matches('/');
        client::check_url(base_url)?;
        switches::check(provider, model, settings)?;
        // The version is in the paths; who gives it with the address means the same.
        let versioned = match provider {
            Provider::OpenAi | Provider::Ollama => None,
            Provider::Anthropic => base_url.strip_suffix("/v1"),
            Provider::Gemini => base_url.strip_suffix("/v1beta"),
        };
        Ok(Self {
            provider,
            model: model.to_owned(),
            key: access.key.trim().to_owned(),
            base_url: versioned.unwrap_or(base_url).to_owned(),
            proxies: access.proxies.clone(),
            certificates: access.certificates.clone(),
            settings: settings.clone(),
        })
    }

    /// A POST of `body` as JSON to `path` below the base URL.
    pub(super) fn post(&self, client: &Client, path: &str, body: &impl Serialize) -> RequestBuilder {
        // Text, numbers and maps with text as keys: nothing of it can fail to be JSON.
        let body = match &self.settings.extra_body {
            None => serde_json::to_vec(body),
            Some(extra) => serde_json::to_value(body).and_then(|mut body| {
                switches::merge(&mut body, &Value::Object(extra.clone()));
                serde_json::to_vec(&body)
            }),
        };
        let body = body.unwrap_or_default();
        client.post(format!("{}{path}", self.base_url)).header("content-type", "application/json").body(body)
    }

    /// Whether this model gave that answer.
    pub(super) fn answered(&self, answer: &AssistantMessage) -> bool {
        let model = answer.model.as_deref().and_then(|model| model.split_once('/'));
        model == Some((self.provider.name(), &self.model))
    }

    /// Whether it is the provider's own, and no imitator.
    pub(super) fn is_public(&self) -> bool {
        let host = |url: &str| Url::parse(url).ok().and_then(|url| url.host_str().map(str::to_owned));
        host(&self.base_url) == host(self.provider.public_url())
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("provider", &self.provider)
            .field("model", &self.model)
            .field("base_url", &self.base_url)
            .finish_non_exhaustive()
    }
}

/// A model behind HTTP.
pub(super) struct Remote<P> {
    name: String,
    protocol: P,
    client: Arc<Slot>,
}

impl<P: Protocol> Remote<P> {
    pub(super) fn new(protocol: P) -> Self {
        let endpoint = protocol.endpoint();
        let name = format!("{}/{}", endpoint.provider, endpoint.model);
        Self { name, protocol, client: Arc::default() }
    }

    fn open(&self, request: &ModelRequest) -> Result<ModelStream, ModelError> {
        let endpoint = self.protocol.endpoint();
        let Endpoint { base_url, proxies, certificates, .. } = endpoint;
        let client = self.client.get(|| client::client(base_url, proxies, certificates))?;
        let http = self.protocol.request(&client.http, request).build().map_err(|error| ModelError::Setup {
            message: format!("the request can't be made: {}", error::chain(&error.without_url())),
            hint: "look at the model's key, name and base URL".into(),
        })?;
        Ok(answer::stream::<P>(Arc::clone(&self.client), client, http, endpoint.key.clone(), request.bytes()))
    }
}

impl<P: Protocol> Model for Remote<P> {
    fn name(&self) -> &str {
        &self.name
    }

    fn settings(&self) -> ModelSettings {
        let settings = self.protocol.endpoint().settings.clone();
        ModelSettings { max_output: self.protocol.max_output(), ..settings }
    }

    fn stream(&self, request: &ModelRequest) -> ModelStream {
        match self.open(request) {
            Ok(answer) => answer,
            Err(error) => Box::pin(futures_util::stream::iter([Err::<ModelEvent, _>(error)])),
        }
    }
}

/// Bytes that the name of a tool may have on every wire.
const LONGEST_NAME: usize = 64;

/// A tool's name as every provider takes it back. A model may call what is no name at all, and is told so in its
/// result; sent back as it is, it would have every later request refused.
pub(super) fn wire_name(name: &str) -> Cow<'_, str> {
    let legal = |char: char| char.is_ascii_alphanumeric() || matches!(char, '_' | '-');
    if (1..=LONGEST_NAME).contains(&name.len()) && name.chars().all(legal) {
        return Cow::Borrowed(name);
    }
    let mended: String = name.chars().take(LONGEST_NAME).map(|char| if legal(char) { char } else { '_' }).collect();
    Cow::Owned(if mended.is_empty() { "unknown".to_owned() } else { mended })
}

/// A tool's result as the model reads it: never nothing, which some providers refuse.
pub(super) fn result_text(result: &ToolResult) -> String {
    let text = result.to_text();
    if text.trim().is_empty() { "(no output)".to_owned() } else { text }
}
