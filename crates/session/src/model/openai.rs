//! `openai/NAME`: any server that speaks OpenAI's chat completions, through rig-core.

use std::fmt;
use std::sync::OnceLock;

use rig_core::providers::openai::wire::{Auth, BodyRewrite, Chat, Dialect, OPENAI, OpenAIConfig, Quirks};
use rig_reqwest::ReqwestClient;

use super::{Model, ModelError, ModelEvent, ModelRequest, ModelStream};

mod answer;
mod error;
mod http;
mod plain;
mod request;

/// The model of a bare `openai`.
pub const DEFAULT_MODEL: &str = "gpt-5";

/// OpenAI's public address.
pub const PUBLIC_URL: &str = "https://api.openai.com/v1";

/// A model of OpenAI, or of any server that speaks its chat completions.
///
/// Never repeats a request and follows no redirect. The key appears in no error and no `Debug`.
pub struct OpenAi {
    name: String,
    chat: Chat,
    /// Made at the first request: who never asks pays nothing.
    client: OnceLock<Result<ReqwestClient, ModelError>>,
}

impl OpenAi {
    /// The model `name` of the server at `base_url`, an `http` or `https` address up to and with `/v1`. An empty
    /// `key` sends none, as local servers like it.
    ///
    /// # Errors
    /// [`ModelError::Setup`] if the address is none.
    pub fn new(name: &str, key: &str, base_url: &str) -> Result<Self, ModelError> {
        let base_url = base_url.trim().trim_end_matches('/');
        http::check_url(base_url)?;
        let config = OpenAIConfig::with_key(&dialect(), key.trim()).with_base_url(base_url);
        Ok(Self { name: format!("openai/{name}"), chat: Chat::new(config, name), client: OnceLock::new() })
    }

    fn client(&self) -> Result<ReqwestClient, ModelError> {
        self.client.get_or_init(|| http::client(&self.chat.provider.base_url)).clone()
    }
}

impl Model for OpenAi {
    fn name(&self) -> &str {
        &self.name
    }

    fn stream(&self, request: ModelRequest) -> ModelStream {
        let opened = self.client().and_then(|client| answer::Answer::open(&self.chat, client, &request));
        match opened {
            Ok(answer) => Box::pin(answer),
            Err(error) => Box::pin(futures_util::stream::iter([Err::<ModelEvent, _>(error)])),
        }
    }
}

impl fmt::Debug for OpenAi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenAi").field("name", &self.name).finish_non_exhaustive()
    }
}

/// OpenAI's chat completions, as lenient as compatible servers need it.
fn dialect() -> Dialect {
    // No finish reason before `[DONE]`: some servers send none.
    let mut quirks = Quirks::openai().done_without_finish_reason();
    // No `Authorization` without a key.
    quirks.auth = Auth::OptionalBearer;
    // Text goes as one string, never as a list of parts, which older servers refuse.
    quirks.rewrite = BodyRewrite::Perplexity;
    quirks.output_cap = OPENAI.quirks.output_cap;
    OPENAI.with_quirks(quirks)
}
