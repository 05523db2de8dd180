//! Sessions that have no actor, changed all the same: decided, numbered and saved, with nothing that runs.

use std::sync::Arc;

use actix::prelude::*;
use holdpoint_common::{EndedProcesses, Outcome, SessionId, Snapshot, Who};
use tokio::sync::OwnedMutexGuard;

use super::room::Room;
use super::{CloseSession, Life, Manager, stopped};
use crate::error::SessionError;
use crate::outfit::Base;
use crate::saved::Scribe;
use crate::state::{Input, Phase, Refused, Report};

/// A session that has no actor, as far as is known.
pub(super) struct Saved {
    pub(super) id: SessionId,
    pub(super) manager: Addr<Manager>,
    base: Arc<Base>,
    room: Arc<Room>,
    mending: Arc<tokio::sync::Mutex<()>>,
}

impl Manager {
    /// The session of this id, which has no actor.
    pub(super) fn saved(&self, id: SessionId, ctx: &Context<Self>) -> Saved {
        let (base, room, mending) = (Arc::clone(&self.base), Arc::clone(&self.room), Arc::clone(&self.mending));
        Saved { id, manager: ctx.address(), base, room, mending }
    }
}

impl Saved {
    /// Nobody gives it an actor as long as this is held; nothing, if it has one already.
    pub(super) async fn alone(&self) -> Result<Option<OwnedMutexGuard<()>>, SessionError> {
        drop(self.mending.lock().await);
        let alone = Arc::clone(&self.room).lock_owned().await;
        let has_actor = self.manager.send(HasActor(self.id.clone())).await.map_err(stopped)??;
        Ok((!has_actor).then_some(alone))
    }

    /// Ends it: what it waits with is handed back, what it asks is answered.
    pub(super) async fn close(self, close: CloseSession) -> Result<(), SessionError> {
        let Some(_alone) = self.alone().await? else {
            return self.manager.send(close).await.map_err(stopped)?;
        };
        let mut scribe = Scribe::of(&self.base, &self.id).await?;
        scribe.take(Input::Close { unused_since: close.unused_since, by: close.by })?;
        if let Phase::Interrupting(turn, _) = scribe.state().phase() {
            // It has no runner, whose end there would be to wait for.
            let (turn, tools, processes) = (turn.id, Vec::new(), EndedProcesses::default());
            let report = Report::Finished { outcome: Outcome::Interrupted, error: None, tools, processes };
            scribe.take(Input::Report { turn, report })?;
        }
        self.save(scribe).await
    }

    /// Calls it something else.
    pub(super) async fn rename(&self, name: String, by: Who) -> Result<(), SessionError> {
        let mut scribe = Scribe::of(&self.base, &self.id).await?;
        scribe.take(Input::Rename { name, by })?;
        self.save(scribe).await
    }

    async fn save(&self, scribe: Scribe<'_>) -> Result<(), SessionError> {
        let (state, _) = scribe.save().await?;
        let closed = matches!(state.phase(), Phase::Closed);
        let snapshot = Arc::new(state.snapshot(state.last(), 0, self.base.not_saved()));
        self.manager.send(Rewritten { snapshot, closed }).await.map_err(stopped)
    }
}

/// Whether a session has an actor, or is about to.
#[derive(Message)]
#[rtype(result = "Result<bool, SessionError>")]
struct HasActor(SessionId);

impl Handler<HasActor> for Manager {
    type Result = Result<bool, SessionError>;

    fn handle(&mut self, HasActor(id): HasActor, _: &mut Self::Context) -> Self::Result {
        // What had one writes its log until the engine has stopped.
        if self.stopping {
            return Err(SessionError::Stopped);
        }
        match self.sessions.get(&id) {
            // The log lacks its end.
            Some(entry) if entry.closed && self.base.lacks_saves(&entry.shown.borrow()) => {
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
struct Rewritten {
    snapshot: Arc<Snapshot>,
    closed: bool,
}

impl Handler<Rewritten> for Manager {
    type Result = ();

    fn handle(&mut self, Rewritten { snapshot, closed }: Rewritten, _: &mut Self::Context) {
        self.roster.saved_changed();
        if let Some(entry) = self.sessions.get_mut(&snapshot.settings.id) {
            entry.name.clone_from(&snapshot.settings.name);
            entry.closed = closed;
            entry.shown.send_replace(snapshot);
        }
    }
}
