//! The manager: the actor that knows every session, starts their actors, watches them, and makes room.

mod catalogs;
mod delete;
mod find;
mod fold;
mod load;
mod model;
mod names;
mod rename;
mod restore;
mod room;
mod roster;
mod saved;
mod scribe;
mod shutdown;
mod start;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use actix::prelude::*;
use holdpoint_common::limits::LEAVE_AFTER;
use holdpoint_common::{SessionId, SessionSummary, Snapshot, Supplies, Timestamp, Who};
use tokio::sync::{mpsc, oneshot, watch};

use self::catalogs::Catalogs;
pub(crate) use self::load::GetLoad;
use self::roster::Roster;
pub(crate) use self::roster::{GetWatched, Imported, Watched};
use crate::actor::{self, SessionActor};
use crate::error::SessionError;
use crate::open::OpenSession;
use crate::outfit::{Base, Outfit};
use crate::state::Refused;
use crate::store::{SessionStore, StoreError};

pub(crate) use delete::DeleteSession;
pub(crate) use model::ChangeModel;
pub(crate) use names::{folder_name, fresh_id};
pub(crate) use rename::RenameSession;
pub(crate) use restore::mend;
pub(crate) use shutdown::Shutdown;

/// Knows every session of an engine.
pub(crate) struct Manager {
    base: Arc<Base>,
    catalogs: Catalogs,
    roster: Roster,
    arbiters: Vec<Arbiter>,
    /// The arbiter the next actor is started on.
    next_arbiter: usize,
    sessions: HashMap<SessionId, Entry>,
    /// The names of the sessions that have an actor or are about to.
    names: HashMap<String, SessionId>,
    /// The number that was last put behind a folder's name.
    numbered: HashMap<String, u32>,
    /// The engine stops: no actor is started any more.
    stopping: bool,
    /// Counts uses, to tell which session is longest untouched.
    touches: u64,
    /// Counts actors, to tell one from the next.
    incarnations: u64,
    /// Held while room is made and an actor started: one at a time, so that the limit is exact.
    room: Arc<tokio::sync::Mutex<()>>,
    /// Held while the sessions that a crash has cut are mended: until then nobody is shown a saved one.
    mending: Arc<tokio::sync::Mutex<()>>,
}

/// One session.
struct Entry {
    /// What it is called.
    name: String,
    opened: Timestamp,
    /// What it works with, for as long as it has an actor: it may be large, and comes again with whoever opens it.
    outfit: Option<Arc<Outfit>>,
    /// The snapshot its actors publish; it outlives them.
    shown: watch::Sender<Arc<Snapshot>>,
    touched: u64,
    life: Life,
    /// Those who wait for the actor's end.
    ends: Vec<oneshot::Sender<()>>,
    /// The number of its last actor.
    incarnation: u64,
    /// Those of its actors that failed.
    failed: BTreeSet<u64>,
    /// Someone closed it: it opens again only by being asked for anew.
    closed: bool,
}

/// Whether a session has an actor.
enum Life {
    /// It has.
    Live {
        actor: Addr<SessionActor>,
        /// Closed when nothing of the session runs any more.
        alive: mpsc::Receiver<()>,
    },
    /// It is about to have.
    Starting {
        /// Those who wait for it, and the actor each has seen.
        waiting: Vec<(u64, oneshot::Sender<Result<Live, SessionError>>)>,
        /// Closed when nothing of the actor before runs any more.
        before: Option<mpsc::Receiver<()>>,
    },
    /// It is only in its log.
    Saved,
}

/// A session with an actor.
#[derive(Clone)]
pub(crate) struct Live {
    pub(crate) id: SessionId,
    pub(crate) actor: Incarnation,
    pub(crate) shown: watch::Receiver<Arc<Snapshot>>,
    /// The actor that the asker had seen has failed.
    pub(crate) seen_failed: bool,
}

/// One of the actors that a session has in its life.
#[derive(Clone)]
pub(crate) struct Incarnation {
    /// Counted from 1; no two actors of an engine have the same.
    pub(crate) number: u64,
    pub(crate) actor: Addr<SessionActor>,
}

