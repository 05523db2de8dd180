//! The providers of models, with their names, addresses and default models.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use holdpoint_common::{ApiKey, Certificates, ModelSettings, Proxies};

use super::{Model, ModelError};
use remote::Remote;

mod anthropic;
mod gemini;
mod ollama;
mod openai;
mod remote;

/// HTTP clients for addresses that are not a model's.
pub(crate) mod http {
    #[cfg(test)]
    pub(crate) use super::remote::trusting_none;
    pub(crate) use super::remote::{client_for, trusting};
}

/// The forms that a model's name may have.
pub(super) const HINT: &str =
    "use PROVIDER/NAME, PROVIDER (openai, anthropic, gemini, ollama) or rehearsal";

/// A service that serves models over HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Provider {
    /// OpenAI, or any server that implements its chat completions: llama.cpp, vLLM, …
    OpenAi,
    /// Anthropic, by its messages API.
    Anthropic,
    /// Google's Gemini, by its own API.
    Gemini,
    /// An Ollama server, by its own API.
    Ollama,
}

/// The address and the credentials of a provider.
#[derive(Clone, Default)]
pub struct Access {
    /// The API key; an empty one is not sent.
    pub key: ApiKey,
    /// The base URL, `http` or `https`.
    pub base_url: String,
    /// The proxies to use. This machine itself is reached directly.
    pub proxies: Proxies,
    /// The certificate authorities to trust for this provider, instead of the system's.
    pub certificates: Certificates,
}

impl Provider {
    /// All providers. The default model is that of the first one with a key.
    pub const ALL: [Self; 4] = [Self::OpenAi, Self::Anthropic, Self::Gemini, Self::Ollama];

    /// The name of the provider, as in `openai/gpt-5`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::Ollama => "ollama",
        }
    }

    /// The model that is used if only the provider is named.
    #[must_use]
    pub fn default_model(self) -> &'static str {
        match self {
            Self::OpenAi => "gpt-5",
            Self::Anthropic => "claude-sonnet-5-5",
            Self::Gemini => "gemini-3.8-flash",
            Self::Ollama => "qwen3",
        }
    }

    /// The environment variable with the key; `None` if the provider needs no key.
    #[must_use]
    pub fn key_variable(self) -> Option<&'static str> {
        match self {
            Self::OpenAi => Some("OPENAI_API_KEY"),
            Self::Anthropic => Some("ANTHROPIC_API_KEY"),
            Self::Gemini => Some("GEMINI_API_KEY"),
            Self::Ollama => None,
        }
    }

    /// The environment variable with the base URL.
    #[must_use]
    pub fn url_variable(self) -> &'static str {
        match self {
            Self::OpenAi => "OPENAI_BASE_URL",
            Self::Anthropic => "ANTHROPIC_BASE_URL",
            Self::Gemini => "GEMINI_BASE_URL",
            Self::Ollama => "OLLAMA_HOST",
        }
    }

    /// The public base URL; for Ollama, the address of its server on this machine.
    #[must_use]
    pub fn public_url(self) -> &'static str {
        match self {
            Self::OpenAi => "https://api.openai.com/v1",
            Self::Anthropic => "https://api.anthropic.com",
            Self::Gemini => "https://generativelanguage.googleapis.com",
            Self::Ollama => "http://127.0.0.1:11434",
        }
    }

    /// Creates the model `name` of this provider. The model never repeats a request and follows no
    /// redirect. The key appears in no error and no `Debug` output.
    ///
    /// # Errors
    /// [`ModelError::Setup`] if the base URL is not valid.
    pub fn model(
        self,
        name: &str,
        access: &Access,
        settings: &ModelSettings,
    ) -> Result<Arc<dyn Model>, ModelError> {
        let endpoint = remote::Endpoint::new(self, name, access, settings)?;
        Ok(match self {
            Self::OpenAi => Arc::new(Remote::new(openai::Chat(endpoint))),
            Self::Anthropic => Arc::new(Remote::new(anthropic::Messages(endpoint))),
            Self::Gemini => Arc::new(Remote::new(gemini::Contents(endpoint))),
            Self::Ollama => Arc::new(Remote::new(ollama::Chat(endpoint))),
        })
    }
}

impl fmt::Display for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Provider {
    type Err = ModelError;

    fn from_str(name: &str) -> Result<Self, ModelError> {
        Self::ALL.into_iter().find(|provider| provider.name() == name).ok_or_else(|| {
            ModelError::Setup {
                message: format!("there is no model provider `{name}`"),
                hint: HINT.into(),
            }
        })
    }
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Access").field("base_url", &self.base_url).finish_non_exhaustive()
    }
}
