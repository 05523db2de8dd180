//! Deleting a saved session.

use std::sync::Arc;

use actix::prelude::*;
use holdpoint_common::SessionId;

use super::find::resolve_id_exact;
use super::{Life, Manager, stopped_error};
use crate::error::SessionError;

/// Deletes the session with this id or name from the store.
#[derive(Message)]
#[rtype(result = "Result<(), SessionError>")]
pub(crate) struct DeleteSession(pub(crate) String);

impl Handler<DeleteSession> for Manager {
    type Result = ResponseFuture<Result<(), SessionError>>;

    fn handle(&mut self, DeleteSession(what): DeleteSession, ctx: &mut Self::Context) -> Self::Result {
        let known = self.match_entries(&what);
        let (manager, engine, room) = (ctx.address(), Arc::clone(&self.engine), Arc::clone(&self.room));
        let mending = Arc::clone(&self.mending);
        Box::pin(async move {
            drop(mending.lock().await);
            // Held until the session is deleted, so that it can't be opened in the meantime.
            let _one_at_a_time = room.lock().await;
            let id = resolve_id_exact(&what, known, &*engine.store).await?;
            manager.send(RemoveEntry(id.clone())).await.map_err(stopped_error)??;
            engine.store.delete(&id).await?;
            manager.send(SessionDeleted).await.map_err(stopped_error)?;
            tracing::info!(session = %id, "deleted");
            Ok(())
        })
    }
}

/// Removes the entry of a session that has no actor.
#[derive(Message)]
#[rtype(result = "Result<(), SessionError>")]
struct RemoveEntry(SessionId);

impl Handler<RemoveEntry> for Manager {
    type Result = Result<(), SessionError>;

    fn handle(&mut self, RemoveEntry(id): RemoveEntry, _: &mut Self::Context) -> Self::Result {
        // A session that had an actor may write its log until the engine has stopped.
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

/// A session was deleted.
#[derive(Message)]
#[rtype(result = "()")]
struct SessionDeleted;

impl Handler<SessionDeleted> for Manager {
    type Result = ();

    fn handle(&mut self, _: SessionDeleted, _: &mut Self::Context) {
        self.roster.saved_changed();
    }
}
