//! The event stream of a session in this process: events of the log, then of the output buffer,
//! then live ones.

use std::collections::VecDeque;
use std::sync::Arc;

use holdpoint_common::api::ClientEnd;
use holdpoint_common::{Body, Delta, Event, SessionError, Snapshot};

use super::LocalSession;
use crate::actor::{Attach, Attached, ClientQueue, OlderFacts};
use crate::attach_from::AttachFrom;
use crate::backend::EventsBackend;
use crate::complete_items::OpenItems;
use crate::store::{Page, SessionPast};

/// How many facts are read from the log at a time.
const PAGE_FACTS: usize = 1_000;

/// A client's stream of a session in this process.
pub(crate) struct LocalAttachment {
    snapshot: Arc<Snapshot>,
    log: Arc<dyn SessionPast>,
    /// The part of the log to read before `past`.
    older: Option<OlderFacts>,
    /// The events that belong between the facts of the log, by number.
    summaries: Vec<Arc<Event>>,
    /// The events that were read from the log.
    page: VecDeque<Arc<Event>>,
    /// The events from the output buffer.
    past: VecDeque<Arc<Event>>,
    /// The items that were open where the client left.
    items: OpenItems,
    live: ClientQueue,
}

impl LocalAttachment {
    /// Attaches a client.
    pub(super) async fn open(
        session: &LocalSession,
        from: AttachFrom,
    ) -> Result<Self, SessionError> {
        let attach = || Attach { who: session.who(), from };
        let attached = match session.send(attach).await {
            // The actor failed before it replied. A second attach does no harm.
            Err(SessionError::Gone { .. }) => session.send(attach).await?,
            attached => attached?,
        };
        // With a limit, facts are skipped too, so a gap in the numbers does not mean a missing
        // piece. `after(0)` completes no items.
        let items =
            if from.limit.is_some() { OpenItems::after(0) } else { OpenItems::after(from.after) };
        Ok(Self::new(attached?, items))
    }

    fn new(attached: Attached, mut items: OpenItems) -> Self {
        let Attached { snapshot, log, older, mut summaries, mut past, live } = attached;
        if older.is_none() {
            summaries.append(&mut past);
            past = std::mem::take(&mut summaries);
            items.complete_items(&mut past);
        }
        Self {
            snapshot,
            log,
            older,
            summaries,
            page: VecDeque::new(),
            past: past.into(),
            items,
            live,
        }
    }

    /// Reads facts that have left the output buffer, one page at a time. A call that is dropped
    /// half-way loses no event.
    async fn read_older(&mut self) {
        while self.page.is_empty() {
            let Some((range, newest)) = self.older.clone() else { return };
            if let Some(newest) = newest {
                // If the start can't be determined, all facts are delivered.
                let start = self.log.newest(range.clone(), newest).await.unwrap_or(range.start);
                self.older = Some((start..range.end, None));
                continue;
            }
            let Page { facts: mut page, next } =
                self.log.page(range.clone(), PAGE_FACTS).await.unwrap_or_else(|error| {
                    tracing::warn!(%error, "facts of the log can't be read");
                    Page {
                        facts: vec![gap(&self.snapshot, range.start, range.end - 1)],
                        next: None,
                    }
                });
            let end = next.filter(|next| *next < range.end).unwrap_or(range.end);
            self.older = (end < range.end).then_some((end..range.end, None));
            page.extend(self.summaries.extract_if(.., |summary| summary.seq < end));
            page.sort_by_key(|event| event.seq);
            // Facts that were unsaved at the attach may be in the log as well by now.
            page.dedup_by_key(|event| event.seq);
            self.items.complete_items(&mut page);
            self.page = page.into();
            if self.older.is_none() {
                let mut past = std::mem::take(&mut self.past).into();
                self.items.complete_items(&mut past);
                self.past = past.into();
            }
        }
    }
}

impl EventsBackend for LocalAttachment {
    fn snapshot(&self) -> &Arc<Snapshot> {
        &self.snapshot
    }

    async fn next(&mut self) -> Option<Arc<Event>> {
        self.read_older().await;
        match self.page.pop_front().or_else(|| self.past.pop_front()) {
            Some(event) => Some(event),
            None => self.live.next().await,
        }
    }

    async fn next_batch(&mut self, batch: &mut Vec<Arc<Event>>, max: usize) {
        self.read_older().await;
        let buffered = if self.page.is_empty() { &mut self.past } else { &mut self.page };
        if buffered.is_empty() {
            self.live.next_batch(batch, max).await;
        } else {
            batch.extend(buffered.drain(..max.min(buffered.len())));
        }
    }

    async fn has_past(&mut self) -> bool {
        self.older.is_some() || !self.page.is_empty() || !self.past.is_empty()
    }

    fn end(&self) -> ClientEnd {
        self.live.end()
    }

    async fn detach(self) {
        self.live.leave().await;
    }
}

fn gap(snapshot: &Snapshot, from: u64, to: u64) -> Arc<Event> {
    let body = Body::Delta(Delta::Gap { from, to });
    Arc::new(Event { seq: to, at: snapshot.since, turn: None, step: None, body })
}
