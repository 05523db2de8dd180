//! The way of a session's events to a callback of JavaScript: in order, in batches, as fast as it takes them.
//!
//! A batch crosses when the one before was taken. What comes meanwhile waits here, and at the session, in the room that
//! we have there; if it is more than may wait, the session goes on without us, and we come back for the rest: facts are
//! never lost, and of items whose pieces are gone an `itemSoFar` says what they had come to.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, OptionFuture, pending};
use holdpoint_common::api::ClientEnd;
use holdpoint_common::{Event, Fact};
use holdpoint_session::{AttachFrom, Attachment, SessionError, SessionHandle};
use serde::Serialize;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;

use crate::batch::{Batch, WAITING, Waiting};

/// Events that are taken from the session at once.
const READ: usize = 1_024;
/// How often a stream that ends without an event is begun again.
const BREAKS: u32 = 5;

/// What crosses.
pub(crate) enum Delivery {
    Events(Batch),
    /// Nothing more will, and why.
    End(StreamEnd),
}

/// Takes a delivery across: done when it was taken.
pub(crate) type Deliver = Box<dyn Fn(Delivery) -> BoxFuture<'static, Result<(), Untaken>> + Send>;

/// Why a delivery was not taken.
#[derive(Debug)]
pub(crate) enum Untaken {
    /// The thread of JavaScript has ended: nobody takes anything any more.
    Gone,
    /// A fault of ours.
    Failed,
}

/// Why nothing more is delivered. Its type is written down in the header of the declarations.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct StreamEnd {
    reason: Reason,
    /// All up to this number was delivered: attaching after it continues there.
    after: u64,
}

#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "camelCase")]
enum Reason {
    /// It was detached.
    Detached,
    /// The session was closed.
    Closed,
    /// The session is gone.
    Ended,
    /// The daemon was told to stop.
    Stopped,
    /// The connection to the daemon broke.
    Disconnected,
    /// A fault of ours.
    Failed,
}

/// A callback that is attached.
pub(crate) struct Attached {
    /// It is a loop, which takes the next when it wants to, and may itself wait for what waits for it.
    is_loop: bool,
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
    delivered: watch::Receiver<u64>,
}

impl Attached {
    /// Waits until the event of this number was delivered, or nothing more is. Of a loop, not at all.
    pub(crate) fn reaches(&self, seq: u64) -> impl Future<Output = ()> + use<> {
        let mut delivered = (!self.is_loop).then(|| self.delivered.clone());
        async move {
            if let Some(delivered) = &mut delivered {
                // An error: the stream has ended.
                let _ = delivered.wait_for(|delivered| *delivered >= seq).await;
            }
        }
    }

    /// Detaches at once: no batch crosses after the one that does. What it gives is done when nothing more is delivered.
    pub(crate) fn detach(self) -> impl Future<Output = ()> {
        // It may have ended by itself.
        let _ = self.stop.send(());
        self.task.map(|ended| {
            if let Err(error) = ended {
                tracing::error!(%error, "a stream of events failed");
            }
        })
    }
}

/// A session's events on their way.
pub(crate) struct Stream {
    session: SessionHandle,
    attachment: Attachment,
    waiting: Waiting,
    deliver: Deliver,
    /// Where it goes on if it is begun again: after the last event that was taken from the session.
    taken: u64,
    /// What had happened before it attached is still coming.
    has_past: bool,
    /// Where that ended, when all of it was taken: a number that need not be of any event.
    past_end: u64,
    /// All up to this number was delivered.
    delivered: watch::Sender<u64>,
    /// Times it was begun again since an event came.
    breaks: u32,
    /// The session was closed, as far as events were taken.
    closed: bool,
}

impl Stream {
    pub(crate) fn new(session: SessionHandle, attachment: Attachment, from: AttachFrom, deliver: Deliver) -> Self {
        let snapshot = attachment.snapshot();
        let waiting = Waiting::after(snapshot);
        // Of a past that is wanted only in part, what was left out is not wanted when it is begun again either.
        let taken = if from.limit.is_some() { snapshot.seq.max(from.after) } else { from.after };
        Self {
            session,
            attachment,
            waiting,
            deliver,
            taken,
            has_past: true,
            past_end: from.after,
            delivered: watch::Sender::new(from.after),
            breaks: 0,
            closed: false,
        }
    }

