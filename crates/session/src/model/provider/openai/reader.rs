//! Reads the chunks of a chat completion.
//!
//! A chunk has choices, of which only the first is read, and a choice has a delta of the message.
//! An answer ends with a finish reason. Its usage may be in the same chunk or a later one, up to
//! `[DONE]` or the end of the body. Some gateways send the whole message instead, as if no stream
//! was requested.

use std::fmt;

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::calls::{Calls, Fragment};
use super::thought_details::{self, Detail, ThoughtDetails};
use super::{DETAILS_PREFIX, EXTRA_PREFIX, FIELD_PREFIX};
use crate::model::provider::remote::{
    Count, Counts, End, Finish, Lenient, Pieces, Reader, Text, is_fault, malformed, parse_object,
};
use crate::model::{ModelError, ModelEvent};

/// The frame after the last chunk.
const DONE: &str = "[DONE]";

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Chunk {
    object: Text,
    choices: Option<Vec<Choice>>,
    usage: Lenient<Usage>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Choice {
    index: Count,
    delta: Option<Message>,
    message: Option<Box<Message>>,
    finish_reason: Text,
    /// Moonshot sends the usage here.
    usage: Lenient<Usage>,
}

/// A message, or the next piece of one.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Message {
    content: Option<Content>,
    refusal: Text,
    // A server that sends thoughts under several keys sends the same thoughts under each.
    reasoning_content: Text,
    reasoning: Text,
    reasoning_text: Text,
    /// The same thoughts in OpenRouter's form, which are sent back with the answer.
    reasoning_details: Lenient<Vec<Detail>>,
    tool_calls: Option<Vec<Fragment>>,
    /// Gemini's own data, which are sent back with the answer.
    extra_content: Option<Box<RawValue>>,
    /// A call in the form that predates tools. Only its presence is read.
    function_call: Option<IgnoredAny>,
}

/// The content of a message: text, or parts of it.
#[derive(Debug)]
enum Content {
    Words(String),
    Parts(Vec<Part>),
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ContentVisitor)
    }
}

struct ContentVisitor;

impl<'de> Visitor<'de> for ContentVisitor {
    type Value = Content;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text or a list of parts")
    }

    fn visit_str<E>(self, text: &str) -> Result<Content, E> {
        Ok(Content::Words(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, parts: A) -> Result<Content, A::Error> {
        Deserialize::deserialize(SeqAccessDeserializer::new(parts)).map(Content::Parts)
    }

    fn visit_map<A: MapAccess<'de>>(self, part: A) -> Result<Content, A::Error> {
        Deserialize::deserialize(MapAccessDeserializer::new(part))
            .map(|part| Content::Parts(vec![part]))
    }
}

/// A part of a message's content. Images and other kinds are not read.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Part {
    text: Text,
    refusal: Text,
    /// A thought in Mistral's form.
    thinking: Option<Thinking>,
}

/// A thought: text, or parts of text.
#[derive(Debug)]
struct Thinking(String);

impl<'de> Deserialize<'de> for Thinking {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Words {
            text: Text,
        }
        let raw = <&RawValue>::deserialize(deserializer)?.get();
        let joined =
            |words: Vec<Words>| words.into_iter().filter_map(|words| words.text.0).collect();
        let thought = match raw.as_bytes().first() {
            Some(b'"') => serde_json::from_str(raw),
            Some(b'[') => serde_json::from_str(raw).map(joined),
            _ => Ok(String::new()),
        };
        thought.map(Self).map_err(serde::de::Error::custom)
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Usage {
    prompt_tokens: Count,
    completion_tokens: Count,
    total_tokens: Count,
    prompt_tokens_details: Lenient<PromptDetails>,
    /// Mistral's name for cached tokens.
    num_cached_tokens: Count,
    /// DeepSeek's name for cached tokens.
    prompt_cache_hit_tokens: Count,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default)]
struct PromptDetails {
    cached_tokens: Count,
    cache_write_tokens: Count,
}

impl Usage {
    fn counts(&self) -> Counts {
        let PromptDetails { cached_tokens, cache_write_tokens } =
            self.prompt_tokens_details.0.unwrap_or_default();
        let input = self.prompt_tokens.0;
        let output = |total: u64| total.saturating_sub(input.unwrap_or(0));
        Counts {
            input,
            cached: cached_tokens.0.or(self.num_cached_tokens.0).or(self.prompt_cache_hit_tokens.0),
            cache_written: cache_write_tokens.0,
            output: self.completion_tokens.0.or_else(|| self.total_tokens.0.map(output)),
        }
    }
}

/// Reads the chunks of one answer.
#[derive(Debug, Default)]
pub(crate) struct Chunks {
    calls: Calls,
    counts: Counts,
    finish: Option<Finish>,
    lost_call: bool,
    /// The field of the thought that is streaming.
    open_thought_field: Option<&'static str>,
    /// Whether a thought field has arrived with text.
    has_thought: bool,
    /// The field of a thought that arrived empty.
    empty_thought_field: Option<&'static str>,
    details: ThoughtDetails,
    /// Whether a chunk has arrived.
    has_chunk: bool,
}

impl Reader for Chunks {
    fn read(&mut self, frame: &str, pieces: &mut Pieces) -> Result<Option<End>, ModelError> {
        if frame.trim() == DONE {
            if self.finish.is_none() && self.has_chunk {
                // Some servers give no finish reason.
                self.finish =
                    Some(if self.calls.is_empty() { Finish::Stop } else { Finish::Calls });
            }
            return Ok(self.close(pieces));
        }
        let Some(chunk) = parse_object::<Chunk>(frame)? else { return Ok(None) };
        self.read_chunk(chunk, pieces)
    }

