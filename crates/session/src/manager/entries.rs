//! What is noted of a session on its way to an actor: that there is one, that it is being started, that it was.

use std::sync::Arc;

use actix::prelude::*;
use holdpoint_common::{RestoreCause, SessionId, Snapshot};
use tokio::sync::{mpsc, watch};

use super::{Entry, Life, Live, Manager};
use crate::actor::SessionActor;
use crate::error::SessionError;
use crate::outfit::{Base, Outfit};
use crate::state::Refused;

/// Enters a fresh session.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct Enter(pub(super) SessionId, pub(super) Box<Entry>);

impl Handler<Enter> for Manager {
    type Result = ();

    fn handle(&mut self, Enter(id, entry): Enter, _: &mut Self::Context) {
        let touched = self.touch();
        // One that comes back may find its name taken.
        self.names.entry(entry.name.clone()).or_insert_with(|| id.clone());
        self.sessions.insert(id, Entry { touched, ..*entry });
        self.forget_unused();
        self.roster.changed();
    }
}

/// Marks a session as starting.
#[derive(Message)]
#[rtype(result = "Result<Begun, SessionError>")]
pub(super) struct Begin {
    pub(super) id: SessionId,
    pub(super) seen: u64,
    /// Who asks brings along what it has.
    pub(super) supplied: bool,
}

pub(super) enum Begun {
    /// Someone else has started it meanwhile.
    Live(Live),
    /// It is ours to start, once nothing of the actor before runs any more.
    Resume {
        base: Arc<Base>,
        cause: RestoreCause,
        /// What it had when its actor failed.
        outfit: Option<Arc<Outfit>>,
        before: Option<mpsc::Receiver<()>>,
    },
}

impl Handler<Begin> for Manager {
    type Result = Result<Begun, SessionError>;

    fn handle(&mut self, Begin { id, seen, supplied }: Begin, _: &mut Self::Context) -> Self::Result {
        let Some(entry) = self.sessions.get_mut(&id) else {
            // Forgotten while others were before it.
            return Err(SessionError::NotLive { session: id });
        };
        let failed = entry.failed.contains_key(&entry.incarnation);
        let cause = if failed { RestoreCause::Panic } else { RestoreCause::Unloaded };
        if let Life::Live { actor, .. } = &entry.life {
            return Ok(Begun::Live(entry.live(id, actor.clone(), seen)));
        }
        if entry.closed || self.stopping {
            return Err(if self.stopping { SessionError::Stopped } else { SessionError::Refused(Refused::Closed) });
        }
        if entry.outfit.is_none() && !supplied {
            return Err(SessionError::NotLive { session: id });
        }
        if let Life::Saved = entry.life {
            entry.life = Life::Starting { waiting: Vec::new(), before: None };
            self.names.entry(entry.name.clone()).or_insert(id);
        }
        let before = match &mut entry.life {
            Life::Starting { before, .. } => before.take(),
            Life::Live { .. } | Life::Saved => None,
        };
        Ok(Begun::Resume { base: Arc::clone(&self.base), cause, outfit: entry.outfit.clone(), before })
    }
}

/// Where a session's actor is to be started that works with this.
#[derive(Message)]
#[rtype(result = "Result<Place, SessionError>")]
pub(super) struct GetPlace {
    pub(super) id: SessionId,
    pub(super) outfit: Arc<Outfit>,
}

pub(super) struct Place {
    pub(super) arbiter: actix_rt::ArbiterHandle,
    pub(super) shown: watch::Sender<Arc<Snapshot>>,
}

impl Handler<GetPlace> for Manager {
    type Result = Result<Place, SessionError>;

    fn handle(&mut self, GetPlace { id, outfit }: GetPlace, _: &mut Self::Context) -> Self::Result {
        if self.stopping {
            return Err(SessionError::Stopped);
        }
        self.next_arbiter = (self.next_arbiter + 1) % self.arbiters.len().max(1);
        let arbiter = self.arbiters.get(self.next_arbiter).ok_or(SessionError::Stopped)?.handle();
        let entry = self.sessions.get_mut(&id).ok_or(SessionError::Stopped)?;
        entry.outfit = Some(outfit);
        Ok(Place { arbiter, shown: entry.shown.clone() })
    }
}

/// A session's actor has been started.
#[derive(Message)]
#[rtype(result = "Result<Live, SessionError>")]
pub(super) struct Started {
    pub(super) id: SessionId,
    pub(super) seen: u64,
    pub(super) actor: Addr<SessionActor>,
    pub(super) alive: mpsc::Receiver<()>,
}

impl Handler<Started> for Manager {
    type Result = Result<Live, SessionError>;

    fn handle(&mut self, Started { id, seen, actor, alive }: Started, _: &mut Self::Context) -> Self::Result {
        // Nobody would end it.
        if self.stopping {
            return Err(SessionError::Stopped);
        }
        let entry = self.sessions.get_mut(&id).ok_or(SessionError::Stopped)?;
        self.roster.changed();
        self.incarnations += 1;
        entry.incarnation = self.incarnations;
        let live = Life::Live { actor: actor.clone(), alive };
        if let Life::Starting { waiting, .. } = std::mem::replace(&mut entry.life, live) {
            for (seen, waits) in waiting {
                // Who waited may be gone.
                let _ = waits.send(Ok(entry.live(id.clone(), actor.clone(), seen)));
            }
        }
        Ok(entry.live(id, actor, seen))
    }
}

/// A session's actor could not be started.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct Failed(pub(super) SessionId, pub(super) SessionError);

impl Handler<Failed> for Manager {
    type Result = ();

    fn handle(&mut self, Failed(id, error): Failed, _: &mut Self::Context) {
        self.roster.changed();
        let Some(entry) = self.sessions.get_mut(&id) else { return };
        let name = entry.name.clone();
        entry.outfit = None;
        // Who waits for its actor's end learns by this that there is none.
        entry.ends.clear();
        if let Life::Starting { waiting, .. } = std::mem::replace(&mut entry.life, Life::Saved) {
            for (_, waits) in waiting {
                let _ = waits.send(Err(error.clone()));
            }
        }
        self.free_name(&name, &id);
    }
}

/// Keeps the manager from forgetting a session, for as long as what it gives is held; nothing if it knows it not, or no
/// longer.
#[derive(Message)]
#[rtype(result = "Option<watch::Receiver<Arc<Snapshot>>>")]
pub(super) struct Keep(pub(super) SessionId);

impl Handler<Keep> for Manager {
    type Result = Option<watch::Receiver<Arc<Snapshot>>>;

    fn handle(&mut self, Keep(id): Keep, _: &mut Self::Context) -> Self::Result {
        let entry = self.sessions.get_mut(&id)?;
        // It was asked for anew.
        entry.closed = false;
        Some(entry.shown.subscribe())
    }
}
