//! The contract of a wire's reader: frames of one answer in, events of a model out. Readers do no I/O.

use std::borrow::Cow;
use std::collections::VecDeque;

use holdpoint_common::limits::TEXT_DELTA;

use super::MOST_EVENT;
use super::surrogates::{Halves, unmarked};
use crate::model::{ModelError, ModelEvent};

/// Reads the frames of one answer.
pub(crate) trait Reader: Default + Send + 'static {
    /// Reads the next frame and appends its events to `pieces`. Returns how the answer ended, if this frame says so;
    /// later frames are not read. A frame of an unknown kind is ignored.
    ///
    /// # Errors
    /// [`ModelError`] if the frame can't be read, or reports a fault.
    fn read(&mut self, frame: &str, pieces: &mut Pieces) -> Result<Option<End>, ModelError>;

    /// The body ended: how the answer did. `None` if it was cut.
    fn close(&mut self, pieces: &mut Pieces) -> Option<End> {
        let _ = pieces;
        None
    }
}

/// How an answer ended.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct End {
    pub(crate) finish: Finish,
    pub(crate) counts: Counts,
    /// The model wanted a call that names no tool.
    pub(crate) lost_call: bool,
}

/// Why a provider ended an answer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Finish {
    /// The answer is complete.
    Stop,
    /// The answer is complete, and calls tools.
    Calls,
    /// The answer reached the most tokens that it may have.
    Limit,
    /// The provider's content filter stopped it, with its explanation where there is one.
    Filtered(Option<String>),
    /// The provider could not continue, for this reason.
    Fault(String),
    /// A reason that is not known. An answer that said something counts as complete.
    Other(String),
}

/// Reasons with which servers end an answer that they could not continue.
const FAULTS: [&str; 4] = ["error", "abort", "network_error", "insufficient_system_resource"];

/// Whether a reason says that the provider could not continue.
pub(crate) fn is_fault(reason: &str) -> bool {
    FAULTS.iter().any(|fault| reason.eq_ignore_ascii_case(fault))
}

/// The tokens that a provider counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Tokens of the request, cached ones included.
    pub(crate) input: Option<u64>,
    pub(crate) cached: Option<u64>,
    pub(crate) cache_written: Option<u64>,
    /// Tokens of the answer, thoughts included.
    pub(crate) output: Option<u64>,
}

/// Events that were read and not taken yet. Neighbouring texts and neighbouring thoughts are joined.
#[derive(Debug, Default)]
pub(crate) struct Pieces {
    ready: VecDeque<ModelEvent>,
    /// How often something was added.
    added: usize,
    text: Halves,
    thought: Halves,
}

impl Pieces {
    /// Adds text, unless it is empty.
    pub(crate) fn text(&mut self, more: &str) {
        let more = self.text.join(more);
        match self.ready.back_mut() {
            _ if more.is_empty() => return,
            Some(ModelEvent::Text(text)) => text.push_str(&more),
            _ => self.ready.push_back(ModelEvent::Text(more.into_owned())),
        }
        self.added += 1;
    }

    /// Adds a thought, unless it is empty.
    pub(crate) fn thought(&mut self, more: &str) {
        let more = self.thought.join(more);
        match self.ready.back_mut() {
            _ if more.is_empty() => return,
            Some(ModelEvent::Thought(thought)) => thought.push_str(&more),
            _ => self.ready.push_back(ModelEvent::Thought(more.into_owned())),
        }
        self.added += 1;
    }

    /// Ends the thought: half a character at its end stays alone.
    fn end_thought(&mut self) {
        if let Some(lone) = self.thought.end() {
            self.thought(lone.encode_utf8(&mut [0; 4]));
        }
    }

    /// Ends the text and the thought.
    pub(super) fn end(&mut self) {
        self.end_thought();
        if let Some(lone) = self.text.end() {
            self.text(lone.encode_utf8(&mut [0; 4]));
        }
    }

    /// Adds a whole call. `false` if it names no tool: then nothing can answer it, and it is left out.
    pub(crate) fn call(
        &mut self,
        id: Option<String>,
        name: String,
        arguments: String,
        signature: Option<String>,
    ) -> bool {
        if name.is_empty() {
            return false;
        }
        let arguments = if is_no_input(&arguments) { "{}".to_owned() } else { arguments };
        self.add(ModelEvent::Call { id: id.filter(|id| !id.is_empty()), name, arguments, signature });
        true
    }

    /// Adds an event.
    pub(crate) fn add(&mut self, mut event: ModelEvent) {
        let whole = |text: &mut String| {
            if let Cow::Owned(whole) = unmarked(text) {
                *text = whole;
            }
        };
        match &mut event {
            ModelEvent::ThoughtSignature(signature) => {
                self.end_thought();
                whole(signature);
            }
            ModelEvent::Call { id, name, arguments, signature } => {
                self.end();
                [Some(name), Some(arguments), id.as_mut(), signature.as_mut()].into_iter().flatten().for_each(whole);
            }
            _ => {}
        }
        self.ready.push_back(event);
        self.added += 1;
    }

    /// Takes the oldest event.
    pub(crate) fn pop(&mut self) -> Option<ModelEvent> {
        self.ready.pop_front()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ready.is_empty()
    }

    /// How often something was added.
    pub(super) fn added(&self) -> usize {
        self.added
    }

    /// Whether the oldest event will not grow any more, or is large enough.
    pub(super) fn is_due(&self) -> bool {
        match (self.ready.len(), self.ready.front()) {
            (1, Some(ModelEvent::Text(text) | ModelEvent::Thought(text))) => text.len() >= TEXT_DELTA,
            (events, _) => events > 0,
        }
    }
}

