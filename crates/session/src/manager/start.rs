//! Starting a session's actor: fresh, or rebuilt from its log.

use std::collections::BTreeSet;
use std::sync::Arc;

use actix::dev::channel;
use actix::prelude::*;
use holdpoint_common::{
    Body, Event, Fact, RestoreCause, SessionId, SessionSettings, SessionSummary, Snapshot, Supplies, Timestamp, Who,
};
use tokio::sync::{mpsc, watch};
use tracing::Instrument;

use super::catalogs::CatalogFor;
use super::names::{NameFor, TakeName, check_free, folder_name, fresh_id};
use super::restore::{Found, damaged, find};
use super::room::{Room, make_room, stopped};
use super::{ActorEnded, Entry, Life, Live, Manager, Reach};
use crate::actor::{NUMBERS, Parts, Restored, SessionActor, now};
use crate::error::SessionError;
use crate::model::Unusable;
use crate::open::OpenSession;
use crate::outfit::{Base, Outfit};
use crate::state::{Phase, Refused, State};
use crate::store::SessionLog;

/// Messages that wait in a session's mailbox before senders wait.
const MAILBOX: usize = 16;

/// Opens a fresh session.
pub(super) async fn open(
    manager: &Addr<Manager>,
    base: &Arc<Base>,
    room: &Room,
    open: OpenSession,
    supplies: &Supplies,
) -> Result<Live, SessionError> {
    let catalog = manager.send(CatalogFor(supplies.models.clone())).await.map_err(stopped)?;
    let model = catalog.get(&open.model.clone().unwrap_or_else(|| catalog.default_name().name))?;
    let Some(workspace) = open.workspace.to_str().map(str::to_owned) else {
        let message = "its path is not UTF-8, and could not be saved".to_owned();
        return Err(SessionError::Workspace { path: open.workspace.display().to_string(), message });
    };
    if let Some(name) = &open.name {
        check_free(name, &*base.store).await?;
    }
    let _one_at_a_time = room.lock().await;
    make_room(manager).await?;
    let settings = SessionSettings {
        id: fresh_id(),
        name: manager.send(NameFor(open.name, folder_name(&open.workspace))).await.map_err(stopped)??,
        workspace,
        model: model.name().to_owned(),
        asks: open.asks,
        policy: open.policy,
        rules: open.rules,
        max_steps: open.max_steps,
        max_turn_tokens: open.max_turn_tokens,
    };
    let outfit = Arc::new(base.outfit(model, &settings, open.workspace, supplies)?);
    let log = base.store.create(&settings.id).await?;
    let mut numbers = log.reserve(NUMBERS).await?;
    let body = Body::Fact(Fact::SessionOpened { settings });
    let first = Event { seq: numbers.start, at: now(), turn: None, step: None, body };
    numbers.start += 1;
    let first = Arc::new(first);
    let Some(state) = State::open(&first) else { return Err(damaged()) };
    let summary = SessionSummary { live: false, ..SessionSummary::from(&state.snapshot(first.seq, 0, true)) };
    log.append(0, vec![Arc::clone(&first)], summary).await?;
    enter(manager, &state, outfit, first.at).await?;
    start(manager, state.id().clone(), 0, state, numbers, log, None).await
}

/// Opens a session that is only in the store: of an earlier process, or closed since.
pub(super) async fn load(
    manager: &Addr<Manager>,
    base: &Arc<Base>,
    room: &Room,
    id: SessionId,
    supplies: &Supplies,
) -> Result<Live, SessionError> {
    // Before it is this one's turn: it may take long, and nobody else is to wait for it.
    let log = base.store.open(&id).await?;
    let mut found = find(&id, &*log).await?;
    let one_at_a_time = room.lock().await;
    // Somebody else may have been faster.
    if manager.send(IsKnown(id.clone())).await.map_err(stopped)? {
        drop(one_at_a_time);
        return manager.send(Reach { id, seen: 0 }).await.map_err(stopped)?;
    }
    make_room(manager).await?;
    let log = base.store.open(&id).await?;
    if !log.first(found.state.last() + 1..u64::MAX, 1).await?.is_empty() {
        // It was opened and closed meanwhile.
        found = find(&id, &*log).await?;
    }
    let Found { state, draft, numbers } = found;
    let settings = Arc::clone(state.settings());
    let catalog = manager.send(CatalogFor(supplies.models.clone())).await.map_err(stopped)?;
    let model = catalog.get(&settings.model).unwrap_or_else(|error| {
        // It can be read all the same, and says why it does not go on.
        Arc::new(Unusable { name: settings.model.clone(), error })
    });
    let root = settings.workspace.clone().into();
    let outfit = Arc::new(base.outfit(model, &settings, root, supplies)?);
    let opened = state.opened();
    let cause = if matches!(state.phase(), Phase::Closed) { RestoreCause::Unloaded } else { RestoreCause::Restart };
    enter(manager, &state, outfit, opened).await?;
    let started = start(manager, id.clone(), 0, state, numbers, log, Some(Restored { cause, draft })).await;
    if let Err(error) = &started {
        manager.send(Failed(id, error.clone())).await.map_err(stopped)?;
    }
    started
}

