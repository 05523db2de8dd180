//! Language models. A model turns a conversation and tools into a stream of text and tool calls.

use std::pin::Pin;
use std::time::Duration;

use futures_util::Stream;
use holdpoint_common::limits::MAX_CALLS;
use holdpoint_common::{AgentStart, AssistantMessage, ModelSettings, ToolResult, Usage};
use holdpoint_tools::ToolSpec;
use std::sync::Arc;
use thiserror::Error;

mod catalog;
pub(crate) mod inserted;
mod provider;
pub mod rehearsal;
mod size;
mod unusable;

pub use catalog::{Catalog, DefaultModel, ProviderSetup};
pub(crate) use provider::http;
pub use provider::{Access, Provider};
pub(crate) use unusable::Unusable;

/// A language model. Dropping a stream ends its request and closes the connection.
pub trait Model: Send + Sync + 'static {
    /// The name of the model, as `provider/name`.
    fn name(&self) -> &str;

    /// The user's settings for this model.
    fn settings(&self) -> ModelSettings {
        ModelSettings::default()
    }

    /// Whether the limits of a context apply to requests. A model that plays a script needs the
    /// whole conversation.
    fn has_context(&self) -> bool {
        true
    }

    /// Whether the model takes images. Results in its requests have none otherwise.
    fn takes_images(&self) -> bool {
        false
    }

    /// Whether the next request needs the messages of the conversation. An agent does not in the
    /// middle of its own turn.
    fn needs_messages(&self) -> bool {
        true
    }

    /// Sends a request. The request is read before this returns; the stream does not need it.
    fn stream(&self, request: &ModelRequest) -> ModelStream;
}

/// The stream of a model's answer, which ends after the last event or with an error.
pub type ModelStream = Pin<Box<dyn Stream<Item = Result<ModelEvent, ModelError>> + Send>>;

/// One request to a model.
#[derive(Debug, Clone, Default)]
pub struct ModelRequest {
    /// The system prompt of the request.
    pub system: Arc<str>,
    /// The conversation, oldest first. Every call in it has a result.
    pub messages: Vec<Message>,
    /// The tools that the model may call.
    pub tools: Arc<[Arc<ToolSpec>]>,
}

/// One part of a conversation.
#[derive(Debug, Clone, PartialEq)]
pub enum Message {
    /// A text from the user.
    User(String),
    /// An answer of the model, shared with the facts of the session.
    Assistant(Arc<AssistantMessage>),
    /// The result of a call in the answer before, shared like an answer.
    Tool(Arc<ToolResult>),
}

impl Message {
    /// Whether this is a prompt of the user, which begins a turn. Results of calls that are sent as
    /// text, and the text after a broken answer, are not.
    #[must_use]
    pub fn is_prompt(&self) -> bool {
        matches!(self, Self::User(text) if inserted::is_prompt(text))
    }
}

/// One event of a model's stream.
#[derive(Debug, Clone, PartialEq)]
pub enum ModelEvent {
    /// A piece of text.
    Text(String),
    /// A piece of thought.
    Thought(String),
    /// The provider's signature of the thought before, to be sent back unchanged.
    ThoughtSignature(String),
    /// A piece of the arguments of a call. It shows progress and counts towards the size of the
    /// answer. The call itself is reported later, as a whole.
    Writing {
        /// The size of the piece in bytes.
        bytes: usize,
    },
    /// A complete tool call.
    Call {
        /// The provider's id of the call, if it has one.
        id: Option<String>,
        /// The name of the tool.
        name: String,
        /// The arguments as the model wrote them: JSON text that was not checked.
        arguments: String,
        /// The provider's signature of the call, to be sent back unchanged.
        signature: Option<String>,
    },
    /// The agent that is the model was started.
    AgentStarted {
        /// The id of the agent's own session.
        session: String,
        /// How the agent gets the conversation.
        how: AgentStart,
    },
    /// The usage of the request.
    Usage(Usage),
    /// The answer is unfinished: it reached the maximum number of tokens.
    OutputLimit,
}

