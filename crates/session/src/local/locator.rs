//! Finding the machine that has a session, and the folder of a session that moves here.

use std::path::PathBuf;

use actix::WeakAddr;
use actix::prelude::*;
use holdpoint_common::SessionError;

use crate::manager::{Elsewhere, Locate, Manager, ResolveFolder};

/// Finds the machine that has a session, and folders of this machine. Does not keep the engine alive.
#[derive(Clone)]
pub struct SessionLocator(WeakAddr<Manager>);

impl SessionLocator {
    pub(crate) fn new(manager: &Addr<Manager>) -> Self {
        Self(manager.downgrade())
    }

    /// The other machine that has the session with this id, name or unique prefix of an id, or that is
    /// its home. `None` if that is this machine. For the id or the name of a session that is live here, or was, the store
    /// is not read.
    ///
    /// # Errors
    /// [`SessionError`] if there is no such session, or the store can't be read.
    pub async fn locate(&self, given: &str) -> Result<Option<Elsewhere>, SessionError> {
        let manager = self.0.upgrade().ok_or(SessionError::Stopped)?;
        let locate = Locate { given: given.to_owned() };
        manager.send(locate).await.map_err(|_| SessionError::Stopped)?
    }

    /// The path of a folder of this machine without links, as [`HandOverRequest`] has it.
    ///
    /// # Errors
    /// [`SessionError::Workspace`] if there is no such folder, or it can't be used.
    ///
    /// [`HandOverRequest`]: holdpoint_common::api::HandOverRequest
    pub async fn folder(&self, path: PathBuf) -> Result<String, SessionError> {
        let manager = self.0.upgrade().ok_or(SessionError::Stopped)?;
        manager.send(ResolveFolder(path)).await.map_err(|_| SessionError::Stopped)?
    }
}