/// Makes a session known that is about to have an actor.
async fn enter(
    manager: &Addr<Manager>,
    state: &State,
    outfit: Arc<Outfit>,
    opened: Timestamp,
) -> Result<(), SessionError> {
    let (shown, _) = watch::channel(Arc::new(state.snapshot(state.last(), 0, true)));
    let entry = Entry {
        name: state.settings().name.clone(),
        opened,
        outfit,
        shown,
        touched: 0,
        life: Life::Starting { waiting: Vec::new(), before: None },
        ends: Vec::new(),
        incarnation: 0,
        failed: BTreeSet::new(),
        closed: false,
    };
    manager.send(Enter(state.id().clone(), Box::new(entry))).await.map_err(stopped)
}

/// Gives a session that has no actor one again: rebuilt from its log.
pub(super) async fn resume(
    manager: &Addr<Manager>,
    room: &Room,
    id: SessionId,
    seen: u64,
) -> Result<Live, SessionError> {
    let _one_at_a_time = room.lock().await;
    let begun = manager.send(Begin { id: id.clone(), seen }).await.map_err(stopped)??;
    let (base, cause, before) = match begun {
        Begun::Live(live) => return Ok(live),
        Begun::Resume { base, cause, before } => (base, cause, before),
    };
    if let Some(mut alive) = before {
        // Nothing of the actor before may run beside the new one; what can't be ended is left.
        let patience = base.limits.grace() + 2 * holdpoint_common::limits::LEAVE_AFTER;
        let _ = tokio::time::timeout(patience, async { while alive.recv().await.is_some() {} }).await;
    }
    let resumed = async {
        if cause == RestoreCause::Unloaded {
            make_room(manager).await?;
        }
        let log = base.store.open(&id).await?;
        let Found { state, draft, numbers } = find(&id, &*log).await?;
        start(manager, id.clone(), seen, state, numbers, log, Some(Restored { cause, draft })).await
    };
    let resumed = resumed.await;
    if let Err(error) = &resumed {
        manager.send(Failed(id, error.clone())).await.map_err(stopped)?;
    }
    resumed
}

/// Starts the actor on an arbiter, and watches it.
async fn start(
    manager: &Addr<Manager>,
    id: SessionId,
    seen: u64,
    mut state: State,
    mut numbers: std::ops::Range<u64>,
    log: Arc<dyn SessionLog>,
    restored: Option<Restored>,
) -> Result<Live, SessionError> {
    let Place { arbiter, outfit, shown } = manager.send(GetPlace(id.clone())).await.map_err(stopped)??;
    let (alive, runs) = mpsc::channel(1);
    take_name(manager, &id, &mut state, &mut numbers, &*log, &shown).await?;
    let parts = Parts { state, numbers, log, shown, outfit, restored, alive };
    // The address is made first, so that nobody waits for the arbiter.
    let (address, mailbox) = channel::channel(MAILBOX);
    let actor = Addr::new(address);
    let (watcher, ended) = (manager.clone(), id.clone());
    let span = tracing::info_span!("session", %id, debug = tracing::field::Empty);
    // Entered first, so that its end can't be told before its beginning.
    let live = manager.send(Started { id, seen, actor, alive: runs }).await.map_err(stopped)??;
    let spawned = arbiter.spawn_fn(move || {
        let context = Context::with_receiver(mailbox);
        let task = actix_rt::spawn(context.into_future(SessionActor::new(parts)).instrument(span));
        actix_rt::spawn(async move {
            let panicked = task.await.is_err();
            // Bounded: one for each actor.
            watcher.do_send(ActorEnded { id: ended, panicked });
        });
    });
    if spawned { Ok(live) } else { Err(SessionError::Stopped) }
}

/// Gives a session its name, as it becomes live. If another live one has it by now, it is renamed first of all.
async fn take_name(
    manager: &Addr<Manager>,
    id: &SessionId,
    state: &mut State,
    numbers: &mut std::ops::Range<u64>,
    log: &dyn SessionLog,
    shown: &watch::Sender<Arc<Snapshot>>,
) -> Result<(), SessionError> {
    let named = state.settings().name.clone();
    let name = manager.send(TakeName { id: id.clone(), name: named.clone() }).await.map_err(stopped)?;
    if name == named {
        return Ok(());
    }
    let body = Body::Fact(Fact::SessionRenamed { name, by: Who::named("holdpoint") });
    let (last, seq) = (state.last(), numbers.start);
    numbers.start += 1;
    let renamed = Arc::new(Event { seq, at: now(), turn: None, step: None, body });
    state.follow(&[Arc::clone(&renamed)]);
    let snapshot = state.snapshot(seq, 0, true);
    log.append(last, vec![renamed], SessionSummary { live: false, ..SessionSummary::from(&snapshot) }).await?;
    shown.send_replace(Arc::new(snapshot));
    Ok(())
}