/// Opens a fresh session.
#[derive(Message)]
#[rtype(result = "Result<Live, SessionError>")]
pub(crate) struct Open {
    pub(crate) open: OpenSession,
    pub(crate) supplies: Arc<Supplies>,
}

/// The session of this id, with an actor; unless it was closed.
#[derive(Message)]
#[rtype(result = "Result<Live, SessionError>")]
pub(crate) struct Touch {
    pub(crate) id: SessionId,
    /// The actor that the asker has seen end, or 0.
    pub(crate) seen: u64,
    /// What it has if it was unloaded; without, it stays so.
    pub(crate) supplies: Option<Arc<Supplies>>,
}

/// The session of this id, with an actor, closed or not.
#[derive(Message)]
#[rtype(result = "Result<Live, SessionError>")]
struct Reach {
    id: SessionId,
    seen: u64,
    supplies: Option<Arc<Supplies>>,
}

/// The session of this id, name, or unique beginning of an id, with an actor.
#[derive(Message)]
#[rtype(result = "Result<Live, SessionError>")]
pub(crate) struct Find {
    pub(crate) what: String,
    /// What it has if it has to be opened.
    pub(crate) supplies: Arc<Supplies>,
}

/// The session of this id, name, or unique beginning of an id, as it is: without giving it an actor.
#[derive(Message)]
#[rtype(result = "Result<Arc<Snapshot>, SessionError>")]
pub(crate) struct Look {
    pub(crate) what: String,
}

/// Where the logs of sessions are kept.
#[derive(Message)]
#[rtype(result = "Arc<dyn SessionStore>")]
pub(crate) struct GetStore;

impl Handler<GetStore> for Manager {
    type Result = MessageResult<GetStore>;

    fn handle(&mut self, _: GetStore, _: &mut Self::Context) -> Self::Result {
        MessageResult(Arc::clone(&self.base.store))
    }
}

/// Every session.
#[derive(Message)]
#[rtype(result = "Result<Vec<SessionSummary>, SessionError>")]
pub(crate) struct List;

/// Closes a session; replies when its actor has ended.
#[derive(Message)]
#[rtype(result = "Result<(), SessionError>")]
pub(crate) struct CloseSession {
    pub(crate) id: SessionId,
    pub(crate) by: Who,
}

/// A session's actor has ended.
#[derive(Message)]
#[rtype(result = "()")]
struct ActorEnded {
    id: SessionId,
    panicked: bool,
}

impl Manager {
    pub(crate) fn new(base: Base, arbiters: Vec<Arbiter>) -> Self {
        Self {
            base: Arc::new(base),
            catalogs: Catalogs::default(),
            roster: Roster::default(),
            arbiters,
            next_arbiter: 0,
            sessions: HashMap::new(),
            names: HashMap::new(),
            numbered: HashMap::new(),
            stopping: false,
            touches: 0,
            incarnations: 0,
            room: Arc::default(),
            mending: Arc::default(),
        }
    }

    fn touch(&mut self) -> u64 {
        self.touches += 1;
        self.touches
    }

    /// Forgets the sessions that are only in their logs and in nobody's hands.
    fn forget_unused(&mut self) {
        self.sessions.retain(|_, entry| {
            !matches!(entry.life, Life::Saved) || entry.shown.receiver_count() > 0 || !entry.shown.borrow().saved
        });
    }

    /// Frees a name, if it is this session's: one that was closed may have come back when its name was taken.
    fn free_name(&mut self, name: &str, id: &SessionId) {
        if self.names.get(name) == Some(id) {
            self.names.remove(name);
        }
    }
}

impl Actor for Manager {
    type Context = Context<Self>;

    fn started(&mut self, _: &mut Self::Context) {
        // Free: nobody else has it yet.
        if let Ok(mending) = Arc::clone(&self.mending).try_lock_owned() {
            let base = Arc::clone(&self.base);
            actix_rt::spawn(async move {
                restore::all(&base).await;
                drop(mending);
            });
        }
    }
}

