//! Reads the chunks of a chat completion.
//!
//! A chunk has choices, of which the first one is ours, and a choice has a delta of the message. An answer ends with a
//! finish reason; its usage may come in the same chunk or in a later one, until `[DONE]` or the end of the body. Some
//! gateways send the message whole instead, as a server does that was not asked for a stream.

use std::fmt;

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::calls::{Calls, Fragment};
use super::{EXTRA, FIELD};
use crate::model::provider::remote::{
    Count, Counts, End, Finish, Lenient, Pieces, Reader, Text, is_fault, malformed, object,
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
    /// Where Moonshot has it.
    usage: Lenient<Usage>,
}

/// A message, or the next piece of one.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Message {
    content: Option<Content>,
    refusal: Text,
    // A server that sends its thoughts under several keys sends the same ones.
    reasoning_content: Text,
    reasoning: Text,
    reasoning_text: Text,
    tool_calls: Option<Vec<Fragment>>,
    /// Gemini's data of its own, which go back with the answer.
    extra_content: Option<Box<RawValue>>,
    /// A call as it was before there were tools: its presence is all that is read.
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
        f.write_str("text or its parts")
    }

    fn visit_str<E>(self, text: &str) -> Result<Content, E> {
        Ok(Content::Words(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, parts: A) -> Result<Content, A::Error> {
        Deserialize::deserialize(SeqAccessDeserializer::new(parts)).map(Content::Parts)
    }

    fn visit_map<A: MapAccess<'de>>(self, part: A) -> Result<Content, A::Error> {
        Deserialize::deserialize(MapAccessDeserializer::new(part)).map(|part| Content::Parts(vec![part]))
    }
}

/// A part of a message's content. Images and other kinds are not read.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Part {
    text: Text,
    refusal: Text,
    /// A thought, as Mistral has it.
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
        let joined = |words: Vec<Words>| words.into_iter().filter_map(|words| words.text.0).collect();
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
    prompt_tokens_details: Lenient<Details>,
    /// Mistral's name for cached tokens.
    num_cached_tokens: Count,
    /// DeepSeek's.
    prompt_cache_hit_tokens: Count,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default)]
struct Details {
    cached_tokens: Count,
    cache_write_tokens: Count,
}

