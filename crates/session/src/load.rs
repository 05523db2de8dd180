//! What an engine has to do, counted: for whoever runs one.

use actix::WeakAddr;
use actix::prelude::*;
use holdpoint_common::api::SessionCounts;
use holdpoint_common::{HoldShown, SessionStatus, Snapshot, Timestamp};
use tokio::sync::watch;

use crate::error::SessionError;
use crate::manager::{GetLoad, GetWatched, Manager};

/// What an engine has to do, at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Load {
    /// Its live sessions.
    pub sessions: SessionCounts,
    /// Clients that are attached to them.
    pub clients: usize,
    /// Prompts that wait for their turn.
    pub queued_prompts: usize,
    /// Everything is saved.
    pub saved: bool,
    /// When one of them last began to do something else; nothing if none is live.
    pub last_change: Option<Timestamp>,
}

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

impl Load {
    /// Nothing, of an engine with so much room.
    pub(crate) fn none(most: usize) -> Self {
        Self { sessions: SessionCounts { most, ..SessionCounts::default() }, saved: true, ..Self::default() }
    }

    /// A session more.
    pub(crate) fn add(&mut self, session: &Snapshot) {
        let counts = &mut self.sessions;
        counts.live += 1;
        counts.busy += usize::from(session.status != SessionStatus::Idle || !session.jobs.is_empty());
        counts.running += usize::from(session.status == SessionStatus::Running);
        counts.waiting += usize::from(!session.asks.is_empty());
        counts.held += usize::from(session.hold.shown() == HoldShown::Standing);
        self.clients += session.clients;
        self.queued_prompts += session.queue.len();
        self.last_change = self.last_change.max(Some(session.since));
    }
}