impl Handler<Touch> for Manager {
    type Result = ResponseFuture<Result<Live, SessionError>>;

    fn handle(&mut self, Touch { id, seen, supplies }: Touch, ctx: &mut Self::Context) -> Self::Result {
        self.reach(id, seen, supplies, ctx)
    }
}

impl Manager {
    /// The session, with an actor: the one it has, the one that is starting, or a new one.
    fn reach(
        &mut self,
        id: SessionId,
        seen: u64,
        supplies: Option<Arc<Supplies>>,
        ctx: &mut Context<Self>,
    ) -> ResponseFuture<Result<Live, SessionError>> {
        let touched = self.touch();
        let Some(entry) = self.sessions.get_mut(&id) else {
            let base = Arc::clone(&self.base);
            return Box::pin(async move { Err(fold::unknown(&base, id).await) });
        };
        if entry.closed {
            return Box::pin(async move { Err(SessionError::Refused(Refused::Closed)) });
        }
        entry.touched = touched;
        match &mut entry.life {
            Life::Live { actor, .. } if actor.connected() && entry.incarnation != seen => {
                let actor = actor.clone();
                let live = entry.live(id, actor, seen);
                Box::pin(async move { Ok(live) })
            }
            // Its actor has ended, or left its asker unanswered and is ending; how is not told yet.
            Life::Live { .. } => {
                let (ended, end) = oneshot::channel();
                entry.ends.push(ended);
                let manager = ctx.address();
                Box::pin(async move {
                    // Told or dropped: either way it has ended.
                    let _ = end.await;
                    manager.send(Reach { id, seen, supplies }).await.unwrap_or(Err(SessionError::Stopped))
                })
            }
            Life::Starting { waiting, .. } => {
                let (started, live) = oneshot::channel();
                waiting.push((seen, started));
                Box::pin(async move { live.await.unwrap_or(Err(SessionError::Stopped)) })
            }
            Life::Saved => {
                let (manager, room) = (ctx.address(), Arc::clone(&self.room));
                // As long as it is in somebody's hands, it is not forgotten.
                let held = entry.shown.subscribe();
                Box::pin(async move {
                    let resumed = start::resume(&manager, &room, id, seen, supplies).await;
                    drop(held);
                    resumed
                })
            }
        }
    }
}

impl Handler<Reach> for Manager {
    type Result = ResponseFuture<Result<Live, SessionError>>;

    fn handle(&mut self, Reach { id, seen, supplies }: Reach, ctx: &mut Self::Context) -> Self::Result {
        self.reach(id, seen, supplies, ctx)
    }
}

impl Entry {
    fn live(&self, id: SessionId, actor: Addr<SessionActor>, seen: u64) -> Live {
        Live {
            id,
            actor: Incarnation { number: self.incarnation, actor },
            shown: self.shown.subscribe(),
            seen_failed: self.failed.contains(&seen),
        }
    }
}

impl Handler<Open> for Manager {
    type Result = ResponseFuture<Result<Live, SessionError>>;

    fn handle(&mut self, Open { open, supplies }: Open, ctx: &mut Self::Context) -> Self::Result {
        let (manager, base, room) = (ctx.address(), Arc::clone(&self.base), Arc::clone(&self.room));
        Box::pin(async move { start::open(&manager, &base, &room, open, &supplies).await })
    }
}

impl Handler<CloseSession> for Manager {
    type Result = ResponseFuture<Result<(), SessionError>>;

