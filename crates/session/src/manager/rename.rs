//! Renaming a session: the new name is reserved, and the old one is freed at the end.

use std::sync::Arc;

use actix::prelude::*;
use holdpoint_common::api::RenameRequest;
use holdpoint_common::{SessionId, check_name};

use super::names::check_free;
use super::saved::OfflineEntry;
use super::{Life, Manager, OnSession, Reach, stopped_error};
use crate::error::SessionError;
use crate::state::{ByClient, Refused};

impl Handler<OnSession<RenameRequest>> for Manager {
    type Result = ResponseFuture<Result<(), SessionError>>;

    fn handle(&mut self, rename: OnSession<RenameRequest>, ctx: &mut Self::Context) -> Self::Result {
        let OnSession { id, request, .. } = rename;
        let name = request.verb.name.clone();
        if let Err(error) = check_name(&name) {
            return Box::pin(async move { Err(Refused::Name(error).into()) });
        }
        if self.names.get(&name).is_some_and(|holder| *holder != id) {
            return Box::pin(async move { Err(SessionError::NameTaken { name }) });
        }
        // Reserved from here on, so that no other session gets it.
        self.names.insert(name.clone(), id.clone());
        let (engine, session) = (Arc::clone(&self.engine), self.offline_entry(id, ctx));
        Box::pin(async move {
            let renamed = match check_free(&name, &*engine.store).await {
                Ok(()) => rename_live_or_saved(&session, &request).await,
                refused => refused,
            };
            let settle = SettleName { id: session.id, name };
            session.manager.send(settle).await.map_err(stopped_error)?;
            renamed
        })
    }
}

/// Renames the session through its actor, or in its log if it has no actor. If the actor was
/// unloaded in the meantime, this is repeated, which does no harm.
async fn rename_live_or_saved(session: &OfflineEntry, request: &ByClient<RenameRequest>) -> Result<(), SessionError> {
    let mut seen = 0;
    for _ in 0..2 {
        if let Some(_alone) = session.prevent_actor().await? {
            return session.rename(request).await;
        }
        let reach = Reach { id: session.id.clone(), seen, supplies: None };
        let live = match session.manager.send(reach).await.map_err(stopped_error)? {
            Err(SessionError::NotLive { .. }) => continue,
            live => live?,
        };
        if let Ok(renamed) = live.actor.actor.send(request.clone()).await {
            return Ok(renamed?);
        }
        seen = live.actor.number;
    }
    Err(SessionError::Gone { session: session.id.clone() })
}

/// Settles the names after a rename, done or refused: the session keeps the name that it has now,
/// and no other.
#[derive(Message)]
#[rtype(result = "()")]
struct SettleName {
    id: SessionId,
    name: String,
}

impl Handler<SettleName> for Manager {
    type Result = ();

    fn handle(&mut self, SettleName { id, name }: SettleName, _: &mut Self::Context) {
        let live = self.sessions.get(&id).filter(|entry| !matches!(entry.life, Life::Saved));
        let shown = live.map(|entry| entry.shown.borrow().settings.name.clone());
        if let Some(shown) = &shown {
            self.record_name(&id, shown);
        }
        // A session that is only saved reserves no name.
        if shown.as_ref() != Some(&name) {
            self.free_name(&name, &id);
        }
    }
}

impl Manager {
    /// Records the present name of a session, and frees the one before.
    pub(super) fn record_name(&mut self, id: &SessionId, name: &str) {
        let Some(entry) = self.sessions.get_mut(id).filter(|entry| entry.name != name) else { return };
        let before = std::mem::replace(&mut entry.name, name.to_owned());
        self.free_name(&before, id);
        // The name of a session that is opened again may be taken.
        self.names.entry(name.to_owned()).or_insert_with(|| id.clone());
    }
}