    /// A stream that ends after a finish reason is complete: some servers do not send `[DONE]`.
    fn close(&mut self, pieces: &mut Pieces) -> Option<End> {
        let finish = self.finish.take()?;
        self.end_thought(pieces);
        // DeepSeek expects the field back with a call, even if it was empty.
        if let Some(field) =
            self.empty_thought_field.filter(|_| !self.has_thought && !self.calls.is_empty())
        {
            report_field(field, pieces);
        }
        if let Some(details) = self.details.take() {
            pieces.add(ModelEvent::ThoughtSignature(format!("{DETAILS_PREFIX}{details}")));
        }
        let lost_call = self.calls.end(pieces) | self.lost_call;
        Some(End { finish, counts: self.counts, lost_call })
    }
}

impl Chunks {
    fn read_chunk(&mut self, chunk: Chunk, pieces: &mut Pieces) -> Result<Option<End>, ModelError> {
        let Chunk { object, choices, usage } = chunk;
        let object = object.filled();
        self.has_chunk |= choices.is_some() || object.as_deref() == Some("chat.completion.chunk");
        let choices = choices.unwrap_or_default();
        let is_whole = match object.as_deref() {
            Some(object) => object == "chat.completion",
            None => choices.iter().any(|choice| choice.message.is_some()),
        };
        let choice =
            choices.into_iter().find(|choice| choice.index.0.is_none_or(|index| index == 0));
        let choice = choice.unwrap_or_default();
        if let Some(usage) = usage.0.or(choice.usage.0) {
            self.counts = usage.counts();
        }
        if let Some(reason) = choice.finish_reason.filled() {
            self.finish = Some(finish(reason));
        }
        if !is_whole {
            self.read_message(choice.delta.unwrap_or_default(), false, pieces)?;
            return Ok(None);
        }
        let message = choice.message.ok_or_else(|| malformed("it has no message"))?;
        self.read_message(*message, true, pieces)?;
        self.finish.get_or_insert(Finish::Stop);
        Ok(self.close(pieces))
    }

    /// Reads a message. If `is_whole`, each of its fragments is a separate call.
    fn read_message(
        &mut self,
        message: Message,
        is_whole: bool,
        pieces: &mut Pieces,
    ) -> Result<(), ModelError> {
        let details = message.reasoning_details.0.unwrap_or_default();
        let thoughts = [
            ("reasoning_content", message.reasoning_content),
            ("reasoning", message.reasoning),
            ("reasoning_text", message.reasoning_text),
        ];
        let empty = thoughts.iter().find(|(_, text)| text.0.as_deref() == Some(""));
        self.empty_thought_field = self.empty_thought_field.or(empty.map(|(field, _)| *field));
        if let Some((field, thought)) =
            thoughts.into_iter().find_map(|(field, text)| Some((field, text.filled()?)))
        {
            self.open_thought_field = Some(field);
            self.has_thought = true;
            pieces.add_thought(&thought);
        } else {
            // MiniMax sends thoughts in this form alone.
            details.iter().for_each(|detail| pieces.add_thought(thought_details::text(detail)));
        }
        details.into_iter().try_for_each(|detail| self.details.add(detail))?;
        let content = message.content.filter(|content| !content.is_empty());
        if let Some(content) = content.or(message.refusal.filled().map(Content::Words)) {
            self.end_thought(pieces);
            content.report(pieces);
        }
        for (n, call) in message.tool_calls.unwrap_or_default().into_iter().enumerate() {
            let call = if is_whole { call.with_index(n as u64) } else { call };
            self.calls.add(call, pieces)?;
        }
        if let Some(extra) = message.extra_content.filter(|extra| extra.get().starts_with('{')) {
            self.end_thought(pieces);
            pieces.add(ModelEvent::ThoughtSignature(format!("{EXTRA_PREFIX}{}", extra.get())));
        }
        self.lost_call |= message.function_call.is_some();
        Ok(())
    }

    /// Ends the thought that is streaming, and reports its field.
    fn end_thought(&mut self, pieces: &mut Pieces) {
        if let Some(field) = self.open_thought_field.take() {
            report_field(field, pieces);
        }
    }
}

/// Reports the field in which a thought arrived.
fn report_field(field: &str, pieces: &mut Pieces) {
    pieces.add(ModelEvent::ThoughtSignature(format!("{FIELD_PREFIX}{field}")));
}

impl Content {
    fn is_empty(&self) -> bool {
        match self {
            Self::Words(text) => text.is_empty(),
            Self::Parts(parts) => parts.is_empty(),
        }
    }

    fn report(self, pieces: &mut Pieces) {
        match self {
            Self::Words(text) => pieces.add_text(&text),
            Self::Parts(parts) => parts.into_iter().for_each(|part| part.report(pieces)),
        }
    }
}

impl Part {
    fn report(self, pieces: &mut Pieces) {
        let Self { text, refusal, thinking } = self;
        if let Some(Thinking(thought)) = thinking {
            pieces.add_thought(&thought);
        }
        pieces.add_text(&text.filled().or(refusal.filled()).unwrap_or_default());
    }
}

/// The meaning of a finish reason, from OpenAI or a compatible server.
fn finish(reason: String) -> Finish {
    match reason.as_str() {
        "stop" | "end" | "eos" | "end_turn" | "stop_sequence" => Finish::Stop,
        "length" | "max_tokens" | "model_length" => Finish::Limit,
        "tool_calls" | "function_call" => Finish::Calls,
        "content_filter" => Finish::Filtered(None),
        other if is_fault(other) => Finish::Fault(reason),
        _ => Finish::Other(reason),
    }
}

#[cfg(test)]
mod tests;
