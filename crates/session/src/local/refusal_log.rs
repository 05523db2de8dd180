//! The record of clients that the embedder of an engine has refused.

use actix::WeakAddr;
use actix::prelude::*;
use holdpoint_common::{RefusedClient, SessionError, SessionId, Who};

use super::LocalSessions;
use crate::actor::RecordRefusal;
use crate::backend::Backend;
use crate::manager::Manager;

/// Records in the log of a session that a process of one of its tool calls was refused as a client.
/// Does not keep the engine alive.
#[derive(Clone)]
pub struct RefusalLog(WeakAddr<Manager>);

impl RefusalLog {
    pub(crate) fn new(manager: &Addr<Manager>) -> Self {
        Self(manager.downgrade())
    }

    /// Records a refused client. A saved session is not opened for this.
    ///
    /// # Errors
    /// [`SessionError`] if the session is not live, is closed, or has too much unsaved.
    pub async fn record(
        &self,
        session: &SessionId,
        client: RefusedClient,
    ) -> Result<(), SessionError> {
        let manager = self.0.upgrade().ok_or(SessionError::Stopped)?;
        let sessions = LocalSessions::new(manager, Who::named("daemon"));
        let session = sessions.reach(session).await?;
        Ok(session.send(|| RecordRefusal(client.clone())).await??)
    }
}
