//! The sizes of requests, messages and events.

use std::io;

use serde_json::Value;

use super::{Message, ModelEvent, ModelRequest};

/// The tokens of an image, estimated: at most that many at Anthropic, which scales larger images
/// down, and about that many elsewhere.
const IMAGE_TOKENS: usize = 1_600;

/// The size of a text that has about as many tokens as an image, in bytes.
const IMAGE_BYTES: usize = 4 * IMAGE_TOKENS;

impl ModelRequest {
    /// The size of all texts in bytes, for an estimate of the tokens. An image counts as a text with
    /// as many tokens.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.fixed_bytes() + self.messages.iter().map(Message::bytes).sum::<u64>()
    }

    /// The size in bytes of the part that all requests of the session share: the system prompt and
    /// the tools.
    #[must_use]
    pub fn fixed_bytes(&self) -> u64 {
        let tools = self.tools.iter().map(|tool| tool.description.len() + json_bytes(&tool.schema));
        (self.system.len() + tools.sum::<usize>()) as u64
    }
}

impl Message {
    /// The size of all texts in bytes. An image counts as a text with as many tokens.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let bytes = match self {
            Self::User(text) => text.len(),
            Self::Assistant(answer) => {
                let text: usize = answer.blocks.iter().map(|block| block.text.len()).sum();
                text + answer
                    .calls
                    .iter()
                    .map(|call| call.name.len() + json_bytes(&call.input))
                    .sum::<usize>()
            }
            Self::Tool(result) => {
                let images = result.images.len() * IMAGE_BYTES;
                result.output.head.len() + result.output.tail.len() + result.result.len() + images
            }
        };
        bytes as u64
    }

    /// The number of lines in all texts.
    #[must_use]
    pub fn lines(&self) -> u64 {
        let lines = |text: &str| text.bytes().filter(|byte| *byte == b'\n').count() as u64;
        1 + match self {
            Self::User(text) => lines(text),
            Self::Assistant(answer) => {
                let written = answer.calls.iter().map(|call| json_lines(&call.input));
                answer.blocks.iter().map(|block| lines(&block.text)).chain(written).sum()
            }
            Self::Tool(result) => [&result.output.head, &result.output.tail, &result.result]
                .map(|text| lines(text))
                .iter()
                .sum(),
        }
    }

    /// The tokens of all images, estimated.
    pub(crate) fn image_tokens(&self) -> u64 {
        match self {
            Self::Tool(result) => (result.images.len() * IMAGE_TOKENS) as u64,
            Self::User(_) | Self::Assistant(_) => 0,
        }
    }

    /// Passes every text to `each`, for a count of the tokens.
    pub(crate) fn texts(&self, mut each: impl FnMut(&str)) {
        match self {
            Self::User(text) => each(text),
            Self::Assistant(answer) => {
                answer.blocks.iter().for_each(|block| each(&block.text));
                for call in &answer.calls {
                    each(&call.name);
                    each(&call.input.to_string());
                }
            }
            Self::Tool(result) => {
                [&result.output.head, &result.output.tail, &result.result]
                    .into_iter()
                    .for_each(|text| each(text));
            }
        }
    }
}

impl ModelEvent {
    /// The size of all texts in bytes; for `Writing`, the size of the piece, which the later `Call`
    /// contains again.
    #[must_use]
    pub fn bytes(&self) -> usize {
        match self {
            Self::Text(text) | Self::Thought(text) | Self::ThoughtSignature(text) => text.len(),
            Self::Call { id, name, arguments, signature } => {
                let sent_back = [id, signature].map(|text| text.as_ref().map_or(0, String::len));
                name.len() + arguments.len() + sent_back.iter().sum::<usize>()
            }
            Self::AgentStarted { session, .. } => session.len(),
            Self::Writing { bytes } => *bytes,
            Self::Usage(_) | Self::OutputLimit => 0,
        }
    }
}

/// The size in bytes of a value as JSON text, computed without that text.
fn json_bytes(value: &Value) -> usize {
    struct Count(usize);
    impl io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    // Counting can't fail.
    let _ = serde_json::to_writer(&mut count, value);
    count.0
}

/// The line feeds in the texts of a value, such as a file that a call writes.
fn json_lines(value: &Value) -> u64 {
    match value {
        Value::String(text) => text.bytes().filter(|byte| *byte == b'\n').count() as u64,
        Value::Array(values) => values.iter().map(json_lines).sum(),
        Value::Object(map) => map.values().map(json_lines).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}
