//! Which sessions there are, for those who watch all of them.

use std::sync::Arc;

use actix::prelude::*;
use holdpoint_common::{SessionId, Snapshot};
use tokio::sync::watch;

use super::{Life, Manager};

/// Counts how often sessions came, went, or changed whether they are live.
#[derive(Default)]
pub(super) struct Roster(watch::Sender<u64>);

impl Roster {
    pub(super) fn changed(&self) {
        self.0.send_modify(|changes| *changes += 1);
    }
}

/// The store has a session that it had not.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Imported;

impl Handler<Imported> for Manager {
    type Result = ();

    fn handle(&mut self, _: Imported, _: &mut Self::Context) {
        self.roster.changed();
    }
}

/// What there is to watch.
pub(crate) struct Watched {
    /// Changes with which sessions there are, and which of them are live.
    pub(crate) roster: watch::Receiver<u64>,
    /// What the live ones publish.
    pub(crate) live: Vec<(SessionId, watch::Receiver<Arc<Snapshot>>)>,
}

/// What there is to watch now.
#[derive(Message)]
#[rtype(result = "Watched")]
pub(crate) struct GetWatched;

impl Handler<GetWatched> for Manager {
    type Result = MessageResult<GetWatched>;

    fn handle(&mut self, _: GetWatched, _: &mut Self::Context) -> Self::Result {
        let live = self.sessions.iter().filter(|(_, entry)| !matches!(entry.life, Life::Saved));
        let live = live.map(|(id, entry)| (id.clone(), entry.shown.subscribe())).collect();
        MessageResult(Watched { roster: self.roster.0.subscribe(), live })
    }
}
