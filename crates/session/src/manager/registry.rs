//! The registry of sessions, which drives their lifecycle: it gives the machine its inputs and
//! carries out its effects.
//!
//! The manager's tasks share it. All of them run on the manager's thread, so they change it without
//! locks and without messages.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use actix::prelude::*;
use holdpoint_common::limits::ABANDON_AFTER;
use holdpoint_common::{SessionError, SessionId, Snapshot, Timestamp};
use tokio::sync::{mpsc, oneshot, watch};

use super::catalogs::Catalogs;
use super::lifecycle::{Access, ActorEnd, Effect, Granted, Host, IfSaved, Input, Lifecycle};
use super::owned::Owned;
use super::roster::Roster;
use super::{FutureEnd, Incarnation, Live};
use crate::actor::{self, SessionActor};
use crate::saved;
use crate::session_env::{EngineEnv, SessionEnv};

/// How many saved sessions are checked for being unused whenever an actor starts. More than one, so
/// that unused ones do not accumulate.
const UNUSED_CHECKS: usize = 2;

/// The sessions of an engine that are or were live in this process, or are being changed.
pub(super) struct Registry {
    pub(super) engine: Arc<EngineEnv>,
    pub(super) catalogs: RefCell<Catalogs>,
    pub(super) roster: RefCell<Roster>,
    lifecycle: RefCell<Lifecycle<Hosted>>,
    arbiters: Vec<Arbiter>,
    /// The index of the arbiter that was chosen last.
    last_arbiter: Cell<usize>,
    /// Whether the store was checked for damage.
    pub(super) checked: Cell<bool>,
    /// Whether the sessions that a crash cut are mended. Saved sessions are shown and opened only
    /// after that.
    mended: watch::Sender<bool>,
}

/// The types that the lifecycle keeps for the registry.
pub(super) struct Hosted;

impl Host for Hosted {
    type Caller = Caller;
    type PlaceCaller = oneshot::Sender<Result<(), SessionError>>;
    type Record = Record;
}

/// A caller that waits for a session.
pub(super) struct Caller {
    id: SessionId,
    /// The number of the actor that the caller has seen end, or 0.
    seen: u64,
    reply: oneshot::Sender<Result<Reached, SessionError>>,
}

/// A session as a caller gets it.
pub(super) enum Reached {
    Live(Live),
    Saved(Owned),
}

/// The data of a session that is or was live.
pub(super) struct Record {
    pub(super) opened: Timestamp,
    /// The snapshot that the session's actors publish. It outlives them.
    pub(super) shown: watch::Sender<Arc<Snapshot>>,
    /// The session environment. Without an actor it is dropped, because it may be large and every
    /// client that opens the session brings a new one; only the next actor after a failure gets the
    /// old one.
    pub(super) env: Option<Arc<SessionEnv>>,
    pub(super) actor: Option<RunningActor>,
}

/// The present actor of a session.
pub(super) struct RunningActor {
    pub(super) address: Addr<SessionActor>,
    /// Closed when everything that the session started has ended.
    pub(super) alive: mpsc::Receiver<()>,
    /// How the actor ended, once everything it started has ended; at once if it failed.
    pub(super) end: FutureEnd,
}

impl Registry {
    pub(super) fn new(engine: EngineEnv, arbiters: Vec<Arbiter>) -> Self {
        let lifecycle = Lifecycle::new(engine.limits.max_sessions);
        Self {
            engine: Arc::new(engine),
            catalogs: RefCell::default(),
            roster: RefCell::default(),
            lifecycle: RefCell::new(lifecycle),
            arbiters,
            last_arbiter: Cell::new(0),
            checked: Cell::new(false),
            mended: watch::Sender::new(false),
        }
    }

    /// Gets the session's actor, or its log for this caller alone.
    pub(super) async fn access(
        self: &Rc<Self>,
        id: &SessionId,
        seen: u64,
        if_saved: IfSaved,
    ) -> Result<Reached, SessionError> {
        let is_disconnected = self.read_record(id, |record| {
            record.actor.as_ref().is_some_and(|actor| !actor.address.connected())
        });
        if is_disconnected == Some(true) {
            self.input(Input::Disconnected { id: id.clone() });
        }
        let reached = self.request(id, Access { seen, if_saved }).await;
        match &reached {
            // A crash may have cut the session's last turn.
            Ok(Reached::Saved(_)) if self.read_record(id, |_| ()).is_none() => self.mended().await,
            Err(SessionError::NotLive { .. }) if self.read_record(id, |_| ()).is_none() => {
                return Err(saved::why_not_live(&*self.engine.store, id.clone()).await);
            }
            Ok(_) | Err(_) => {}
        }
        reached
    }

