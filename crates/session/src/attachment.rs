//! What an attached client holds: the stream of a session's events.

use std::collections::VecDeque;
use std::sync::Arc;

use holdpoint_common::{Answer, AnswerError, Ask, Body, Delta, Event, Fact, Snapshot};

use crate::actor::{Attach, Attached, ClientEnd, ClientQueue, Older};
use crate::error::SessionError;
use crate::handle::{Answered, SessionHandle};
use crate::mend::Mend;
use crate::store::SessionLog;

/// Facts read from the log at a time.
const PAGE: u64 = 1_000;

/// Where an attachment begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AttachFrom {
    /// Only what comes after this number: the last one the client has.
    pub after: u64,
    /// Of the past, at most this many facts: the newest.
    pub limit: Option<usize>,
}

impl AttachFrom {
    /// Everything there is.
    #[must_use]
    pub fn start() -> Self {
        Self::default()
    }

    /// What comes after this number.
    #[must_use]
    pub fn after(after: u64) -> Self {
        Self { after, limit: None }
    }

    /// Nothing of the past.
    #[must_use]
    pub fn now() -> Self {
        Self { after: 0, limit: Some(0) }
    }
}

/// A client's end of a session: its snapshot at the moment of attaching, then its events.
///
/// Numbers rise strictly. Dropping it detaches: nothing is answered or interrupted by that.
pub struct Attachment {
    session: SessionHandle,
    snapshot: Arc<Snapshot>,
    log: Arc<dyn SessionLog>,
    /// What of the log is still to be read, before `past`.
    older: Option<Older>,
    /// What goes between its facts, by number.
    summaries: Vec<Arc<Event>>,
    /// What was read of it.
    page: VecDeque<Arc<Event>>,
    /// What the output buffer had.
    past: VecDeque<Arc<Event>>,
    /// What mends items that the client left in the middle of.
    mend: Mend,
    live: ClientQueue,
    /// The open asks, as far as this client has been given the events.
    asks: VecDeque<Ask>,
}

impl SessionHandle {
    /// Begins to receive its events: the past as `from` says, then live.
    ///
    /// # Errors
    /// [`SessionError::TooManyClients`] if there is no room.
    pub async fn attach(&self, from: AttachFrom) -> Result<Attachment, SessionError> {
        let AttachFrom { after, limit } = from;
        let attach = || Attach { who: self.who(), after, limit };
        let attached = match self.send(attach).await {
            // The actor failed under it. Attaching twice does no harm.
            Err(SessionError::Gone { .. }) => self.send(attach).await?,
            attached => attached?,
        };
        let mend = if limit.is_some() { Mend::after(0) } else { Mend::after(after) };
        Ok(Attachment::new(self.clone(), attached?, mend))
    }
}

impl Attachment {
    fn new(session: SessionHandle, attached: Attached, mut mend: Mend) -> Self {
        let Attached { snapshot, log, older, mut summaries, mut past, live } = attached;
        if older.is_none() {
            summaries.append(&mut past);
            past = std::mem::take(&mut summaries);
            mend.mend(&mut past);
        }
        Self {
            session,
            asks: snapshot.asks.iter().cloned().collect(),
            snapshot,
            log,
            older,
            summaries,
            page: VecDeque::new(),
            past: past.into(),
            mend,
            live,
        }
    }

    /// The session as it was at the moment of attaching.
    #[must_use]
    pub fn snapshot(&self) -> &Arc<Snapshot> {
        &self.snapshot
    }

    /// The next event; `None` when the stream has ended, [`end`](Self::end) says why.
    pub async fn next(&mut self) -> Option<Arc<Event>> {
        self.read_older().await;
        let event = match self.page.pop_front().or_else(|| self.past.pop_front()) {
            Some(event) => event,
            None => self.live.next().await?,
        };
        self.note(&event);
        Some(event)
    }

    /// Moves events that have come into `batch`, at most `most`, waiting for the first. Returns how many; 0
    /// when the stream has ended.
    pub async fn next_batch(&mut self, batch: &mut Vec<Arc<Event>>, most: usize) -> usize {
        self.read_older().await;
        let from = batch.len();
        let kept = if self.page.is_empty() { &mut self.past } else { &mut self.page };
        if kept.is_empty() {
            self.live.next_batch(batch, most).await;
        } else {
            batch.extend(kept.drain(..most.min(kept.len())));
        }
        for event in batch.iter().skip(from) {
            note(&mut self.asks, &self.snapshot, event);
        }
        batch.len() - from
    }

    /// Why the stream has ended.
    #[must_use]
    pub fn end(&self) -> ClientEnd {
        self.live.end()
    }

    /// The ask this client was last shown: the first that is open, as far as it has been given the events.
    #[must_use]
    pub fn shown(&self) -> Option<&Ask> {
        self.asks.front()
    }

    /// How many asks wait behind the one that is shown.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.asks.len().saturating_sub(1)
    }

    /// Answers the ask this client was last shown, never whichever is first by now.
    ///
    /// # Errors
    /// As [`SessionHandle::answer`]; [`AnswerError::NothingShown`] if it was shown none.
    pub async fn answer(&self, answer: Answer) -> Result<Answered, SessionError> {
        let shown = self.shown().ok_or(SessionError::Answer(AnswerError::NothingShown))?;
        self.session.answer(&shown.id.clone(), answer).await
    }

    /// Ends receiving, and returns when the session knows. The session goes on as before.
    pub async fn detach(self) {
        self.live.leave().await;
    }

    /// Reads facts that the output buffer no longer has, a page at a time. Dropped half-way, nothing is lost.
    async fn read_older(&mut self) {
        while self.page.is_empty() {
            let Some((range, newest)) = self.older.clone() else { return };
            // So many of the newest are the client's own limit; all of them are read in pages.
            let end = if newest.is_some() { range.end } else { range.end.min(range.start.saturating_add(PAGE)) };
            let page = self.log.read(range.start..end, newest).await;
            self.older = (end < range.end).then_some((end..range.end, newest));
            let mut page = page.unwrap_or_else(|error| {
                tracing::warn!(%error, "facts can't be read");
                vec![gap(&self.snapshot, range.start, end - 1)]
            });
            page.extend(self.summaries.extract_if(.., |summary| summary.seq < end));
            page.sort_by_key(|event| event.seq);
            // Saved meanwhile.
            page.dedup_by_key(|event| event.seq);
            self.mend.mend(&mut page);
            self.page = page.into();
            if self.older.is_none() {
                let mut past = std::mem::take(&mut self.past).into();
                self.mend.mend(&mut past);
                self.past = past.into();
            }
        }
    }

    fn note(&mut self, event: &Event) {
        note(&mut self.asks, &self.snapshot, event);
    }
}

/// Follows which asks are open. The snapshot has those raised up to its number.
fn note(asks: &mut VecDeque<Ask>, snapshot: &Snapshot, event: &Event) {
    if event.seq <= snapshot.seq {
        return;
    }
    match event.fact() {
        Some(Fact::AskRaised { ask }) => asks.push_back(ask.clone()),
        Some(Fact::AskAnswered { ask: id, .. } | Fact::AskClosed { ask: id, .. }) => asks.retain(|ask| ask.id != *id),
        _ => {}
    }
}

fn gap(snapshot: &Snapshot, from: u64, to: u64) -> Arc<Event> {
    let body = Body::Delta(Delta::Gap { from, to });
    Arc::new(Event { seq: to, at: snapshot.since, turn: None, step: None, body })
}
