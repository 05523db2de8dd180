//! The roster, from which watchers learn that the set of sessions has changed.

use std::rc::Rc;
use std::sync::Arc;

use futures_util::StreamExt;
use holdpoint_common::{SessionId, Snapshot};
use tokio::sync::watch;

use super::registry::Registry;
use crate::actor::CheckOwner;
use crate::store::StoreChange;

/// Counts how often sessions appeared, disappeared, or changed between live and saved.
#[derive(Default)]
pub(super) struct Roster {
    changes: watch::Sender<u64>,
    /// How often a session became live.
    live_starts: u64,
    /// How often a session without an actor appeared, disappeared or changed.
    saved_changes: u64,
}

impl Roster {
    /// A session has become live or saved.
    pub(super) fn changed(&self) {
        self.changes.send_modify(|changes| *changes += 1);
    }

    /// A session has become live.
    pub(super) fn became_live(&mut self) {
        self.live_starts += 1;
        self.changed();
    }

    /// A session without an actor appeared, disappeared or changed.
    pub(super) fn saved_changed(&mut self) {
        self.saved_changes += 1;
        self.changed();
    }
}

/// The sources of a watch.
pub(crate) struct WatchSources {
    /// Changes when the roster changes.
    pub(crate) roster: watch::Receiver<u64>,
    /// The snapshots of the live sessions, the oldest session first.
    pub(crate) live: Vec<(SessionId, watch::Receiver<Arc<Snapshot>>)>,
    /// How often a session became live. If that is more often than sessions are new in `live`, some
    /// have become live and ended in between.
    pub(crate) live_starts: u64,
    /// Unchanged while the saved sessions are unchanged, except for sessions that were live.
    pub(crate) saved_changes: u64,
    /// Whether the engine is stopping. Then `live` is empty, and the ending sessions still publish.
    pub(crate) stopping: bool,
}

impl Registry {
    /// Reports changes of the sessions of other machines to the watchers of the list, and ends the
    /// work of sessions that have lost their owner.
    pub(super) async fn follow_other_machines(self: &Rc<Self>) {
        let mut changes = self.engine.store.changes();
        while let Some(change) = changes.next().await {
            match change {
                StoreChange::Abandoned(sessions) => self.mend_abandoned(sessions).await,
                StoreChange::Lapsed => self.check_owners(),
                StoreChange::Sessions => {}
            }
            self.roster.borrow_mut().saved_changed();
        }
    }

    /// Ends the live sessions that another machine has taken over, also those without work.
    fn check_owners(&self) {
        for (_, _, record) in self.lifecycle().records() {
            if let Some(actor) = &record.actor {
                actor.address.do_send(CheckOwner);
            }
        }
    }

    /// The present sources of a watch.
    pub(super) fn watch_sources(&self) -> WatchSources {
        let lifecycle = self.lifecycle();
        let stopping = lifecycle.is_stopping();
        let mut live: Vec<_> =
            lifecycle.records().filter(|(_, phase, _)| phase.is_live() && !stopping).collect();
        live.sort_by_key(|(id, _, record)| (record.opened, *id));
        let live = live
            .into_iter()
            .map(|(id, _, record)| (id.clone(), record.shown.subscribe()))
            .collect();
        let roster = self.roster.borrow();
        WatchSources {
            roster: roster.changes.subscribe(),
            live,
            live_starts: roster.live_starts,
            saved_changes: roster.saved_changes,
            stopping,
        }
    }
}
