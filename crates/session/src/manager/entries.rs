//! What is noted of a session on its way to an actor: that there is one, that it is being started, that it was.

use std::sync::Arc;

use actix::prelude::*;
use holdpoint_common::{RestoreCause, SessionId, Snapshot};
use tokio::sync::{mpsc, oneshot, watch};

use super::{Entry, Life, Live, Manager};
use crate::actor::SessionActor;
use crate::error::SessionError;
use crate::outfit::Outfit;
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
        self.roster.came();
    }
}

/// Marks a session that has no actor as starting.
#[derive(Message)]
#[rtype(result = "Result<Begun, SessionError>")]
pub(super) struct Begin {
    pub(super) id: SessionId,
    pub(super) seen: u64,
}

pub(super) enum Begun {
    /// Someone else has started it meanwhile.
    Live(Live),
    /// Someone else is starting it.
    Starting(oneshot::Receiver<Result<Live, SessionError>>),
    /// It is ours to start.
    Ours(RestoreCause),
}

impl Handler<Begin> for Manager {
    type Result = Result<Begun, SessionError>;

    fn handle(&mut self, Begin { id, seen }: Begin, _: &mut Self::Context) -> Self::Result {
        let Some(entry) = self.sessions.get_mut(&id) else {
            // Forgotten while others were before it.
            return Err(SessionError::NotLive { session: id });
        };
        match &mut entry.life {
            Life::Live { actor, .. } => {
                let actor = actor.clone();
                return Ok(Begun::Live(entry.live(id, actor, seen)));
            }
            // Somebody else was faster, and its actor has failed since.
            Life::Starting { waiting } => {
                let (started, live) = oneshot::channel();
                waiting.push((seen, started));
                return Ok(Begun::Starting(live));
            }
            Life::Saved => {}
        }
        if entry.closed || self.stopping {
            return Err(if self.stopping { SessionError::Stopped } else { SessionError::Refused(Refused::Closed) });
        }
        entry.life = Life::Starting { waiting: Vec::new() };
        self.names.entry(entry.name.clone()).or_insert(id);
        let failed = entry.failed.contains_key(&entry.incarnation);
        self.roster.came();
        Ok(Begun::Ours(if failed { RestoreCause::Panic } else { RestoreCause::Unloaded }))
    }
}

/// Where a session's actor is to be started, and what it works with.
#[derive(Message)]
#[rtype(result = "Result<Place, SessionError>")]
pub(super) struct GetPlace {
    pub(super) id: SessionId,
    /// Nothing: what the session still has of an actor that failed.
    pub(super) outfit: Option<Arc<Outfit>>,
}

pub(super) struct Place {
    pub(super) arbiter: actix_rt::ArbiterHandle,
    pub(super) shown: watch::Sender<Arc<Snapshot>>,
    pub(super) outfit: Arc<Outfit>,
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
        let outfit = outfit.or_else(|| entry.outfit.clone()).ok_or(SessionError::NotLive { session: id })?;
        entry.outfit = Some(Arc::clone(&outfit));
        Ok(Place { arbiter, shown: entry.shown.clone(), outfit })
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
        if let Life::Starting { waiting } = std::mem::replace(&mut entry.life, live) {
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
        if let Life::Starting { waiting } = std::mem::replace(&mut entry.life, Life::Saved) {
            refuse(waiting, &error);
        }
        self.free_name(&name, &id);
    }
}

/// A session's actor could not be started, and it is tried again: who waits for it is not kept until then.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct NotYet(pub(super) SessionId, pub(super) SessionError);

impl Handler<NotYet> for Manager {
    type Result = ();

    fn handle(&mut self, NotYet(id, error): NotYet, _: &mut Self::Context) {
        if let Some(Entry { life: Life::Starting { waiting }, .. }) = self.sessions.get_mut(&id) {
            refuse(std::mem::take(waiting), &error);
        }
    }
}

/// Tells those who wait for an actor that there is none.
fn refuse(waiting: Vec<(u64, oneshot::Sender<Result<Live, SessionError>>)>, error: &SessionError) {
    for (_, waits) in waiting {
        // Who waited may be gone.
        let _ = waits.send(Err(error.clone()));
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
