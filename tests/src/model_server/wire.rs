//! The wires of the providers: which there are, and what a script's parts are on each.

use serde_json::Value;

use super::anthropic::Blocks;
use super::{Request, anthropic, gemini, ollama, openai};

/// How a provider is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wire {
    /// Chat completions, as OpenAI and all compatible servers have them.
    OpenAi,
    /// Anthropic's messages.
    Anthropic,
    /// Gemini's `streamGenerateContent`.
    Gemini,
    /// Ollama's own chat: a line of JSON a record.
    Ollama,
}

/// A part of an answer, whatever the wire.
#[derive(Debug, Clone)]
pub(super) enum Part {
    Say(String),
    Think(String),
    /// What the provider wants back with the thought before.
    Sign(String),
    Call {
        index: usize,
        name: String,
        arguments: String,
    },
    /// The beginning of a call, and a piece of its arguments: on the wires that have calls in pieces.
    Begin {
        index: usize,
        name: String,
    },
    Write {
        index: usize,
        piece: String,
    },
    /// The end, with this reason in OpenAI's words.
    Finish(String),
}

/// Writes one answer.
pub(super) enum Writer {
    OpenAi,
    Anthropic(Blocks),
    Gemini,
    Ollama,
}

impl Wire {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::OpenAi, Self::Anthropic, Self::Gemini, Self::Ollama];

    /// The wire that is spoken at this path.
    pub(super) fn of(path: &str) -> Option<Self> {
        match path {
            "/v1/chat/completions" => Some(Self::OpenAi),
            "/v1/messages" => Some(Self::Anthropic),
            "/api/chat" => Some(Self::Ollama),
            path if path.starts_with("/v1beta/models/") && path.ends_with(":streamGenerateContent?alt=sse") => {
                Some(Self::Gemini)
            }
            _ => None,
        }
    }

    pub(super) fn content_type(self) -> &'static str {
        match self {
            Self::OpenAi | Self::Anthropic | Self::Gemini => "text/event-stream",
            Self::Ollama => "application/x-ndjson",
        }
    }

    /// What the strictest server of this wire would refuse of a request.
    #[must_use]
    pub fn violations(self, request: &Request) -> Vec<String> {
        match self {
            Self::OpenAi => openai::violations(request),
            Self::Anthropic => anthropic::violations(request),
            Self::Gemini => gemini::violations(request),
            Self::Ollama => ollama::violations(request),
        }
    }

    /// What says nothing.
    pub(super) fn nothing(self) -> &'static [u8] {
        match self {
            Self::OpenAi | Self::Gemini => b": keep-alive\n\n",
            Self::Anthropic => b"event: ping\ndata: {\"type\":\"ping\"}\n\n",
            Self::Ollama => b"\n",
        }
    }

    /// The name of a provider that speaks it.
    #[must_use]
    pub fn provider(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::Ollama => "ollama",
        }
    }

    /// Whether calls come in pieces on it.
    #[must_use]
    pub fn has_pieces(self) -> bool {
        matches!(self, Self::OpenAi | Self::Anthropic)
    }

    /// What the user says last in a request; nothing if its last message holds results of calls alone.
    pub(super) fn prompt(self, body: &Value) -> Option<String> {
        let (messages, texts) = match self {
            Self::OpenAi | Self::Ollama | Self::Anthropic => (&body["messages"], "content"),
            Self::Gemini => (&body["contents"], "parts"),
        };
        let last = list(messages).last().filter(|last| last["role"] == "user")?;
        let text = openai::text(&last[texts]);
        (!text.is_empty()).then_some(text)
    }

    /// An event with this data, framed.
    pub(super) fn frame(self, data: &str) -> Vec<u8> {
        match self {
            Self::OpenAi | Self::Gemini => sse(data),
            Self::Anthropic => anthropic::event(data),
            Self::Ollama => format!("{data}\n").into_bytes(),
        }
    }

    pub(super) fn writer(self) -> Writer {
        match self {
            Self::OpenAi => Writer::OpenAi,
            Self::Anthropic => Writer::Anthropic(Blocks::default()),
            Self::Gemini => Writer::Gemini,
            Self::Ollama => Writer::Ollama,
        }
    }
}

impl Writer {
    /// The HTTP chunks of a part, in order.
    pub(super) fn part(&mut self, part: &Part) -> Vec<Vec<u8>> {
        match self {
            Self::OpenAi => openai::part(part),
            Self::Anthropic(blocks) => blocks.part(part),
            Self::Gemini => gemini::part(part),
            Self::Ollama => ollama::part(part),
        }
    }
}

/// An event of a stream of server-sent events.
pub(super) fn sse(data: &str) -> Vec<u8> {
    format!("data: {data}\n\n").into_bytes()
}

/// A text in two pieces.
pub(super) fn halves(text: &str) -> [&str; 2] {
    text.split_at(text.floor_char_boundary(text.len() / 2)).into()
}

/// The arguments of a call as a value; as the text they are where they are no JSON.
pub(super) fn value(arguments: &str) -> Value {
    serde_json::from_str(arguments).unwrap_or_else(|_| arguments.into())
}

/// Whether a tool may have this name.
pub(super) fn legal_name(name: &Value, longest: usize) -> bool {
    let legal = |name: &str| {
        (1..=longest).contains(&name.len())
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
    };
    name.as_str().is_some_and(legal)
}

/// The list at `value`; nothing where there is none.
pub(super) fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}
