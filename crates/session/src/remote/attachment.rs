//! The event stream of a daemon's session.

use std::collections::VecDeque;
use std::sync::Arc;

use holdpoint_common::api::{ClientEnd, EventsQuery};
use holdpoint_common::{Event, SessionError, Snapshot};
use tokio::sync::watch;

use super::RemoteSession;
use super::connection::http_error;
use super::session::publish;
use super::sse::{Frame, Frames};
use crate::attach_from::AttachFrom;
use crate::backend::EventsBackend;

/// A client's stream of a daemon's session.
pub(crate) struct RemoteAttachment {
    frames: Frames,
    snapshot: Arc<Snapshot>,
    /// The publisher of the session's newest received snapshot.
    shown: watch::Sender<Arc<Snapshot>>,
    ready: VecDeque<Arc<Event>>,
    /// The number of the last received event.
    after: u64,
    /// Whether all events from before the attach have arrived.
    has_caught_up: bool,
    end: Option<ClientEnd>,
}

/// The path of the event stream that starts at `from`.
fn events_path(from: AttachFrom) -> String {
    let query = EventsQuery { after: Some(from.after), limit: from.limit, snapshots: true };
    let mut path = format!("events?snapshots={}&after={}", query.snapshots, from.after);
    if let Some(limit) = query.limit {
        path.push_str(&format!("&limit={limit}"));
    }
    path
}

impl RemoteAttachment {
    /// Attaches a client.
    pub(super) async fn open(
        session: &RemoteSession,
        from: AttachFrom,
    ) -> Result<Self, SessionError> {
        let mut frames = Frames::new(session.stream(&events_path(from)).await?);
        let first = frames.next().await.map_err(http_error)?;
        let snapshot: Arc<Snapshot> = match first {
            Some(Frame { event: "snapshot", data }) => read(data)?,
            _ => return Err(disconnected("the event stream does not begin with a snapshot")),
        };
        let shown = session.publisher().clone();
        publish(&shown, Arc::clone(&snapshot));
        Ok(Self {
            frames,
            snapshot,
            shown,
            ready: VecDeque::new(),
            after: from.after,
            has_caught_up: false,
            end: None,
        })
    }

    /// Waits until an event has arrived, or the stream has ended.
    async fn fill(&mut self) {
        while self.ready.is_empty() && self.end.is_none() {
            self.receive().await;
        }
    }

    /// Waits for a frame, and handles it and all others that have arrived with it.
    async fn receive(&mut self) {
        let effect = match self.frames.next().await {
            Ok(Some(frame)) => apply_frame(&frame, &self.shown),
            Ok(None) => Err(disconnected("the event stream ended")),
            Err(error) => Err(http_error(error)),
        };
        self.handle(effect);
        while self.end.is_none()
            && let Some(frame) = self.frames.ready()
        {
            let effect = apply_frame(&frame, &self.shown);
            self.handle(effect);
        }
    }

    fn handle(&mut self, effect: Result<FrameEffect, SessionError>) {
        match effect {
            Ok(FrameEffect::Event(event)) => {
                self.after = event.seq;
                self.ready.push_back(event);
            }
            Ok(FrameEffect::Nothing) => {}
            Ok(FrameEffect::CaughtUp) => self.has_caught_up = true,
            Ok(FrameEffect::End(end)) => self.end = Some(end),
            Err(error) => {
                tracing::debug!(%error, after = self.after, "event stream broke");
                self.end = Some(ClientEnd::Disconnected { after: self.after });
            }
        }
    }
}

impl EventsBackend for RemoteAttachment {
    fn snapshot(&self) -> &Arc<Snapshot> {
        &self.snapshot
    }

    async fn next(&mut self) -> Option<Arc<Event>> {
        self.fill().await;
        self.ready.pop_front()
    }

    async fn next_batch(&mut self, batch: &mut Vec<Arc<Event>>, max: usize) {
        self.fill().await;
        batch.extend(self.ready.drain(..max.min(self.ready.len())));
    }

    fn end(&self) -> ClientEnd {
        self.end.unwrap_or(ClientEnd::Detached)
    }

    async fn has_past(&mut self) -> bool {
        while self.ready.is_empty() && !self.has_caught_up && self.end.is_none() {
            self.receive().await;
        }
        !self.ready.is_empty()
    }

    // Dropping the stream closes its connection, which detaches the client.
    async fn detach(self) {}
}

enum FrameEffect {
    Event(Arc<Event>),
    Nothing,
    CaughtUp,
    End(ClientEnd),
}

fn apply_frame(
    frame: &Frame<'_>,
    shown: &watch::Sender<Arc<Snapshot>>,
) -> Result<FrameEffect, SessionError> {
    Ok(match frame.event {
        "message" => FrameEffect::Event(read(frame.data)?),
        "snapshot" => {
            publish(shown, read(frame.data)?);
            FrameEffect::Nothing
        }
        "live" => FrameEffect::CaughtUp,
        "end" => FrameEffect::End(read(frame.data)?),
        // An unknown event, from a newer daemon.
        _ => FrameEffect::Nothing,
    })
}

pub(super) fn read<T: serde::de::DeserializeOwned>(data: &[u8]) -> Result<T, SessionError> {
    serde_json::from_slice(data).map_err(|error| disconnected(&error))
}

fn disconnected(message: &(impl std::fmt::Display + ?Sized)) -> SessionError {
    SessionError::Disconnected { message: message.to_string() }
}
