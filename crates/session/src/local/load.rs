//! What an engine in this process has to do, for whoever runs it.

use actix::WeakAddr;
use actix::prelude::*;
use tokio::sync::watch;

use crate::error::SessionError;
use crate::load::Load;
use crate::manager::{GetLoad, GetWatched, Manager};

/// Tells what an engine has to do, without the store and without waiting for any session. Does not keep the engine.
#[derive(Clone)]
pub struct LoadMeter(WeakAddr<Manager>);

/// Tells when sessions come and go, and not which: costs nothing while none does. Does not keep the engine.
#[derive(Debug)]
pub struct Turnover(watch::Receiver<u64>);

impl LoadMeter {
    pub(crate) fn new(manager: &Addr<Manager>) -> Self {
        Self(manager.downgrade())
    }

    /// What it has to do now.
    ///
    /// # Errors
    /// [`SessionError::Stopped`] if the engine has stopped.
    pub async fn load(&self) -> Result<Load, SessionError> {
        let manager = self.0.upgrade().ok_or(SessionError::Stopped)?;
        manager.send(GetLoad).await.map_err(|_| SessionError::Stopped)
    }

    /// What comes and goes from now on.
    ///
    /// # Errors
    /// [`SessionError::Stopped`] if the engine has stopped.
    pub async fn turnover(&self) -> Result<Turnover, SessionError> {
        let manager = self.0.upgrade().ok_or(SessionError::Stopped)?;
        let watched = manager.send(GetWatched).await.map_err(|_| SessionError::Stopped)?;
        Ok(Turnover(watched.roster))
    }
}

impl Turnover {
    /// Waits until a session was opened, imported, unloaded, closed or deleted since this was last told; false when the
    /// engine has stopped.
    pub async fn next(&mut self) -> bool {
        self.0.changed().await.is_ok()
    }
}