    /// Gets the log of a new session.
    pub(super) async fn own_new(self: &Rc<Self>, id: &SessionId) -> Result<Owned, SessionError> {
        match self.request(id, Access { seen: 0, if_saved: IfSaved::Change }).await? {
            Reached::Saved(owned) => Ok(owned),
            Reached::Live(_) => Err(SessionError::Live { session: id.clone() }),
        }
    }

    async fn request(
        self: &Rc<Self>,
        id: &SessionId,
        access: Access,
    ) -> Result<Reached, SessionError> {
        let (reply, reached) = oneshot::channel();
        let caller = Caller { id: id.clone(), seen: access.seen, reply };
        self.input(Input::Access { id: id.clone(), access, caller });
        reached.await.unwrap_or(Err(SessionError::Stopped))
    }

    /// Waits until the sessions that a crash cut are mended.
    pub(super) async fn mended(&self) {
        // Never fails: the registry has the sender.
        let _ = self.mended.subscribe().wait_for(|mended| *mended).await;
    }

    pub(super) fn set_mended(&self) {
        self.mended.send_replace(true);
    }

    /// Handles an input of the lifecycle, and the inputs that follow from it.
    pub(super) fn input(self: &Rc<Self>, input: Input<Hosted>) {
        let mut inputs = vec![input];
        while let Some(input) = inputs.pop() {
            let effects = self.lifecycle.borrow_mut().handle(input);
            inputs.extend(effects.into_iter().filter_map(|effect| self.carry_out(effect)));
        }
    }

    /// Carries out an effect. Returns the input that follows at once.
    fn carry_out(self: &Rc<Self>, effect: Effect<Hosted>) -> Option<Input<Hosted>> {
        match effect {
            Effect::Grant(Caller { id, seen, reply }, granted) => {
                let reached = granted.and_then(|granted| match granted {
                    Granted::Actor => Ok(Reached::Live(self.live(&id, seen)?)),
                    Granted::Log => Ok(Reached::Saved(Owned::new(Rc::clone(self), id))),
                });
                // If the caller is gone, its log is released.
                let _ = reply.send(reached);
            }
            Effect::GrantPlace(caller, granted) => {
                // If the owner is gone, it has released the log.
                let _ = caller.send(granted);
            }
            Effect::Unload(id) => return self.ask_to_unload(id),
            Effect::Rebuild { id, delay } => {
                let alive = self
                    .edit_record(&id, |record| record.actor.take())
                    .flatten()
                    .map(|actor| actor.alive);
                tracing::error!(session = %id, "session actor panicked; rebuilding it from its log");
                let owned = Owned::new(Rc::clone(self), id);
                actix_rt::spawn(async move {
                    tokio::time::sleep(delay).await;
                    wait_for_end(alive, owned.registry.end_timeout()).await;
                    owned.rebuild().await;
                });
            }
        }
        None
    }

    /// The live session with this id, for a caller that has seen the end of the actor with number
    /// `seen`.
    pub(super) fn live(&self, id: &SessionId, seen: u64) -> Result<Live, SessionError> {
        let lifecycle = self.lifecycle.borrow();
        let session = lifecycle.get(id).ok_or(SessionError::Stopped)?;
        let record = session.record.as_ref().ok_or(SessionError::Stopped)?;
        let RunningActor { address, end, .. } =
            record.actor.as_ref().ok_or(SessionError::Stopped)?;
        Ok(Live {
            id: id.clone(),
            actor: Incarnation { number: session.actor, address: address.clone() },
            shown: record.shown.subscribe(),
            seen_failed: session.has_failed(seen),
            end: end.clone(),
        })
    }

    /// Asks the session's actor to unload, unless it is evidently in use.
    fn ask_to_unload(self: &Rc<Self>, id: SessionId) -> Option<Input<Hosted>> {
        let candidate = self.read_record(&id, |record| {
            let address = &record.actor.as_ref()?.address;
            // If it has ended, the manager is about to learn that.
            (!address.connected() || may_unload(&record.shown.borrow(), &self.engine))
                .then(|| address.clone())
        });
        let Some(address) = candidate.flatten() else { return Some(Input::RefusedUnload { id }) };
        let registry = Rc::clone(self);
        actix_rt::spawn(async move {
            // If it unloads or has ended, that is another input.
            if let Ok(false) = address.send(actor::Unload).await {
                registry.input(Input::RefusedUnload { id });
            }
        });
        None
    }

