//! Reads the events of Anthropic's messages.
//!
//! A message is a list of blocks: text, thoughts, calls, each opened, written and stopped under its index. Its input is
//! counted when it starts, its output when it ends: in the `message_delta` that has a stop reason.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{REDACTED, SIGNED};
use crate::model::provider::remote::{
    Arguments, Count, Counts, End, Finish, Held, Lenient, OpenCall, Pieces, Reader, Text, is_fault, is_no_input,
    malformed, object,
};
use crate::model::{ModelError, ModelEvent};

/// An event. Its parts are read by its type, for an unknown one may hold anything.
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

/// A message as it starts. The rest of it is empty by then.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Start {
    usage: Lenient<Usage>,
}

/// A whole message, as a server sends it that was not asked for a stream.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Message {
    content: Vec<Block>,
    stop_reason: Text,
    stop_details: Lenient<StopDetails>,
    usage: Lenient<Usage>,
}

/// A block as it opens.
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

/// A piece of a block, in the field that its type says.
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

/// How a message ends.
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
enum Open {
    Text,
    /// A kind that is not read: among others, calls of tools that the provider runs itself.
    Other,
    Thought {
        signature: String,
    },
    Redacted {
        data: String,
    },
    Call {
        call: OpenCall,
        /// The input that came when it opened, which is used if none is written.
        announced: String,
    },
}

/// Reads the events of one answer.
#[derive(Debug, Default)]
pub(crate) struct Events {
    open: BTreeMap<u64, Open>,
    held: Held,
    /// A block has opened.
    begun: bool,
    lost_call: bool,
    /// What the start of the message counted.
    start: Usage,
}

impl Reader for Events {
    fn read(&mut self, frame: &str, pieces: &mut Pieces) -> Result<Option<End>, ModelError> {
        let Some(event) = object::<Event<'_>>(frame)? else { return Ok(None) };
        let kind = event.r#type.filled().unwrap_or_default();
        let index = || event.index.0.ok_or_else(|| malformed(format!("`{kind}` names no block's index")));
        match kind.as_str() {
            "message_start" => {
                // Some gateways start no message, and no usage fails an answer.
                let start =
                    event.message.map(|message| serde_json::from_str::<Start>(message.get()).unwrap_or_default());
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
                // Only one with a reason is the end.
                let Some(delta) = event.delta else { return Ok(None) };
                let ending: Ending = part(Some(delta), &kind)?;
                if let Some(reason) = ending.stop_reason.0 {
                    let counts = self.counts(event.usage.0.unwrap_or_default());
                    return self.end(finish(reason, ending.stop_details), counts, pieces).map(Some);
                }
            }
            "message" => {
                let message = object::<Message>(frame)?.unwrap_or_default();
                return self.whole(message, pieces).map(Some);
            }
            // `ping`, `message_stop`, and what is not known.
            _ => {}
        }
        Ok(None)
    }
}

