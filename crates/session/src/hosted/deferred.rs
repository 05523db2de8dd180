//! Events of an agent that arrive while one of its calls is followed. The next answer has them.

use std::collections::VecDeque;

use super::event::AgentEvent;

/// The most bytes of text that are kept, and the most events.
const MAX_BYTES: usize = 1024 * 1024;
const MAX_EVENTS: usize = 8192;

/// The events, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Deferred {
    events: VecDeque<AgentEvent>,
    bytes: usize,
}

impl Deferred {
    /// Adds an event that the next answer has to know, and returns it if there is no room for it.
    pub(super) fn push(&mut self, event: AgentEvent) -> Option<AgentEvent> {
        let (bytes, is_full) = (event.bytes(), self.events.len() >= MAX_EVENTS);
        match (&event, self.events.back_mut()) {
            (AgentEvent::Text(_) | AgentEvent::Thought(_), _) if self.bytes + bytes > MAX_BYTES => {
                return Some(event);
            }
            // An agent sends its text in small pieces.
            (AgentEvent::Text(text), Some(AgentEvent::Text(last)))
            | (AgentEvent::Thought(text), Some(AgentEvent::Thought(last))) => last.push_str(text),
            (AgentEvent::Terminals, _) => {}
            // Every call is shown, every request becomes one, and a turn has one end. Their number is
            // bounded.
            (AgentEvent::Begins(_) | AgentEvent::Requested | AgentEvent::Ended(_), _) => {
                self.events.push_back(event);
            }
            _ if is_full => return Some(event),
            _ => self.events.push_back(event),
        }
        self.bytes += bytes;
        None
    }

    pub(super) fn pop(&mut self) -> Option<AgentEvent> {
        let event = self.events.pop_front()?;
        self.bytes -= event.bytes();
        Some(event)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}
