//! All sessions of an engine, as a client sees them.

use std::sync::Arc;

use actix::prelude::*;
use holdpoint_common::{SessionSummary, Who};

use crate::error::SessionError;
use crate::handle::{Caller, SessionHandle};
use crate::manager::{Find, List, Manager, Open};
use crate::open::OpenSession;

/// All sessions of an engine, for one client. Cheap to clone.
#[derive(Clone)]
pub struct Sessions(Caller);

impl Sessions {
    pub(crate) fn new(manager: Addr<Manager>, who: Who) -> Self {
        Self(Caller { manager, who, env: Arc::default() })
    }

    /// The same, with an environment for the processes of saved sessions that this client opens again: a session's own
    /// is not saved.
    #[must_use]
    pub fn with_env(self, env: Vec<(String, String)>) -> Self {
        Self(Caller { env: env.into(), ..self.0 })
    }

    /// Opens a fresh session.
    ///
    /// # Errors
    /// [`SessionError`] if the folder or the model can't be used, the name is taken, or there is no room.
    pub async fn open(&self, open: OpenSession) -> Result<SessionHandle, SessionError> {
        let path = open.workspace.display().to_string();
        let unusable = |message: String| SessionError::Workspace { path: path.clone(), message };
        let workspace = open.workspace.canonicalize().map_err(|error| unusable(error.to_string()))?;
        if !workspace.is_dir() {
            return Err(unusable("it is not a folder".to_owned()));
        }
        let live = self.0.manager.send(Open(OpenSession { workspace, ..open })).await;
        Ok(SessionHandle::new(self.0.clone(), live.map_err(|_| SessionError::Stopped)??))
    }

    /// The session of this id, name, or unique beginning of an id; opened if it is only saved. Of a name, the live one,
    /// else the newest.
    ///
    /// # Errors
    /// [`SessionError`] if there is none, or it can't be opened.
    pub async fn get(&self, what: &str) -> Result<SessionHandle, SessionError> {
        let live = self.0.manager.send(Find { what: what.to_owned(), env: Arc::clone(&self.0.env) }).await;
        Ok(SessionHandle::new(self.0.clone(), live.map_err(|_| SessionError::Stopped)??))
    }

    /// Every session: live ones first, the newest first.
    ///
    /// # Errors
    /// [`SessionError::Stopped`] if the engine has stopped, [`SessionError::Store`] if the saved ones can't be read.
    pub async fn list(&self) -> Result<Vec<SessionSummary>, SessionError> {
        self.0.manager.send(List).await.map_err(|_| SessionError::Stopped)?
    }
}
