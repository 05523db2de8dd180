//! Finding the machine that has a session.

use actix::WeakAddr;
use actix::prelude::*;
use holdpoint_common::SessionError;

use crate::manager::{Elsewhere, Locate, Manager};

/// Finds the machine that has a session. Does not keep the engine alive.
#[derive(Clone)]
pub struct SessionLocator(WeakAddr<Manager>);

impl SessionLocator {
    pub(crate) fn new(manager: &Addr<Manager>) -> Self {
        Self(manager.downgrade())
    }

    /// The other machine that has the session with this id, name or unique prefix of an id. `None` if
    /// no other machine has it. For the id or the name of a session that is live here, or was, the store
    /// is not read.
    ///
    /// # Errors
    /// [`SessionError`] if there is no such session, or the store can't be read.
    pub async fn locate(&self, given: &str) -> Result<Option<Elsewhere>, SessionError> {
        let manager = self.0.upgrade().ok_or(SessionError::Stopped)?;
        let locate = Locate { given: given.to_owned() };
        manager.send(locate).await.map_err(|_| SessionError::Stopped)?
    }
}
