//! Delivers a session's events to a JavaScript callback: in order, in batches, as fast as the
//! callback takes them.
//!
//! One batch is in flight at a time. Meanwhile, events wait here and in the attachment. If more
//! events come than may wait, the session ends the stream, and the stream is reopened where it
//! ended. Facts are never lost; an item whose pieces have left the buffer comes as an `itemSoFar`.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, OptionFuture, pending};
use holdpoint_common::api::ClientEnd;
use holdpoint_common::{Event, Fact, SessionFact};
use holdpoint_session::{AttachFrom, Attachment, SessionError, SessionHandle};
use serde::Serialize;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;

use crate::batch::{Batch, BatchQueue, MAX_WAITING_BYTES};

/// Maximum number of events taken from the session at once.
const MAX_READ_EVENTS: usize = 1_024;
/// Maximum number of times that a stream is reopened without a new event.
const MAX_REOPENS: u32 = 5;

/// A delivery to JavaScript.
pub(crate) enum Delivery {
    Events(Batch),
    /// The end of the stream. It is the last delivery.
    End(StreamEnd),
}

/// Sends a delivery. The future resolves when JavaScript has taken it.
pub(crate) type Deliver =
    Box<dyn Fn(Delivery) -> BoxFuture<'static, Result<(), DeliveryError>> + Send>;

/// The reason why a delivery was not taken.
#[derive(Debug)]
pub(crate) enum DeliveryError {
    /// The JavaScript thread has ended, and takes no more deliveries.
    Gone,
    /// A bug in this package.
    Failed,
}

/// The end of a stream. Its TypeScript type is in `dts-header.d.ts`.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct StreamEnd {
    reason: Reason,
    /// Number up to which all events were delivered. Attaching after it continues there.
    after: u64,
}

#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "camelCase")]
enum Reason {
    Detached,
    Closed,
    /// The session's actor is gone.
    Ended,
    /// The daemon was stopped.
    Stopped,
    Disconnected,
    /// A bug in this package.
    Failed,
}

/// An attached callback or loop.
pub(crate) struct Attached {
    /// Whether this is a loop. It takes the next batch when it continues, and its code may wait for
    /// this attachment, so the attachment must not wait for the loop.
    is_loop: bool,
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
    delivered: watch::Receiver<u64>,
}

impl Attached {
    /// Waits until the event with this number is delivered, or the stream has ended. Does not wait
    /// for a loop.
    pub(crate) fn wait_delivered(&self, seq: u64) -> impl Future<Output = ()> + use<> {
        let mut delivered = (!self.is_loop).then(|| self.delivered.clone());
        async move {
            if let Some(delivered) = &mut delivered {
                // An error means that the stream has ended.
                let _ = delivered.wait_for(|delivered| *delivered >= seq).await;
            }
        }
    }

    /// Detaches: after the batch in flight, no batch is sent. The returned future resolves when the
    /// last delivery is over.
    pub(crate) fn detach(self) -> impl Future<Output = ()> {
        // The stream may have ended by itself.
        let _ = self.stop.send(());
        self.task.map(|ended| {
            if let Err(error) = ended {
                tracing::error!(%error, "a stream of events failed");
            }
        })
    }
}

/// The attachment of a reopened stream, and how often the stream was reopened without an event.
struct Reopened {
    attachment: Attachment,
    reopens: u32,
}

/// The stream of a session's events to one callback.
pub(crate) struct Stream {
    session: SessionHandle,
    attachment: Attachment,
    waiting: BatchQueue,
    deliver: Deliver,
    /// Number of the last event taken from the session. A reopened stream continues after it.
    last_taken: u64,
    /// Whether events from before the attach are still to come.
    has_past: bool,
    /// Number up to which the past is complete: at first the number after which the stream starts,
    /// and the snapshot's number once all past events were taken. There may be no event with this
    /// number.
    past_end: u64,
    /// Number up to which all events were delivered.
    delivered: watch::Sender<u64>,
    /// Number of times that the stream was reopened since the last event.
    reopens: u32,
    /// The next attachment, while the stream is reopened.
    reopening: Option<BoxFuture<'static, Result<Reopened, Reason>>>,
    /// Whether the last fact taken closed the session.
    closed: bool,
}

