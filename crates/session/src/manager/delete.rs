//! Deleting a saved session.

use std::rc::Rc;

use holdpoint_common::SessionError;

use super::find::resolve_id_exact;
use super::lifecycle::IfSaved;
use super::registry::{Reached, Registry};

impl Registry {
    /// Deletes the session with this id or name from the store.
    pub(super) async fn delete(self: &Rc<Self>, given: &str) -> Result<(), SessionError> {
        self.mended().await;
        let known = self.match_ids(given);
        let id = resolve_id_exact(given, known, &*self.engine.store).await?;
        match self.access(&id, 0, IfSaved::Change).await? {
            Reached::Live(_) => return Err(SessionError::Live { session: id }),
            Reached::Saved(owned) => owned.delete().await?,
        }
        tracing::info!(session = %id, "deleted");
        Ok(())
    }
}