impl Events {
    /// A block opens, with what it begins with.
    fn open(&mut self, index: u64, block: Block, pieces: &mut Pieces) -> Result<(), ModelError> {
        if self.open.contains_key(&index) {
            return Err(malformed(format!("block {index} opens twice")));
        }
        let open = match block.r#type.as_str() {
            "text" => {
                pieces.text(&block.text.filled().unwrap_or_default());
                Open::Text
            }
            "thinking" => {
                pieces.thought(&block.thinking.filled().unwrap_or_default());
                Open::Thought { signature: block.signature.filled().unwrap_or_default() }
            }
            "redacted_thinking" => Open::Redacted { data: block.data.filled().unwrap_or_default() },
            "tool_use" => {
                let mut call = OpenCall::default();
                call.id(block.id.filled().unwrap_or_default(), &mut self.held)?;
                call.name(block.name.filled().unwrap_or_default(), &mut self.held)?;
                Open::Call { call, announced: block.input.0 }
            }
            // Another model took over: what it says does not continue what was said.
            "fallback" if self.begun => return Err(malformed("another model took over in the middle of it")),
            "fallback" => return self.insert(index, Open::Other),
            _ => Open::Other,
        };
        self.begun = true;
        self.insert(index, open)
    }

    fn insert(&mut self, index: u64, open: Open) -> Result<(), ModelError> {
        let bytes = match &open {
            Open::Thought { signature: kept } | Open::Redacted { data: kept } => kept.len(),
            Open::Call { announced, .. } => announced.len(),
            Open::Text | Open::Other => 0,
        };
        self.held.add(size_of::<Open>() + bytes)?;
        self.open.insert(index, open);
        Ok(())
    }

    /// A piece of a block. Some gateways do not say that a block of text or thought opens.
    fn write(&mut self, index: u64, delta: Delta, pieces: &mut Pieces) -> Result<(), ModelError> {
        let Delta { r#type: kind, text, thinking, signature, partial_json } = delta;
        let piece = |Text(piece): Text| piece.ok_or_else(|| malformed(format!("`{kind}` brings no text")));
        match (kind.as_str(), self.open.get_mut(&index)) {
            ("text_delta", open) => {
                pieces.text(&piece(text)?);
                if open.is_none() {
                    self.insert(index, Open::Text)?;
                }
            }
            ("thinking_delta", open) => {
                pieces.thought(&piece(thinking)?);
                if open.is_none() {
                    self.insert(index, Open::Thought { signature: String::new() })?;
                }
            }
            ("signature_delta", Some(Open::Thought { signature: written })) => {
                let more = piece(signature)?;
                self.held.add(more.len())?;
                written.push_str(&more);
            }
            ("signature_delta", None) => return Err(not_open(index)),
            ("input_json_delta", Some(Open::Call { call, .. })) => {
                call.write(&piece(partial_json)?, pieces, &mut self.held)?;
            }
            // The input of a tool that the provider runs.
            ("input_json_delta", Some(Open::Other)) => {}
            ("input_json_delta", _) => {
                return Err(malformed(format!("input comes for block {index}, which takes none")));
            }
            _ => {}
        }
        Ok(())
    }

    /// A block is complete.
    fn stop(&mut self, index: u64, pieces: &mut Pieces) -> Result<(), ModelError> {
        match self.open.remove(&index).ok_or_else(|| not_open(index))? {
            Open::Thought { signature } if !signature.is_empty() => {
                pieces.add(ModelEvent::ThoughtSignature(format!("{SIGNED}{signature}")));
            }
            Open::Redacted { data } if !data.is_empty() => {
                pieces.add(ModelEvent::ThoughtSignature(format!("{REDACTED}{data}")));
            }
            // An empty block is ignored: the reason to end says whether a call was wanted.
            Open::Call { call, announced } if call.is_empty() && is_no_input(&announced) => {}
            Open::Call { call, announced } => self.lost_call |= !call.end(announced, pieces),
            Open::Text | Open::Other | Open::Thought { .. } | Open::Redacted { .. } => {}
        }
        if self.open.is_empty() {
            self.held = Held::default();
        }
        Ok(())
    }

    /// The message ends, and with it every block that is still open.
    fn end(&mut self, finish: Finish, counts: Counts, pieces: &mut Pieces) -> Result<End, ModelError> {
        while let Some(index) = self.open.keys().next().copied() {
            self.stop(index, pieces)?;
        }
        Ok(End { finish, counts, lost_call: self.lost_call })
    }

    fn whole(&mut self, message: Message, pieces: &mut Pieces) -> Result<End, ModelError> {
        for (index, block) in (0..).zip(message.content) {
            self.open(index, block, pieces)?;
            self.stop(index, pieces)?;
        }
        let finish = message.stop_reason.0.map_or(Finish::Stop, |reason| finish(reason, message.stop_details));
        let counts = self.counts(message.usage.0.unwrap_or_default());
        self.end(finish, counts, pieces)
    }

    /// What was counted: at the end, and at the start what the end does not repeat.
    fn counts(&self, end: Usage) -> Counts {
        let counted = |end: Count, start: Count| end.0.or(start.0);
        let cached = counted(end.cache_read_input_tokens, self.start.cache_read_input_tokens);
        let cache_written = counted(end.cache_creation_input_tokens, self.start.cache_creation_input_tokens);
        // Some gateways end with a zero for what they do not know.
        let uncached = end.input_tokens.0.filter(|tokens| *tokens > 0).or(self.start.input_tokens.0);
        let beside = cached.unwrap_or(0).saturating_add(cache_written.unwrap_or(0));
        let input = uncached.map(|tokens| tokens.saturating_add(beside));
        Counts { input, cached, cache_written, output: end.output_tokens.0 }
    }
}

fn not_open(index: u64) -> ModelError {
    malformed(format!("block {index} is not open"))
}

/// Reads a part of an event.
fn part<'a, T: Deserialize<'a>>(part: Option<&'a RawValue>, kind: &str) -> Result<T, ModelError> {
    let part = part.ok_or_else(|| malformed(format!("`{kind}` lacks its part")))?;
    serde_json::from_str(part.get()).map_err(|error| malformed(format!("`{kind}`: {error}")))
}

/// What a stop reason means.
fn finish(reason: String, details: Lenient<StopDetails>) -> Finish {
    match reason.as_str() {
        "end_turn" | "stop_sequence" | "pause_turn" => Finish::Stop,
        "max_tokens" | "model_context_window_exceeded" => Finish::Limit,
        "tool_use" => Finish::Calls,
        "refusal" => {
            let explanation = details.0.and_then(|details| details.explanation.filled());
            Finish::Filtered(Some(explanation.unwrap_or_else(|| "the model refused the request".into())))
        }
        other if is_fault(other) => Finish::Fault(reason),
        _ => Finish::Other(reason),
    }
}

#[cfg(test)]
mod tests;
