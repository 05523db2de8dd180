//! Events on their way to a callback, as JSON text, in batches.

use std::collections::VecDeque;
use std::sync::Arc;

use holdpoint_common::{Ask, AskId, Event, Fact, SessionId, Snapshot};

use crate::crossing::write;
use crate::failure::Failure;

/// Events that cross at once. Read by JavaScript in about half a millisecond.
const MOST_EVENTS: usize = 512;
/// Bytes that cross at once, but for an event that is longer by itself.
const MOST_BYTES: usize = 64 * 1024;
/// Bytes of text that wait for a callback that is slower than its session. At more, no more is taken. So much waits as
/// events, too, before a session of this process ends the stream, which is begun again where it stopped: a burst that
/// comes faster than it can be written is all kept.
pub(crate) const WAITING: usize = 32 * 1024 * 1024;

/// Events that cross at once.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    /// A list of them: the closing bracket is still to come.
    text: String,
    events: usize,
    /// The number of the last.
    pub(crate) last: u64,
    /// The ask that is shown from this batch on, if it changes that: an event that does begins a batch, so that who
    /// answers without an id answers what was shown, and never what comes after it.
    pub(crate) shows: Option<(SessionId, Option<AskId>)>,
}

impl Batch {
    fn push(&mut self, event: &Event) -> Result<(), Failure> {
        self.text.push(if self.events == 0 { '[' } else { ',' });
        self.text.push_str(&write(event)?);
        self.events += 1;
        self.last = event.seq;
        Ok(())
    }

    fn is_full(&self) -> bool {
        self.events >= MOST_EVENTS || self.text.len() >= MOST_BYTES
    }

    /// The text.
    pub(crate) fn text(mut self) -> String {
        self.text.push_str(if self.events == 0 { "[]" } else { "]" });
        self.text
    }
}

/// What waits for a callback.
pub(crate) struct Waiting {
    session: SessionId,
    batches: VecDeque<Batch>,
    bytes: usize,
    /// The open asks, as far as events have come.
    asks: VecDeque<AskId>,
    /// Up to this number, they are what the snapshot had.
    known: u64,
}

impl Waiting {
    /// Nothing yet, after this snapshot.
    pub(crate) fn after(snapshot: &Snapshot) -> Self {
        let asks = snapshot.asks.iter().map(|ask| ask.id.clone()).collect();
        let session = snapshot.settings.id.clone();
        Self { session, batches: VecDeque::new(), bytes: 0, asks, known: snapshot.seq }
    }

    /// Whether more is taken.
    pub(crate) fn has_room(&self) -> bool {
        self.bytes < WAITING
    }

    pub(crate) fn push(&mut self, event: &Arc<Event>) -> Result<(), Failure> {
        let shows = self.note(event).map(|ask| (self.session.clone(), ask));
        if shows.is_some() || self.batches.back().is_none_or(Batch::is_full) {
            self.batches.push_back(Batch { shows, ..Batch::default() });
        }
        if let Some(batch) = self.batches.back_mut() {
            let before = batch.text.len();
            batch.push(event)?;
            self.bytes += batch.text.len() - before;
        }
        Ok(())
    }

    pub(crate) fn pop(&mut self) -> Option<Batch> {
        let batch = self.batches.pop_front()?;
        self.bytes -= batch.text.len();
        Some(batch)
    }

    /// Follows which asks are open: what is shown now, if that has changed.
    fn note(&mut self, event: &Event) -> Option<Option<AskId>> {
        match event.fact()? {
            Fact::AskRaised { ask: Ask { id, .. } } if event.seq > self.known => self.asks.push_back(id.clone()),
            Fact::AskAnswered { ask, .. } | Fact::AskClosed { ask, .. } => self.asks.retain(|open| open != ask),
            // One of the past that is open still, or no longer: the snapshot knows.
            Fact::AskRaised { .. } => {}
            _ => return None,
        }
        Some(self.asks.front().cloned())
    }
}
