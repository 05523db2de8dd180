//! The providers' wire protocols, and the encoding of a script's parts for each.

use serde_json::Value;

use super::anthropic::Blocks;
use super::{Request, anthropic, gemini, ollama, openai};

/// The wire protocol of a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wire {
    /// Chat completions, as in OpenAI and all compatible servers.
    OpenAi,
    /// Anthropic's messages protocol.
    Anthropic,
    /// Gemini's `streamGenerateContent` protocol.
    Gemini,
    /// Ollama's own chat protocol, with one line of JSON per record.
    Ollama,
}

/// A part of an answer, independent of the wire.
#[derive(Debug, Clone)]
pub(super) enum Part {
    Say(String),
    Think(String),
    /// The signature of the previous thought, which the provider wants back.
    Sign(String),
    Call {
        index: usize,
        name: String,
        arguments: String,
    },
    /// The start of a call; `Write` adds a piece of its arguments. Only on wires that send calls in
    /// pieces.
    Begin {
        index: usize,
        name: String,
    },
    Write {
        index: usize,
        piece: String,
    },
    /// The end, with the finish reason in OpenAI's words.
    Finish(String),
}

/// The encoder of one answer, with the state that its wire needs.
pub(super) enum Writer {
    OpenAi,
    Anthropic(Blocks),
    Gemini,
    Ollama,
}

impl Wire {
    /// All wires, for tests of each.
    pub const ALL: [Self; 4] = [Self::OpenAi, Self::Anthropic, Self::Gemini, Self::Ollama];

    /// The wire of the API at this path.
    pub(super) fn for_path(path: &str) -> Option<Self> {
        match path {
            "/v1/chat/completions" => Some(Self::OpenAi),
            "/v1/messages" => Some(Self::Anthropic),
            "/api/chat" => Some(Self::Ollama),
            path if path.starts_with("/v1beta/models/")
                && path.ends_with(":streamGenerateContent?alt=sse") =>
            {
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

    /// The rules of this wire's strictest server that a request breaks.
    #[must_use]
    pub fn violations(self, request: &Request) -> Vec<String> {
        match self {
            Self::OpenAi => openai::violations(request),
            Self::Anthropic => anthropic::violations(request),
            Self::Gemini => gemini::violations(request),
            Self::Ollama => ollama::violations(request),
        }
    }

    /// A keep-alive sign without content.
    pub(super) fn nothing(self) -> &'static [u8] {
        match self {
            Self::OpenAi | Self::Gemini => b": keep-alive\n\n",
            Self::Anthropic => b"event: ping\ndata: {\"type\":\"ping\"}\n\n",
            Self::Ollama => b"\n",
        }
    }

    /// The name of a provider that uses this wire.
    #[must_use]
    pub fn provider(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::Ollama => "ollama",
        }
    }

    /// Whether calls can be sent in pieces.
    #[must_use]
    pub fn has_pieces(self) -> bool {
        matches!(self, Self::OpenAi | Self::Anthropic)
    }

    /// The user's last prompt in a request. `None` if the last message holds only tool results.
    pub(super) fn prompt(self, body: &Value) -> Option<String> {
        let (messages, texts) = match self {
            Self::OpenAi | Self::Ollama | Self::Anthropic => (&body["messages"], "content"),
            Self::Gemini => (&body["contents"], "parts"),
        };
        let last = list(messages).last().filter(|last| last["role"] == "user")?;
        let text = openai::text(&last[texts]);
        (!text.is_empty()).then_some(text)
    }

    /// Frames an event with this data.
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
    /// Encodes a part as HTTP chunks, in order.
    pub(super) fn part(&mut self, part: &Part) -> Vec<Vec<u8>> {
        match self {
            Self::OpenAi => openai::part(part),
            Self::Anthropic(blocks) => blocks.part(part),
            Self::Gemini => gemini::part(part),
            Self::Ollama => ollama::part(part),
        }
    }
}

/// Frames a server-sent event.
pub(super) fn sse(data: &str) -> Vec<u8> {
    format!("data: {data}\n\n").into_bytes()
}

/// Splits a text in two.
pub(super) fn halves(text: &str) -> [&str; 2] {
    text.split_at(text.floor_char_boundary(text.len() / 2)).into()
}

/// The arguments of a call as a JSON value, or as a string if they are not JSON.
pub(super) fn value(arguments: &str) -> Value {
    serde_json::from_str(arguments).unwrap_or_else(|_| arguments.into())
}

/// Whether the name of a tool is valid.
pub(super) fn legal_name(name: &Value, longest: usize) -> bool {
    let legal = |name: &str| {
        (1..=longest).contains(&name.len())
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
    };
    name.as_str().is_some_and(legal)
}

/// The elements of `value`, or an empty slice if it is not an array.
pub(super) fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}
