//! Starting a session's actor: fresh, or rebuilt from its log.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use actix::dev::channel;
use actix::prelude::*;
use holdpoint_common::{Body, Event, Fact, ItemId, RestoreCause, SessionId, SessionSettings, Supplies, Timestamp, Who};
use tokio::sync::{mpsc, oneshot, watch};
use tracing::Instrument;

use super::catalogs::CatalogFor;
use super::ended::ActorEnded;
use super::entries::{Begin, Begun, Enter, Failed, GetPlace, Keep, Place, Started};
use super::folder::folder;
use super::names::{NameFor, TakeName, check_free};
use super::room::{Room, make_room};
use super::{Entry, Life, Live, Manager, Reach, stopped};
use crate::actor::{Parts, Restored, SessionActor, now};
use crate::error::SessionError;
use crate::model::Unusable;
use crate::names::{folder_name, fresh_id};
use crate::open::OpenSession;
use crate::outfit::{Base, Outfit};
use crate::saved::{Found, damaged, for_owner};
use crate::state::{Phase, State};
use crate::store::{Numbers, SessionLog};

/// Messages that wait in a session's mailbox before senders wait.
const MAILBOX: usize = 16;

/// Opens a fresh session.
#[derive(Message)]
#[rtype(result = "Result<Live, SessionError>")]
pub(crate) struct Open {
    pub(crate) open: OpenSession,
    pub(crate) supplies: Arc<Supplies>,
}

impl Handler<Open> for Manager {
    type Result = ResponseFuture<Result<Live, SessionError>>;

    fn handle(&mut self, Open { open, supplies }: Open, ctx: &mut Self::Context) -> Self::Result {
        let (manager, base, room) = (ctx.address(), Arc::clone(&self.base), Arc::clone(&self.room));
        Box::pin(async move { self::open(&manager, &base, &room, open, &supplies).await })
    }
}