impl Usage {
    fn counts(&self) -> Counts {
        let Details { cached_tokens, cache_write_tokens } = self.prompt_tokens_details.0.unwrap_or_default();
        let input = self.prompt_tokens.0;
        let rest = |total: u64| total.saturating_sub(input.unwrap_or(0));
        Counts {
            input,
            cached: cached_tokens.0.or(self.num_cached_tokens.0).or(self.prompt_cache_hit_tokens.0),
            cache_written: cache_write_tokens.0,
            output: self.completion_tokens.0.or_else(|| self.total_tokens.0.map(rest)),
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
    /// The field of the thought that is being thought.
    thinks_in: Option<&'static str>,
    /// A thought has come.
    thought: bool,
    /// The field of thoughts that came and was empty.
    empty_in: Option<&'static str>,
    /// A chunk has come.
    begun: bool,
}

impl Reader for Chunks {
    fn read(&mut self, frame: &str, pieces: &mut Pieces) -> Result<Option<End>, ModelError> {
        if frame.trim() == DONE {
            if self.finish.is_none() && self.begun {
                // Some servers say no reason.
                self.finish = Some(if self.calls.is_empty() { Finish::Stop } else { Finish::Calls });
            }
            return Ok(self.close(pieces));
        }
        let Some(chunk) = object::<Chunk>(frame)? else { return Ok(None) };
        self.chunk(chunk, pieces)
    }

    /// A stream that ends after a finish reason has ended: some servers do not send `[DONE]`.
    fn close(&mut self, pieces: &mut Pieces) -> Option<End> {
        let finish = self.finish.take()?;
        self.end_thought(pieces);
        // DeepSeek wants the field back with a call, even if it was empty.
        if let Some(field) = self.empty_in.filter(|_| !self.thought && !self.calls.is_empty()) {
            sign(field, pieces);
        }
        let lost_call = self.calls.end(pieces) | self.lost_call;
        Some(End { finish, counts: self.counts, lost_call })
    }
}

impl Chunks {
    fn chunk(&mut self, chunk: Chunk, pieces: &mut Pieces) -> Result<Option<End>, ModelError> {
        let Chunk { object, choices, usage } = chunk;
        let object = object.filled();
        self.begun |= choices.is_some() || object.as_deref() == Some("chat.completion.chunk");
        let choices = choices.unwrap_or_default();
        let whole = match object.as_deref() {
            Some(object) => object == "chat.completion",
            None => choices.iter().any(|choice| choice.message.is_some()),
        };
        let choice = choices.into_iter().find(|choice| choice.index.0.is_none_or(|index| index == 0));
        let choice = choice.unwrap_or_default();
        if let Some(usage) = usage.0.or(choice.usage.0) {
            self.counts = usage.counts();
        }
        if let Some(reason) = choice.finish_reason.filled() {
            self.finish = Some(finish(reason));
        }
        if !whole {
            self.message(choice.delta.unwrap_or_default(), false, pieces)?;
            return Ok(None);
        }
        let message = choice.message.ok_or_else(|| malformed("it has no message"))?;
        self.message(*message, true, pieces)?;
        self.finish.get_or_insert(Finish::Stop);
        Ok(self.close(pieces))
    }

    /// `whole`: each of its calls is another one.
    fn message(&mut self, message: Message, whole: bool, pieces: &mut Pieces) -> Result<(), ModelError> {
        let thoughts = [
            ("reasoning_content", message.reasoning_content),
            ("reasoning", message.reasoning),
            ("reasoning_text", message.reasoning_text),
        ];
        let empty = thoughts.iter().find(|(_, text)| text.0.as_deref() == Some(""));
        self.empty_in = self.empty_in.or(empty.map(|(field, _)| *field));
        if let Some((field, thought)) = thoughts.into_iter().find_map(|(field, text)| Some((field, text.filled()?))) {
            self.thinks_in = Some(field);
            self.thought = true;
            pieces.thought(&thought);
        }
        let says = match &message.content {
            Some(Content::Words(text)) => !text.is_empty(),
            Some(Content::Parts(parts)) => !parts.is_empty(),
            None => message.refusal.0.as_deref().is_some_and(|refusal| !refusal.is_empty()),
        };
        if says {
            self.end_thought(pieces);
        }
        match message.content {
            Some(Content::Parts(parts)) => parts.into_iter().for_each(|part| part.say(pieces)),
            Some(Content::Words(text)) if !text.is_empty() => pieces.text(&text),
            _ => pieces.text(&message.refusal.filled().unwrap_or_default()),
        }
        for (n, call) in message.tool_calls.unwrap_or_default().into_iter().enumerate() {
            let call = if whole { call.at(n as u64) } else { call };
            self.calls.add(call, pieces)?;
        }
        if let Some(extra) = message.extra_content.filter(|extra| extra.get().starts_with('{')) {
            self.end_thought(pieces);
            pieces.add(ModelEvent::ThoughtSignature(format!("{EXTRA}{}", extra.get())));
        }
        self.lost_call |= message.function_call.is_some();
        Ok(())
    }

    /// Says in which field the thought came that ends here.
    fn end_thought(&mut self, pieces: &mut Pieces) {
        if let Some(field) = self.thinks_in.take() {
            sign(field, pieces);
        }
    }
}

/// Reports in which field a thought came.
fn sign(field: &str, pieces: &mut Pieces) {
    pieces.add(ModelEvent::ThoughtSignature(format!("{FIELD}{field}")));
}

impl Part {
    fn say(self, pieces: &mut Pieces) {
        let Self { text, refusal, thinking } = self;
        if let Some(Thinking(thought)) = thinking {
            pieces.thought(&thought);
        }
        pieces.text(&text.filled().or(refusal.filled()).unwrap_or_default());
    }
}

/// What a finish reason means, in OpenAI's words and in those of compatible servers.
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
mod tests {
    use super::*;
    use crate::model::ModelEvent;
    use crate::model::provider::remote::try_reader::{call, ends, is_malformed, play, signature, text, thought};

    const STOP: &str = r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#;

    /// A chunk with this delta.
    fn delta(delta: &str) -> String {
        format!(r#"{{"choices":[{{"index":0,"delta":{delta}}}]}}"#)
    }

    #[test]
    fn m_e6_a_delta_says_text_and_thoughts_in_every_form() {
        for (json, events) in [
            (r#"{"content":"a"}"#, vec![text("a")]),
            (r#"{"role":"assistant","content":null}"#, vec![]),
            (r#"{"content":"","refusal":"no"}"#, vec![text("no")]),
            (r#"{"content":"a","refusal":null}"#, vec![text("a")]),
            (
                r#"{"reasoning_content":"","reasoning":"r","content":"a"}"#,
                vec![thought("r"), signature("openai:reasoning"), text("a")],
            ),
            (r#"{"reasoning_content":"r","reasoning":"r"}"#, vec![thought("r"), signature("openai:reasoning_content")]),
            (r#"{"reasoning_text":"r"}"#, vec![thought("r"), signature("openai:reasoning_text")]),
            (r#"{"reasoning_details":[{"type":"reasoning.encrypted","data":"x"}],"content":"a"}"#, vec![text("a")]),
            (
                r#"{"content":[{"type":"text","text":"a"},{"text":"b"},{"type":"refusal","refusal":"c"}]}"#,
                vec![text("abc")],
            ),
            (r#"{"content":{"type":"text","text":"a"}}"#, vec![text("a")]),
            (
                r#"{"content":[{"type":"thinking","thinking":[{"type":"text","text":"r"}]},{"type":"text","text":"a"}]}"#,
                vec![thought("r"), text("a")],
            ),
            (r#"{"content":[{"type":"thinking","thinking":"r"}]}"#, vec![thought("r")]),
            (r#"{"content":[{"type":"image_url","image_url":{"url":"data:x"}}]}"#, vec![]),
            (r#"{"tool_calls":null,"content":"a","invented":{"x":[1]}}"#, vec![text("a")]),
            ("null", vec![]),
        ] {
            ends::<Chunks>(&[&delta(json), STOP], &events, &Finish::Stop);
        }
    }

    #[test]
    fn m_e6_fragments_find_their_call() {
        let all = [call("a", r#"{"x":1}"#), call("b", r#"{"y":2}"#)];
        for fragments in [
            // By index, side by side.
            vec![
                r#"[{"index":0,"id":"p","function":{"name":"a","arguments":""}},{"index":1,"id":"q","function":{"name":"b","arguments":""}}]"#,
                r#"[{"index":0,"function":{"arguments":"{\"x\""}},{"index":1,"function":{"arguments":"{\"y\":"}}]"#,
                r#"[{"index":1,"function":{"arguments":"2}"}},{"index":0,"function":{"arguments":":1}"}}]"#,
            ],
            // Ids repeated, empty or null, and the name again.
            vec![
                r#"[{"index":0,"id":"p","function":{"name":"a","arguments":"{\"x\""}}]"#,
                r#"[{"index":0,"id":"","function":{"name":"a","arguments":":1"}},{"index":0,"id":null,"function":{"name":null,"arguments":"}"}}]"#,
                r#"[{"index":1,"id":7,"function":{"name":"b","arguments":"{\"y\":2"}},{"index":1,"id":7,"function":{"arguments":"}"}}]"#,
            ],
            // A new id with every fragment of a call.
            vec![
                r#"[{"index":0,"id":"1","function":{"name":"a","arguments":""}},{"index":0,"id":"2","function":{"arguments":"{\"x\":1"}}]"#,
                r#"[{"index":0,"id":"3","function":{"arguments":"}"}},{"index":1,"id":"4","function":{"name":"b","arguments":"{\"y\":2}"}}]"#,
            ],
            // One index for all.
            vec![
                r#"[{"index":0,"id":"p","function":{"name":"a","arguments":"{\"x\":1}"}}]"#,
                r#"[{"index":0,"id":"q","function":{"name":"b","arguments":"{\"y\":2}"}}]"#,
            ],
            // One index for all, and no ids, or empty ones.
            vec![
                r#"[{"index":0,"function":{"name":"a","arguments":"{\"x\":1}"}},{"index":0,"function":{"name":"b","arguments":"{\"y\":2}"}}]"#,
            ],
            vec![
                r#"[{"index":0,"id":"","function":{"name":"a","arguments":{"x":1}}}]"#,
                r#"[{"index":0,"id":"","function":{"name":"b","arguments":"{\"y\""}}]"#,
                r#"[{"index":0,"id":"","function":{"name":"","arguments":":2}"}}]"#,
            ],
            // Fragments that say nothing: behind a call, at an index of their own, with its name again or another id.
            vec![
                r#"[{"index":1},{"index":0,"id":"p","function":{"name":"a","arguments":"{\"x\":1}"}}]"#,
                r#"[{"index":0,"id":"","function":{"name":"a","arguments":""}},{"index":0,"id":"z","function":{"arguments":""}}]"#,
                r#"[{"index":1,"id":"q","function":{"name":"b","arguments":"{\"y\":2}"}}]"#,
                r#"[{"index":2,"id":"","function":{"name":"","arguments":""}},{"index":3,"function":{"arguments":"{}"}},{"index":4,"function":null},{}]"#,
            ],
            vec![
                r#"[{},{"function":{"name":"a","arguments":"{\"x\":1}"}},{"function":{"name":"","arguments":""}}]"#,
                r#"[{"function":{"name":"b","arguments":"{\"y\":2}"}},{"id":"","function":{}}]"#,
            ],
            // Ids alone.
            vec![
                r#"[{"id":"p","function":{"name":"a","arguments":""}},{"id":"q","function":{"name":"b"}}]"#,
                r#"[{"id":"q","function":{"arguments":"{\"y\":2}"}},{"id":"p","function":{"arguments":"{\"x\":1}"}}]"#,
            ],
            // Neither: each after the other, whole or in pieces, the first one's name apart from its arguments.
            vec![
                r#"[{"function":{"name":"a","arguments":""}}]"#,
                r#"[{"function":{"arguments":"{\"x\""}},{"function":{"arguments":":1}"}}]"#,
                r#"[{"function":{"name":"b","arguments":{"y":2}}}]"#,
            ],
            // Arguments before the name, a placeholder before the arguments.
            vec![
                r#"[{"index":0,"id":"p","function":{"arguments":"{\"x\":"}},{"index":0,"function":{"name":"a","arguments":"1}"}}]"#,
                r#"[{"index":1,"id":"q","function":{"name":"b","arguments":"null"}},{"index":1,"function":{"arguments":"{\"y\":2}"}}]"#,
            ],
            vec![
                r#"[{"index":0,"id":"p","function":{"name":"a","arguments":"{}"}},{"index":0,"id":"","function":{"name":"","arguments":"{\"x\""}}]"#,
                r#"[{"index":0,"function":{"arguments":":1}"}}]"#,
                r#"[{"index":1,"id":"q","function":{"name":"b","arguments":{}}},{"index":1,"id":"r","function":{"arguments":"{\"y\":2}"}}]"#,
            ],
            vec![
                r#"[{"function":{"name":"a","arguments":"{}"}},{"function":{"arguments":"{\"x\":1}"}}]"#,
                r#"[{"id":"q","function":{"name":"b","arguments":"{}"}},{"id":"q","function":{"arguments":"{\"y\":2}"}}]"#,
            ],
        ] {
            let frames: Vec<_> = fragments.iter().map(|calls| delta(&format!(r#"{{"tool_calls":{calls}}}"#))).collect();
            let mut frames: Vec<_> = frames.iter().map(String::as_str).collect();
            frames.push(r#"{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}"#);
            let end = ends::<Chunks>(&frames, &all, &Finish::Calls);
            assert!(!end.lost_call);
            // Some servers say no reason.
            frames.pop();
            frames.push(DONE);
            ends::<Chunks>(&frames, &all, &Finish::Calls);
        }
    }

    #[test]
    fn m_e6_calls_without_arguments_are_empty_objects_and_each_is_one() {
        let calls = r#"{"tool_calls":[{"function":{"name":"a","arguments":""}},{"function":{"name":"b"}},{"function":{"name":"c","arguments":null}},{"function":{"name":"d","arguments":"null"}}]}"#;
        let said = ["a", "b", "c", "d"].map(|name| call(name, "{}"));
        ends::<Chunks>(&[&delta(calls), STOP], &said, &Finish::Stop);
    }

    #[test]
    fn m_e6_a_call_that_names_no_tool_is_lost() {
        for message in [
            r#"{"tool_calls":[{"index":0,"id":"p","function":{"arguments":"{}"}}]}"#,
            r#"{"tool_calls":[{"index":0,"id":"p","function":{"name":""}}]}"#,
            r#"{"tool_calls":[{"index":0,"function":{"name":"a"}},{"index":1,"function":{"arguments":"{\"x\":1}"}}]}"#,
            r#"{"function_call":{"name":"a","arguments":"{}"}}"#,
        ] {
            let end = play::<Chunks>(&[&delta(message), STOP]).1;
            assert!(end.unwrap().unwrap().lost_call, "{message}");
        }
    }

    #[test]
    fn m_e6_a_message_may_come_whole() {
        let whole = r#"{"object":"chat.completion","choices":[{"index":0,"finish_reason":"tool_calls","message":
            {"content":"t","reasoning":"r","tool_calls":[{"id":"p","function":{"name":"a","arguments":"{}"}},
            {"id":"p","function":{"name":"b","arguments":"{}"}}]}}],"usage":{"prompt_tokens":1,"completion_tokens":2}}"#;
        let said = [thought("r"), signature("openai:reasoning"), text("t"), call("a", "{}"), call("b", "{}")];
        let end = ends::<Chunks>(&[whole, "not read"], &said, &Finish::Calls);
        assert_eq!(end.counts, Counts { input: Some(1), output: Some(2), ..Counts::default() });
        let bare = r#"{"choices":[{"message":{"content":"t"}}]}"#;
        ends::<Chunks>(&[bare], &[text("t")], &Finish::Stop);
        // A chunk may repeat the message, and is a chunk all the same.
        let both =
            r#"{"object":"chat.completion.chunk","choices":[{"delta":{"content":"t"},"message":{"content":"t"}}]}"#;
        ends::<Chunks>(&[both, STOP], &[text("t")], &Finish::Stop);
        is_malformed::<Chunks>(&[r#"{"object":"chat.completion","choices":[]}"#], "no message");
    }

    #[test]
    fn m_e6_only_the_first_answer_is_read() {
        let other = r#"{"choices":[{"index":1,"delta":{"content":"b"}},{"index":0,"delta":{"content":"a"}}]}"#;
        let alone = r#"{"choices":[{"index":1,"delta":{"content":"b"},"finish_reason":"length"}]}"#;
        ends::<Chunks>(&[other, alone, STOP], &[text("a")], &Finish::Stop);
    }

    #[test]
    fn m_e6_what_says_nothing_is_ignored_and_what_is_broken_is_an_error() {
        for nothing in
            ["5", "null", "\"ping\"", "[]", "{}", r#"{"object":"keepalive","delta":"x"}"#, r#"{"choices":null}"#]
        {
            ends::<Chunks>(&[&delta(r#"{"content":"a"}"#), nothing, STOP], &[text("a")], &Finish::Stop);
        }
        for broken in [
            "{",
            "ping",
            r#"{"choices":5}"#,
            r#"{"choices":[{"delta":{"content":5}}]}"#,
            r#"{"choices":[{"delta":{"content":"\ud800"}}]}"#,
        ] {
            is_malformed::<Chunks>(&[broken], "");
        }
    }

    #[test]
    fn m_e6_the_end_is_a_reason_or_done() {
        let a = delta(r#"{"content":"a"}"#);
        assert_eq!(play::<Chunks>(&[&a]), (vec![text("a")], Ok(None)), "cut");
        assert_eq!(play::<Chunks>(&[DONE]), (vec![], Ok(None)), "done before it began");
        for (reason, finish) in [
            ("stop", Finish::Stop),
            ("eos", Finish::Stop),
            ("max_tokens", Finish::Limit),
            ("content_filter", Finish::Filtered(None)),
            ("Error", Finish::Fault("Error".into())),
            ("because", Finish::Other("because".into())),
        ] {
            let last = format!(r#"{{"choices":[{{"delta":{{}},"finish_reason":"{reason}"}}]}}"#);
            ends::<Chunks>(&[&a, &last], &[text("a")], &finish);
            // What comes later still counts.
            let late = delta(r#"{"content":"b"}"#);
            ends::<Chunks>(&[&a, &last, &late, DONE, "not read"], &[text("ab")], &finish);
        }
    }

    #[test]
    fn m_e6_usage_is_read_wherever_it_is() {
        let counts = |input, cached, cache_written, output| Counts { input, cached, cache_written, output };
        for (usage, counted) in [
            (r#"{"prompt_tokens":9,"completion_tokens":2}"#, counts(Some(9), None, None, Some(2))),
            (r#"{"prompt_tokens":9,"total_tokens":11}"#, counts(Some(9), None, None, Some(2))),
            (
                r#"{"prompt_tokens":"9","completion_tokens":2.0,"num_cached_tokens":3}"#,
                counts(Some(9), Some(3), None, Some(2)),
            ),
            (
                r#"{"prompt_tokens":9,"completion_tokens":2,"prompt_cache_hit_tokens":3}"#,
                counts(Some(9), Some(3), None, Some(2)),
            ),
            (
                r#"{"prompt_tokens":9,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":3,"cache_write_tokens":4}}"#,
                counts(Some(9), Some(3), Some(4), Some(2)),
            ),
            (
                r#"{"prompt_tokens":9,"completion_tokens":2,"prompt_tokens_details":[]}"#,
                counts(Some(9), None, None, Some(2)),
            ),
            ("[]", Counts::default()),
            ("7", Counts::default()),
        ] {
            let beside = format!(r#"{{"choices":[{{"delta":{{}},"finish_reason":"stop"}}],"usage":{usage}}}"#);
            let after = format!(r#"{{"choices":[],"usage":{usage}}}"#);
            let inside = format!(r#"{{"choices":[{{"delta":{{}},"usage":{usage}}}]}}"#);
            for frames in [&[beside.as_str(), DONE][..], &[STOP, &after, DONE], &[STOP, &inside]] {
                assert_eq!(ends::<Chunks>(frames, &[], &Finish::Stop).counts, counted, "{frames:?}");
            }
            // A chunk without it does not take it back.
            let null = r#"{"choices":[],"usage":null}"#;
            assert_eq!(ends::<Chunks>(&[&beside, null, DONE], &[], &Finish::Stop).counts, counted);
        }
    }

    #[test]
    fn m_e6_arguments_are_reported_once_their_call_has_a_name() {
        let (mut chunks, mut pieces) = (Chunks::default(), Pieces::default());
        let mut reported = |function: &str| {
            let frame = delta(&format!(r#"{{"tool_calls":[{{"index":0,"function":{function}}}]}}"#));
            chunks.read(&frame, &mut pieces).unwrap();
            pieces.pop()
        };
        assert_eq!(reported(r#"{"arguments":"{"}"#), None);
        assert_eq!(reported(r#"{"name":"a"}"#), Some(ModelEvent::Writing { bytes: 1 }));
        assert_eq!(reported(r#"{"arguments":"}}"}"#), Some(ModelEvent::Writing { bytes: 2 }));
    }

    #[test]
    fn m_e6_calls_that_are_never_named_are_bounded_beside_text() {
        let (mut chunks, mut pieces) = (Chunks::default(), Pieces::default());
        let arguments = "x".repeat(64 * 1024);
        let frame = delta(&format!(
            r#"{{"content":"a","tool_calls":[{{"index":0,"function":{{"arguments":"{arguments}"}}}}]}}"#
        ));
        let refused = (0..100).find_map(|_| chunks.read(&frame, &mut pieces).err());
        assert!(refused.is_some_and(|error| error.to_string().contains("say nothing")));
    }
}
