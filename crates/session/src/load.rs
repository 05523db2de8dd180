//! The load of an engine, in numbers.

use holdpoint_common::api::SessionCounts;
use holdpoint_common::{HoldState, SessionStatus, Snapshot, Timestamp};

/// The load of an engine at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Load {
    /// The counts of its live sessions.
    pub sessions: SessionCounts,
    /// How many clients are attached to live sessions.
    pub clients: usize,
    /// How many prompts wait for their turn.
    pub queued_prompts: usize,
    /// Whether all facts of all sessions are saved.
    pub saved: bool,
    /// When the status of a live session last changed; `None` if no session is live.
    pub last_change: Option<Timestamp>,
}

impl Load {
    /// The load of an engine without sessions, which can run `limit` of them.
    pub(crate) fn none(limit: usize) -> Self {
        Self {
            sessions: SessionCounts { limit, ..SessionCounts::default() },
            saved: true,
            ..Self::default()
        }
    }

    /// Adds a live session.
    pub(crate) fn add(&mut self, session: &Snapshot) {
        let counts = &mut self.sessions;
        counts.live += 1;
        counts.busy +=
            usize::from(session.status != SessionStatus::Idle || !session.jobs.is_empty());
        counts.running += usize::from(session.status == SessionStatus::Running);
        counts.waiting += usize::from(!session.asks.is_empty());
        counts.held += usize::from(session.hold.shown() == HoldState::Standing);
        self.clients += session.clients;
        self.queued_prompts += session.queue.len();
        self.last_change = self.last_change.max(Some(session.since));
    }
}