/// The reason why a model's stream ended early.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ModelError {
    /// The model is not set up: its provider is unknown, or its key is missing.
    #[error("{message}")]
    Setup {
        /// The setting that is missing or wrong.
        message: String,
        /// A hint on how to fix it.
        hint: String,
    },
    /// The provider refused the request.
    #[error("the model's provider refused the request (HTTP {status}): {message}")]
    Refused {
        /// The HTTP status code.
        status: u16,
        /// The provider's error message.
        message: String,
        /// How long to wait before a retry, if the provider says so.
        retry_after: Option<Duration>,
    },
    /// The provider refuses every request until the user fixes the account: a key, a quota, a bill.
    #[error("the model's provider refuses all requests{}: {message}", .status.map(|status| format!(" (HTTP {status})")).unwrap_or_default())]
    Barred {
        /// The HTTP status code; `None` if the fault is in a stream.
        status: Option<u16>,
        /// The provider's error message.
        message: String,
    },
    /// The provider refuses the model's name or one of its settings, so it would refuse any
    /// conversation.
    #[error("the model's provider refused the request (HTTP {status}): {message}")]
    Misconfigured {
        /// The HTTP status code.
        status: u16,
        /// The provider's error message.
        message: String,
    },
    /// The provider could not be reached, or the connection broke.
    #[error("the connection to the model failed: {message}")]
    Connection {
        /// A description of the failure.
        message: String,
    },
    /// The provider's answer is not valid.
    #[error("the model's answer can't be read: {message}")]
    Malformed {
        /// A description of the defect.
        message: String,
    },
    /// The provider began to answer, and then reported that it can't continue now.
    #[error("the model's provider can't continue now: {message}")]
    Unavailable {
        /// The provider's error message.
        message: String,
    },
    /// The agent that the session hosts has failed.
    #[error("the agent failed: {message}")]
    Agent {
        /// The name of the agent, and a description of the failure.
        message: String,
    },
    /// The provider reported that the model failed.
    #[error("the model failed: {message}")]
    Failed {
        /// The provider's error message.
        message: String,
    },
}

/// Phrases by which providers report that a conversation is too long: OpenAI and vLLM, Anthropic,
/// Gemini, llama.cpp, routers.
const OVERFLOW_PHRASES: [&str; 7] = [
    "context length",
    "context window",
    "context size",
    "context_length",
    "prompt is too long",
    "number of tokens allowed",
    "too many tokens",
];

/// Whether a provider's message is about a conversation that is too long.
fn is_overflow(message: &str) -> bool {
    let message = message.to_ascii_lowercase();
    OVERFLOW_PHRASES.iter().any(|phrase| message.contains(phrase))
}

impl ModelError {
    /// Whether the same request may succeed later, because the provider is overloaded or broken, or
    /// the connection to it is.
    #[must_use]
    pub fn is_temporary(&self) -> bool {
        match self {
            Self::Refused { status: 501 | 505, .. } => false,
            Self::Refused { status, .. } => *status == 429 || (500..600).contains(status),
            Self::Connection { .. } | Self::Unavailable { .. } => true,
            Self::Setup { .. }
            | Self::Barred { .. }
            | Self::Misconfigured { .. }
            | Self::Malformed { .. }
            | Self::Agent { .. }
            | Self::Failed { .. } => false,
        }
    }

    pub(crate) fn too_many_calls() -> Self {
        Self::Malformed { message: format!("it has more than {MAX_CALLS} calls") }
    }

    /// Whether the provider refused the request for its content, so that it would refuse it again.
    #[must_use]
    pub fn refuses_request(&self) -> bool {
        matches!(self, Self::Refused { status: 400 | 413 | 422, .. })
    }

    /// Whether the provider finds the conversation too long for the model, judging by its message.
    #[must_use]
    pub fn is_overflow(&self) -> bool {
        let Self::Refused { message, .. } = self else { return false };
        self.refuses_request() && is_overflow(message)
    }

    /// Whether the provider objects to thoughts that were sent back.
    #[must_use]
    pub fn blames_thoughts(&self) -> bool {
        let Self::Refused { message, .. } = self else { return false };
        let message = message.to_ascii_lowercase();
        ["thinking", "thought", "reasoning", "signature"].iter().any(|word| message.contains(word))
    }

    /// Whether the provider refused the request only because of its size.
    #[must_use]
    pub fn is_too_large(&self) -> bool {
        matches!(self, Self::Refused { status: 413, .. }) || self.is_overflow()
    }

    /// How long to wait before a retry, if the provider says so.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Refused { retry_after, .. } => *retry_after,
            _ => None,
        }
    }
}
