//! Batches of events, as JSON text, that wait for a callback.

use std::collections::VecDeque;
use std::sync::Arc;

use holdpoint_common::{AskFact, AskId, Event, Fact, SessionId, Snapshot};

use crate::convert::to_json;
use crate::failure::Failure;

/// Maximum number of events in a batch. JavaScript parses that many in about half a millisecond.
const MAX_BATCH_EVENTS: usize = 512;
/// Maximum size of a batch in bytes, unless a single event is larger.
const MAX_BATCH_BYTES: usize = 64 * 1024;
/// Maximum bytes of JSON text that wait for a slow callback; then no more events are taken from the
/// session. As many bytes again may wait in the attachment before a session of this process ends
/// the stream, which is then reopened where it ended. So a burst that comes faster than it can be
/// serialised is kept as a whole.
pub(crate) const MAX_WAITING_BYTES: usize = 32 * 1024 * 1024;

/// Events that are delivered together.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    /// JSON array without its closing bracket.
    text: String,
    events: usize,
    /// Number of the last event.
    pub(crate) last: u64,
    /// The session, and the ask that it shows from this batch on, if the batch begins with an event
    /// about asks. Each such event begins a batch, so that an answer without an id goes to the ask
    /// that was shown, never to a later one.
    pub(crate) shown_ask: Option<(SessionId, Option<AskId>)>,
}

impl Batch {
    fn push(&mut self, event: &Event) -> Result<(), Failure> {
        self.text.push(if self.events == 0 { '[' } else { ',' });
        self.text.push_str(&to_json(event)?);
        self.events += 1;
        self.last = event.seq;
        Ok(())
    }

    fn is_full(&self) -> bool {
        self.events >= MAX_BATCH_EVENTS || self.text.len() >= MAX_BATCH_BYTES
    }

    /// Returns the batch as a JSON array.
    pub(crate) fn text(mut self) -> String {
        self.text.push_str(if self.events == 0 { "[]" } else { "]" });
        self.text
    }
}

/// The batches that wait for a callback.
pub(crate) struct BatchQueue {
    session: SessionId,
    batches: VecDeque<Batch>,
    bytes: usize,
    /// Open asks, as of the events so far.
    asks: VecDeque<AskId>,
    /// Number up to which the snapshot already accounts for the asks.
    asks_seq: u64,
}

impl BatchQueue {
    /// Creates an empty queue that continues this snapshot.
    pub(crate) fn after(snapshot: &Snapshot) -> Self {
        let asks = snapshot.asks.iter().map(|ask| ask.id.clone()).collect();
        let session = snapshot.settings.id.clone();
        Self { session, batches: VecDeque::new(), bytes: 0, asks, asks_seq: snapshot.seq }
    }

    /// Whether more events may be added.
    pub(crate) fn has_room(&self) -> bool {
        self.bytes < MAX_WAITING_BYTES
    }

    pub(crate) fn push(&mut self, event: &Arc<Event>) -> Result<(), Failure> {
        let shown_ask = self.update_asks(event).map(|ask| (self.session.clone(), ask));
        if shown_ask.is_some() || self.batches.back().is_none_or(Batch::is_full) {
            self.batches.push_back(Batch { shown_ask, ..Batch::default() });
        }
        if let Some(batch) = self.batches.back_mut() {
            let bytes_before = batch.text.len();
            batch.push(event)?;
            self.bytes += batch.text.len() - bytes_before;
        }
        Ok(())
    }

    pub(crate) fn pop(&mut self) -> Option<Batch> {
        let batch = self.batches.pop_front()?;
        self.bytes -= batch.text.len();
        Some(batch)
    }

    /// Updates the open asks. Returns the ask that is shown now, if the event is about asks.
    fn update_asks(&mut self, event: &Event) -> Option<Option<AskId>> {
        let Fact::Ask(fact) = event.fact()? else { return None };
        match fact {
            // The snapshot already accounts for past asks, open or not.
            AskFact::Raised { .. } if event.seq <= self.asks_seq => {}
            AskFact::Raised { ask } => self.asks.push_back(ask.id.clone()),
            AskFact::Answered { ask, .. } | AskFact::Closed { ask, .. } => {
                self.asks.retain(|open| open != ask)
            }
        }
        Some(self.asks.front().cloned())
    }
}