impl Stream {
    pub(crate) fn new(
        session: SessionHandle,
        attachment: Attachment,
        from: AttachFrom,
        deliver: Deliver,
    ) -> Self {
        let snapshot = attachment.snapshot();
        let waiting = BatchQueue::after(snapshot);
        // With a limit, the skipped part of the past stays skipped when the stream is reopened.
        let taken = if from.limit.is_some() { snapshot.seq.max(from.after) } else { from.after };
        Self {
            session,
            attachment,
            waiting,
            deliver,
            last_taken: taken,
            has_past: true,
            past_end: from.after,
            delivered: watch::Sender::new(from.after),
            reopens: 0,
            reopening: None,
            closed: false,
        }
    }

    /// Starts the stream when the sender of `begins` is dropped. `on_end` is called after the last
    /// delivery. A loop's code may itself wait for `on_end`, so the end is sent to a loop without
    /// waiting until it is taken.
    pub(crate) fn start(
        mut self,
        begins: oneshot::Receiver<()>,
        is_loop: bool,
        on_end: impl FnOnce() + Send + 'static,
    ) -> Attached {
        let (stop, stopped) = oneshot::channel();
        let delivered = self.delivered.subscribe();
        let task = tokio::spawn(async move {
            // The sender never sends; it is only dropped.
            let _ = begins.await;
            let reason = match AssertUnwindSafe(self.run(stopped, is_loop)).catch_unwind().await {
                Ok(Ok(reason)) => Some(reason),
                Ok(Err(DeliveryError::Gone)) => None,
                Ok(Err(DeliveryError::Failed)) | Err(_) => Some(Reason::Failed),
            };
            // Ends an attach in progress.
            self.reopening = None;
            let Self { attachment, deliver, delivered, .. } = self;
            attachment.detach().await;
            if let Some(reason) = reason {
                let delivery =
                    deliver(Delivery::End(StreamEnd { reason, after: *delivered.borrow() }));
                if is_loop {
                    tokio::spawn(delivery);
                } else {
                    // If the JavaScript thread is gone, the end need not be taken.
                    let _ = delivery.await;
                }
            }
            on_end();
        });
        Attached { is_loop, stop, task, delivered }
    }

    /// Delivers events until the stream ends, and returns the reason.
    async fn run(
        &mut self,
        stopped: oneshot::Receiver<()>,
        is_loop: bool,
    ) -> Result<Reason, DeliveryError> {
        // Dropping the `Attached` does not detach.
        let stopped = async {
            if stopped.await.is_err() {
                pending().await
            }
        };
        tokio::pin!(stopped);
        let mut end_reason = None;
        let mut events = Vec::new();
        let mut in_flight: OptionFuture<BoxFuture<'static, Result<u64, DeliveryError>>> =
            None.into();
        let mut is_in_flight = false;
        loop {
            if !is_in_flight {
                match self.waiting.pop() {
                    Some(batch) => {
                        let last = batch.last;
                        let delivery = (self.deliver)(Delivery::Events(batch));
                        in_flight =
                            Some(delivery.map(move |result| result.map(|()| last)).boxed()).into();
                        is_in_flight = true;
                    }
                    None => {
                        self.mark_delivered(self.past_end);
                        if let Some(reason) = end_reason {
                            return Ok(reason);
                        }
                    }
                }
            }
            let can_take = end_reason.is_none() && self.waiting.has_room();
            tokio::select! {
                biased;
                () = &mut stopped => {
                    // A loop takes the batch when it continues, which may depend on this detach.
                    if is_in_flight && !is_loop && let Some(delivered) = in_flight.await {
                        self.mark_delivered(delivered?);
                    }
                    return Ok(Reason::Detached);
                }
                Some(delivered) = &mut in_flight, if is_in_flight => {
                    self.mark_delivered(delivered?);
                    is_in_flight = false;
                }
                taken = self.take(&mut events), if can_take => {
                    for event in events.drain(..) {
                        self.last_taken = event.seq;
                        // A delta may follow the last fact.
                        if let Some(fact) = event.fact() {
                            self.closed = matches!(fact, Fact::Session(SessionFact::Closed { .. }));
                        }
                        if let Err(error) = self.waiting.push(&event) {
                            tracing::error!(?error, seq = event.seq, "an event could not be serialised");
                            end_reason = Some(Reason::Failed);
                            break;
                        }
                    }
                    match taken {
                        Ok(0) if self.has_past => self.end_past(),
                        Ok(0) => match self.reopen() {
                            Ok(reopening) => self.reopening = Some(reopening),
                            Err(reason) => end_reason = Some(reason),
                        },
                        Ok(_) => self.reopens = 0,
                        Err(reason) => end_reason = Some(reason),
                    }
                }
            }
        }
    }

