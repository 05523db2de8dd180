//! What a model is: given a conversation and tools, a stream of what it says and wants called.

use std::pin::Pin;
use std::time::Duration;

use futures_util::Stream;
use holdpoint_common::{AssistantMessage, ModelSettings, ToolResult, Usage};
use holdpoint_tools::ToolSpec;
use std::sync::Arc;
use thiserror::Error;

use crate::history;

mod catalog;
mod provider;
pub mod rehearsal;
mod size;
mod unusable;

pub use catalog::{Catalog, DefaultModel, ProviderSetup};
pub use provider::{Access, Provider};
pub(crate) use unusable::Unusable;

/// The most calls of one answer.
pub(crate) const MOST_CALLS: usize = 1_000;

/// A model. Dropping the stream ends the request and closes its connection.
pub trait Model: Send + Sync + 'static {
    /// Its name, as `provider/name`.
    fn name(&self) -> &str;

    /// What is known of it.
    fn settings(&self) -> ModelSettings {
        ModelSettings::default()
    }

    /// Whether its requests are held to the limits of a context. What plays a script has none, and needs all of it.
    fn has_context(&self) -> bool {
        true
    }

    /// Sends a request. It is read at once; the stream does not need it.
    fn stream(&self, request: &ModelRequest) -> ModelStream;
}

/// What a model streams back. Ends after the last event, or with an error.
pub type ModelStream = Pin<Box<dyn Stream<Item = Result<ModelEvent, ModelError>> + Send>>;

/// One request to a model.
#[derive(Debug, Clone, Default)]
pub struct ModelRequest {
    /// What it is told about itself.
    pub system: Arc<str>,
    /// The conversation, oldest first. Every call in it has a result.
    pub messages: Vec<Message>,
    /// The tools it may call.
    pub tools: Arc<[ToolSpec]>,
}

/// One part of a conversation.
#[derive(Debug, Clone, PartialEq)]
pub enum Message {
    /// The user's words.
    User(String),
    /// A model's answer.
    Assistant(AssistantMessage),
    /// What a call of the answer before brought.
    Tool(ToolResult),
}

impl Message {
    /// Whether it is the user's words, which begin a turn, and not ours in their place.
    #[must_use]
    pub fn is_prompt(&self) -> bool {
        matches!(self, Self::User(text) if text != history::GO_ON && !history::is_results(text))
    }
}

/// One thing a model streams.
#[derive(Debug, Clone, PartialEq)]
pub enum ModelEvent {
    /// A piece of text.
    Text(String),
    /// A piece of thought.
    Thought(String),
    /// What the provider wants back unchanged with the thought before.
    ThoughtSignature(String),
    /// A piece of the arguments of a call, which is told whole once it is written: a sign of life, and what it weighs.
    Writing {
        /// Bytes of the piece.
        bytes: usize,
    },
    /// A whole tool call.
    Call {
        /// The provider's name for the call, where it gives one.
        id: Option<String>,
        /// The tool.
        name: String,
        /// Its arguments: JSON text as the model wrote it, not checked.
        arguments: String,
        /// What the provider wants back unchanged with the call.
        signature: Option<String>,
    },
    /// What the request used.
    Usage(Usage),
    /// The answer stops here, unfinished: it reached the most tokens that one may have.
    OutputLimit,
}

/// Why a model's stream ended early.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ModelError {
    /// It can't be used as it is set up: no such provider, no key.
    #[error("{message}")]
    Setup {
        /// What is missing.
        message: String,
        /// What to do about it.
        hint: String,
    },
    /// The provider refused the request.
    #[error("the model's provider refused the request (HTTP {status}): {message}")]
    Refused {
        /// The HTTP status.
        status: u16,
        /// What the provider said.
        message: String,
        /// When to come back, where it said so.
        retry_after: Option<Duration>,
    },
    /// The provider refuses every request until its user has seen to something: a key, a quota, a bill.
    #[error("the model's provider refuses all requests{}: {message}", .status.map(|status| format!(" (HTTP {status})")).unwrap_or_default())]
    Barred {
        /// The HTTP status, unless the fault is in a stream.
        status: Option<u16>,
        /// The provider's words.
        message: String,
    },
    /// The provider refuses the model's name or one of its settings: any conversation would be refused.
    #[error("the model's provider refused the request (HTTP {status}): {message}")]
    Misconfigured {
        /// The HTTP status.
        status: u16,
        /// The provider's words.
        message: String,
    },
    /// The provider could not be reached, or the connection broke.
    #[error("the connection to the model failed: {message}")]
    Connection {
        /// What happened.
        message: String,
    },
    /// What came is no answer.
    #[error("the model's answer can't be read: {message}")]
    Malformed {
        /// What is wrong with it.
        message: String,
    },
    /// The provider said, after it had begun to answer, that it can't go on now.
    #[error("the model's provider can't go on now: {message}")]
    Unavailable {
        /// What it said.
        message: String,
    },
    /// The provider said that it failed.
    #[error("the model failed: {message}")]
    Failed {
        /// What it said.
        message: String,
    },
}

/// What providers say of a conversation that is too long: OpenAI and vLLM, Anthropic, Gemini, llama.cpp, routers.
const OVERFLOW: [&str; 7] = [
    "context length",
    "context window",
    "context size",
    "context_length",
    "prompt is too long",
    "number of tokens allowed",
    "too many tokens",
];

/// Whether a provider's words are about a conversation that is too long.
fn is_overflow(message: &str) -> bool {
    let message = message.to_ascii_lowercase();
    OVERFLOW.iter().any(|words| message.contains(words))
}

impl ModelError {
    /// Whether the same request may succeed later: the provider has too much to do or is broken, or the way to it is.
    #[must_use]
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Refused { status: 501 | 505, .. } => false,
            Self::Refused { status, .. } => *status == 429 || (500..600).contains(status),
            Self::Connection { .. } | Self::Unavailable { .. } => true,
            Self::Setup { .. }
            | Self::Barred { .. }
            | Self::Misconfigured { .. }
            | Self::Malformed { .. }
            | Self::Failed { .. } => false,
        }
    }

    pub(crate) fn too_many_calls() -> Self {
        Self::Malformed { message: format!("it has over {MOST_CALLS} calls") }
    }

    /// Whether the provider refused the request for what it was: it would refuse the same one again.
    #[must_use]
    pub fn refuses_request(&self) -> bool {
        matches!(self, Self::Refused { status: 400 | 413 | 422, .. })
    }

    /// Whether the provider finds the conversation too long for the model, by the words that providers have for it.
    #[must_use]
    pub fn is_overflow(&self) -> bool {
        let Self::Refused { message, .. } = self else { return false };
        self.refuses_request() && is_overflow(message)
    }

    /// Whether the provider finds fault with thoughts that were sent back.
    #[must_use]
    pub fn blames_thoughts(&self) -> bool {
        let Self::Refused { message, .. } = self else { return false };
        let message = message.to_ascii_lowercase();
        ["thinking", "thought", "reasoning", "signature"].iter().any(|words| message.contains(words))
    }

    /// Whether the provider refused the request for its size alone.
    #[must_use]
    pub fn is_too_large(&self) -> bool {
        matches!(self, Self::Refused { status: 413, .. }) || self.is_overflow()
    }

    /// When the provider says to come back.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Refused { retry_after, .. } => *retry_after,
            _ => None,
        }
    }
}
