//! Clients: attached, sent every event, never waited for.

use std::ops::Range;
use std::sync::Arc;

use actix::WeakAddr;
use actix::prelude::*;
use holdpoint_common::api::ClientEnd;
use holdpoint_common::{Event, Snapshot, Who};

use super::SessionActor;
use super::queue::{Receiver, Sender, queue};
use crate::attach_from::AttachFrom;
use crate::error::SessionError;
use crate::store::SessionLog;

/// Begins to receive a session's events.
#[derive(Message)]
#[rtype(result = "Result<Attached, SessionError>")]
pub(crate) struct Attach {
    pub(crate) who: Who,
    pub(crate) from: AttachFrom,
}

/// Facts that the output buffer no longer has: those in this range, or only the newest so many of them.
pub(crate) type Older = (Range<u64>, Option<usize>);

/// What a client is given.
pub(crate) struct Attached {
    pub(crate) snapshot: Arc<Snapshot>,
    pub(crate) log: Arc<dyn SessionLog>,
    /// Facts to be read from the log first.
    pub(crate) older: Option<Older>,
    /// What items had come to of which pieces are gone, and facts that could not be saved: between those, by number.
    pub(crate) summaries: Vec<Arc<Event>>,
    /// Then these.
    pub(crate) past: Vec<Arc<Event>>,
    /// Then what happens.
    pub(crate) live: ClientQueue,
}

/// Ends receiving. Answered when nothing more will be sent.
#[derive(Message)]
#[rtype(result = "()")]
struct Detach {
    client: ClientId,
}

/// Names a client within its session.
type ClientId = u64;

/// Those who are attached.
#[derive(Default)]
pub(super) struct Clients {
    next: ClientId,
    attached: Vec<Client>,
}

struct Client {
    id: ClientId,
    who: Who,
    queue: Sender,
}

/// The receiving end of a client's queue. Dropping it, wherever it is by then, detaches the client.
pub(crate) struct ClientQueue {
    events: Receiver,
    client: ClientId,
    session: WeakAddr<SessionActor>,
}

impl Drop for ClientQueue {
    fn drop(&mut self) {
        if let Some(session) = self.session.upgrade() {
            // Bounded: one for each client.
            session.do_send(Detach { client: self.client });
        }
    }
}

impl Clients {
    pub(super) fn len(&self) -> usize {
        self.attached.len()
    }
}

impl Handler<Attach> for SessionActor {
    type Result = Result<Attached, SessionError>;

    fn handle(&mut self, Attach { who, from }: Attach, ctx: &mut Self::Context) -> Self::Result {
        let AttachFrom { after, limit, room } = from;
        let limits = &self.outfit.limits;
        if self.clients.len() >= limits.max_clients {
            return Err(SessionError::TooManyClients { most: limits.max_clients });
        }
        let newest = self.numbers.used();
        if after > newest {
            return Err(SessionError::UnknownEvent { session: self.state.settings().id.clone(), after, newest });
        }
        let (from, older) = self.past(after, limit);
        let (mut summaries, past) = self.ring.after(after, from);
        // What could not be saved and has left the buffer is nowhere else.
        summaries.extend(self.outbox.unsaved_in(from.saturating_add(1)..self.ring.evicted() + 1).cloned());
        summaries.sort_by_key(|event| event.seq);
        // Before anything live it has what the log and the buffer give it.
        let given = past.last().map_or(0, |event| event.seq).max(from).max(self.ring.evicted());
        let (queue, events) = queue(given, room, limits);
        let client = self.clients.next;
        self.clients.next += 1;
        tracing::info!(client, %who, after, "attach");
        let session = ctx.address().downgrade();
        let live = ClientQueue { events, client, session };
        self.clients.attached.push(Client { id: client, who, queue });
        self.show_clients();
        Ok(Attached { snapshot: self.shown.borrow().clone(), log: Arc::clone(&self.log), older, summaries, past, live })
    }
}

impl Handler<Detach> for SessionActor {
    type Result = ();

    fn handle(&mut self, Detach { client }: Detach, _: &mut Self::Context) {
        if let Some(at) = self.clients.attached.iter().position(|attached| attached.id == client) {
            let client = self.clients.attached.swap_remove(at);
            client.queue.detach();
            tracing::info!(client = client.id, who = %client.who, "detach");
            self.show_clients();
        }
    }
}

impl SessionActor {
    /// Where the ring takes over, and what of the log comes before it.
    fn past(&self, after: u64, limit: Option<usize>) -> (u64, Option<Older>) {
        let evicted = self.ring.evicted();
        let Some(limit) = limit else {
            return (after, (after < evicted).then_some((after.saturating_add(1)..evicted + 1, None)));
        };
        match self.ring.before_newest(limit) {
            Some(before) => (after.max(before), None),
            None => {
                let missing = limit - self.ring.facts_after(after);
                (after, (after < evicted).then_some((after.saturating_add(1)..evicted + 1, Some(missing))))
            }
        }
    }

    /// Sends an event to everyone who is attached, and keeps it for those who come later.
    pub(super) fn publish(&mut self, event: Arc<Event>) {
        let weight = event.weight();
        let before = self.clients.attached.len();
        self.clients.attached.retain(|client| client.send(&event, weight));
        if self.clients.attached.len() != before {
            self.show_clients();
        }
        self.ring.push(event);
    }

    /// Shows how many are attached.
    fn show_clients(&self) {
        let clients = self.clients.len();
        self.shown.send_modify(|shown| Arc::make_mut(shown).clients = clients);
    }
}

impl Client {
    /// Whether the client is still attached after this.
    fn send(&self, event: &Arc<Event>, weight: usize) -> bool {
        let sent = self.queue.send(event, weight);
        if let Err(after) = sent {
            tracing::warn!(client = self.id, who = %self.who, after, "client lags, its stream ends");
        }
        sent.is_ok()
    }
}

impl ClientQueue {
    /// Detaches, and returns when the session knows.
    pub(crate) async fn leave(self) {
        if let Some(session) = self.session.upgrade() {
            // A session that is gone has no clients.
            let _ = session.send(Detach { client: self.client }).await;
        }
    }

    /// The next event; `None` when the stream has ended.
    pub(crate) async fn next(&mut self) -> Option<Arc<Event>> {
        self.events.next().await
    }

    /// Moves what has come into `batch`, at most `most` and not much at once, waiting for the first. Nothing: the stream
    /// has ended.
    pub(crate) async fn next_batch(&mut self, batch: &mut Vec<Arc<Event>>, most: usize) {
        self.events.next_batch(batch, most).await;
    }

    /// Why the stream ended.
    pub(crate) fn end(&self) -> ClientEnd {
        self.events.end()
    }
}
