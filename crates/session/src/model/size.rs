//! How large requests and events are.

use super::{Message, ModelEvent, ModelRequest};

impl ModelRequest {
    /// Bytes of all its texts, for an estimate of its tokens.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let messages = self.messages.iter().map(|message| match message {
            Message::User(text) => text.len(),
            Message::Assistant(answer) => {
                let text: usize = answer.blocks.iter().map(|block| block.text.len()).sum();
                let calls = answer.calls.iter().map(|call| call.name.len() + call.input.to_string().len());
                text + calls.sum::<usize>()
            }
            Message::Tool(result) => result.output.head.len() + result.output.tail.len() + result.result.len(),
        });
        let tools = self.tools.iter().map(|tool| tool.description.len() + tool.schema.to_string().len());
        (self.system.len() + messages.sum::<usize>() + tools.sum::<usize>()) as u64
    }
}

impl ModelEvent {
    /// Bytes of all its texts.
    #[must_use]
    pub fn bytes(&self) -> usize {
        match self {
            Self::Text(text) | Self::Thought(text) | Self::ThoughtSignature(text) => text.len(),
            Self::Call { name, arguments, signature } => {
                name.len() + arguments.len() + signature.as_ref().map_or(0, String::len)
            }
            Self::Usage(_) | Self::OutputLimit => 0,
        }
    }
}
