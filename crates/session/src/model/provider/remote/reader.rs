//! The interface of a protocol's reader, which turns the frames of one answer into events of a
//! model. Readers do no I/O.

use std::borrow::Cow;
use std::collections::VecDeque;

use holdpoint_common::limits::MAX_TEXT_DELTA;

use super::MAX_EVENT_BYTES;
use super::surrogates::{Halves, unmarked};
use crate::model::{ModelError, ModelEvent};

/// Reads the frames of one answer.
pub(crate) trait Reader: Default + Send + 'static {
    /// Reads the next frame and appends its events to `pieces`. Returns the end of the answer if
    /// this frame has it; later frames are not read. A frame of an unknown kind is ignored.
    ///
    /// # Errors
    /// [`ModelError`] if the frame can't be parsed, or reports a fault.
    fn read(&mut self, frame: &str, pieces: &mut Pieces) -> Result<Option<End>, ModelError>;

    /// Handles the end of the body. Returns the end of the answer; `None` if the answer was cut
    /// off.
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
    /// Whether the model requested a call that names no tool.
    pub(crate) lost_call: bool,
}

/// The reason why a provider ended an answer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Finish {
    /// The answer is complete.
    Stop,
    /// The answer is complete, and calls tools.
    Calls,
    /// The answer reached the maximum number of tokens.
    Limit,
    /// The provider's content filter stopped the answer, for this reason if it gave one.
    Filtered(Option<String>),
    /// The provider could not continue, for this reason.
    Fault(String),
    /// An unknown reason. An answer with content counts as complete.
    Other(String),
}

/// Reasons by which servers end an answer that they could not continue.
const FAULTS: [&str; 4] = ["error", "abort", "network_error", "insufficient_system_resource"];

/// Whether a reason says that the provider could not continue.
pub(crate) fn is_fault(reason: &str) -> bool {
    FAULTS.iter().any(|fault| reason.eq_ignore_ascii_case(fault))
}

/// The tokens that a provider counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Tokens of the request, including cached ones.
    pub(crate) input: Option<u64>,
    pub(crate) cached: Option<u64>,
    pub(crate) cache_written: Option<u64>,
    /// Tokens of the answer, including thoughts.
    pub(crate) output: Option<u64>,
}

/// Events that were read and not taken yet. Adjacent texts and adjacent thoughts are joined.
#[derive(Debug, Default)]
pub(crate) struct Pieces {
    ready: VecDeque<ModelEvent>,
    /// The number of additions so far.
    added: usize,
    text_halves: Halves,
    thought_halves: Halves,
}

impl Pieces {
    /// Adds text, unless it is empty.
    pub(crate) fn add_text(&mut self, more: &str) {
        let more = self.text_halves.join(more);
        match self.ready.back_mut() {
            _ if more.is_empty() => return,
            Some(ModelEvent::Text(text)) => text.push_str(&more),
            _ => self.ready.push_back(ModelEvent::Text(more.into_owned())),
        }
        self.added += 1;
    }

    /// Adds a thought, unless it is empty.
    pub(crate) fn add_thought(&mut self, more: &str) {
        let more = self.thought_halves.join(more);
        match self.ready.back_mut() {
            _ if more.is_empty() => return,
            Some(ModelEvent::Thought(thought)) => thought.push_str(&more),
            _ => self.ready.push_back(ModelEvent::Thought(more.into_owned())),
        }
        self.added += 1;
    }

    /// Ends the thought. Half a character at its end stays alone.
    fn end_thought(&mut self) {
        if let Some(lone) = self.thought_halves.end() {
            self.add_thought(lone.encode_utf8(&mut [0; 4]));
        }
    }

    /// Ends the text and the thought.
    pub(super) fn end(&mut self) {
        self.end_thought();
        if let Some(lone) = self.text_halves.end() {
            self.add_text(lone.encode_utf8(&mut [0; 4]));
        }
    }

    /// Adds a whole call. Returns `false` if it names no tool: it is left out, because no tool can
    /// answer it.
    pub(crate) fn add_call(
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
        self.add(ModelEvent::Call {
            id: id.filter(|id| !id.is_empty()),
            name,
            arguments,
            signature,
        });
        true
    }

