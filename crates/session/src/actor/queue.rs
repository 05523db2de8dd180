//! A client's queue: what it has still to be given, from the session's actor to whoever reads it.
//!
//! What waits in it is what the output buffer has, too, so that it takes no memory of its own: who falls further behind
//! than that has its queue emptied at once, read or not. A client that was given room may have so much more waiting.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use holdpoint_common::api::ClientEnd;
use holdpoint_common::{Event, Limits};
use tokio::sync::Notify;

/// Bytes of events that are taken at once, or one event more: what was taken may have left the output buffer.
pub(crate) const TAKEN: usize = 64 * 1024;

/// The end of a queue that the actor has. When it is dropped, what waits is given, and then the stream ends.
pub(super) struct Sender {
    shared: Arc<Shared>,
    most_events: usize,
    most_bytes: usize,
}

/// The end that the client reads.
pub(super) struct Receiver(Arc<Shared>);

/// What the two ends share: one session's actor and one of its clients, each for a moment.
struct Shared {
    queue: Mutex<Queue>,
    news: Notify,
}

struct Queue {
    waiting: VecDeque<Arc<Event>>,
    bytes: usize,
    /// The last event that was taken out.
    given: u64,
    end: Option<ClientEnd>,
}

/// An empty queue of a client that is given everything up to the event of number `given`, and may have `room` bytes
/// waiting, or as much as the output buffer keeps.
pub(super) fn queue(given: u64, room: Option<usize>, limits: &Limits) -> (Sender, Receiver) {
    let queue = Queue { waiting: VecDeque::new(), bytes: 0, given, end: None };
    let shared = Arc::new(Shared { queue: Mutex::new(queue), news: Notify::new() });
    let (most_events, most_bytes) = match room {
        Some(bytes) => (usize::MAX, bytes),
        None => (limits.buffered_events.max(1), limits.buffered_bytes),
    };
    (Sender { shared: Arc::clone(&shared), most_events, most_bytes }, Receiver(shared))
}

impl Shared {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        // What is behind this lock is whole after every statement.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the stream, unless something has ended it already.
    fn end(&self, end: ClientEnd) {
        self.queue().end(end);
        self.news.notify_one();
    }
}

impl Queue {
    fn end(&mut self, end: ClientEnd) {
        if self.end.is_none() {
            self.end = Some(end);
            if end != ClientEnd::Ended {
                self.waiting = VecDeque::new();
            }
        }
    }

    /// Takes the oldest event out, with its weight.
    fn take(&mut self) -> Option<(Arc<Event>, usize)> {
        let event = self.waiting.pop_front()?;
        let weight = event.weight();
        self.bytes -= weight;
        self.given = event.seq;
        Some((event, weight))
    }
}

impl Sender {
    /// Puts an event of this weight in. If that is more than may wait, the stream ends here: the number to come back
    /// with. One event may wait however large it is.
    pub(super) fn send(&self, event: &Arc<Event>, weight: usize) -> Result<(), u64> {
        let mut queue = self.shared.queue();
        if queue.end.is_some() {
            // The client is gone: the actor is about to hear of it.
            return Ok(());
        }
        let full = queue.waiting.len() >= self.most_events || queue.bytes + weight > self.most_bytes;
        if full && !queue.waiting.is_empty() {
            let after = queue.given;
            queue.end(ClientEnd::Lagged { after });
            drop(queue);
            self.shared.news.notify_one();
            return Err(after);
        }
        queue.bytes += weight;
        queue.waiting.push_back(Arc::clone(event));
        drop(queue);
        self.shared.news.notify_one();
        Ok(())
    }

    /// Nothing more is given.
    pub(super) fn detach(&self) {
        self.shared.end(ClientEnd::Detached);
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        self.shared.end(ClientEnd::Ended);
    }
}

impl Receiver {
    /// The next event; `None` when the stream has ended.
    pub(super) async fn next(&mut self) -> Option<Arc<Event>> {
        self.wait(|queue| queue.take().map(|(event, _)| event)).await
    }

    /// Moves what has come into `batch`, waiting for the first: at most `most`, and hardly more than [`TAKEN`] bytes.
    /// Nothing: the stream has ended.
    pub(super) async fn next_batch(&mut self, batch: &mut Vec<Arc<Event>>, most: usize) {
        let take = |queue: &mut Queue| {
            let mut bytes = 0;
            for _ in 0..most {
                let Some((event, weight)) = queue.take() else { break };
                bytes += weight;
                batch.push(event);
                if bytes > TAKEN {
                    break;
                }
            }
            (bytes > 0 || most == 0).then_some(())
        };
        self.wait(take).await;
    }

    /// Waits until there is something to take; `None` when the stream has ended. Dropped half-way, nothing is lost.
    async fn wait<T>(&mut self, mut take: impl FnMut(&mut Queue) -> Option<T>) -> Option<T> {
        loop {
            {
                let mut queue = self.0.queue();
                if let Some(taken) = take(&mut queue) {
                    return Some(taken);
                }
                if queue.end.is_some() {
                    return None;
                }
            }
            // One that came in between has left its word.
            self.0.news.notified().await;
        }
    }

    /// Why the stream ended.
    pub(super) fn end(&self) -> ClientEnd {
        self.0.queue().end.unwrap_or(ClientEnd::Ended)
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.0.end(ClientEnd::Detached);
    }
}