/// Enters a fresh session.
#[derive(Message)]
#[rtype(result = "()")]
struct Enter(SessionId, Box<Entry>);

impl Handler<Enter> for Manager {
    type Result = ();

    fn handle(&mut self, Enter(id, entry): Enter, _: &mut Self::Context) {
        let touched = self.touch();
        // One that comes back may find its name taken.
        self.names.entry(entry.name.clone()).or_insert_with(|| id.clone());
        self.sessions.insert(id, Entry { touched, ..*entry });
        self.roster.changed();
    }
}

/// Marks a session as starting.
#[derive(Message)]
#[rtype(result = "Result<Begun, SessionError>")]
struct Begin {
    id: SessionId,
    seen: u64,
}

enum Begun {
    /// Someone else has started it meanwhile.
    Live(Live),
    /// It is ours to start, once nothing of the actor before runs any more.
    Resume { base: Arc<Base>, cause: RestoreCause, before: Option<mpsc::Receiver<()>> },
}

impl Handler<Begin> for Manager {
    type Result = Result<Begun, SessionError>;

    fn handle(&mut self, Begin { id, seen }: Begin, _: &mut Self::Context) -> Self::Result {
        let Some(entry) = self.sessions.get_mut(&id) else {
            return Err(SessionError::Unknown { what: id.to_string() });
        };
        let failed = entry.failed.contains(&entry.incarnation);
        let cause = if failed { RestoreCause::Panic } else { RestoreCause::Unloaded };
        if let Life::Live { actor, .. } = &entry.life {
            return Ok(Begun::Live(entry.live(id, actor.clone(), seen)));
        }
        if entry.closed || self.stopping {
            return Err(if self.stopping { SessionError::Stopped } else { SessionError::Refused(Refused::Closed) });
        }
        if let Life::Saved = entry.life {
            entry.life = Life::Starting { waiting: Vec::new(), before: None };
            self.names.entry(entry.name.clone()).or_insert(id);
        }
        let before = match &mut entry.life {
            Life::Starting { before, .. } => before.take(),
            Life::Live { .. } | Life::Saved => None,
        };
        Ok(Begun::Resume { base: Arc::clone(&self.base), cause, before })
    }
}

/// Where a session's actor is to be started.
#[derive(Message)]
#[rtype(result = "Result<Place, SessionError>")]
struct GetPlace(SessionId);

struct Place {
    arbiter: actix_rt::ArbiterHandle,
    outfit: Arc<Outfit>,
    shown: watch::Sender<Arc<Snapshot>>,
}

impl Handler<GetPlace> for Manager {
    type Result = Result<Place, SessionError>;

    fn handle(&mut self, GetPlace(id): GetPlace, _: &mut Self::Context) -> Self::Result {
        if self.stopping {
            return Err(SessionError::Stopped);
        }
        self.next_arbiter = (self.next_arbiter + 1) % self.arbiters.len().max(1);
        let arbiter = self.arbiters.get(self.next_arbiter).ok_or(SessionError::Stopped)?.handle();
        let entry = self.sessions.get(&id).ok_or(SessionError::Stopped)?;
        Ok(Place { arbiter, outfit: Arc::clone(&entry.outfit), shown: entry.shown.clone() })
    }
}

/// A session's actor has been started.
#[derive(Message)]
#[rtype(result = "Result<Live, SessionError>")]
struct Started {
    id: SessionId,
    seen: u64,
    actor: Addr<SessionActor>,
    alive: mpsc::Receiver<()>,
}

impl Handler<Started> for Manager {
    type Result = Result<Live, SessionError>;

    fn handle(&mut self, Started { id, seen, actor, alive }: Started, _: &mut Self::Context) -> Self::Result {
        let entry = self.sessions.get_mut(&id).ok_or(SessionError::Stopped)?;
        self.roster.changed();
        entry.incarnation += 1;
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
struct Failed(SessionId, SessionError);

impl Handler<Failed> for Manager {
    type Result = ();

    fn handle(&mut self, Failed(id, error): Failed, _: &mut Self::Context) {
        self.roster.changed();
        let Some(entry) = self.sessions.get_mut(&id) else { return };
        let name = entry.name.clone();
        if let Life::Starting { waiting, .. } = std::mem::replace(&mut entry.life, Life::Saved) {
            for (_, waits) in waiting {
                let _ = waits.send(Err(error.clone()));
            }
        }
        self.free_name(&name, &id);
    }
}

/// Whether the manager knows the session: it is live, or was and can be again.
#[derive(Message)]
#[rtype(result = "bool")]
pub(super) struct IsKnown(pub(super) SessionId);

impl Handler<IsKnown> for Manager {
    type Result = bool;

    fn handle(&mut self, IsKnown(id): IsKnown, _: &mut Self::Context) -> bool {
        self.sessions.get_mut(&id).map(|entry| entry.closed = false).is_some()
    }
}
