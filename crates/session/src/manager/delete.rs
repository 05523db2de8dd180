//! Deleting a saved session.

use std::sync::Arc;

use actix::prelude::*;
use holdpoint_common::SessionId;

use super::find::choose_only;
use super::{Life, Manager, stopped};
use crate::error::SessionError;

/// Deletes the session of this id or name, from the store too.
#[derive(Message)]
#[rtype(result = "Result<(), SessionError>")]
pub(crate) struct DeleteSession(pub(crate) String);

impl Handler<DeleteSession> for Manager {
    type Result = ResponseFuture<Result<(), SessionError>>;

    fn handle(&mut self, DeleteSession(what): DeleteSession, ctx: &mut Self::Context) -> Self::Result {
        let known = self.known(&what);
        let (manager, base, room) = (ctx.address(), Arc::clone(&self.base), Arc::clone(&self.room));
        let mending = Arc::clone(&self.mending);
        Box::pin(async move {
            drop(mending.lock().await);
            // Held until it is gone, so that nobody opens it meanwhile.
            let _one_at_a_time = room.lock().await;
            let id = choose_only(&what, known, &*base.store).await?;
            manager.send(Forget(id.clone())).await.map_err(stopped)??;
            base.store.delete(&id).await?;
            manager.send(Deleted).await.map_err(stopped)?;
            tracing::info!(session = %id, "deleted");
            Ok(())
        })
    }
}

/// Forgets a session that has no actor.
#[derive(Message)]
#[rtype(result = "Result<(), SessionError>")]
struct Forget(SessionId);

impl Handler<Forget> for Manager {
    type Result = Result<(), SessionError>;

    fn handle(&mut self, Forget(id): Forget, _: &mut Self::Context) -> Self::Result {
        // What had an actor writes its log until the engine has stopped.
        if self.stopping {
            return Err(SessionError::Stopped);
        }
        match self.sessions.get(&id).map(|entry| &entry.life) {
            Some(Life::Live { .. } | Life::Starting { .. }) => return Err(SessionError::Live { session: id }),
            Some(Life::Saved) | None => {}
        }
        if let Some(entry) = self.sessions.remove(&id) {
            self.free_name(&entry.name, &id);
        }
        Ok(())
    }
}

/// A session is no more.
#[derive(Message)]
#[rtype(result = "()")]
struct Deleted;

impl Handler<Deleted> for Manager {
    type Result = ();

    fn handle(&mut self, _: Deleted, _: &mut Self::Context) {
        self.roster.saved_changed();
    }
}
