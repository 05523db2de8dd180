//! The parts that all models behind HTTP share.
//!
//! A [`Protocol`] is the API of one provider. It writes requests in one pass over the conversation,
//! and its [`Reader`] reads the frames of an answer, without I/O. Everything else is here: the
//! client, sending a request, cutting the body into frames, and checking that an answer is
//! complete.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use holdpoint_common::{
    ApiKey, AssistantMessage, Certificates, ModelSettings, Proxies, ToolResult,
};
use reqwest::{Client, RequestBuilder, Url};
use serde::Serialize;
use serde_json::Value;

use self::client::ClientSlot;
use super::{Access, Provider};
use crate::model::{Model, ModelError, ModelEvent, ModelRequest, ModelStream};

pub(crate) use client::client_for;
pub(crate) use tls::trusting;
#[cfg(test)]
pub(crate) use tls::trusting_none;

pub(super) use call::OpenCall;
pub(super) use call_ids::CallIds;
pub(super) use frames::Framing;
pub(super) use json::{Arguments, Count, Lenient, Text, malformed, parse_object};
#[cfg(test)]
pub(super) use reader::tests as try_reader;
pub(super) use reader::{
    Counts, End, Finish, HeldBytes, Pieces, Reader, WholeCalls, is_fault, is_no_input,
};

mod answer;
mod call;
mod call_ids;
mod client;
mod error;
mod error_message;
mod fault;
mod frames;
mod http;
mod json;
mod no_proxy;
mod proxy;
mod reader;
mod refusal_cause;
mod roots;
mod setting_checks;
mod surrogates;
mod tls;

/// The most bytes of one event. A whole file that is written by one call is far smaller.
const MAX_EVENT_BYTES: usize = 4 * 1024 * 1024;

/// The API of one provider.
pub(super) trait Protocol: Clone + fmt::Debug + Send + Sync + 'static {
    /// The reader of one answer.
    type Reader: Reader;

    /// How a body is cut into frames.
    const FRAMING: Framing;

    /// The address of the provider, and the model.
    fn endpoint(&self) -> &Endpoint;

    /// The maximum number of tokens that requests set for an answer; `None` if the provider
    /// decides.
    fn max_output(&self) -> Option<u64> {
        self.endpoint().settings.max_output
    }

    /// Builds a request, ready to be sent.
    fn request(&self, client: &Client, request: &ModelRequest) -> RequestBuilder;
}

/// One model of one provider, and its address.
#[derive(Clone)]
pub(super) struct Endpoint {
    pub(super) provider: Provider,
    pub(super) model: String,
    pub(super) key: ApiKey,
    /// Without a slash at the end.
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
        setting_checks::check(provider, model, settings)?;
        // The paths contain the version, so a base URL is accepted with or without it.
        let versioned = match provider {
            Provider::OpenAi | Provider::Ollama => None,
            Provider::Anthropic => base_url.strip_suffix("/v1"),
            Provider::Gemini => base_url.strip_suffix("/v1beta"),
        };
        Ok(Self {
            provider,
            model: model.to_owned(),
            key: access.key.clone(),
            base_url: versioned.unwrap_or(base_url).to_owned(),
            proxies: access.proxies.clone(),
            certificates: access.certificates.clone(),
            settings: settings.clone(),
        })
    }

    /// A POST of `body` as JSON to `path` below the base URL.
    pub(super) fn post(
        &self,
        client: &Client,
        path: &str,
        body: &impl Serialize,
    ) -> RequestBuilder {
        // Text, numbers and maps with text as keys always convert to JSON.
        let body = match &self.settings.extra_body {
            None => serde_json::to_vec(body),
            Some(extra) => serde_json::to_value(body).and_then(|mut body| {
                merge_json(&mut body, &Value::Object(extra.clone()));
                serde_json::to_vec(&body)
            }),
        };
        let body = body.unwrap_or_default();
        client
            .post(format!("{}{path}", self.base_url))
            .header("content-type", "application/json")
            .body(body)
    }

    /// Whether this model gave that answer.
    pub(super) fn answered(&self, answer: &AssistantMessage) -> bool {
        let model = answer.model.as_deref().and_then(|model| model.split_once('/'));
        model == Some((self.provider.name(), &self.model))
    }

    /// Whether the endpoint is the provider's own, and not a compatible server.
    pub(super) fn is_providers_own(&self) -> bool {
        let host =
            |url: &str| Url::parse(url).ok().and_then(|url| url.host_str().map(str::to_owned));
        host(&self.base_url) == host(self.provider.public_url())
    }
}

/// Adds the fields of the setting `extra_body` to the body of a request. Objects are merged, other
/// values are replaced.
fn merge_json(body: &mut Value, extra: &Value) {
    match (body, extra) {
        (Value::Object(body), Value::Object(extra)) => {
            for (key, value) in extra {
                merge_json(body.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (body, extra) => *body = extra.clone(),
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
    client: Arc<ClientSlot>,
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
        let client = self.client.get(|| client::build(base_url, proxies, certificates))?;
        let http_request =
            self.protocol.request(&client.http, request).build().map_err(|error| {
                ModelError::Setup {
                    message: format!(
                        "the request can't be built: {}",
                        error::chain(&error.without_url())
                    ),
                    hint: "check the model's key, name and base URL".into(),
                }
            })?;
        Ok(answer::stream::<P>(
            Arc::clone(&self.client),
            client,
            http_request,
            endpoint.key.clone(),
            request.bytes(),
        ))
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

    fn takes_images(&self) -> bool {
        let endpoint = self.protocol.endpoint();
        endpoint.settings.images.unwrap_or_else(|| match endpoint.provider {
            Provider::Anthropic | Provider::Gemini => true,
            Provider::OpenAi => endpoint.is_providers_own(),
            Provider::Ollama => false,
        })
    }

    fn stream(&self, request: &ModelRequest) -> ModelStream {
        match self.open(request) {
            Ok(answer) => answer,
            Err(error) => Box::pin(futures_util::stream::iter([Err::<ModelEvent, _>(error)])),
        }
    }
}

/// The most bytes of a tool's name that every provider accepts.
const MAX_NAME_BYTES: usize = 64;

/// A tool's name in a form that every provider accepts. If a model calls a tool by an invalid name,
/// the call's result reports that; the name itself, sent back unchanged, would make providers
/// refuse every later request.
pub(super) fn wire_name(name: &str) -> Cow<'_, str> {
    let legal = |char: char| char.is_ascii_alphanumeric() || matches!(char, '_' | '-');
    if (1..=MAX_NAME_BYTES).contains(&name.len()) && name.chars().all(legal) {
        return Cow::Borrowed(name);
    }
    let replaced: String = name
        .chars()
        .take(MAX_NAME_BYTES)
        .map(|char| if legal(char) { char } else { '_' })
        .collect();
    Cow::Owned(if replaced.is_empty() { "unknown".to_owned() } else { replaced })
}

/// The text before images that follow the results of tools, where a result itself can have none.
pub(super) const IMAGES: &str = "[The images of the tool results above, in order:]";

/// A tool's result for the model. It is never empty, because some providers refuse that.
pub(super) fn result_text(result: &ToolResult) -> String {
    let text = result.to_text();
    if text.trim().is_empty() { "(no output)".to_owned() } else { text }
}
