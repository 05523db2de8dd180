//! Which sessions there are, for those who watch all of them.

use std::sync::Arc;

use actix::prelude::*;
use holdpoint_common::{SessionId, Snapshot};
use tokio::sync::watch;

use super::{Life, Manager};

/// Counts how often sessions came, went, or changed whether they are live.
#[derive(Default)]
pub(super) struct Roster {
    changes: watch::Sender<u64>,
    /// How often a session without an actor was about to have one.
    came: u64,
    /// How often there was a change that only the store knows of.
    saved: u64,
}

impl Roster {
    /// A session has an actor that had none, or none any more.
    pub(super) fn changed(&self) {
        self.changes.send_modify(|changes| *changes += 1);
    }

    /// A session is about to have an actor.
    pub(super) fn came(&mut self) {
        self.came += 1;
        self.changed();
    }

    /// A session that has no actor came, went, or is not what it was.
    pub(super) fn saved_changed(&mut self) {
        self.saved += 1;
        self.changed();
    }
}

/// The store has a session that it had not.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Imported;

impl Handler<Imported> for Manager {
    type Result = ();

    fn handle(&mut self, _: Imported, _: &mut Self::Context) {
        self.roster.saved_changed();
    }
}

/// What there is to watch.
pub(crate) struct Watched {
    /// Changes with which sessions there are, and which of them are live.
    pub(crate) roster: watch::Receiver<u64>,
    /// What the live ones publish, the oldest first.
    pub(crate) live: Vec<(SessionId, watch::Receiver<Arc<Snapshot>>)>,
    /// How often one became live: more often than there are new ones here, and some have come and gone.
    pub(crate) came: u64,
    /// As long as it stays the same, so do the sessions that are not live; but for those that were.
    pub(crate) saved: u64,
    /// The engine is stopping: `live` is empty, and the sessions that are ending still publish.
    pub(crate) stopping: bool,
}

/// What there is to watch now.
#[derive(Message)]
#[rtype(result = "Watched")]
pub(crate) struct GetWatched;

impl Handler<GetWatched> for Manager {
    type Result = MessageResult<GetWatched>;

    fn handle(&mut self, _: GetWatched, _: &mut Self::Context) -> Self::Result {
        let live = self.sessions.iter().filter(|(_, entry)| !matches!(entry.life, Life::Saved));
        let mut live: Vec<_> = live.collect();
        live.sort_by_key(|(id, entry)| (entry.opened, *id));
        let live = live.into_iter().map(|(id, entry)| (id.clone(), entry.shown.subscribe())).collect();
        let Roster { changes, came, saved } = &self.roster;
        let stopping = self.stopping;
        MessageResult(Watched { roster: changes.subscribe(), live, came: *came, saved: *saved, stopping })
    }
}
