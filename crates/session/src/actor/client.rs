//! Attached clients. Each is sent every event, and the actor waits for none of them.

use std::ops::Range;
use std::sync::Arc;

use actix::WeakAddr;
use actix::prelude::*;
use holdpoint_common::api::ClientEnd;
use holdpoint_common::{Event, SessionError, Snapshot, Who};

use super::SessionActor;
use super::queue::{Receiver, Sender, queue};
use crate::attach_from::AttachFrom;
use crate::store::SessionPast;

/// Attaches a client to the session.
#[derive(Message)]
#[rtype(result = "Result<Attached, SessionError>")]
pub(crate) struct Attach {
    pub(crate) who: Who,
    pub(crate) from: AttachFrom,
}

/// Facts that have left the output buffer: their range, and how many of the newest to read. `None`
/// means all.
pub(crate) type OlderFacts = (Range<u64>, Option<usize>);

/// The reply to [`Attach`]: the snapshot, and the events in the order in which the client gets
/// them.
pub(crate) struct Attached {
    pub(crate) snapshot: Arc<Snapshot>,
    pub(crate) log: Arc<dyn SessionPast>,
    /// The facts to read from the log first.
    pub(crate) older: Option<OlderFacts>,
    /// Facts that could not be saved, and the text so far of items that have lost deltas. By their
    /// numbers, they belong between the facts of the log.
    pub(crate) summaries: Vec<Arc<Event>>,
    /// The events of the output buffer.
    pub(crate) past: Vec<Arc<Event>>,
    /// The events from then on.
    pub(crate) live: ClientQueue,
}

/// Detaches a client. The reply means that no more events will be sent.
#[derive(Message)]
#[rtype(result = "()")]
struct Detach {
    client: ClientId,
}

/// Identifies a client within its session.
type ClientId = u64;

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

/// The receiving end of a client's queue. Dropping it detaches the client.
pub(crate) struct ClientQueue {
    events: Receiver,
    client: ClientId,
    session: WeakAddr<SessionActor>,
}

impl Drop for ClientQueue {
    fn drop(&mut self) {
        if let Some(session) = self.session.upgrade() {
            // Bounded: one per client.
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
        let limits = &self.env.limits;
        if self.clients.len() >= limits.max_clients {
            return Err(SessionError::TooManyClients { limit: limits.max_clients });
        }
        let newest = self.numbers.last_used();
        if after > newest {
            return Err(SessionError::UnknownEvent {
                session: self.state.settings().id.clone(),
                after,
                newest,
            });
        }
        let (from, older) = self.past(after, limit);
        let (mut summaries, past) = self.ring.after(after, from);
        // A fact that could not be saved and has left the buffer exists only in the outbox.
        summaries.extend(
            self.outbox.unsaved_in(from.saturating_add(1)..self.ring.evicted() + 1).cloned(),
        );
        summaries.sort_by_key(|event| event.seq);
        // The log and the buffer provide the events up to this number, and the queue the later
        // ones.
        let covered_up_to =
            past.last().map_or(0, |event| event.seq).max(from).max(self.ring.evicted());
        let (queue, events) = queue(covered_up_to, room, limits);
        let client = self.clients.next;
        self.clients.next += 1;
        tracing::info!(client, %who, after, "attach");
        let session = ctx.address().downgrade();
        let live = ClientQueue { events, client, session };
        self.clients.attached.push(Client { id: client, who, queue });
        self.show_clients();
        // A client that attaches may prompt soon.
        self.expect_request(ctx);
        Ok(Attached {
            snapshot: self.shown.borrow().clone(),
            log: Arc::clone(&self.log).past(),
            older,
            summaries,
            past,
            live,
        })
    }
}

impl Handler<Detach> for SessionActor {
    type Result = ();

    fn handle(&mut self, Detach { client }: Detach, _: &mut Self::Context) {
        if let Some(at) = self.clients.attached.iter().position(|attached| attached.id == client) {
            let client = self.clients.attached.swap_remove(at);
            client.queue.end(ClientEnd::Detached);
            tracing::info!(client = client.id, who = %client.who, "detach");
            self.show_clients();
        }
    }
}

impl SessionActor {
    /// The number after which the ring takes over, and the part of the log to read before it.
    fn past(&self, after: u64, limit: Option<usize>) -> (u64, Option<OlderFacts>) {
        let evicted = self.ring.evicted();
        let older = |newest: Option<usize>| {
            (after < evicted).then_some((after.saturating_add(1)..evicted + 1, newest))
        };
        let Some(limit) = limit else { return (after, older(None)) };
        match self.ring.before_newest(limit) {
            Some(before) => (after.max(before), None),
            None => (after, older(Some(limit - self.ring.facts_after(after)))),
        }
    }

    /// Sends an event to all attached clients and adds it to the ring.
    pub(super) fn publish(&mut self, event: Arc<Event>) {
        let weight = event.weight();
        let before = self.clients.attached.len();
        self.clients.attached.retain(|client| client.send(&event, weight));
        if self.clients.attached.len() != before {
            self.show_clients();
        }
        self.ring.push(event);
    }

    /// Ends the streams of all clients: another machine has the session, with the saved events.
    pub(super) fn move_clients(&mut self) {
        for client in self.clients.attached.drain(..) {
            client.queue.end(ClientEnd::Moved { after: self.outbox.saved });
        }
    }

    /// Publishes the number of attached clients.
    fn show_clients(&self) {
        let clients = self.clients.len();
        self.shown.send_modify(|shown| Arc::make_mut(shown).clients = clients);
    }
}

impl Client {
    /// Returns whether the client is still attached.
    fn send(&self, event: &Arc<Event>, weight: usize) -> bool {
        let sent = self.queue.send(event, weight);
        if let Err(after) = sent {
            tracing::warn!(client = self.id, who = %self.who, after, "client lags; its stream ends");
        }
        sent.is_ok()
    }
}

impl ClientQueue {
    /// Detaches the client, and returns when the actor has done so.
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

    /// Moves queued events into `batch` and waits for the first: at most `max` events, and a
    /// bounded number of bytes. Adds no event when the stream has ended.
    pub(crate) async fn next_batch(&mut self, batch: &mut Vec<Arc<Event>>, max: usize) {
        self.events.next_batch(batch, max).await;
    }

    /// The reason why the stream ended.
    pub(crate) fn end(&self) -> ClientEnd {
        self.events.end()
    }
}
