//! The manager: the actor that knows every session, starts their actors, watches them, and makes room.

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
use holdpoint_common::{SessionId, Snapshot, Timestamp};
use tokio::sync::{mpsc, oneshot, watch};

use crate::actor::SessionActor;
use crate::error::SessionError;
use crate::names::numbered_of;
use crate::outfit::{Base, Outfit};

use catalogs::Catalogs;
use roster::Roster;

pub(crate) use answer::WeighAnswer;
pub(crate) use close::CloseSession;
pub(crate) use delete::DeleteSession;
pub(crate) use find::{Find, List, Look, Seen};
pub(crate) use load::GetLoad;
pub(crate) use model::ChangeModel;
pub(crate) use reach::Reach;
pub(crate) use rename::RenameSession;
pub(crate) use roster::{GetWatched, Imported, Watched};
pub(crate) use shutdown::Shutdown;
pub(crate) use start::Open;

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
    /// The number that was last put behind a name, as long as a session has that.
    numbered: HashMap<String, u32>,
    /// The engine stops: no actor is started any more.
    stopping: bool,
    /// Counts uses, to tell which session is longest untouched.
    touches: u64,
    /// Counts actors, to tell one from the next.
    incarnations: u64,
    /// Held while room is made and an actor started: one at a time, so that the limit is exact. And at first, until it is
    /// known which sessions a crash has cut.
    room: Arc<tokio::sync::Mutex<()>>,
    /// Held while the sessions that a crash has cut are mended: until then nobody is shown a saved one.
    mending: Arc<tokio::sync::Mutex<()>>,
    /// The sessions were listed before.
    listed: bool,
}

/// One session.
struct Entry {
    /// What it is called.
    name: String,
    opened: Timestamp,
    /// What it works with, for as long as it has an actor, or is given the next after one that failed: it may be large, and
    /// comes again with whoever opens it.
    outfit: Option<Arc<Outfit>>,
    /// The snapshot its actors publish; it outlives them.
    shown: watch::Sender<Arc<Snapshot>>,
    touched: u64,
    life: Life,
    /// Those who wait for the actor's end.
    ends: Vec<oneshot::Sender<()>>,
    /// The number of its last actor.
    incarnation: u64,
    /// Those of its actors that failed lately, and the last one that did, and when.
    failed: BTreeMap<u64, Instant>,
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

/// What every session shares: where logs are kept, and by what limits.
#[derive(Message)]
#[rtype(result = "Arc<Base>")]
pub(crate) struct GetBase;

impl Handler<GetBase> for Manager {
    type Result = Arc<Base>;

    fn handle(&mut self, _: GetBase, _: &mut Self::Context) -> Self::Result {
        Arc::clone(&self.base)
    }
}

impl Manager {
    pub(crate) fn new(base: Base, arbiters: Vec<Arbiter>) -> Self {
        Self {
            base: Arc::new(base),
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

    /// Forgets the sessions that are only in their logs and in nobody's hands.
    fn forget_unused(&mut self) {
        let base = &self.base;
        self.sessions.retain(|_, entry| {
            let is_live = !matches!(entry.life, Life::Saved);
            is_live || entry.shown.receiver_count() > 0 || base.lacks_saves(&entry.shown.borrow())
        });
    }

    /// Frees a name, if it is this session's: one that was closed may have come back when its name was taken.
    fn free_name(&mut self, name: &str, id: &SessionId) {
        if self.names.get(name) == Some(id) {
            self.names.remove(name);
            // The next one that is called so needs no number.
            self.numbered.remove(numbered_of(name));
        }
    }
}

impl Actor for Manager {
    type Context = Context<Self>;

    fn started(&mut self, _: &mut Self::Context) {
        // Free: nobody else has them yet.
        let (mending, room) = (Arc::clone(&self.mending).try_lock_owned(), Arc::clone(&self.room).try_lock_owned());
        if let (Ok(mending), Ok(room)) = (mending, room) {
            let base = Arc::clone(&self.base);
            actix_rt::spawn(async move {
                mending::all(&base, room).await;
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

/// The manager is gone.
fn stopped(_: MailboxError) -> SessionError {
    SessionError::Stopped
}
