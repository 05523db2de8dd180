//! The manager: the actor that knows every session, starts and watches session actors, and makes
//! room.

mod answer;
mod catalogs;
mod close;
mod delete;
mod ended;
mod entries;
mod find;
mod folder;
mod load;
mod mending;
mod model;
mod names;
mod reach;
mod rename;
mod room;
mod roster;
mod saved;
mod shutdown;
mod start;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Instant;

use actix::prelude::*;
use holdpoint_common::api::Verb;
use holdpoint_common::{SessionId, Snapshot, Supplies, Timestamp};
use tokio::sync::{mpsc, oneshot, watch};

use crate::actor::SessionActor;
use crate::error::SessionError;
use crate::names::name_stem;
use crate::session_env::{EngineEnv, SessionEnv};
use crate::state::ByClient;

use catalogs::Catalogs;
use roster::Roster;

pub(crate) use answer::CheckAnswer;
pub(crate) use delete::DeleteSession;
pub(crate) use find::{Find, GetSnapshot, List, SeenSnapshot};
pub(crate) use load::GetLoad;
pub(crate) use reach::Reach;
pub(crate) use roster::{GetWatchSources, Imported, WatchSources};
pub(crate) use shutdown::Shutdown;
pub(crate) use start::Open;

pub(crate) struct Manager {
    engine: Arc<EngineEnv>,
    catalogs: Catalogs,
    roster: Roster,
    arbiters: Vec<Arbiter>,
    /// The arbiter for the next actor.
    next_arbiter: usize,
    sessions: HashMap<SessionId, Entry>,
    /// The names of the sessions that are live or starting.
    names: HashMap<String, SessionId>,
    /// The number that was last appended to a name, while a session has that name.
    numbered: HashMap<String, u32>,
    /// Whether the engine is stopping, so that no more actors start.
    stopping: bool,
    /// Counts the uses of sessions, to find the least recently used one.
    touches: u64,
    /// Counts actors, to number the incarnations.
    incarnations: u64,
    /// Held while room is made and an actor is started, so that the limit is exact. Also held at
    /// first, until the sessions that a crash cut are known.
    room: Arc<tokio::sync::Mutex<()>>,
    /// Held while the sessions that a crash cut are mended. Saved sessions are shown only after
    /// that.
    mending: Arc<tokio::sync::Mutex<()>>,
    /// Whether the sessions were listed before.
    listed: bool,
}

/// The manager's record of one session.
struct Entry {
    name: String,
    opened: Timestamp,
    /// The session environment. Without an actor it is dropped, because it may be large and every
    /// client that opens the session brings a new one; only the next actor after a failure gets the
    /// old one.
    env: Option<Arc<SessionEnv>>,
    /// The snapshot that the session's actors publish. It outlives them.
    shown: watch::Sender<Arc<Snapshot>>,
    touched: u64,
    life: Life,
    /// The callers that wait for the actor's end.
    ends: Vec<oneshot::Sender<()>>,
    /// The number of its newest actor.
    incarnation: u64,
    /// When its actors failed, by their number: all recent failures, and always the last one.
    failed: BTreeMap<u64, Instant>,
    /// Whether a client closed the session, which then opens again only on request.
    closed: bool,
}

/// The lifecycle of a session.
enum Life {
    /// The session has an actor.
    Live {
        actor: Addr<SessionActor>,
        /// Closed when everything of the session has ended.
        alive: mpsc::Receiver<()>,
    },
    /// The session is about to have an actor.
    Starting {
        /// The callers that wait for the actor, and the incarnation that each has seen.
        waiting: Vec<(u64, oneshot::Sender<Result<Live, SessionError>>)>,
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
    /// Whether the incarnation that the caller had seen has failed.
    pub(crate) seen_failed: bool,
}

/// One of the actors that a session has over time.
#[derive(Clone)]
pub(crate) struct Incarnation {
    /// Counted from 1, and unique within the engine.
    pub(crate) number: u64,
    pub(crate) actor: Addr<SessionActor>,
}

/// A verb that the manager carries out, because it concerns more than the session's actor.
#[derive(Clone)]
pub(crate) struct OnSession<V> {
    pub(crate) id: SessionId,
    pub(crate) request: ByClient<V>,
    /// The supplies to open the session with, if necessary. Without them it is not opened.
    pub(crate) supplies_to_open: Option<Arc<Supplies>>,
}

impl<V: Verb> Message for OnSession<V> {
    type Result = Result<V::Reply, SessionError>;
}

/// Gets the environment that all sessions share.
#[derive(Message)]
#[rtype(result = "Arc<EngineEnv>")]
pub(crate) struct GetEngineEnv;

impl Handler<GetEngineEnv> for Manager {
    type Result = Arc<EngineEnv>;

    fn handle(&mut self, _: GetEngineEnv, _: &mut Self::Context) -> Self::Result {
        Arc::clone(&self.engine)
    }
}

impl Manager {
    pub(crate) fn new(engine: EngineEnv, arbiters: Vec<Arbiter>) -> Self {
        Self {
            engine: Arc::new(engine),
            catalogs: Catalogs::default(),
            listed: false,
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

    /// Removes the entries of saved sessions that have complete logs and no client.
    fn remove_unused(&mut self) {
        let engine = &self.engine;
        self.sessions.retain(|_, entry| {
            let is_live = !matches!(entry.life, Life::Saved);
            is_live || entry.shown.receiver_count() > 0 || engine.lacks_saves(&entry.shown.borrow())
        });
    }

    /// Frees a name, unless it belongs to another session by now.
    fn free_name(&mut self, name: &str, id: &SessionId) {
        if self.names.get(name) == Some(id) {
            self.names.remove(name);
            // The next session with this name needs no number.
            self.numbered.remove(name_stem(name));
        }
    }
}

impl Actor for Manager {
    type Context = Context<Self>;

    fn started(&mut self, _: &mut Self::Context) {
        // Both are free, because they have not been shared yet.
        let (mending, room) = (Arc::clone(&self.mending).try_lock_owned(), Arc::clone(&self.room).try_lock_owned());
        if let (Ok(mending), Ok(room)) = (mending, room) {
            let engine = Arc::clone(&self.engine);
            actix_rt::spawn(async move {
                mending::mend_all(&engine, room).await;
                drop(mending);
            });
        }
    }
}

impl Entry {
    fn live(&self, id: SessionId, actor: Addr<SessionActor>, seen: u64) -> Live {
        Live {
            id,
            actor: Incarnation { number: self.incarnation, actor },
            shown: self.shown.subscribe(),
            seen_failed: self.failed.contains_key(&seen),
        }
    }
}

/// The error if the manager is gone.
fn stopped_error(_: MailboxError) -> SessionError {
    SessionError::Stopped
}
