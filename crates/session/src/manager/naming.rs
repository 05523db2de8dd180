//! Names of sessions that are live, or about to be: unique in this engine, and among all machines that
//! share its store.

use std::collections::HashSet;

use holdpoint_common::{SessionError, SessionId};

use super::registry::Registry;

impl Registry {
    /// Makes this the name of a session.
    ///
    /// # Errors
    /// [`SessionError::NameTaken`] if another session has it.
    pub(super) async fn claim_name(&self, id: &SessionId, name: &str) -> Result<(), SessionError> {
        let taken = || SessionError::NameTaken { name: name.to_owned() };
        if !self.lifecycle().names.claim(id, name) {
            return Err(taken());
        }
        if self.engine.store.take_name(id, name).await? { Ok(()) } else { Err(taken()) }
    }

    /// Makes this the name of a session, with a number if another session has it. Returns the name.
    pub(super) async fn claim_numbered_name(
        &self,
        id: &SessionId,
        name: &str,
    ) -> Result<String, SessionError> {
        let mut taken = HashSet::new();
        loop {
            let name = self.lifecycle().names.claim_numbered(id, name, &taken);
            if self.engine.store.take_name(id, &name).await? {
                return Ok(name);
            }
            // Grows with the sessions of other machines that are live, which are few.
            taken.insert(name);
        }
    }

    /// Gives back the names that a session does not have any more.
    pub(super) async fn give_back_names(&self, id: &SessionId) {
        let kept = self.lifecycle().names.of(id);
        if let Err(error) = self.engine.store.keep_names(id, kept).await {
            // Another machine can take them once this one has given the session up.
            tracing::warn!(session = %id, %error, "an earlier name of the session stays taken");
        }
    }
}
