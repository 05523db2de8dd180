//! What an attached client holds: the stream of a session's events.

use std::collections::VecDeque;
use std::sync::Arc;

use holdpoint_common::api::{Answered, ClientEnd};
use holdpoint_common::{Answer, AnswerError, Ask, Event, Fact, Snapshot};

use crate::attach_from::AttachFrom;
use crate::error::SessionError;
use crate::handle::{SessionHandle, Way};
use crate::local::LocalAttachment;
#[cfg(feature = "remote")]
use crate::remote::RemoteAttachment;

/// A client's end of a session: its snapshot at the moment of attaching, then its events.
///
/// Numbers rise strictly. Dropping it detaches: nothing is answered or interrupted by that.
pub struct Attachment {
    session: SessionHandle,
    stream: Stream,
    /// The open asks, as far as this client has been given the events.
    asks: VecDeque<Ask>,
}

enum Stream {
    Local(LocalAttachment),
    #[cfg(feature = "remote")]
    Remote(RemoteAttachment),
}

impl SessionHandle {
    /// Begins to receive its events: the past as `from` says, then live.
    ///
    /// # Errors
    /// [`SessionError::TooManyClients`] if there is no room; [`SessionError::UnknownEvent`] if the session has not come to
    /// the number to go on from.
    pub async fn attach(&self, from: AttachFrom) -> Result<Attachment, SessionError> {
        match self.way() {
            Way::Local(session) => Ok(Attachment::of(self, Stream::Local(session.attach(from).await?))),
            #[cfg(feature = "remote")]
            Way::Remote(session) => Ok(Attachment::of(self, Stream::Remote(session.attach(from).await?))),
        }
    }
}

impl Attachment {
    fn of(session: &SessionHandle, stream: Stream) -> Self {
        let asks = stream.snapshot().asks.iter().cloned().collect();
        Self { session: session.clone(), asks, stream }
    }

    /// The session as it was at the moment of attaching.
    #[must_use]
    pub fn snapshot(&self) -> &Arc<Snapshot> {
        self.stream.snapshot()
    }

    /// The next event; `None` when the stream has ended, [`end`](Self::end) says why.
    pub async fn next(&mut self) -> Option<Arc<Event>> {
        let event = match &mut self.stream {
            Stream::Local(stream) => stream.next().await?,
            #[cfg(feature = "remote")]
            Stream::Remote(stream) => stream.next().await?,
        };
        self.note(&event);
        Some(event)
    }

    /// Moves events that have come into `batch`, at most `most`, waiting for the first. Returns how many; 0
    /// when the stream has ended.
    pub async fn next_batch(&mut self, batch: &mut Vec<Arc<Event>>, most: usize) -> usize {
        let from = batch.len();
        match &mut self.stream {
            Stream::Local(stream) => stream.next_batch(batch, most).await,
            #[cfg(feature = "remote")]
            Stream::Remote(stream) => stream.next_batch(batch, most).await,
        }
        for event in batch.iter().skip(from) {
            self.note(event);
        }
        batch.len() - from
    }

    /// As [`next_batch`](Self::next_batch), for what had happened before it attached: 0, too, when all of that was given.
    pub async fn next_past(&mut self, batch: &mut Vec<Arc<Event>>, most: usize) -> usize {
        let has_past = match &mut self.stream {
            Stream::Local(stream) => stream.has_past(),
            #[cfg(feature = "remote")]
            Stream::Remote(stream) => stream.has_past().await,
        };
        if has_past { self.next_batch(batch, most).await } else { 0 }
    }

    /// Why the stream has ended.
    #[must_use]
    pub fn end(&self) -> ClientEnd {
        match &self.stream {
            Stream::Local(stream) => stream.end(),
            #[cfg(feature = "remote")]
            Stream::Remote(stream) => stream.end(),
        }
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
        match self.stream {
            Stream::Local(stream) => stream.detach().await,
            // Dropping it closes its connection, and that detaches.
            #[cfg(feature = "remote")]
            Stream::Remote(_) => {}
        }
    }

    /// Follows which asks are open. The snapshot has those raised up to its number.
    fn note(&mut self, event: &Event) {
        if event.seq <= self.snapshot().seq {
            return;
        }
        match event.fact() {
            Some(Fact::AskRaised { ask }) => self.asks.push_back(ask.clone()),
            Some(Fact::AskAnswered { ask: id, .. } | Fact::AskClosed { ask: id, .. }) => {
                self.asks.retain(|ask| ask.id != *id);
            }
            _ => {}
        }
    }
}

impl Stream {
    fn snapshot(&self) -> &Arc<Snapshot> {
        match self {
            Self::Local(stream) => stream.snapshot(),
            #[cfg(feature = "remote")]
            Self::Remote(stream) => stream.snapshot(),
        }
    }
}