    /// Begins once `begins` is closed. `ended` is called when nothing more is delivered, but to a loop, which may itself wait for that, its end.
    pub(crate) fn start(
        mut self,
        begins: oneshot::Receiver<()>,
        is_loop: bool,
        ended: impl FnOnce() + Send + 'static,
    ) -> Attached {
        let (stop, stopped) = oneshot::channel();
        let delivered = self.delivered.subscribe();
        let task = tokio::spawn(async move {
            // Nothing is ever sent.
            let _ = begins.await;
            let reason = match AssertUnwindSafe(self.run(stopped, is_loop)).catch_unwind().await {
                Ok(Ok(reason)) => Some(reason),
                Ok(Err(Untaken::Gone)) => None,
                Ok(Err(Untaken::Failed)) | Err(_) => Some(Reason::Failed),
            };
            let Self { attachment, deliver, delivered, .. } = self;
            attachment.detach().await;
            if let Some(reason) = reason {
                let taken = deliver(Delivery::End(StreamEnd { reason, after: *delivered.borrow() }));
                if is_loop {
                    tokio::spawn(taken);
                } else {
                    // If nobody is there any more, nobody misses it.
                    let _ = taken.await;
                }
            }
            ended();
        });
        Attached { is_loop, stop, task, delivered }
    }

    /// Delivers until it is over, and says why it is.
    async fn run(&mut self, stopped: oneshot::Receiver<()>, is_loop: bool) -> Result<Reason, Untaken> {
        // Whoever is forgotten does not detach by that.
        let stopped = async {
            if stopped.await.is_err() {
                pending().await
            }
        };
        tokio::pin!(stopped);
        let mut over = None;
        let mut events = Vec::new();
        let mut crossing: OptionFuture<BoxFuture<'static, Result<u64, Untaken>>> = None.into();
        let mut crosses = false;
        loop {
            if !crosses {
                match self.waiting.pop() {
                    Some(batch) => {
                        let last = batch.last;
                        let taken = (self.deliver)(Delivery::Events(batch));
                        crossing = Some(taken.map(move |taken| taken.map(|()| last)).boxed()).into();
                        crosses = true;
                    }
                    None => {
                        self.reached(self.past_end);
                        if let Some(reason) = over {
                            return Ok(reason);
                        }
                    }
                }
            }
            let takes = over.is_none() && self.waiting.has_room();
            tokio::select! {
                biased;
                () = &mut stopped => {
                    // A loop takes it when it goes on, and that may wait for this.
                    if crosses && !is_loop && let Some(crossed) = crossing.await {
                        self.reached(crossed?);
                    }
                    return Ok(Reason::Detached);
                }
                Some(crossed) = &mut crossing, if crosses => {
                    self.reached(crossed?);
                    crosses = false;
                }
                count = take(&mut self.attachment, self.has_past, &mut events), if takes => {
                    for event in events.drain(..) {
                        self.taken = event.seq;
                        // Its last fact may have a delta behind it.
                        if let Some(fact) = event.fact() {
                            self.closed = matches!(fact, Fact::SessionClosed { .. });
                        }
                        if let Err(error) = self.waiting.push(&event) {
                            tracing::error!(?error, seq = event.seq, "an event can't be told");
                            over = Some(Reason::Failed);
                            break;
                        }
                    }
                    match count {
                        0 if self.has_past => self.end_past(),
                        0 => over = self.begin_again().await.err(),
                        _ => self.breaks = 0,
                    }
                }
            }
        }
    }

    /// What had happened was taken; unless the stream broke before all of it had come.
    fn end_past(&mut self) {
        self.has_past = false;
        match self.attachment.end() {
            ClientEnd::Lagged { .. } | ClientEnd::Disconnected { .. } | ClientEnd::Stopped => {}
            ClientEnd::Ended | ClientEnd::Detached => self.past_end = self.attachment.snapshot().seq,
        }
    }

    /// All up to this number was delivered.
    fn reached(&self, seq: u64) {
        self.delivered.send_if_modified(|delivered| {
            let further = *delivered < seq;
            *delivered = seq.max(*delivered);
            further
        });
    }

    /// The session has ended the stream. Begins it again where it stopped, if it goes on.
    async fn begin_again(&mut self) -> Result<(), Reason> {
        let reason = match self.attachment.end() {
            _ if self.closed => return Err(Reason::Closed),
            ClientEnd::Stopped => return Err(Reason::Stopped),
            ClientEnd::Disconnected { .. } => Reason::Disconnected,
            // Its actor has failed, and is rebuilt; or the callback was too slow.
            ClientEnd::Ended | ClientEnd::Lagged { .. } | ClientEnd::Detached => Reason::Ended,
        };
        while self.breaks < BREAKS {
            self.breaks += 1;
            match self.session.attach(AttachFrom::after(self.taken).with_room(WAITING)).await {
                Ok(attachment) => {
                    self.attachment = attachment;
                    self.has_past = true;
                    return Ok(());
                }
                // The next one has failed, too.
                Err(SessionError::Gone { .. }) => {}
                Err(error) => {
                    tracing::debug!(%error, after = self.taken, "a stream of events can't be begun again");
                    break;
                }
            }
        }
        Err(reason)
    }
}

/// Takes what had happened, if any of it is still to come, or else what happens. How much: 0 if there is no more of it.
async fn take(attachment: &mut Attachment, has_past: bool, events: &mut Vec<Arc<Event>>) -> usize {
    match has_past {
        true => attachment.next_past(events, READ).await,
        false => attachment.next_batch(events, READ).await,
    }
}
