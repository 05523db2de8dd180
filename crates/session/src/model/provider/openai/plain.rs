//! The chunks of chat completions that hold text or thought and nothing else.

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::model::ModelEvent;

/// Reads a plain chunk; nothing if it is another.
pub(super) fn read(frame: &str) -> Option<Vec<ModelEvent>> {
    let Chunk { choices: [Choice { delta, .. }], .. } = serde_json::from_str(frame).ok()?;
    let thoughts = [delta.reasoning_content, delta.reasoning, delta.reasoning_text];
    let thought = thoughts.into_iter().flatten().find(|thought| !thought.is_empty());
    let text = delta.content.filter(|text| !text.is_empty());
    let thought = thought.map(|thought| ModelEvent::Thought(thought.into_owned()));
    let text = text.map(|text| ModelEvent::Text(text.into_owned()));
    Some(thought.into_iter().chain(text).collect())
}

/// A chunk that may be plain. Fields that are not here say nothing that is used.
#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(borrow)]
    choices: [Choice<'a>; 1],
    #[serde(default)]
    #[expect(dead_code, reason = "its type says that it must be null")]
    usage: (),
    #[serde(default)]
    #[expect(dead_code, reason = "its type says that it must be null")]
    error: (),
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(borrow)]
    delta: Delta<'a>,
    #[serde(default)]
    #[expect(dead_code, reason = "its type says that it must be null")]
    finish_reason: (),
    #[serde(default)]
    #[expect(dead_code, reason = "its type says that it must be null")]
    native_finish_reason: (),
    #[serde(default)]
    #[expect(dead_code, reason = "its type says that it must be null")]
    usage: (),
    #[serde(default)]
    #[expect(dead_code, reason = "its type says that it must be null")]
    message: (),
    #[serde(default)]
    #[expect(dead_code, reason = "its type says what it must be")]
    index: Zero,
}

/// What a plain delta may hold; anything else makes it no plain one.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Delta<'a> {
    #[serde(default, rename = "role")]
    _role: Option<IgnoredAny>,
    #[serde(default, borrow)]
    content: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    reasoning_content: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    reasoning: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    reasoning_text: Option<Cow<'a, str>>,
    #[serde(default, rename = "refusal")]
    _refusal: (),
    #[serde(default, rename = "tool_calls")]
    _tool_calls: (),
    #[serde(default, rename = "function_call")]
    _function_call: (),
}

/// The index of the only answer that was asked for.
#[derive(Default, Deserialize)]
#[serde(try_from = "u64")]
struct Zero;

impl TryFrom<u64> for Zero {
    type Error = &'static str;

    fn try_from(index: u64) -> Result<Self, Self::Error> {
        if index == 0 { Ok(Self) } else { Err("another answer") }
    }
}
