//! The stream of a session's events, of a daemon.

use std::collections::VecDeque;
use std::sync::Arc;

use holdpoint_common::api::{ClientEnd, EventsQuery};
use holdpoint_common::{Event, Snapshot};
use tokio::sync::watch;

use super::RemoteSession;
use super::connection::failed;
use super::session::publish;
use super::sse::{Frame, Frames};
use crate::attach_from::AttachFrom;
use crate::error::SessionError;

/// A client's end of a session of a daemon.
pub(crate) struct RemoteAttachment {
    frames: Frames,
    snapshot: Arc<Snapshot>,
    /// What the session publishes, as far as it has come.
    shown: watch::Sender<Arc<Snapshot>>,
    ready: VecDeque<Arc<Event>>,
    /// The last event that came.
    after: u64,
    /// All that had happened before it attached has come.
    live: bool,
    end: Option<ClientEnd>,
}

impl RemoteSession {
    pub(crate) async fn attach(&self, from: AttachFrom) -> Result<RemoteAttachment, SessionError> {
        let mut frames = Frames::new(self.stream(&path(from)).await?);
        let first = frames.next().await.map_err(failed)?;
        let snapshot: Arc<Snapshot> = match first {
            Some(Frame { event: "snapshot", data }) => read(data)?,
            _ => return Err(disconnected("the stream of events does not begin with a snapshot")),
        };
        let shown = self.publisher().clone();
        publish(&shown, Arc::clone(&snapshot));
        Ok(RemoteAttachment {
            frames,
            snapshot,
            shown,
            ready: VecDeque::new(),
            after: from.after,
            live: false,
            end: None,
        })
    }
}

/// The path of a stream that begins there.
fn path(from: AttachFrom) -> String {
    let query = EventsQuery { after: Some(from.after), limit: from.limit, snapshots: true };
    let mut path = format!("events?snapshots={}&after={}", query.snapshots, from.after);
    if let Some(limit) = query.limit {
        path.push_str(&format!("&limit={limit}"));
    }
    path
}

impl RemoteAttachment {
    pub(crate) fn snapshot(&self) -> &Arc<Snapshot> {
        &self.snapshot
    }

    pub(crate) async fn next(&mut self) -> Option<Arc<Event>> {
        self.fill().await;
        self.ready.pop_front()
    }

    pub(crate) async fn next_batch(&mut self, batch: &mut Vec<Arc<Event>>, most: usize) {
        self.fill().await;
        batch.extend(self.ready.drain(..most.min(self.ready.len())));
    }

    pub(crate) fn end(&self) -> ClientEnd {
        self.end.unwrap_or(ClientEnd::Detached)
    }

    /// Whether some of what had happened before it attached is still to be given.
    pub(crate) async fn has_past(&mut self) -> bool {
        while self.ready.is_empty() && !self.live && self.end.is_none() {
            self.receive().await;
        }
        !self.ready.is_empty()
    }

    /// Waits until an event has come, or none will.
    async fn fill(&mut self) {
        while self.ready.is_empty() && self.end.is_none() {
            self.receive().await;
        }
    }

    /// Waits for a frame, and takes what came along with it.
    async fn receive(&mut self) {
        let taken = match self.frames.next().await {
            Ok(Some(frame)) => take(&frame, &self.shown),
            Ok(None) => Err(disconnected("it ended")),
            Err(error) => Err(failed(error)),
        };
        self.note(taken);
        while self.end.is_none()
            && let Some(frame) = self.frames.ready()
        {
            let taken = take(&frame, &self.shown);
            self.note(taken);
        }
    }

    fn note(&mut self, taken: Result<Taken, SessionError>) {
        match taken {
            Ok(Taken::Event(event)) => {
                self.after = event.seq;
                self.ready.push_back(event);
            }
            Ok(Taken::Nothing) => {}
            Ok(Taken::Live) => self.live = true,
            Ok(Taken::End(end)) => self.end = Some(end),
            Err(error) => {
                tracing::debug!(%error, after = self.after, "the stream of events broke");
                self.end = Some(ClientEnd::Disconnected { after: self.after });
            }
        }
    }
}

enum Taken {
    Event(Arc<Event>),
    Nothing,
    Live,
    End(ClientEnd),
}

fn take(frame: &Frame<'_>, shown: &watch::Sender<Arc<Snapshot>>) -> Result<Taken, SessionError> {
    Ok(match frame.event {
        "message" => Taken::Event(read(frame.data)?),
        "snapshot" => {
            publish(shown, read(frame.data)?);
            Taken::Nothing
        }
        "live" => Taken::Live,
        "end" => Taken::End(read(frame.data)?),
        // Of a later daemon.
        _ => Taken::Nothing,
    })
}

pub(super) fn read<T: serde::de::DeserializeOwned>(data: &[u8]) -> Result<T, SessionError> {
    serde_json::from_slice(data).map_err(|error| disconnected(&error))
}

fn disconnected(what: &(impl std::fmt::Display + ?Sized)) -> SessionError {
    SessionError::Disconnected { message: what.to_string() }
}
