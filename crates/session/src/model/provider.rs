//! The providers of models: what each is called, how it is reached, and which model is its default.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use holdpoint_common::{Certificates, ModelSettings, Proxies};

use super::{Model, ModelError};
use remote::Remote;

mod anthropic;
mod gemini;
mod ollama;
mod openai;
mod remote;

/// What a model's name may be.
pub(super) const HINT: &str = "use PROVIDER/NAME, PROVIDER (openai, anthropic, gemini, ollama) or rehearsal";

/// Who serves models over HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Provider {
    /// OpenAI, or any server that speaks its chat completions: llama.cpp, vLLM, …
    OpenAi,
    /// Anthropic.
    Anthropic,
    /// Google's Gemini.
    Gemini,
    /// An Ollama daemon.
    Ollama,
}

/// How a provider is reached.
#[derive(Clone, Default)]
pub struct Access {
    /// The key; empty: none is sent.
    pub key: String,
    /// Where it is: an `http` or `https` address.
    pub base_url: String,
    /// What stands before it. This machine itself is reached without.
    pub proxies: Proxies,
    /// The certificate authorities that it is checked by, instead of the system's.
    pub certificates: Certificates,
}

impl Provider {
    /// All of them, in the order in which the first whose key is set becomes the default.
    pub const ALL: [Self; 4] = [Self::OpenAi, Self::Anthropic, Self::Gemini, Self::Ollama];

    /// Its name, as in `openai/gpt-5`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::Ollama => "ollama",
        }
    }

    /// The model of a bare provider.
    #[must_use]
    pub fn default_model(self) -> &'static str {
        match self {
            Self::OpenAi => "gpt-5",
            Self::Anthropic => "claude-sonnet-5-5",
            Self::Gemini => "gemini-3.8-flash",
            Self::Ollama => "qwen3",
        }
    }

    /// The variable of the environment that has its key; nothing where it needs none.
    #[must_use]
    pub fn key_variable(self) -> Option<&'static str> {
        match self {
            Self::OpenAi => Some("OPENAI_API_KEY"),
            Self::Anthropic => Some("ANTHROPIC_API_KEY"),
            Self::Gemini => Some("GEMINI_API_KEY"),
            Self::Ollama => None,
        }
    }

    /// The variable of the environment that has its address.
    #[must_use]
    pub fn url_variable(self) -> &'static str {
        match self {
            Self::OpenAi => "OPENAI_BASE_URL",
            Self::Anthropic => "ANTHROPIC_BASE_URL",
            Self::Gemini => "GEMINI_BASE_URL",
            Self::Ollama => "OLLAMA_HOST",
        }
    }

    /// Its public address; for Ollama where its daemon listens on this machine.
    #[must_use]
    pub fn public_url(self) -> &'static str {
        match self {
            Self::OpenAi => "https://api.openai.com/v1",
            Self::Anthropic => "https://api.anthropic.com",
            Self::Gemini => "https://generativelanguage.googleapis.com",
            Self::Ollama => "http://127.0.0.1:11434",
        }
    }

    /// The model `name` of this provider. Never repeats a request and follows no redirect. The key appears in no
    /// error and no `Debug`.
    ///
    /// # Errors
    /// [`ModelError::Setup`] if the address is none.
    pub fn model(self, name: &str, access: &Access, settings: &ModelSettings) -> Result<Arc<dyn Model>, ModelError> {
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
        Self::ALL.into_iter().find(|provider| provider.name() == name).ok_or_else(|| ModelError::Setup {
            message: format!("there is no provider of models called `{name}`"),
            hint: HINT.into(),
        })
    }
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Access").field("base_url", &self.base_url).finish_non_exhaustive()
    }
}
