//! One session of a daemon.

use std::sync::Arc;

use holdpoint_common::api::TurnEnd;
use holdpoint_common::{SessionError, SessionId, Snapshot, TurnId};
use tokio::sync::watch;

use super::RemoteAttachment;
use super::connection::Connection;
use super::http::Response;
use crate::attach_from::AttachFrom;
use crate::backend::{EventsBackend, SessionBackend, SessionVerb, WhenUnloaded};

/// One session of a daemon.
#[derive(Clone)]
pub(crate) struct RemoteSession {
    connection: Connection,
    when_unloaded: WhenUnloaded,
    id: SessionId,
    publisher: watch::Sender<Arc<Snapshot>>,
    shown: watch::Receiver<Arc<Snapshot>>,
}

impl RemoteSession {
    pub(super) fn new(
        connection: Connection,
        when_unloaded: WhenUnloaded,
        snapshot: Arc<Snapshot>,
    ) -> Self {
        let id = snapshot.settings.id.clone();
        let (publisher, shown) = watch::channel(snapshot);
        Self { connection, when_unloaded, id, publisher, shown }
    }

    pub(super) fn publisher(&self) -> &watch::Sender<Arc<Snapshot>> {
        &self.publisher
    }

    /// Requests a stream of the session.
    pub(super) async fn stream(&self, path: &str) -> Result<Response, SessionError> {
        let path = self.path(path);
        self.open_if_needed(|| self.connection.stream(&path)).await
    }

    /// Sends a request. If the session is not live and may be opened, opens it and sends the
    /// request again, because it had no effect the first time.
    async fn open_if_needed<T, F>(&self, send: impl Fn() -> F) -> Result<T, SessionError>
    where
        F: Future<Output = Result<T, SessionError>>,
    {
        match send().await {
            Err(SessionError::NotLive { .. }) if self.when_unloaded == WhenUnloaded::Open => {
                self.open().await?;
                send().await
            }
            result => result,
        }
    }

    async fn open(&self) -> Result<(), SessionError> {
        let supplies = Arc::clone(&self.connection.supplies);
        let snapshot: Arc<Snapshot> = self.connection.post(&self.path("open"), &*supplies).await?;
        publish(&self.publisher, snapshot);
        Ok(())
    }

    fn path(&self, path: &str) -> String {
        format!("/v1/sessions/{}/{path}", self.id)
    }
}

impl SessionBackend for RemoteSession {
    type Events = RemoteAttachment;

    fn id(&self) -> &SessionId {
        &self.id
    }

    /// The newest snapshots that this handle or its attachments have received.
    fn shown(&self) -> watch::Receiver<Arc<Snapshot>> {
        self.shown.clone()
    }

    async fn refresh(&self) -> Result<(), SessionError> {
        let snapshot = self.connection.get(&format!("/v1/sessions/{}", self.id)).await?;
        publish(&self.publisher, snapshot);
        Ok(())
    }

    async fn wait_for(
        &self,
        predicate: impl Fn(&Snapshot) -> bool + Send + Sync,
    ) -> Result<Arc<Snapshot>, SessionError> {
        let matching = || Some(self.shown.borrow().clone()).filter(|snapshot| predicate(snapshot));
        // Read first, because a closed session can't be attached to.
        self.refresh().await?;
        loop {
            if let Some(snapshot) = matching() {
                return Ok(snapshot);
            }
            let mut events = match self.attach(AttachFrom::now()).await {
                Ok(events) => events,
                Err(error) => {
                    // The session was closed in the meantime.
                    self.refresh().await?;
                    return matching().ok_or(error);
                }
            };
            // Before each event, the stream delivers a snapshot that includes its change.
            while matching().is_none() && events.next().await.is_some() {}
        }
    }

    async fn act<V: SessionVerb>(&self, mut verb: V) -> Result<V::Reply, SessionError> {
        verb.supply(&self.connection.supplies);
        let path = format!("/v1{}", verb.path(&self.id));
        self.open_if_needed(|| self.connection.post(&path, &verb)).await
    }

    async fn turn_end(&self, turn: TurnId) -> Result<Option<TurnEnd>, SessionError> {
        self.connection.get(&self.path(&format!("turns/{turn}"))).await
    }

    async fn attach(&self, from: AttachFrom) -> Result<RemoteAttachment, SessionError> {
        RemoteAttachment::open(self, from).await
    }
}

/// Publishes a snapshot, unless a newer one is published: attachments also publish, each at its own
/// pace.
pub(super) fn publish(shown: &watch::Sender<Arc<Snapshot>>, snapshot: Arc<Snapshot>) {
    shown.send_if_modified(|shown| {
        let replaces = shown.seq <= snapshot.seq;
        if replaces {
            *shown = snapshot;
        }
        replaces
    });
}
