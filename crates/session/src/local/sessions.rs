//! All sessions of an engine in this process.

use std::sync::Arc;

use actix::prelude::*;
use holdpoint_common::{SessionSummary, Supplies, Who};

use super::{Caller, LocalSession};
use crate::error::SessionError;
use crate::manager::{Find, List, Manager, Open};
use crate::open::OpenSession;

/// All sessions of an engine in this process, for one client.
#[derive(Clone)]
pub(crate) struct LocalSessions(Caller);

impl LocalSessions {
    pub(crate) fn new(manager: Addr<Manager>, who: Who) -> Self {
        Self(Caller { manager, who, supplies: Arc::default() })
    }

    pub(crate) fn with_supplies(self, supplies: Supplies) -> Self {
        Self(Caller { supplies: Arc::new(supplies), ..self.0 })
    }

    pub(crate) async fn open(&self, open: OpenSession) -> Result<LocalSession, SessionError> {
        let path = open.workspace.display().to_string();
        let unusable = |message: String| SessionError::Workspace { path: path.clone(), message };
        let workspace = open.workspace.canonicalize().map_err(|error| unusable(error.to_string()))?;
        if !workspace.is_dir() {
            return Err(unusable("it is not a folder".to_owned()));
        }
        let open = Open { open: OpenSession { workspace, ..open }, supplies: Arc::clone(&self.0.supplies) };
        let live = self.0.manager.send(open).await.map_err(|_| SessionError::Stopped)??;
        Ok(LocalSession::new(self.0.clone(), live))
    }

    pub(crate) async fn get(&self, what: &str) -> Result<LocalSession, SessionError> {
        let find = Find { what: what.to_owned(), supplies: Arc::clone(&self.0.supplies) };
        let live = self.0.manager.send(find).await.map_err(|_| SessionError::Stopped)??;
        Ok(LocalSession::new(self.0.clone(), live))
    }

    pub(crate) async fn list(&self) -> Result<Vec<SessionSummary>, SessionError> {
        self.0.manager.send(List).await.map_err(|_| SessionError::Stopped)?
    }
}
