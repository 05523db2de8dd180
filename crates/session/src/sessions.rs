//! All sessions of an engine, as a client sees them.

use std::path::PathBuf;

use actix::prelude::*;
use holdpoint_common::{AsksMode, PolicyMode, SessionSummary, Who};

use crate::error::SessionError;
use crate::handle::SessionHandle;
use crate::manager::{Find, List, Manager, Open};

/// All sessions of an engine, for one client. Cheap to clone.
#[derive(Clone)]
pub struct Sessions {
    pub(crate) manager: Addr<Manager>,
    pub(crate) who: Who,
}

/// What a session is opened with.
#[derive(Debug, Clone)]
#[must_use]
pub struct OpenSession {
    pub(crate) workspace: PathBuf,
    pub(crate) name: Option<String>,
    pub(crate) model: Option<String>,
    pub(crate) asks: AsksMode,
    pub(crate) policy: PolicyMode,
    pub(crate) max_steps: u32,
    pub(crate) env: Vec<(String, String)>,
}

impl OpenSession {
    /// A session that works in this folder: asks wait for the user, reading is allowed, the rest asks.
    pub fn in_folder(workspace: impl Into<PathBuf>) -> Self {
        Self {
            workspace: workspace.into(),
            name: None,
            model: None,
            asks: AsksMode::default(),
            policy: PolicyMode::default(),
            max_steps: 0,
            env: Vec::new(),
        }
    }

    /// Calls it this; unique among live sessions. Without it: the folder's name, numbered where taken.
    pub fn name(self, name: impl Into<String>) -> Self {
        Self { name: Some(name.into()), ..self }
    }

    /// Uses this model, as `PROVIDER/NAME` or `PROVIDER`. Without it: the catalog's default.
    pub fn model(self, model: impl Into<String>) -> Self {
        Self { model: Some(model.into()), ..self }
    }

    /// Says who answers its asks.
    pub fn asks(self, asks: AsksMode) -> Self {
        Self { asks, ..self }
    }

    /// Says what its tools may do unasked.
    pub fn policy(self, policy: PolicyMode) -> Self {
        Self { policy, ..self }
    }

    /// Ends a turn after so many steps; 0 for no limit.
    pub fn max_steps(self, max_steps: u32) -> Self {
        Self { max_steps, ..self }
    }

    /// The environment of the processes that its tools start: this and nothing else.
    pub fn env(self, env: Vec<(String, String)>) -> Self {
        Self { env, ..self }
    }
}

impl Sessions {
    pub(crate) fn new(manager: Addr<Manager>, who: Who) -> Self {
        Self { manager, who }
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
        let live = self.manager.send(Open(OpenSession { workspace, ..open })).await;
        Ok(SessionHandle::new(self.clone(), live.map_err(|_| SessionError::Stopped)??))
    }

    /// The session of this id, name, or unique beginning of an id; opened if it is only saved.
    ///
    /// # Errors
    /// [`SessionError`] if there is none, or it can't be opened.
    pub async fn get(&self, what: &str) -> Result<SessionHandle, SessionError> {
        let live = self.manager.send(Find(what.to_owned())).await;
        Ok(SessionHandle::new(self.clone(), live.map_err(|_| SessionError::Stopped)??))
    }

    /// Every session: live ones first, the newest first.
    ///
    /// # Errors
    /// [`SessionError::Stopped`] if the engine has stopped.
    pub async fn list(&self) -> Result<Vec<SessionSummary>, SessionError> {
        self.manager.send(List).await.map_err(|_| SessionError::Stopped)
    }
}
