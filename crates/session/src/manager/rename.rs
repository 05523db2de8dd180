//! Renaming a session: its name is free, becomes its own, and the old one is free again.

use std::sync::Arc;

use actix::prelude::*;
use holdpoint_common::{SessionId, Who, check_name};

use super::names::check_free;
use super::saved::Saved;
use super::{Life, Manager, Reach, stopped};
use crate::actor;
use crate::error::SessionError;
use crate::state::Refused;

/// Gives a session another name, unique among live ones.
#[derive(Message)]
#[rtype(result = "Result<(), SessionError>")]
pub(crate) struct RenameSession {
    pub(crate) id: SessionId,
    pub(crate) name: String,
    pub(crate) by: Who,
}

impl Handler<RenameSession> for Manager {
    type Result = ResponseFuture<Result<(), SessionError>>;

    fn handle(&mut self, rename: RenameSession, ctx: &mut Self::Context) -> Self::Result {
        let RenameSession { id, name, by } = rename;
        if let Err(error) = check_name(&name) {
            return Box::pin(async move { Err(Refused::Name(error).into()) });
        }
        if self.names.get(&name).is_some_and(|holder| *holder != id) {
            return Box::pin(async move { Err(SessionError::NameTaken { name }) });
        }
        // Taken from here on, so that nobody else is given it meanwhile.
        self.names.insert(name.clone(), id.clone());
        let (base, session) = (Arc::clone(&self.base), self.saved(id, ctx));
        Box::pin(async move {
            let renamed = match check_free(&name, &*base.store).await {
                Ok(()) => rename_wherever(&session, &name, &by).await,
                refused => refused,
            };
            let settle = Settle { id: session.id, name };
            session.manager.send(settle).await.map_err(stopped)?;
            renamed
        })
    }
}

/// Has the session's actor take the name, or writes it into its log where there is none. One that was unloaded meanwhile
/// is renamed again: twice is as good as once.
async fn rename_wherever(session: &Saved, name: &str, by: &Who) -> Result<(), SessionError> {
    let mut seen = 0;
    for _ in 0..2 {
        if let Some(_alone) = session.alone().await? {
            return session.rename(name.to_owned(), by.clone()).await;
        }
        let reach = Reach { id: session.id.clone(), seen, supplies: None };
        let live = match session.manager.send(reach).await.map_err(stopped)? {
            Err(SessionError::NotLive { .. }) => continue,
            live => live?,
        };
        if let Ok(renamed) = live.actor.actor.send(actor::Rename { name: name.to_owned(), by: by.clone() }).await {
            return Ok(renamed?);
        }
        seen = live.actor.number;
    }
    Err(SessionError::Gone { session: session.id.clone() })
}

/// A session was given a name, or would not take it: whichever it has now is its own, and no other.
#[derive(Message)]
#[rtype(result = "()")]
struct Settle {
    id: SessionId,
    name: String,
}

impl Handler<Settle> for Manager {
    type Result = ();

    fn handle(&mut self, Settle { id, name }: Settle, _: &mut Self::Context) {
        let live = self.sessions.get(&id).filter(|entry| !matches!(entry.life, Life::Saved));
        let shown = live.map(|entry| entry.shown.borrow().settings.name.clone());
        if let Some(shown) = &shown {
            self.has_name(&id, shown);
        }
        // One that is only saved takes no name from others.
        if shown.as_ref() != Some(&name) {
            self.free_name(&name, &id);
        }
    }
}

impl Manager {
    /// The session is called this now: what it was called before is free.
    pub(super) fn has_name(&mut self, id: &SessionId, name: &str) {
        let Some(entry) = self.sessions.get_mut(id).filter(|entry| entry.name != name) else { return };
        let before = std::mem::replace(&mut entry.name, name.to_owned());
        self.free_name(&before, id);
        // One that comes back may find its name taken.
        self.names.entry(name.to_owned()).or_insert_with(|| id.clone());
    }
}
