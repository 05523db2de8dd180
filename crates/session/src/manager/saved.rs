//! Changes to sessions without an actor: decided, numbered and appended to their logs.

use std::sync::Arc;

use actix::prelude::*;
use holdpoint_common::api::{CloseRequest, RenameRequest};
use holdpoint_common::{EndedProcesses, Outcome, SessionId, Snapshot};
use tokio::sync::OwnedMutexGuard;

use super::room::StartLock;
use super::{Life, Manager, OnSession, stopped_error};
use crate::error::SessionError;
use crate::saved::OfflineSession;
use crate::session_env::EngineEnv;
use crate::state::{ByClient, Phase, Refused, Report, RunnerReport};

/// A session that presumably has no actor.
pub(super) struct OfflineEntry {
    pub(super) id: SessionId,
    pub(super) manager: Addr<Manager>,
    engine: Arc<EngineEnv>,
    room: Arc<StartLock>,
    mending: Arc<tokio::sync::Mutex<()>>,
}

impl Manager {
    /// The session with this id, which presumably has no actor.
    pub(super) fn offline_entry(&self, id: SessionId, ctx: &Context<Self>) -> OfflineEntry {
        let (engine, room, mending) = (Arc::clone(&self.engine), Arc::clone(&self.room), Arc::clone(&self.mending));
        OfflineEntry { id, manager: ctx.address(), engine, room, mending }
    }
}

impl OfflineEntry {
    /// Keeps the session from getting an actor while the guard is held; `None` if it has one
    /// already.
    pub(super) async fn prevent_actor(&self) -> Result<Option<OwnedMutexGuard<()>>, SessionError> {
        drop(self.mending.lock().await);
        let alone = Arc::clone(&self.room).lock_owned().await;
        let has_actor = self.manager.send(HasActor(self.id.clone())).await.map_err(stopped_error)??;
        Ok((!has_actor).then_some(alone))
    }

    /// Closes the session: its queued prompts are handed back, and its asks are closed.
    pub(super) async fn close(self, close: OnSession<CloseRequest>) -> Result<(), SessionError> {
        let Some(_alone) = self.prevent_actor().await? else {
            return self.manager.send(close).await.map_err(stopped_error)?;
        };
        let mut session = OfflineSession::load(&self.engine, &self.id).await?;
        session.handle_input(&close.request)?;
        if let Phase::Interrupting(turn, _) = session.state().phase() {
            // There is no runner to wait for.
            let (turn, tools, processes) = (turn.id, Vec::new(), EndedProcesses::default());
            let report = Report::Finished { outcome: Outcome::Interrupted, error: None, tools, processes };
            session.handle_input(RunnerReport { turn, report })?;
        }
        self.save(session).await
    }

    pub(super) async fn rename(&self, request: &ByClient<RenameRequest>) -> Result<(), SessionError> {
        let mut session = OfflineSession::load(&self.engine, &self.id).await?;
        session.handle_input(request)?;
        self.save(session).await
    }

    async fn save(&self, session: OfflineSession<'_>) -> Result<(), SessionError> {
        let (state, _) = session.save().await?;
        let closed = matches!(state.phase(), Phase::Closed);
        let snapshot = Arc::new(state.snapshot(state.last(), 0, self.engine.not_saved()));
        self.manager.send(SavedChanged { snapshot, closed }).await.map_err(stopped_error)
    }
}

/// Asks whether a session has an actor, or is about to.
#[derive(Message)]
#[rtype(result = "Result<bool, SessionError>")]
struct HasActor(SessionId);

impl Handler<HasActor> for Manager {
    type Result = Result<bool, SessionError>;

    fn handle(&mut self, HasActor(id): HasActor, _: &mut Self::Context) -> Self::Result {
        // A session that had an actor may write its log until the engine has stopped.
        if self.stopping {
            return Err(SessionError::Stopped);
        }
        match self.sessions.get(&id) {
            // The end of the session is missing from its log.
            Some(entry) if entry.closed && self.engine.lacks_saves(&entry.shown.borrow()) => {
                Err(SessionError::Refused(Refused::Closed))
            }
            Some(entry) => Ok(!matches!(entry.life, Life::Saved)),
            None => Ok(false),
        }
    }
}

/// A session without an actor has changed.
#[derive(Message)]
#[rtype(result = "()")]
struct SavedChanged {
    snapshot: Arc<Snapshot>,
    closed: bool,
}

impl Handler<SavedChanged> for Manager {
    type Result = ();

    fn handle(&mut self, SavedChanged { snapshot, closed }: SavedChanged, _: &mut Self::Context) {
        self.roster.saved_changed();
        if let Some(entry) = self.sessions.get_mut(&snapshot.settings.id) {
            entry.name.clone_from(&snapshot.settings.name);
            entry.closed = closed;
            entry.shown.send_replace(snapshot);
        }
    }
}
