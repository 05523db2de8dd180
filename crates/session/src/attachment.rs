//! Attachments, the event streams of attached clients.

use std::collections::VecDeque;
use std::sync::Arc;

use holdpoint_common::api::{Answered, ClientEnd};
use holdpoint_common::{Answer, AnswerError, Ask, AskFact, Event, Fact, SessionError, Snapshot};

use crate::attach_from::AttachFrom;
use crate::backend::{EventsBackend, SessionBackend, with_backend};
use crate::handle::{AnySession, SessionHandle};
use crate::local::LocalAttachment;
#[cfg(feature = "remote")]
use crate::remote::RemoteAttachment;

/// A client's stream of a session's events, with the snapshot at the moment of attaching.
///
/// The numbers of the events rise strictly. Dropping the attachment detaches the client, which has
/// no other effect on the session.
pub struct Attachment {
    session: SessionHandle,
    stream: AnyEvents,
    /// The open asks, according to the events that this client has received.
    asks: VecDeque<Ask>,
}

enum AnyEvents {
    Local(LocalAttachment),
    #[cfg(feature = "remote")]
    Remote(RemoteAttachment),
}

impl SessionHandle {
    /// Attaches a client. It receives the past events that `from` selects, then the live ones.
    ///
    /// # Errors
    /// [`SessionError::TooManyClients`] if the limit is reached; [`SessionError::UnknownEvent`] if
    /// the session has no event with the number to continue from.
    pub async fn attach(&self, from: AttachFrom) -> Result<Attachment, SessionError> {
        let stream = match self.backend() {
            AnySession::Local(session) => AnyEvents::Local(session.attach(from).await?),
            #[cfg(feature = "remote")]
            AnySession::Remote(session) => AnyEvents::Remote(session.attach(from).await?),
        };
        let asks = stream.snapshot().asks.iter().cloned().collect();
        Ok(Attachment { session: self.clone(), asks, stream })
    }
}

impl Attachment {
    /// The snapshot at the moment of attaching.
    #[must_use]
    pub fn snapshot(&self) -> &Arc<Snapshot> {
        self.stream.snapshot()
    }

    /// The next event; `None` when the stream has ended, for the reason that [`end`](Self::end)
    /// returns.
    pub async fn next(&mut self) -> Option<Arc<Event>> {
        let event = with_backend!(AnyEvents, &mut self.stream, stream => stream.next().await?);
        self.update_asks(&event);
        Some(event)
    }

    /// Moves available events into `batch`, at most `max`, and waits for the first. Returns their
    /// number; 0 when the stream has ended.
    pub async fn next_batch(&mut self, batch: &mut Vec<Arc<Event>>, max: usize) -> usize {
        let start = batch.len();
        with_backend!(AnyEvents, &mut self.stream, stream => stream.next_batch(batch, max).await);
        for event in batch.iter().skip(start) {
            self.update_asks(event);
        }
        batch.len() - start
    }

    /// Like [`next_batch`](Self::next_batch), but only for events from before the attach. Also
    /// returns 0 when all of these were delivered.
    pub async fn next_past(&mut self, batch: &mut Vec<Arc<Event>>, max: usize) -> usize {
        let has_past =
            with_backend!(AnyEvents, &mut self.stream, stream => stream.has_past().await);
        if has_past { self.next_batch(batch, max).await } else { 0 }
    }

    /// The reason why the stream has ended.
    #[must_use]
    pub fn end(&self) -> ClientEnd {
        with_backend!(AnyEvents, &self.stream, stream => stream.end())
    }

    /// The ask that this client shows: the oldest open one, according to the events it has
    /// received.
    #[must_use]
    pub fn shown(&self) -> Option<&Ask> {
        self.asks.front()
    }

    /// How many more asks are open behind the shown one.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.asks.len().saturating_sub(1)
    }

    /// Answers the ask that this client shows, never one that it has not seen yet.
    ///
    /// # Errors
    /// [`AnswerError::NothingShown`] if no ask is shown, and the errors of
    /// [`SessionHandle::answer`].
    pub async fn answer(&self, answer: Answer) -> Result<Answered, SessionError> {
        let shown = self.shown().ok_or(AnswerError::NothingShown)?;
        self.session.answer(&shown.id.clone(), answer).await
    }

    /// Detaches, and returns when the session has handled it. The session continues as before.
    pub async fn detach(self) {
        with_backend!(AnyEvents, self.stream, stream => stream.detach().await);
    }

    /// Updates the open asks with an event. The snapshot includes the events up to its own number.
    fn update_asks(&mut self, event: &Event) {
        if event.seq <= self.snapshot().seq {
            return;
        }
        match event.fact() {
            Some(Fact::Ask(AskFact::Raised { ask })) => self.asks.push_back(ask.clone()),
            Some(Fact::Ask(
                AskFact::Answered { ask: id, .. } | AskFact::Closed { ask: id, .. },
            )) => {
                self.asks.retain(|ask| ask.id != *id);
            }
            _ => {}
        }
    }
}

impl AnyEvents {
    fn snapshot(&self) -> &Arc<Snapshot> {
        with_backend!(AnyEvents, self, stream => stream.snapshot())
    }
}
