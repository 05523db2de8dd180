//! The entries of sessions on their way to an actor: added, starting, started or failed.

use std::sync::Arc;

use actix::prelude::*;
use holdpoint_common::{RestoreCause, SessionId, Snapshot};
use tokio::sync::{mpsc, oneshot, watch};

use super::{Entry, Life, Live, Manager};
use crate::actor::SessionActor;
use crate::error::SessionError;
use crate::session_env::SessionEnv;
use crate::state::Refused;

/// Adds the entry of a session.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct AddEntry(pub(super) SessionId, pub(super) Box<Entry>);

impl Handler<AddEntry> for Manager {
    type Result = ();

    fn handle(&mut self, AddEntry(id, entry): AddEntry, _: &mut Self::Context) {
        let touched = self.touch();
        // The name of a session that is opened again may be taken.
        self.names.entry(entry.name.clone()).or_insert_with(|| id.clone());
        self.sessions.insert(id, Entry { touched, ..*entry });
        self.remove_unused();
        self.roster.became_live();
    }
}

/// Marks a session that has no actor as starting.
#[derive(Message)]
#[rtype(result = "Result<BeginReply, SessionError>")]
pub(super) struct Begin {
    pub(super) id: SessionId,
    pub(super) seen: u64,
}

pub(super) enum BeginReply {
    /// Another caller has started it in the meantime.
    Live(Live),
    /// Another caller is starting it.
    Starting(oneshot::Receiver<Result<Live, SessionError>>),
    /// The caller has to start it.
    StartIt(RestoreCause),
}

impl Handler<Begin> for Manager {
    type Result = Result<BeginReply, SessionError>;

    fn handle(&mut self, Begin { id, seen }: Begin, _: &mut Self::Context) -> Self::Result {
        let Some(entry) = self.sessions.get_mut(&id) else {
            // The entry was removed while other starts held the lock.
            return Err(SessionError::NotLive { session: id });
        };
        match &mut entry.life {
            Life::Live { actor, .. } => {
                let actor = actor.clone();
                return Ok(BeginReply::Live(entry.live(id, actor, seen)));
            }
            // Another caller was faster, and its actor has failed since.
            Life::Starting { waiting } => {
                let (started, live) = oneshot::channel();
                waiting.push((seen, started));
                return Ok(BeginReply::Starting(live));
            }
            Life::Saved => {}
        }
        if entry.closed || self.stopping {
            return Err(if self.stopping { SessionError::Stopped } else { SessionError::Refused(Refused::Closed) });
        }
        entry.life = Life::Starting { waiting: Vec::new() };
        self.names.entry(entry.name.clone()).or_insert(id);
        let failed = entry.failed.contains_key(&entry.incarnation);
        self.roster.became_live();
        Ok(BeginReply::StartIt(if failed { RestoreCause::Panic } else { RestoreCause::Unloaded }))
    }
}

/// Gets the arbiter, the publisher and the environment for a session's actor.
#[derive(Message)]
#[rtype(result = "Result<StartSlot, SessionError>")]
pub(super) struct GetStartSlot {
    pub(super) id: SessionId,
    /// `None` for the environment that the session still has from an actor that failed.
    pub(super) env: Option<Arc<SessionEnv>>,
}

pub(super) struct StartSlot {
    pub(super) arbiter: actix_rt::ArbiterHandle,
    pub(super) shown: watch::Sender<Arc<Snapshot>>,
    pub(super) env: Arc<SessionEnv>,
}

impl Handler<GetStartSlot> for Manager {
    type Result = Result<StartSlot, SessionError>;

    fn handle(&mut self, GetStartSlot { id, env }: GetStartSlot, _: &mut Self::Context) -> Self::Result {
        if self.stopping {
            return Err(SessionError::Stopped);
        }
        self.next_arbiter = (self.next_arbiter + 1) % self.arbiters.len().max(1);
        let arbiter = self.arbiters.get(self.next_arbiter).ok_or(SessionError::Stopped)?.handle();
        let entry = self.sessions.get_mut(&id).ok_or(SessionError::Stopped)?;
        let env = env.or_else(|| entry.env.clone()).ok_or(SessionError::NotLive { session: id })?;
        entry.env = Some(Arc::clone(&env));
        Ok(StartSlot { arbiter, shown: entry.shown.clone(), env })
    }
}

/// A session's actor has been started.
#[derive(Message)]
#[rtype(result = "Result<Live, SessionError>")]
pub(super) struct ActorStarted {
    pub(super) id: SessionId,
    pub(super) seen: u64,
    pub(super) actor: Addr<SessionActor>,
    pub(super) alive: mpsc::Receiver<()>,
}

impl Handler<ActorStarted> for Manager {
    type Result = Result<Live, SessionError>;

    fn handle(&mut self, ActorStarted { id, seen, actor, alive }: ActorStarted, _: &mut Self::Context) -> Self::Result {
        // No shutdown would reach this actor.
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
                // The caller may be gone.
                let _ = waits.send(Ok(entry.live(id.clone(), actor.clone(), seen)));
            }
        }
        Ok(entry.live(id, actor, seen))
    }
}

/// A session's actor could not be started.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct StartFailed(pub(super) SessionId, pub(super) SessionError);

impl Handler<StartFailed> for Manager {
    type Result = ();

    fn handle(&mut self, StartFailed(id, error): StartFailed, _: &mut Self::Context) {
        self.roster.changed();
        let Some(entry) = self.sessions.get_mut(&id) else { return };
        let name = entry.name.clone();
        entry.env = None;
        // Dropping the senders reports that there is no actor to wait for.
        entry.ends.clear();
        if let Life::Starting { waiting } = std::mem::replace(&mut entry.life, Life::Saved) {
            fail_waiting(waiting, &error);
        }
        self.free_name(&name, &id);
    }
}

/// A session's actor could not be started, and the start will be retried. The waiting callers get
/// the error at once.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct StartRetrying(pub(super) SessionId, pub(super) SessionError);

impl Handler<StartRetrying> for Manager {
    type Result = ();

    fn handle(&mut self, StartRetrying(id, error): StartRetrying, _: &mut Self::Context) {
        if let Some(Entry { life: Life::Starting { waiting }, .. }) = self.sessions.get_mut(&id) {
            fail_waiting(std::mem::take(waiting), &error);
        }
    }
}

/// Sends the error to the callers that wait for an actor.
fn fail_waiting(waiting: Vec<(u64, oneshot::Sender<Result<Live, SessionError>>)>, error: &SessionError) {
    for (_, waits) in waiting {
        // The caller may be gone.
        let _ = waits.send(Err(error.clone()));
    }
}

/// Keeps the manager from removing a session's entry while the reply is held. Replies `None` if
/// there is no entry.
#[derive(Message)]
#[rtype(result = "Option<watch::Receiver<Arc<Snapshot>>>")]
pub(super) struct KeepEntry(pub(super) SessionId);

impl Handler<KeepEntry> for Manager {
    type Result = Option<watch::Receiver<Arc<Snapshot>>>;

    fn handle(&mut self, KeepEntry(id): KeepEntry, _: &mut Self::Context) -> Self::Result {
        let entry = self.sessions.get_mut(&id)?;
        // The session was requested again.
        entry.closed = false;
        Some(entry.shown.subscribe())
    }
}
