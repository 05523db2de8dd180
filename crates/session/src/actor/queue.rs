//! A client's queue: the bounded buffer between the session's actor and one client.
//!
//! A queue shares its events with the output buffer and has the same bounds, so it takes no memory
//! of its own. A client that falls further behind loses its queue at once, even if it never reads
//! again. A client with room of its own may have that many bytes waiting instead.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use holdpoint_common::api::ClientEnd;
use holdpoint_common::{Event, Limits};
use tokio::sync::Notify;

/// How many bytes of events one read takes, plus at most one event. Taken events may have left the
/// output buffer, so they need a bound of their own.
pub(crate) const MAX_BATCH_BYTES: usize = 64 * 1024;

/// The actor's end of a queue. When it is dropped, the client still gets the waiting events, and
/// then the stream ends.
pub(super) struct Sender {
    shared: Arc<Shared>,
    max_events: usize,
    max_bytes: usize,
}

/// The client's end of a queue.
pub(super) struct Receiver(Arc<Shared>);

/// The queue that both ends share. Each locks it only for a moment.
struct Shared {
    queue: Mutex<Queue>,
    news: Notify,
}

struct Queue {
    waiting: VecDeque<Arc<Event>>,
    bytes: usize,
    /// The number of the last event that was taken.
    last_taken: u64,
    end: Option<ClientEnd>,
}

/// Creates the queue of a client that gets the events up to number `last_taken` elsewhere. The
/// queue holds `room` bytes, or as much as the output buffer keeps.
pub(super) fn queue(last_taken: u64, room: Option<usize>, limits: &Limits) -> (Sender, Receiver) {
    let queue = Queue { waiting: VecDeque::new(), bytes: 0, last_taken, end: None };
    let shared = Arc::new(Shared { queue: Mutex::new(queue), news: Notify::new() });
    let (max_events, max_bytes) = match room {
        Some(bytes) => (usize::MAX, bytes),
        None => (limits.buffered_events.max(1), limits.buffered_bytes),
    };
    (Sender { shared: Arc::clone(&shared), max_events, max_bytes }, Receiver(shared))
}

impl Shared {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        // Every statement leaves the queue consistent, so a poisoned lock can still be used.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the stream, if it has not ended yet.
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

    /// Removes the oldest event and returns it with its weight.
    fn take(&mut self) -> Option<(Arc<Event>, usize)> {
        let event = self.waiting.pop_front()?;
        let weight = event.weight();
        self.bytes -= weight;
        self.last_taken = event.seq;
        Some((event, weight))
    }
}

impl Sender {
    /// Queues an event of this weight. If the queue is full, the stream ends, and the error is the
    /// number from which the client can continue. A single event fits however large it is.
    pub(super) fn send(&self, event: &Arc<Event>, weight: usize) -> Result<(), u64> {
        let mut queue = self.shared.queue();
        if queue.end.is_some() {
            // The client is gone, and its detach is on the way to the actor.
            return Ok(());
        }
        let full = queue.waiting.len() >= self.max_events || queue.bytes + weight > self.max_bytes;
        if full && !queue.waiting.is_empty() {
            let after = queue.last_taken;
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

    /// Ends the stream without delivering the waiting events.
    pub(super) fn end(&self, end: ClientEnd) {
        self.shared.end(end);
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

    /// Moves queued events into `batch` and waits for the first: at most `max` events, and hardly
    /// more than [`MAX_BATCH_BYTES`] bytes. Adds no event when the stream has ended.
    pub(super) async fn next_batch(&mut self, batch: &mut Vec<Arc<Event>>, max: usize) {
        let take = |queue: &mut Queue| {
            let mut bytes = 0;
            for _ in 0..max {
                let Some((event, weight)) = queue.take() else { break };
                bytes += weight;
                batch.push(event);
                if bytes > MAX_BATCH_BYTES {
                    break;
                }
            }
            // No event weighs 0, so `bytes` is 0 only if none was taken.
            (bytes > 0 || max == 0).then_some(())
        };
        self.wait(take).await;
    }

    /// Waits until `take` returns a value; `None` when the stream has ended. A call that is dropped
    /// half-way loses no event.
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
            // An event that was queued since the check has left a permit, so this returns at once.
            self.0.news.notified().await;
        }
    }

    /// The reason why the stream ended.
    pub(super) fn end(&self) -> ClientEnd {
        self.0.queue().end.unwrap_or(ClientEnd::Ended)
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.0.end(ClientEnd::Detached);
    }
}
