//! Reads the events of Anthropic's messages API.
//!
//! A message is a list of blocks (texts, thoughts, calls), each of which is opened, written and
//! stopped under its index. The start of a message counts its input; the `message_delta` with a
//! stop reason counts its output.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{REDACTED_PREFIX, SIGNATURE_PREFIX};
use crate::model::provider::remote::{
    Arguments, Count, Counts, End, Finish, HeldBytes, Lenient, OpenCall, Pieces, Reader, Text,
    is_fault, is_no_input, malformed, parse_object,
};
use crate::model::{ModelError, ModelEvent};

/// An event. Its parts are parsed by its type, because those of an unknown type may hold anything.
#[derive(Debug, Deserialize)]
struct Event<'a> {
    #[serde(default)]
    r#type: Text,
    #[serde(default)]
    index: Count,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
    #[serde(borrow)]
    content_block: Option<&'a RawValue>,
    #[serde(borrow)]
    delta: Option<&'a RawValue>,
    #[serde(default)]
    usage: Lenient<Usage>,
}

/// The message in `message_start`. All of it but the usage is still empty.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Start {
    usage: Lenient<Usage>,
}

/// A whole message, from a server that does not stream.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Message {
    content: Vec<Block>,
    stop_reason: Text,
    stop_details: Lenient<StopDetails>,
    usage: Lenient<Usage>,
}

/// The start of a block.
#[derive(Debug, Deserialize)]
struct Block {
    r#type: String,
    #[serde(default)]
    text: Text,
    #[serde(default)]
    thinking: Text,
    #[serde(default)]
    signature: Text,
    #[serde(default)]
    data: Text,
    #[serde(default)]
    id: Text,
    #[serde(default)]
    name: Text,
    #[serde(default)]
    input: Arguments,
}

/// A piece of a block, in the field that matches its type.
#[derive(Debug, Deserialize)]
struct Delta {
    r#type: String,
    #[serde(default)]
    text: Text,
    #[serde(default)]
    thinking: Text,
    #[serde(default)]
    signature: Text,
    #[serde(default)]
    partial_json: Text,
}

/// The end of a message.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Ending {
    stop_reason: Text,
    stop_details: Lenient<StopDetails>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct StopDetails {
    explanation: Text,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default)]
struct Usage {
    input_tokens: Count,
    output_tokens: Count,
    cache_read_input_tokens: Count,
    cache_creation_input_tokens: Count,
}

/// A block that is open.
#[derive(Debug)]
enum OpenBlock {
    Text,
    /// A kind that is not read, for example a call of a tool that the provider runs itself.
    Other,
    Thought {
        signature: String,
    },
    Redacted {
        data: String,
    },
    Call {
        call: OpenCall,
        /// The input from the start of the block, which is used if no other follows.
        announced: String,
    },
}

/// Reads the events of one answer.
#[derive(Debug, Default)]
pub(crate) struct Events {
    open_blocks: BTreeMap<u64, OpenBlock>,
    held: HeldBytes,
    /// Whether a block has opened, with or without its announcement.
    has_opened: bool,
    lost_call: bool,
    /// The usage from the start of the message.
    start: Usage,
}

impl Reader for Events {
    fn read(&mut self, frame: &str, pieces: &mut Pieces) -> Result<Option<End>, ModelError> {
        let Some(event) = parse_object::<Event<'_>>(frame)? else { return Ok(None) };
        let kind = event.r#type.filled().unwrap_or_default();
        let index =
            || event.index.0.ok_or_else(|| malformed(format!("`{kind}` has no block index")));
        match kind.as_str() {
            "message_start" => {
                // Some gateways send no message here, and a bad usage must not fail an answer.
                let start = event.message.map(|message| {
                    serde_json::from_str::<Start>(message.get()).unwrap_or_default()
                });
                self.start = start.and_then(|start| start.usage.0).unwrap_or_default();
            }
            "content_block_start" => {
                let block = part(event.content_block, &kind)?;
                self.open(index()?, block, pieces)?;
            }
            "content_block_delta" => {
                let delta = part(event.delta, &kind)?;
                self.write(index()?, delta, pieces)?;
            }
            "content_block_stop" => self.stop(index()?, pieces)?,
            "message_delta" => {
                // Only a delta with a reason ends the message.
                let Some(delta) = event.delta else { return Ok(None) };
                let ending: Ending = part(Some(delta), &kind)?;
                if let Some(reason) = ending.stop_reason.0 {
                    let counts = self.counts(event.usage.0.unwrap_or_default());
                    return self.end(finish(reason, ending.stop_details), counts, pieces).map(Some);
                }
            }
            "message" => {
                let message = parse_object::<Message>(frame)?.unwrap_or_default();
                return self.read_whole(message, pieces).map(Some);
            }
            // `ping`, `message_stop` and unknown events.
            _ => {}
        }
        Ok(None)
    }
}

