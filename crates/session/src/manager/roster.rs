//! The roster, from which watchers learn that the set of sessions has changed.

use std::sync::Arc;

use actix::prelude::*;
use holdpoint_common::{SessionId, Snapshot};
use tokio::sync::watch;

use super::{Life, Manager};

/// Counts how often sessions appeared, disappeared, or changed between live and saved.
#[derive(Default)]
pub(super) struct Roster {
    changes: watch::Sender<u64>,
    /// How often a session was about to get an actor.
    live_starts: u64,
    /// How often there was a change that only the store shows.
    saved: u64,
}

impl Roster {
    /// A session has become live or saved.
    pub(super) fn changed(&self) {
        self.changes.send_modify(|changes| *changes += 1);
    }

    /// A session is about to get an actor.
    pub(super) fn became_live(&mut self) {
        self.live_starts += 1;
        self.changed();
    }

    /// A session without an actor appeared, disappeared or changed.
    pub(super) fn saved_changed(&mut self) {
        self.saved += 1;
        self.changed();
    }
}

/// A session was imported into the store.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Imported;

impl Handler<Imported> for Manager {
    type Result = ();

    fn handle(&mut self, _: Imported, _: &mut Self::Context) {
        self.roster.saved_changed();
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
    pub(crate) saved: u64,
    /// Whether the engine is stopping. Then `live` is empty, and the ending sessions still publish.
    pub(crate) stopping: bool,
}

/// Gets the present sources of a watch.
#[derive(Message)]
#[rtype(result = "WatchSources")]
pub(crate) struct GetWatchSources;

impl Handler<GetWatchSources> for Manager {
    type Result = MessageResult<GetWatchSources>;

    fn handle(&mut self, _: GetWatchSources, _: &mut Self::Context) -> Self::Result {
        let live = self.sessions.iter().filter(|(_, entry)| !matches!(entry.life, Life::Saved));
        let mut live: Vec<_> = live.collect();
        live.sort_by_key(|(id, entry)| (entry.opened, *id));
        let live = live.into_iter().map(|(id, entry)| (id.clone(), entry.shown.subscribe())).collect();
        let Roster { changes, live_starts, saved } = &self.roster;
        let stopping = self.stopping;
        MessageResult(WatchSources {
            roster: changes.subscribe(),
            live,
            live_starts: *live_starts,
            saved: *saved,
            stopping,
        })
    }
}
