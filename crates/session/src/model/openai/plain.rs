//! The short way for plain text and thought, which are nearly all of a stream.
//!
//! rig-core reads each frame three times as a JSON tree and keeps all text twice: 13 µs of CPU a delta of one
//! token, where the short way takes 2 µs, HTTP included. So frames that hold text or thought and nothing else are taken out before rig sees them;
//! all others go its careful way, and order is kept because a frame is only read once what came before it was taken.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use futures_util::StreamExt;
use futures_util::stream::poll_fn;
use holdpoint_common::limits::TEXT_DELTA;
use rig_core::driver::{Exchange, Opening, Transport};
use rig_core::providers::openai::wire::Chat;
use rig_core::wire::{Encoded, WireFrame};
use rig_reqwest::ReqwestClient;
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::model::ModelEvent;

/// Text and thought that went the short way and were not taken yet: at most two pieces and one frame.
#[derive(Clone, Default)]
pub(super) struct Plain(Arc<Mutex<VecDeque<ModelEvent>>>);

impl Plain {
    fn lock(&self) -> MutexGuard<'_, VecDeque<ModelEvent>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes of all pieces.
    pub(super) fn bytes(&self) -> usize {
        let bytes = |piece: &ModelEvent| match piece {
            ModelEvent::Text(text) | ModelEvent::Thought(text) => text.len(),
            ModelEvent::ThoughtSignature(_) | ModelEvent::Call { .. } | ModelEvent::Usage(_) => 0,
        };
        self.lock().iter().map(bytes).sum()
    }

    /// Takes the oldest piece.
    pub(super) fn pop(&self) -> Option<ModelEvent> {
        self.lock().pop_front()
    }

    /// Reads a frame; false if it must go the long way.
    fn take(&self, frame: &str) -> bool {
        let Ok(Chunk { choices: [Choice { delta, .. }], .. }) = serde_json::from_str::<Chunk<'_>>(frame) else {
            return false;
        };
        let text = delta.content.unwrap_or_default();
        let thoughts = [delta.reasoning_content, delta.reasoning, delta.reasoning_text];
        let thought = thoughts.into_iter().flatten().find(|thought| !thought.is_empty()).unwrap_or_default();
        let mut pieces = self.lock();
        if !thought.is_empty() {
            match pieces.back_mut() {
                Some(ModelEvent::Thought(piece)) => piece.push_str(&thought),
                _ => pieces.push_back(ModelEvent::Thought(thought.into_owned())),
            }
        }
        if !text.is_empty() {
            match pieces.back_mut() {
                Some(ModelEvent::Text(piece)) => piece.push_str(&text),
                _ => pieces.push_back(ModelEvent::Text(text.into_owned())),
            }
        }
        true
    }

    /// Whether it is time to hand over what there is.
    pub(super) fn is_full(&self) -> bool {
        let pieces = self.lock();
        match (pieces.len(), pieces.back()) {
            (0, _) => false,
            (1, Some(ModelEvent::Text(piece) | ModelEvent::Thought(piece))) => piece.len() >= TEXT_DELTA,
            _ => true,
        }
    }
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

/// HTTP, with plain frames taken out.
#[derive(Clone)]
pub(super) struct Http {
    pub(super) client: ReqwestClient,
    pub(super) plain: Plain,
}

impl Transport<Chat> for Http {
    fn send(&self, mut payload: Encoded, exchange: Exchange) -> Opening<WireFrame> {
        // Some servers stream without naming a content type.
        payload.relaxed_content_type = true;
        let opening = Transport::<Chat>::send(&self.client, payload, exchange);
        let plain = self.plain.clone();
        Opening::new(async move {
            Ok(opening.await?.map_frames(|mut frames| {
                // rig must see one frame, to know that there was a stream.
                let mut first = true;
                poll_fn(move |context| {
                    loop {
                        if plain.is_full() {
                            // Nothing needs to wake us: whoever polls takes the pieces and polls again.
                            return Poll::Pending;
                        }
                        match frames.poll_next_unpin(context) {
                            Poll::Ready(Some(Ok(WireFrame::Text(frame)))) if !first && plain.take(&frame) => {}
                            other => {
                                first &= other.is_pending();
                                return other;
                            }
                        }
                    }
                })
            }))
        })
    }
}
