//! One session of a daemon.

use std::sync::Arc;

use holdpoint_common::api::{
    Answered, ChangeModelRequest, CloseRequest, DebugRequest, InterruptReply, InterruptRequest, PromptRequest,
    Prompted, RenameRequest, RunRequest, RunStarted, ToggleRequest, TurnEnd,
};
use holdpoint_common::{Answer, AnswerError, AskId, Hold, HoldShown, SessionId, Snapshot, TurnId};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::watch;

use super::connection::Connection;
use super::http::Response;
use crate::actor::Interrupted;
use crate::attach_from::AttachFrom;
use crate::error::SessionError;
use crate::open::WhenUnloaded;

/// One session of a daemon.
#[derive(Clone)]
pub(crate) struct RemoteSession {
    connection: Connection,
    unloaded: WhenUnloaded,
    id: SessionId,
    publisher: watch::Sender<Arc<Snapshot>>,
    shown: watch::Receiver<Arc<Snapshot>>,
}

impl RemoteSession {
    pub(super) fn new(connection: Connection, unloaded: WhenUnloaded, snapshot: Arc<Snapshot>) -> Self {
        let id = snapshot.settings.id.clone();
        let (publisher, shown) = watch::channel(snapshot);
        Self { connection, unloaded, id, publisher, shown }
    }

    pub(crate) fn id(&self) -> &SessionId {
        &self.id
    }

    /// The newest snapshot that this handle or its attachments have received.
    pub(crate) fn shown(&self) -> &watch::Receiver<Arc<Snapshot>> {
        &self.shown
    }

    pub(super) fn publisher(&self) -> &watch::Sender<Arc<Snapshot>> {
        &self.publisher
    }

    /// Reads the session's snapshot again.
    pub(crate) async fn refresh(&self) -> Result<(), SessionError> {
        let snapshot = self.connection.get(&format!("/v1/sessions/{}", self.id)).await?;
        publish(&self.publisher, snapshot);
        Ok(())
    }

    pub(crate) async fn prompt(&self, text: String) -> Result<Prompted, SessionError> {
        self.post("prompts", &PromptRequest { text }).await
    }

    pub(crate) async fn start_run(&self, request: RunRequest) -> Result<RunStarted, SessionError> {
        self.post("run", &request).await
    }

    pub(crate) async fn answer(&self, ask: &AskId, answer: Answer) -> Result<Answered, SessionError> {
        // The daemon finds the ask of any session, but a handle answers only those of its own.
        if ask.session != self.id {
            return Err(SessionError::Answer(AnswerError::Unknown { ask: ask.clone() }));
        }
        let path = format!("/v1/asks/{ask}/answer");
        self.open_if_needed(|| self.connection.post(&path, &answer)).await
    }

    pub(crate) async fn interrupt(&self, turn: Option<TurnId>) -> Result<Interrupted, SessionError> {
        let InterruptReply { turn, run, .. } =
            self.post("interrupt", &InterruptRequest { turn, no_wait: true }).await?;
        Ok(match turn {
            Some(turn) => Interrupted::Interrupting(turn),
            None if run => Interrupted::RunEnded,
            None => Interrupted::NotRunning,
        })
    }

    pub(crate) async fn turn_end(&self, turn: TurnId) -> Result<Option<TurnEnd>, SessionError> {
        self.connection.get(&self.path(&format!("turns/{turn}"))).await
    }

    pub(crate) async fn hold(&self) -> Result<Hold, SessionError> {
        self.post("hold", &()).await
    }

    pub(crate) async fn release(&self) -> Result<Hold, SessionError> {
        self.post("release", &()).await
    }

    pub(crate) async fn toggle_hold(&self, shown: HoldShown) -> Result<Hold, SessionError> {
        self.post("toggle", &ToggleRequest { shown }).await
    }

    pub(crate) async fn rename(&self, name: String) -> Result<(), SessionError> {
        // A session that is only saved is not opened for this.
        self.connection.post(&self.path("rename"), &RenameRequest { name }).await
    }

    pub(crate) async fn change_model(&self, model: String) -> Result<(), SessionError> {
        let supplies = self.connection.supplies.models.clone();
        self.post("model", &ChangeModelRequest { model, supplies }).await
    }

    pub(crate) async fn change_debug(&self, enabled: bool) -> Result<(), SessionError> {
        self.post("debug", &DebugRequest { enabled }).await
    }

    pub(crate) async fn close(&self, unused_since: Option<u64>) -> Result<(), SessionError> {
        self.connection.post(&self.path("close"), &CloseRequest { unused_since }).await
    }

    /// Waits until the published snapshot matches `predicate`.
    pub(crate) async fn wait_for(&self, predicate: impl Fn(&Snapshot) -> bool) -> Result<Arc<Snapshot>, SessionError> {
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
            // Together with each event, the stream delivers the snapshot that it changed.
            while matching().is_none() && events.next().await.is_some() {}
        }
    }

    /// Requests a stream of the session.
    pub(super) async fn stream(&self, path: &str) -> Result<Response, SessionError> {
        let path = self.path(path);
        self.open_if_needed(|| self.connection.stream(&path)).await
    }

    /// Sends a request to the session.
    async fn post<T: DeserializeOwned>(&self, path: &str, body: &impl Serialize) -> Result<T, SessionError> {
        let path = self.path(path);
        self.open_if_needed(|| self.connection.post(&path, body)).await
    }

    /// Sends a request. If the session is not live and may be opened, opens it and sends the
    /// request again, because it had no effect the first time.
    async fn open_if_needed<T, F>(&self, ask: impl Fn() -> F) -> Result<T, SessionError>
    where
        F: Future<Output = Result<T, SessionError>>,
    {
        match ask().await {
            Err(SessionError::NotLive { .. }) if self.unloaded == WhenUnloaded::Open => {
                self.open().await?;
                ask().await
            }
            answer => answer,
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
