//! Renaming a session: the new name is reserved first, and the old one is freed at the end.

use std::rc::Rc;

use holdpoint_common::api::RenameRequest;
use holdpoint_common::{NameError, Refused, SessionError, SessionId, check_name};

use super::lifecycle::IfSaved;
use super::registry::{Reached, Registry};
use crate::state::ByClient;
use crate::store::SessionStore;

impl Registry {
    /// Renames the session, which is not opened for that.
    pub(super) async fn rename(
        self: &Rc<Self>,
        id: &SessionId,
        request: &ByClient<RenameRequest>,
    ) -> Result<(), SessionError> {
        let name = &request.verb.name;
        check_name(name).map_err(Refused::Name)?;
        let taken = || SessionError::NameTaken { name: name.clone() };
        // From here on, no other session gets the name.
        if !self.lifecycle().names.begin_rename(id, name) {
            return Err(taken());
        }
        let store = &*self.engine.store;
        let renamed = async {
            check_free(name, store).await?;
            if self.lifecycle().is_live(id) && !store.take_name(id, name).await? {
                return Err(taken());
            }
            self.rename_live_or_saved(id, request).await
        };
        let renamed = renamed.await;
        let present = self.read_record(id, |record| record.shown.borrow().settings.name.clone());
        {
            let mut lifecycle = self.lifecycle();
            // A session that is only saved has no name here.
            if let Some(present) = present.filter(|_| lifecycle.is_live(id)) {
                lifecycle.names.claim(id, &present);
            }
            lifecycle.names.end_rename(id, name);
        }
        self.give_back_names(id).await;
        renamed
    }

    /// Renames the session through its actor, or in its log if it has no actor. If the actor has
    /// ended in the meantime, tries again; a repeated rename does no harm.
    async fn rename_live_or_saved(
        self: &Rc<Self>,
        id: &SessionId,
        request: &ByClient<RenameRequest>,
    ) -> Result<(), SessionError> {
        let mut seen = 0;
        for _ in 0..3 {
            let live = match self.access(id, seen, IfSaved::Change).await? {
                Reached::Saved(owned) => return owned.rename(request).await,
                Reached::Live(live) => live,
            };
            match live.actor.address.send(request.clone()).await {
                // A closed session can be renamed, too, but only in its log.
                Ok(Err(Refused::Closed)) => live.ended().await?,
                Ok(renamed) => return Ok(renamed?),
                Err(_) => seen = live.actor.number,
            }
        }
        Err(SessionError::Gone { session: id.clone() })
    }
}

/// Refuses a name that is the id of a session, live or saved.
pub(super) async fn check_free(name: &str, store: &dyn SessionStore) -> Result<(), SessionError> {
    let Ok(id) = name.trim().parse::<SessionId>() else { return Ok(()) };
    match store.open(&id).await {
        Ok(_) => Err(Refused::Name(NameError::Id).into()),
        // A store that can't be read is reported when the session is saved.
        Err(_) => Ok(()),
    }
}