    /// Takes past events first, then new ones. Returns how many; 0 at the end of the past or of the
    /// attachment. Waits for the next attachment first while the stream is being reopened.
    async fn take(&mut self, events: &mut Vec<Arc<Event>>) -> Result<usize, Reason> {
        if let Some(reopening) = &mut self.reopening {
            let reopened = reopening.await;
            self.reopening = None;
            Reopened { attachment: self.attachment, reopens: self.reopens } = reopened?;
            self.has_past = true;
        }
        Ok(match self.has_past {
            true => self.attachment.next_past(events, MAX_READ_EVENTS).await,
            false => self.attachment.next_batch(events, MAX_READ_EVENTS).await,
        })
    }

    /// Handles the end of the past. If the stream broke, part of the past is still missing.
    fn end_past(&mut self) {
        self.has_past = false;
        match self.attachment.end() {
            ClientEnd::Lagged { .. }
            | ClientEnd::Moved { .. }
            | ClientEnd::Disconnected { .. }
            | ClientEnd::Stopped => {}
            ClientEnd::Ended | ClientEnd::Detached => {
                self.past_end = self.attachment.snapshot().seq
            }
        }
    }

    /// Records that all events up to this number were delivered.
    fn mark_delivered(&self, seq: u64) {
        self.delivered.send_if_modified(|delivered| {
            let further = *delivered < seq;
            *delivered = seq.max(*delivered);
            further
        });
    }

    /// Starts to reopen a stream that the session has ended, unless the session does not continue.
    fn reopen(&self) -> Result<BoxFuture<'static, Result<Reopened, Reason>>, Reason> {
        let reason = match self.attachment.end() {
            _ if self.closed => return Err(Reason::Closed),
            ClientEnd::Stopped => return Err(Reason::Stopped),
            ClientEnd::Disconnected { .. } => Reason::Disconnected,
            // The actor failed and is rebuilt, or the callback was too slow.
            ClientEnd::Ended
            | ClientEnd::Lagged { .. }
            | ClientEnd::Moved { .. }
            | ClientEnd::Detached => Reason::Ended,
        };
        let Self { last_taken: after, mut reopens, .. } = *self;
        let session = self.session.clone();
        let reopening = async move {
            while reopens < MAX_REOPENS {
                reopens += 1;
                match session.attach(AttachFrom::after(after).with_room(MAX_WAITING_BYTES)).await {
                    Ok(attachment) => return Ok(Reopened { attachment, reopens }),
                    // The next actor has failed as well.
                    Err(SessionError::Gone { .. }) => {}
                    Err(error) => {
                        tracing::debug!(%error, after, "a stream of events could not be reopened");
                        break;
                    }
                }
            }
            Err(reason)
        };
        Ok(reopening.boxed())
    }
}