impl Events {
    /// Opens a block, which may already have content.
    fn open(&mut self, index: u64, block: Block, pieces: &mut Pieces) -> Result<(), ModelError> {
        if self.open_blocks.contains_key(&index) {
            return Err(malformed(format!("block {index} was opened twice")));
        }
        let open = match block.r#type.as_str() {
            "text" => {
                pieces.add_text(&block.text.filled().unwrap_or_default());
                OpenBlock::Text
            }
            "thinking" => {
                pieces.add_thought(&block.thinking.filled().unwrap_or_default());
                OpenBlock::Thought { signature: block.signature.filled().unwrap_or_default() }
            }
            "redacted_thinking" => {
                OpenBlock::Redacted { data: block.data.filled().unwrap_or_default() }
            }
            "tool_use" => {
                let mut call = OpenCall::default();
                call.set_id(block.id.filled().unwrap_or_default(), &mut self.held)?;
                call.add_name(&block.name.filled().unwrap_or_default(), &mut self.held)?;
                OpenBlock::Call { call, announced: block.input.0 }
            }
            // The text of another model does not continue the text so far.
            "fallback" if self.has_opened => {
                return Err(malformed("another model took over in the middle of the answer"));
            }
            "fallback" => return self.insert(index, OpenBlock::Other),
            _ => OpenBlock::Other,
        };
        self.has_opened = true;
        self.insert(index, open)
    }

    fn insert(&mut self, index: u64, block: OpenBlock) -> Result<(), ModelError> {
        let bytes = match &block {
            OpenBlock::Thought { signature: data } | OpenBlock::Redacted { data } => data.len(),
            OpenBlock::Call { announced, .. } => announced.len(),
            OpenBlock::Text | OpenBlock::Other => 0,
        };
        self.held.add(size_of::<OpenBlock>() + bytes)?;
        self.open_blocks.insert(index, block);
        Ok(())
    }

    /// Adds a piece to a block. Some gateways do not announce a block of text or thought.
    fn write(&mut self, index: u64, delta: Delta, pieces: &mut Pieces) -> Result<(), ModelError> {
        let Delta { r#type: kind, text, thinking, signature, partial_json } = delta;
        let piece =
            |Text(piece): Text| piece.ok_or_else(|| malformed(format!("`{kind}` has no text")));
        match (kind.as_str(), self.open_blocks.get_mut(&index)) {
            ("text_delta", open) => {
                pieces.add_text(&piece(text)?);
                self.has_opened = true;
                if open.is_none() {
                    self.insert(index, OpenBlock::Text)?;
                }
            }
            ("thinking_delta", open) => {
                pieces.add_thought(&piece(thinking)?);
                self.has_opened = true;
                if open.is_none() {
                    self.insert(index, OpenBlock::Thought { signature: String::new() })?;
                }
            }
            ("signature_delta", Some(OpenBlock::Thought { signature: written })) => {
                let more = piece(signature)?;
                self.held.add(more.len())?;
                written.push_str(&more);
            }
            ("signature_delta", None) => return Err(not_open(index)),
            ("input_json_delta", Some(OpenBlock::Call { call, .. })) => {
                call.add_arguments(&piece(partial_json)?, pieces, &mut self.held)?;
            }
            // The input of a tool that the provider runs.
            ("input_json_delta", Some(OpenBlock::Other)) => {}
            ("input_json_delta", _) => {
                return Err(malformed(format!("block {index} received input but accepts none")));
            }
            _ => {}
        }
        Ok(())
    }

    /// Completes a block.
    fn stop(&mut self, index: u64, pieces: &mut Pieces) -> Result<(), ModelError> {
        match self.open_blocks.remove(&index).ok_or_else(|| not_open(index))? {
            OpenBlock::Thought { signature } if !signature.is_empty() => {
                pieces.add(ModelEvent::ThoughtSignature(format!("{SIGNATURE_PREFIX}{signature}")));
            }
            OpenBlock::Redacted { data } if !data.is_empty() => {
                pieces.add(ModelEvent::ThoughtSignature(format!("{REDACTED_PREFIX}{data}")));
            }
            // An empty call is ignored; the stop reason says whether a call was expected.
            OpenBlock::Call { call, announced } if call.is_empty() && is_no_input(&announced) => {}
            OpenBlock::Call { call, announced } => self.lost_call |= !call.end(announced, pieces),
            OpenBlock::Text
            | OpenBlock::Other
            | OpenBlock::Thought { .. }
            | OpenBlock::Redacted { .. } => {}
        }
        if self.open_blocks.is_empty() {
            self.held = HeldBytes::default();
        }
        Ok(())
    }

    /// Ends the message, and with it every open block.
    fn end(
        &mut self,
        finish: Finish,
        counts: Counts,
        pieces: &mut Pieces,
    ) -> Result<End, ModelError> {
        while let Some(index) = self.open_blocks.keys().next().copied() {
            self.stop(index, pieces)?;
        }
        Ok(End { finish, counts, lost_call: self.lost_call })
    }

    /// Reads a whole message from a server that does not stream.
    fn read_whole(&mut self, message: Message, pieces: &mut Pieces) -> Result<End, ModelError> {
        for (index, block) in (0..).zip(message.content) {
            self.open(index, block, pieces)?;
            self.stop(index, pieces)?;
        }
        let finish = message
            .stop_reason
            .0
            .map_or(Finish::Stop, |reason| finish(reason, message.stop_details));
        let counts = self.counts(message.usage.0.unwrap_or_default());
        self.end(finish, counts, pieces)
    }

    /// The counts from the end of the message, or from its start where the end has none.
    fn counts(&self, end: Usage) -> Counts {
        let counted = |end: Count, start: Count| end.0.or(start.0);
        let cached = counted(end.cache_read_input_tokens, self.start.cache_read_input_tokens);
        let cache_written =
            counted(end.cache_creation_input_tokens, self.start.cache_creation_input_tokens);
        // Some gateways end with a zero for a count that they do not know.
        let uncached =
            end.input_tokens.0.filter(|tokens| *tokens > 0).or(self.start.input_tokens.0);
        let cache_tokens = cached.unwrap_or(0).saturating_add(cache_written.unwrap_or(0));
        let input = uncached.map(|tokens| tokens.saturating_add(cache_tokens));
        Counts { input, cached, cache_written, output: end.output_tokens.0 }
    }
}

fn not_open(index: u64) -> ModelError {
    malformed(format!("block {index} is not open"))
}

/// Parses a part of an event.
fn part<'a, T: Deserialize<'a>>(part: Option<&'a RawValue>, kind: &str) -> Result<T, ModelError> {
    let part = part.ok_or_else(|| malformed(format!("`{kind}` lacks its content")))?;
    serde_json::from_str(part.get()).map_err(|error| malformed(format!("`{kind}`: {error}")))
}

/// The meaning of a stop reason.
fn finish(reason: String, details: Lenient<StopDetails>) -> Finish {
    match reason.as_str() {
        "end_turn" | "stop_sequence" | "pause_turn" => Finish::Stop,
        "max_tokens" | "model_context_window_exceeded" => Finish::Limit,
        "tool_use" => Finish::Calls,
        "refusal" => {
            let explanation = details.0.and_then(|details| details.explanation.filled());
            Finish::Filtered(Some(
                explanation.unwrap_or_else(|| "the model refused the request".into()),
            ))
        }
        other if is_fault(other) => Finish::Fault(reason),
        _ => Finish::Other(reason),
    }
}

#[cfg(test)]
mod tests;