/// Whether a call has no arguments. Most servers mean an empty object by an empty text, and some by `null`.
pub(crate) fn is_no_input(arguments: &str) -> bool {
    matches!(arguments.trim(), "" | "null" | "{}")
}

/// The calls of a wire that sends each whole, and whose reason to end does not say whether there are any.
#[derive(Debug, Default)]
pub(crate) struct WholeCalls {
    named: bool,
    /// One has arguments or an id, and no name.
    nameless: bool,
    /// One has nothing at all.
    empty: bool,
}

impl WholeCalls {
    /// Adds a call, and reports it if it names a tool.
    pub(crate) fn add(
        &mut self,
        id: Option<String>,
        name: Option<String>,
        arguments: String,
        signature: Option<String>,
        pieces: &mut Pieces,
    ) {
        let says_nothing = id.as_deref().is_none_or(str::is_empty) && signature.is_none() && is_no_input(&arguments);
        if pieces.call(id, name.unwrap_or_default(), arguments, signature) {
            self.named = true;
        } else if says_nothing {
            self.empty = true;
        } else {
            self.nameless = true;
        }
    }

    /// Whether the model wanted a call that can't be read. An empty one beside a named one does not count; alone,
    /// it is the rest of a call.
    pub(crate) fn lost(&self) -> bool {
        self.nameless || (self.empty && !self.named)
    }
}

/// Bytes that a reader keeps although no event reported them, which therefore need a bound of their own.
#[derive(Debug, Default)]
pub(crate) struct Held(usize);

impl Held {
    /// Counts bytes that are kept.
    ///
    /// # Errors
    /// [`ModelError::Malformed`] beyond the bound of one event.
    pub(crate) fn add(&mut self, bytes: usize) -> Result<(), ModelError> {
        self.0 = self.0.saturating_add(bytes);
        if self.0 > MOST_EVENT { Err(says_nothing()) } else { Ok(()) }
    }
}

/// The error for an answer of which too much came without an event.
pub(super) fn says_nothing() -> ModelError {
    ModelError::Malformed { message: format!("over {MOST_EVENT} bytes of it say nothing") }
}

/// Tries a reader in tests.
#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// The events of an answer, its calls without the provider's names for them, and how it ended; `None`: it was cut.
    pub(crate) type Played = (Vec<ModelEvent>, Result<Option<End>, ModelError>);

    /// Reads these frames. That a call is being written is left out.
    pub(crate) fn play<R: Reader>(frames: &[&str]) -> Played {
        let (mut reader, mut pieces, mut end) = (R::default(), Pieces::default(), Ok(None));
        for frame in frames {
            end = reader.read(frame, &mut pieces);
            if !matches!(end, Ok(None)) {
                break;
            }
        }
        if matches!(end, Ok(None)) {
            end = Ok(reader.close(&mut pieces));
        }
        let events = std::iter::from_fn(|| pieces.pop()).map(|mut event| {
            if let ModelEvent::Call { id, .. } = &mut event {
                *id = None;
            }
            event
        });
        (events.filter(|event| !matches!(event, ModelEvent::Writing { .. })).collect(), end)
    }

    /// That these frames bring these events and an end with this finish. Returns that end.
    #[track_caller]
    pub(crate) fn ends<R: Reader>(frames: &[&str], events: &[ModelEvent], finish: &Finish) -> End {
        let (said, end) = play::<R>(frames);
        assert_eq!(said, events, "{frames:#?}");
        let end = end.unwrap().unwrap();
        assert_eq!(end.finish, *finish, "{frames:#?}");
        end
    }

    /// That these frames can't be read, for a reason with these words in it.
    #[track_caller]
    pub(crate) fn is_malformed<R: Reader>(frames: &[&str], words: &str) {
        match play::<R>(frames).1 {
            Err(ModelError::Malformed { message }) => assert!(message.contains(words), "{words}: {message}"),
            end => panic!("{frames:#?}: {end:?}"),
        }
    }

    pub(crate) fn text(text: &str) -> ModelEvent {
        ModelEvent::Text(text.into())
    }

    pub(crate) fn thought(thought: &str) -> ModelEvent {
        ModelEvent::Thought(thought.into())
    }

    pub(crate) fn signature(signature: &str) -> ModelEvent {
        ModelEvent::ThoughtSignature(signature.into())
    }

    pub(crate) fn call(name: &str, arguments: &str) -> ModelEvent {
        ModelEvent::Call { id: None, name: name.into(), arguments: arguments.into(), signature: None }
    }

    #[test]
    fn m_e6_pieces_are_joined_until_another_kind_comes_or_they_are_large() {
        let mut pieces = Pieces::default();
        pieces.text("");
        assert!(pieces.is_empty() && !pieces.is_due());
        for _ in 0..3 {
            pieces.text("a");
        }
        assert!(!pieces.is_due());
        pieces.thought("b");
        assert!(pieces.is_due());
        assert_eq!(pieces.pop(), Some(text("aaa")));
        assert!(!pieces.is_due());
        pieces.thought(&"b".repeat(TEXT_DELTA));
        assert!(pieces.is_due());
        assert!(!pieces.call(None, String::new(), "{}".into(), None));
        assert!(pieces.call(None, "now".into(), " null ".into(), None));
        assert_eq!([pieces.pop(), pieces.pop()].map(|event| event.unwrap().bytes()), [TEXT_DELTA + 1, 5]);
    }
}