    /// A session's actor has ended. Returns the receiver that shows when everything it started has
    /// ended, except after a failure.
    pub(super) fn actor_ended(
        self: &Rc<Self>,
        id: &SessionId,
        end: ActorEnd,
    ) -> Option<mpsc::Receiver<()>> {
        // While the engine stops, watchers follow each session to its end.
        if !self.is_stopping() {
            self.roster.borrow().changed();
        }
        let ended = self.edit_record(id, |record| {
            // The next actor after a failure needs the environment, and waits for `alive`.
            if end == ActorEnd::Failed {
                return None;
            }
            record.env = None;
            record.actor.take()
        });
        if end == ActorEnd::Lost {
            self.forget_record(id);
        }
        self.input(Input::Ended { id: id.clone(), end, now: Instant::now() });
        self.remove_if_unused(id);
        ended.flatten().map(|actor| actor.alive)
    }

    /// Forgets the snapshot of a session that another machine has: the log has others.
    pub(super) fn forget_record(&self, id: &SessionId) {
        if let Some(session) = self.lifecycle().get_mut(id) {
            session.record = None;
        }
    }

    /// Like [`forget_record`](Self::forget_record), for a session without an actor.
    pub(super) fn forget_saved(&self, id: &SessionId) {
        self.lifecycle.borrow_mut().remove_if(id, |_, _| true);
    }

    /// Gives back the log of a session. With an error, its actor could not be started.
    pub(super) fn release(self: &Rc<Self>, id: &SessionId, failed: Option<SessionError>) {
        self.input(Input::Released { id: id.clone(), failed });
        self.remove_if_unused(id);
    }

    fn remove_if_unused(&self, id: &SessionId) {
        let is_unused = |record: &Record, closed| self.is_unused(record, closed);
        self.lifecycle.borrow_mut().remove_if(id, is_unused);
    }

    /// Removes some sessions that are only saved, have complete logs, and have no client.
    pub(super) fn remove_unused(&self) {
        let is_unused = |record: &Record, closed| self.is_unused(record, closed);
        self.lifecycle.borrow_mut().remove_unused(UNUSED_CHECKS, is_unused);
    }

    fn is_unused(&self, record: &Record, closed: bool) -> bool {
        // Clients of a closed session can read everything from the store.
        let has_client = !closed && record.shown.receiver_count() > 0;
        !has_client && !self.engine.lacks_saves(&record.shown.borrow())
    }

    /// The lifecycle, to read it or to change names and records. Not to be kept over an await.
    pub(super) fn lifecycle(&self) -> std::cell::RefMut<'_, Lifecycle<Hosted>> {
        self.lifecycle.borrow_mut()
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.lifecycle.borrow().is_stopping()
    }

    pub(super) fn read_record<T>(
        &self,
        id: &SessionId,
        read: impl FnOnce(&Record) -> T,
    ) -> Option<T> {
        self.lifecycle.borrow().get(id)?.record.as_ref().map(read)
    }

    pub(super) fn edit_record<T>(
        &self,
        id: &SessionId,
        edit: impl FnOnce(&mut Record) -> T,
    ) -> Option<T> {
        self.lifecycle.borrow_mut().get_mut(id)?.record.as_mut().map(edit)
    }

    /// The arbiter for the next actor.
    pub(super) fn next_arbiter(&self) -> Option<ArbiterHandle> {
        let next = (self.last_arbiter.get() + 1) % self.arbiters.len().max(1);
        self.last_arbiter.set(next);
        Some(self.arbiters.get(next)?.handle())
    }

    /// How long everything that a session started may take to end after its actor.
    pub(super) fn end_timeout(&self) -> Duration {
        self.engine.limits.grace() + 2 * ABANDON_AFTER
    }
}

/// Waits until everything that a session started has ended, for at most `timeout`.
pub(super) async fn wait_for_end(alive: Option<mpsc::Receiver<()>>, timeout: Duration) {
    let Some(mut alive) = alive else { return };
    // The processes of background jobs may still be ending.
    let _ = tokio::time::timeout(timeout, async { while alive.recv().await.is_some() {} }).await;
}

/// Whether the session seems to be at rest, without clients and completely saved.
fn may_unload(snapshot: &Snapshot, engine: &EngineEnv) -> bool {
    use holdpoint_common::{Hold, SessionStatus};
    snapshot.status == SessionStatus::Idle
        && snapshot.clients == 0
        && snapshot.queue.is_empty()
        && snapshot.jobs.is_empty()
        && snapshot.hold == Hold::Off
        && !engine.lacks_saves(snapshot)
}
