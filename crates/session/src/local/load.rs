//! The load of an engine in this process, for its embedder.

use actix::WeakAddr;
use actix::prelude::*;
use tokio::sync::watch;

use holdpoint_common::SessionError;

use crate::load::Load;
use crate::manager::{GetLoad, GetWatchSources, Manager};

/// Measures the load of an engine, without using the store or waiting for a session. Does not keep
/// the engine alive.
#[derive(Clone)]
pub struct LoadMeter(WeakAddr<Manager>);

/// Reports that the set of sessions has changed, but not how. Does no work between changes. Does
/// not keep the engine alive.
#[derive(Debug)]
pub struct SessionChanges(watch::Receiver<u64>);

impl LoadMeter {
    pub(crate) fn new(manager: &Addr<Manager>) -> Self {
        Self(manager.downgrade())
    }

    /// The present load of the engine.
    ///
    /// # Errors
    /// [`SessionError::Stopped`] if the engine has stopped.
    pub async fn load(&self) -> Result<Load, SessionError> {
        let manager = self.0.upgrade().ok_or(SessionError::Stopped)?;
        manager.send(GetLoad).await.map_err(|_| SessionError::Stopped)
    }

    /// Starts to report changes of the set of sessions.
    ///
    /// # Errors
    /// [`SessionError::Stopped`] if the engine has stopped.
    pub async fn changes(&self) -> Result<SessionChanges, SessionError> {
        let manager = self.0.upgrade().ok_or(SessionError::Stopped)?;
        let watched = manager.send(GetWatchSources).await.map_err(|_| SessionError::Stopped)?;
        Ok(SessionChanges(watched.roster))
    }
}

impl SessionChanges {
    /// Waits until a session was opened, imported, unloaded, closed or deleted since the last
    /// report. Returns `false` when the engine has stopped.
    pub async fn next(&mut self) -> bool {
        self.0.changed().await.is_ok()
    }
}