    pub(crate) fn add(&mut self, mut event: ModelEvent) {
        let unmark = |text: &mut String| {
            if let Cow::Owned(whole) = unmarked(text) {
                *text = whole;
            }
        };
        match &mut event {
            ModelEvent::ThoughtSignature(signature) => {
                self.end_thought();
                unmark(signature);
            }
            ModelEvent::Call { id, name, arguments, signature } => {
                self.end();
                [Some(name), Some(arguments), id.as_mut(), signature.as_mut()]
                    .into_iter()
                    .flatten()
                    .for_each(unmark);
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

    /// The number of additions so far.
    pub(super) fn added(&self) -> usize {
        self.added
    }

    /// Whether the oldest event can't grow any more, or is large enough.
    pub(super) fn is_due(&self) -> bool {
        match (self.ready.len(), self.ready.front()) {
            (1, Some(ModelEvent::Text(text) | ModelEvent::Thought(text))) => {
                text.len() >= MAX_TEXT_DELTA
            }
            (events, _) => events > 0,
        }
    }
}

/// Whether a call has no arguments. Most servers send an empty text for an empty object, and some
/// send `null`.
pub(crate) fn is_no_input(arguments: &str) -> bool {
    matches!(arguments.trim(), "" | "null" | "{}")
}

/// The calls of a protocol that sends each call whole, with a finish reason that does not say
/// whether there are any.
#[derive(Debug, Default)]
pub(crate) struct WholeCalls {
    /// Whether a call has a name.
    has_named_call: bool,
    /// Whether a call has arguments, an id or a signature, but no name.
    has_nameless_call: bool,
    /// Whether a call has no content at all.
    has_empty_call: bool,
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
        let has_content = id.as_deref().is_some_and(|id| !id.is_empty())
            || signature.is_some()
            || !is_no_input(&arguments);
        if pieces.add_call(id, name.unwrap_or_default(), arguments, signature) {
            self.has_named_call = true;
        } else if has_content {
            self.has_nameless_call = true;
        } else {
            self.has_empty_call = true;
        }
    }

    /// Whether the model requested a call that can't be read. An empty call counts only if no call
    /// has a name.
    pub(crate) fn has_lost_call(&self) -> bool {
        self.has_nameless_call || (self.has_empty_call && !self.has_named_call)
    }
}

/// Bytes that a reader holds and no event has reported. They need a bound of their own.
#[derive(Debug, Default)]
pub(crate) struct HeldBytes(usize);

impl HeldBytes {
    /// Counts bytes that are held.
    ///
    /// # Errors
    /// [`ModelError::Malformed`] beyond the bound of one event.
    pub(crate) fn add(&mut self, bytes: usize) -> Result<(), ModelError> {
        self.0 = self.0.saturating_add(bytes);
        if self.0 > MAX_EVENT_BYTES { Err(no_content_error()) } else { Ok(()) }
    }
}

/// The error for an answer with too many bytes that bring no event.
pub(super) fn no_content_error() -> ModelError {
    ModelError::Malformed { message: format!("over {MAX_EVENT_BYTES} bytes without content") }
}

/// Helpers to test readers.
#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// The events of an answer, without the provider's ids of its calls, and its end; `None` if it
    /// was cut off.
    pub(crate) type Played = (Vec<ModelEvent>, Result<Option<End>, ModelError>);

    /// Reads these frames, and leaves out [`ModelEvent::Writing`].
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

    /// Checks that these frames bring these events and an end with this finish. Returns that end.
    #[track_caller]
    pub(crate) fn ends<R: Reader>(frames: &[&str], events: &[ModelEvent], finish: &Finish) -> End {
        let (actual, end) = play::<R>(frames);
        assert_eq!(actual, events, "{frames:#?}");
        let end = end.unwrap().unwrap();
        assert_eq!(end.finish, *finish, "{frames:#?}");
        end
    }

    /// Checks that these frames can't be read, for a reason that contains these words.
    #[track_caller]
    pub(crate) fn is_malformed<R: Reader>(frames: &[&str], words: &str) {
        match play::<R>(frames).1 {
            Err(ModelError::Malformed { message }) => {
                assert!(message.contains(words), "{words}: {message}")
            }
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
        ModelEvent::Call {
            id: None,
            name: name.into(),
            arguments: arguments.into(),
            signature: None,
        }
    }

    #[test]
    fn m_e6_pieces_are_joined_until_another_kind_comes_or_they_are_large() {
        let mut pieces = Pieces::default();
        pieces.add_text("");
        assert!(pieces.is_empty() && !pieces.is_due());
        for _ in 0..3 {
            pieces.add_text("a");
        }
        assert!(!pieces.is_due());
        pieces.add_thought("b");
        assert!(pieces.is_due());
        assert_eq!(pieces.pop(), Some(text("aaa")));
        assert!(!pieces.is_due());
        pieces.add_thought(&"b".repeat(MAX_TEXT_DELTA));
        assert!(pieces.is_due());
        assert!(!pieces.add_call(None, String::new(), "{}".into(), None));
        assert!(pieces.add_call(None, "now".into(), " null ".into(), None));
        assert_eq!(
            [pieces.pop(), pieces.pop()].map(|event| event.unwrap().bytes()),
            [MAX_TEXT_DELTA + 1, 5]
        );
    }
}
