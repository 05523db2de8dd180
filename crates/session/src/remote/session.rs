//! One session of a daemon.

use std::sync::Arc;

use holdpoint_common::api::{
    Answered, CloseRequest, DebugRequest, InterruptReply, InterruptRequest, ModelRequest, PromptRequest, Prompted,
    RenameRequest, RunRequest, RunStarted, ToggleRequest, TurnEnd,
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
use crate::open::Unloaded;

/// One session of a daemon.
#[derive(Clone)]
pub(crate) struct RemoteSession {
    connection: Connection,
    unloaded: Unloaded,
    id: SessionId,
    publisher: watch::Sender<Arc<Snapshot>>,
    shown: watch::Receiver<Arc<Snapshot>>,
}

impl RemoteSession {
    pub(super) fn new(connection: Connection, unloaded: Unloaded, snapshot: Arc<Snapshot>) -> Self {
        let id = snapshot.settings.id.clone();
        let (publisher, shown) = watch::channel(snapshot);
        Self { connection, unloaded, id, publisher, shown }
    }

    pub(crate) fn id(&self) -> &SessionId {
        &self.id
    }

    /// What the session has published, as far as an attachment of this handle has received it.
    pub(crate) fn shown(&self) -> &watch::Receiver<Arc<Snapshot>> {
        &self.shown
    }

    pub(super) fn publisher(&self) -> &watch::Sender<Arc<Snapshot>> {
        &self.publisher
    }

    /// Reads the session anew.
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
        // An answer reaches only its own session, however the daemon finds asks.
        if ask.session != self.id {
            return Err(SessionError::Answer(AnswerError::Unknown { ask: ask.clone() }));
        }
        let path = format!("/v1/asks/{ask}/answer");
        self.live(|| self.connection.post(&path, &answer)).await
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
        // One that is only saved is renamed as it is.
        self.connection.post(&self.path("rename"), &RenameRequest { name }).await
    }

    pub(crate) async fn change_model(&self, model: String) -> Result<(), SessionError> {
        let supplies = self.connection.supplies.models.clone();
        self.post("model", &ModelRequest { model, supplies }).await
    }

    pub(crate) async fn change_debug(&self, enabled: bool) -> Result<(), SessionError> {
        self.post("debug", &DebugRequest { enabled }).await
    }

    pub(crate) async fn close(&self, unused_since: Option<u64>) -> Result<(), SessionError> {
        self.connection.post(&self.path("close"), &CloseRequest { unused_since }).await
    }

    /// Waits until what it publishes is so.
    pub(crate) async fn settled(&self, is_so: impl Fn(&Snapshot) -> bool) -> Result<Arc<Snapshot>, SessionError> {
        let so = || Some(self.shown.borrow().clone()).filter(|snapshot| is_so(snapshot));
        // Looked at first: one that is closed is not attached to.
        self.refresh().await?;
        loop {
            if let Some(snapshot) = so() {
                return Ok(snapshot);
            }
            let mut events = match self.attach(AttachFrom::now()).await {
                Ok(events) => events,
                Err(error) => {
                    // It was closed meanwhile.
                    self.refresh().await?;
                    return so().ok_or(error);
                }
            };
            // With each event comes what it has changed.
            while so().is_none() && events.next().await.is_some() {}
        }
    }

    /// Asks for a stream of it.
    pub(super) async fn stream(&self, path: &str) -> Result<Response, SessionError> {
        let path = self.path(path);
        self.live(|| self.connection.stream(&path)).await
    }

    /// Asks something of it.
    async fn post<T: DeserializeOwned>(&self, path: &str, body: &impl Serialize) -> Result<T, SessionError> {
        let path = self.path(path);
        self.live(|| self.connection.post(&path, body)).await
    }

    /// Asks, and where its daemon has it only saved opens it, if it opens, and asks again: nothing was done the first time.
    async fn live<T, F>(&self, ask: impl Fn() -> F) -> Result<T, SessionError>
    where
        F: Future<Output = Result<T, SessionError>>,
    {
        match ask().await {
            Err(SessionError::NotLive { .. }) if self.unloaded == Unloaded::Opens => {
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

/// Replaces what is shown, unless that is newer: attachments that are read at their own pace tell of it, too.
pub(super) fn publish(shown: &watch::Sender<Arc<Snapshot>>, snapshot: Arc<Snapshot>) {
    shown.send_if_modified(|shown| {
        let replaces = shown.seq <= snapshot.seq;
        if replaces {
            *shown = snapshot;
        }
        replaces
    });
}
