//! What an engine has to do, counted: for whoever runs one.

use holdpoint_common::api::SessionCounts;
use holdpoint_common::{HoldShown, SessionStatus, Snapshot, Timestamp};

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