    fn handle(&mut self, CloseSession { id, by }: CloseSession, ctx: &mut Self::Context) -> Self::Result {
        let Some(entry) = self.sessions.get_mut(&id).filter(|entry| !matches!(entry.life, Life::Saved)) else {
            let saved = self.saved(id, ctx);
            return Box::pin(async move { saved.close(by).await });
        };
        if std::mem::replace(&mut entry.closed, true) {
            return Box::pin(async move { Err(SessionError::Refused(Refused::Closed)) });
        }
        let (ended, end) = oneshot::channel();
        let manager = ctx.address();
        let actor = match &mut entry.life {
            // Looked at above.
            Life::Saved => return Box::pin(async move { Err(SessionError::Refused(Refused::Closed)) }),
            Life::Starting { waiting, .. } => {
                let (started, live) = oneshot::channel();
                waiting.push((0, started));
                entry.closed = false;
                return Box::pin(async move {
                    // Started or not: then it can be closed.
                    let _ = live.await;
                    manager.send(CloseSession { id, by }).await.unwrap_or(Err(SessionError::Stopped))
                });
            }
            Life::Live { actor, .. } => actor.clone(),
        };
        entry.ends.push(ended);
        let shown = entry.shown.subscribe();
        Box::pin(async move {
            let closed = actor.send(actor::Close { by: by.clone() }).await;
            if !matches!(closed, Ok(Ok(()))) {
                // It lives on, is rebuilt, or was unloaded before it heard of it.
                manager.send(Reopen(id.clone())).await.map_err(|_| SessionError::Stopped)?;
            }
            match closed {
                Ok(closed) => closed?,
                Err(_) => {
                    end.await.map_err(|_| SessionError::Gone { session: id.clone() })?;
                    return manager.send(CloseSession { id, by }).await.unwrap_or(Err(SessionError::Stopped));
                }
            }
            end.await.map_err(|_| SessionError::Gone { session: id })?;
            if shown.borrow().saved {
                return Ok(());
            }
            let message = "the session has ended, and its end is not saved".to_owned();
            Err(StoreError::Io { message }.into())
        })
    }
}

/// A close did not come to pass.
#[derive(Message)]
#[rtype(result = "()")]
struct Reopen(SessionId);

impl Handler<Reopen> for Manager {
    type Result = ();

    fn handle(&mut self, Reopen(id): Reopen, _: &mut Self::Context) {
        if let Some(entry) = self.sessions.get_mut(&id) {
            entry.closed = false;
        }
    }
}

impl Handler<ActorEnded> for Manager {
    type Result = ();

    fn handle(&mut self, ActorEnded { id, panicked }: ActorEnded, ctx: &mut Self::Context) {
        self.roster.changed();
        let Some(entry) = self.sessions.get_mut(&id) else { return };
        if !panicked {
            let before = match std::mem::replace(&mut entry.life, Life::Saved) {
                Life::Live { alive, .. } => Some(alive),
                Life::Starting { .. } | Life::Saved => None,
            };
            let (ends, patience) = (std::mem::take(&mut entry.ends), self.base.limits.grace() + LEAVE_AFTER);
            actix_rt::spawn(async move {
                // What its background jobs have started is ending; what can't be ended is left.
                if let Some(mut alive) = before {
                    let _ = tokio::time::timeout(patience, async { while alive.recv().await.is_some() {} }).await;
                }
                ends.into_iter().for_each(|ended| {
                    // Who waited may be gone.
                    let _ = ended.send(());
                });
            });
            entry.outfit = None;
            let name = entry.name.clone();
            // From now on the store knows all there is to know.
            if entry.closed && entry.shown.borrow().saved {
                self.sessions.remove(&id);
            }
            self.free_name(&name, &id);
            self.forget_unused();
            return;
        }
        entry.failed.insert(entry.incarnation);
        let before = match std::mem::replace(&mut entry.life, Life::Saved) {
            Life::Live { alive, .. } => Some(alive),
            Life::Starting { .. } | Life::Saved => None,
        };
        entry.life = Life::Starting { waiting: Vec::new(), before };
        // If it was being closed, that has not come to pass.
        entry.closed = false;
        // Who waits for a close is told by this that it did not come to it.
        entry.ends.clear();
        tracing::error!(session = %id, "the session's actor panicked and is rebuilt from its log");
        let (manager, room) = (ctx.address(), Arc::clone(&self.room));
        actix_rt::spawn(async move {
            if let Err(error) = start::resume(&manager, &room, id.clone(), 0, None).await {
                tracing::error!(session = %id, %error, "the session could not be rebuilt");
            }
        });
    }
}