/// Opens a fresh session.
async fn open(
    manager: &Addr<Manager>,
    base: &Arc<Base>,
    room: &Room,
    open: OpenSession,
    supplies: &Supplies,
) -> Result<Live, SessionError> {
    let open = OpenSession { workspace: folder(base, open.workspace).await?, ..open };
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
    let id = fresh_id();
    let settings = SessionSettings {
        id: id.clone(),
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
    let log = base.store.create(&id).await?;
    let mut numbers = Numbers::reserve(&*log).await?;
    let body = Body::Fact(Fact::SessionOpened { settings });
    let first = Arc::new(Event { seq: numbers.take(), at: now(), turn: None, step: None, body });
    let Some(state) = State::open(&first) else { return Err(damaged(&id, "it has no opening".to_owned())) };
    log.append(0, vec![Arc::clone(&first)], state.summary()).await?;
    let opened = first.at;
    begin(manager, opened, outfit, log, Origin { state, numbers, restored: None }).await
}

/// Opens a session that is only in the store: of an earlier process, or closed since.
pub(super) async fn load(
    manager: &Addr<Manager>,
    base: &Arc<Base>,
    room: &Room,
    id: SessionId,
    supplies: Arc<Supplies>,
) -> Result<Live, SessionError> {
    let (found, workspace) = look(base, &id).await?;
    let one_at_a_time = room.lock().await;
    // Somebody else may have been faster.
    if let Some(_held) = manager.send(Keep(id.clone())).await.map_err(stopped)? {
        drop(one_at_a_time);
        return manager.send(Reach { id, seen: 0, supplies: Some(supplies) }).await.map_err(stopped)?;
    }
    make_room(manager).await?;
    let Found { log, state, draft, .. } = as_it_is_now(base, &id, found).await?;
    let outfit = equip(manager, base, &state, workspace, &supplies).await?;
    let numbers = Numbers::reserve(&*log).await?;
    let rested = matches!(state.phase(), Phase::Closed) || state.is_at_rest();
    let cause = if rested { RestoreCause::Unloaded } else { RestoreCause::Restart };
    let opened = state.opened();
    let restored = Some(Restored { cause, draft, first_item: first_item(&state, &numbers) });
    begin(manager, opened, outfit, log, Origin { state, numbers, restored }).await
}

/// Makes a session known, and gives it its first actor here. Who reaches it meanwhile waits for that.
async fn begin(
    manager: &Addr<Manager>,
    opened: Timestamp,
    outfit: Arc<Outfit>,
    log: Arc<dyn SessionLog>,
    origin: Origin,
) -> Result<Live, SessionError> {
    let state = &origin.state;
    let id = state.id().clone();
    let (shown, _) = watch::channel(Arc::new(state.snapshot(state.last(), 0, outfit.not_saved.clone())));
    let entry = Entry {
        name: state.settings().name.clone(),
        opened,
        outfit: None,
        shown,
        touched: 0,
        life: Life::Starting { waiting: Vec::new() },
        ends: Vec::new(),
        incarnation: 0,
        failed: BTreeMap::new(),
        closed: false,
    };
    manager.send(Enter(id.clone(), Box::new(entry))).await.map_err(stopped)?;
    or_failed(manager, id, start(manager, 0, Some(outfit), log, origin).await).await
}

/// What a session works with that is opened again.
async fn equip(
    manager: &Addr<Manager>,
    base: &Base,
    state: &State,
    workspace: PathBuf,
    supplies: &Supplies,
) -> Result<Arc<Outfit>, SessionError> {
    let settings = state.settings();
    let catalog = manager.send(CatalogFor(supplies.models.clone())).await.map_err(stopped)?;
    let model = catalog.get(&settings.model).unwrap_or_else(|error| {
        // It can be read all the same, and says why it does not go on.
        Arc::new(Unusable { name: settings.model.clone(), error })
    });
    Ok(Arc::new(base.outfit(model, settings, workspace, supplies)?))
}

/// Gives a session that has no actor one again, with these supplies.
pub(super) async fn resume(
    manager: &Addr<Manager>,
    base: &Arc<Base>,
    room: &Room,
    id: SessionId,
    seen: u64,
    supplies: &Supplies,
) -> Result<Live, SessionError> {
    let (found, workspace) = look(base, &id).await?;
    let one_at_a_time = room.lock().await;
    let cause = match manager.send(Begin { id: id.clone(), seen }).await.map_err(stopped)?? {
        Begun::Live(live) => return Ok(live),
        Begun::Starting(live) => {
            drop(one_at_a_time);
            return live.await.unwrap_or(Err(SessionError::Stopped));
        }
        Begun::Ours(cause) => cause,
    };
    let resumed = async {
        make_room(manager).await?;
        let Found { log, state, draft, .. } = as_it_is_now(base, &id, found).await?;
        let outfit = Some(equip(manager, base, &state, workspace, supplies).await?);
        let numbers = Numbers::reserve(&*log).await?;
        let restored = Some(Restored { cause, draft, first_item: first_item(&state, &numbers) });
        start(manager, seen, outfit, log, Origin { state, numbers, restored }).await
    };
    or_failed(manager, id.clone(), resumed.await).await
}

/// Gives a session whose actor has failed the next one: rebuilt from its log, in its place, with what it had.
pub(super) async fn rebuild(manager: &Addr<Manager>, base: &Base, id: &SessionId) -> Result<Live, SessionError> {
    let Found { log, state, draft, .. } = for_owner(id, base.store.open(id).await?).await?;
    let numbers = Numbers::reserve(&*log).await?;
    let restored = Some(Restored { cause: RestoreCause::Panic, draft, first_item: first_item(&state, &numbers) });
    start(manager, 0, None, log, Origin { state, numbers, restored }).await
}

/// What came of starting a session's actor. If there is none, the manager is told.
async fn or_failed(
    manager: &Addr<Manager>,
    id: SessionId,
    started: Result<Live, SessionError>,
) -> Result<Live, SessionError> {
    if let Err(error) = &started {
        failed(manager, id, error.clone()).await;
    }
    started
}

/// Tells the manager that a session's actor could not be started.
pub(super) async fn failed(manager: &Addr<Manager>, id: SessionId, error: SessionError) {
    // One that has ended needs not know.
    let _ = manager.send(Failed(id, error)).await;
}

/// What there is of a saved session, and where it works. Looked at before it is this one's turn to start an actor: it may
/// take long, and nobody else is to wait for it.
async fn look(base: &Base, id: &SessionId) -> Result<(Found, PathBuf), SessionError> {
    let found = for_owner(id, base.store.open(id).await?).await?;
    let known = PathBuf::from(&found.state.settings().workspace);
    // Where the folder is gone, what was said can be read all the same.
    let workspace = folder(base, known.clone()).await.unwrap_or(known);
    Ok((found, workspace))
}

/// The session as it was found, read again if its log has grown since.
async fn as_it_is_now(base: &Base, id: &SessionId, found: Found) -> Result<Found, SessionError> {
    let log = base.store.open(id).await?;
    if log.page(found.state.last() + 1..u64::MAX, 1).await?.facts.is_empty() {
        return Ok(Found { log, ..found });
    }
    for_owner(id, log).await
}

/// The first item that clients have not seen. Where all facts were saved, each item that is not in the log took a number;
/// where not, no number was given back, and far more are skipped than items were seen.
fn first_item(state: &State, numbers: &Numbers) -> ItemId {
    let unsaved = numbers.used().saturating_sub(state.last());
    ItemId(state.next_item().0.saturating_add(unsaved))
}

/// What an actor begins with.
struct Origin {
    state: State,
    numbers: Numbers,
    restored: Option<Restored>,
}

/// Starts the actor on an arbiter, and watches it. Without an outfit, with what it has still.
async fn start(
    manager: &Addr<Manager>,
    seen: u64,
    outfit: Option<Arc<Outfit>>,
    log: Arc<dyn SessionLog>,
    origin: Origin,
) -> Result<Live, SessionError> {
    let Origin { mut state, mut numbers, restored } = origin;
    let id = state.id().clone();
    let place = GetPlace { id: id.clone(), outfit };
    let Place { arbiter, shown, outfit } = manager.send(place).await.map_err(stopped)??;
    let (alive, runs) = mpsc::channel(1);
    let (closes, mut closed) = oneshot::channel();
    let mut mended = Vec::new();
    // What it was to be given by an actor that has failed is not in its log, and not what it shows.
    if outfit.model.name() != state.settings().model {
        mended.push(Fact::ModelChanged { model: outfit.model.name().to_owned(), by: Who::named("holdpoint") });
    }
    let named = state.settings().name.clone();
    let name = manager.send(TakeName { id: id.clone(), name: named.clone() }).await.map_err(stopped)?;
    if name != named {
        mended.push(Fact::SessionRenamed { name, by: Who::named("holdpoint") });
    }
    note(mended, &mut state, &mut numbers, &*log).await?;
    let not_saved = shown.borrow().not_saved.clone();
    // Newer than any snapshot of the actor before: a client can tell that the session is open again.
    shown.send_replace(Arc::new(state.snapshot(numbers.used(), 0, not_saved)));
    let parts = Parts { state, numbers, log, shown, outfit, restored, alive, closes };
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
            watcher.do_send(ActorEnded { id: ended, panicked, closed: closed.try_recv().is_ok() });
        });
    });
    if spawned { Ok(live) } else { Err(SessionError::Stopped) }
}

/// Writes down what is no longer as it was when a session becomes live: another live one has its name by now, say.
async fn note(
    facts: Vec<Fact>,
    state: &mut State,
    numbers: &mut Numbers,
    log: &dyn SessionLog,
) -> Result<(), SessionError> {
    if facts.is_empty() {
        return Ok(());
    }
    let last = state.last();
    let event =
        |fact| Arc::new(Event { seq: numbers.take(), at: now(), turn: None, step: None, body: Body::Fact(fact) });
    let events: Vec<_> = facts.into_iter().map(event).collect();
    state.follow(&events);
    log.append(last, events, state.summary()).await?;
    Ok(())
}
