//! Starting session actors, for new sessions or from a log.

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
use super::entries::{ActorStarted, AddEntry, Begin, BeginReply, GetStartSlot, KeepEntry, StartFailed, StartSlot};
use super::folder::resolve_folder;
use super::names::{ChooseName, ClaimName, check_free};
use super::room::{StartLock, make_room};
use super::{Entry, Life, Live, Manager, Reach, stopped_error};
use crate::actor::{ActorArgs, Restored, SessionActor, now};
use crate::error::SessionError;
use crate::model::Unusable;
use crate::names::{folder_name, fresh_id};
use crate::open::OpenSession;
use crate::saved::{LoadedSession, damaged_error, load_for_owner};
use crate::session_env::{EngineEnv, SessionEnv};
use crate::state::{Phase, State};
use crate::store::{Numbers, SessionLog};

/// How many messages wait in a session's mailbox before senders wait.
const MAILBOX: usize = 16;

/// Opens a new session.
#[derive(Message)]
#[rtype(result = "Result<Live, SessionError>")]
pub(crate) struct Open {
    pub(crate) open: OpenSession,
    pub(crate) supplies: Arc<Supplies>,
}

impl Handler<Open> for Manager {
    type Result = ResponseFuture<Result<Live, SessionError>>;

    fn handle(&mut self, Open { open, supplies }: Open, ctx: &mut Self::Context) -> Self::Result {
        let (manager, engine, room) = (ctx.address(), Arc::clone(&self.engine), Arc::clone(&self.room));
        Box::pin(async move { self::open(&manager, &engine, &room, open, &supplies).await })
    }
}

async fn open(
    manager: &Addr<Manager>,
    engine: &Arc<EngineEnv>,
    room: &StartLock,
    open: OpenSession,
    supplies: &Supplies,
) -> Result<Live, SessionError> {
    let open = OpenSession { workspace: resolve_folder(engine, open.workspace).await?, ..open };
    let catalog = manager.send(CatalogFor(supplies.models.clone())).await.map_err(stopped_error)?;
    let model = catalog.get(&open.model.clone().unwrap_or_else(|| catalog.default_name().name))?;
    let Some(workspace) = open.workspace.to_str().map(str::to_owned) else {
        let message = "its path is not UTF-8, so it can't be saved".to_owned();
        return Err(SessionError::Workspace { path: open.workspace.display().to_string(), message });
    };
    if let Some(name) = &open.name {
        check_free(name, &*engine.store).await?;
    }
    let _one_at_a_time = room.lock().await;
    make_room(manager).await?;
    let id = fresh_id();
    let settings = SessionSettings {
        id: id.clone(),
        name: manager.send(ChooseName(open.name, folder_name(&open.workspace))).await.map_err(stopped_error)??,
        workspace,
        model: model.name().to_owned(),
        asks: open.asks,
        policy: open.policy,
        rules: open.rules,
        max_steps: open.max_steps,
        max_turn_tokens: open.max_turn_tokens,
    };
    let env = Arc::new(engine.build_env(model, &settings, open.workspace, supplies)?);
    let log = engine.store.create(&id).await?;
    let mut numbers = Numbers::reserve(&*log).await?;
    let body = Body::Fact(Fact::SessionOpened { settings });
    let first = Arc::new(Event { seq: numbers.take(), at: now(), turn: None, step: None, body });
    let Some(state) = State::open(&first) else {
        return Err(damaged_error(&id, "its log does not begin with an opening".to_owned()));
    };
    log.append(0, vec![Arc::clone(&first)], state.summary()).await?;
    let opened = first.at;
    start_first(manager, opened, env, log, StartState { state, numbers, restored: None }).await
}

/// Opens a session that is only in the store: one of an earlier process, or one that was closed.
pub(super) async fn open_saved(
    manager: &Addr<Manager>,
    engine: &Arc<EngineEnv>,
    room: &StartLock,
    id: SessionId,
    supplies: Arc<Supplies>,
) -> Result<Live, SessionError> {
    let (found, workspace) = load_saved(engine, &id).await?;
    let one_at_a_time = room.lock().await;
    // Another caller may have been faster.
    if let Some(_held) = manager.send(KeepEntry(id.clone())).await.map_err(stopped_error)? {
        drop(one_at_a_time);
        return manager.send(Reach { id, seen: 0, supplies: Some(supplies) }).await.map_err(stopped_error)?;
    }
    make_room(manager).await?;
    let LoadedSession { log, state, draft, .. } = reload_if_grown(engine, &id, found).await?;
    let env = session_env(manager, engine, &state, workspace, &supplies).await?;
    let numbers = Numbers::reserve(&*log).await?;
    let rested = matches!(state.phase(), Phase::Closed) || state.is_at_rest();
    let cause = if rested { RestoreCause::Unloaded } else { RestoreCause::Restart };
    let opened = state.opened();
    let restored = Some(Restored { cause, draft, first_item: first_item(&state, &numbers) });
    start_first(manager, opened, env, log, StartState { state, numbers, restored }).await
}

/// Adds the entry of a session, and starts its first actor in this process. Callers that reach the
/// session in the meantime wait for that.
async fn start_first(
    manager: &Addr<Manager>,
    opened: Timestamp,
    env: Arc<SessionEnv>,
    log: Arc<dyn SessionLog>,
    origin: StartState,
) -> Result<Live, SessionError> {
    let state = &origin.state;
    let id = state.id().clone();
    let (shown, _) = watch::channel(Arc::new(state.snapshot(state.last(), 0, env.not_saved.clone())));
    let entry = Entry {
        name: state.settings().name.clone(),
        opened,
        env: None,
        shown,
        touched: 0,
        life: Life::Starting { waiting: Vec::new() },
        ends: Vec::new(),
        incarnation: 0,
        failed: BTreeMap::new(),
        closed: false,
    };
    manager.send(AddEntry(id.clone(), Box::new(entry))).await.map_err(stopped_error)?;
    report_failure(manager, id, start(manager, 0, Some(env), log, origin).await).await
}

/// The environment of a session that is opened again.
async fn session_env(
    manager: &Addr<Manager>,
    engine: &EngineEnv,
    state: &State,
    workspace: PathBuf,
    supplies: &Supplies,
) -> Result<Arc<SessionEnv>, SessionError> {
    let settings = state.settings();
    let catalog = manager.send(CatalogFor(supplies.models.clone())).await.map_err(stopped_error)?;
    let model = catalog.get(&settings.model).unwrap_or_else(|error| {
        // Without its model, the session can still be read, and says why it does not continue.
        Arc::new(Unusable { name: settings.model.clone(), error })
    });
    Ok(Arc::new(engine.build_env(model, settings, workspace, supplies)?))
}

/// Starts an actor for a session that was unloaded, with these supplies.
pub(super) async fn resume(
    manager: &Addr<Manager>,
    engine: &Arc<EngineEnv>,
    room: &StartLock,
    id: SessionId,
    seen: u64,
    supplies: &Supplies,
) -> Result<Live, SessionError> {
    let (found, workspace) = load_saved(engine, &id).await?;
    let one_at_a_time = room.lock().await;
    let cause = match manager.send(Begin { id: id.clone(), seen }).await.map_err(stopped_error)?? {
        BeginReply::Live(live) => return Ok(live),
        BeginReply::Starting(live) => {
            drop(one_at_a_time);
            return live.await.unwrap_or(Err(SessionError::Stopped));
        }
        BeginReply::StartIt(cause) => cause,
    };
    let resumed = async {
        make_room(manager).await?;
        let LoadedSession { log, state, draft, .. } = reload_if_grown(engine, &id, found).await?;
        let env = Some(session_env(manager, engine, &state, workspace, supplies).await?);
        let numbers = Numbers::reserve(&*log).await?;
        let restored = Some(Restored { cause, draft, first_item: first_item(&state, &numbers) });
        start(manager, seen, env, log, StartState { state, numbers, restored }).await
    };
    report_failure(manager, id.clone(), resumed.await).await
}

/// Starts the next actor of a session after a failure, from its log and with the same environment.
pub(super) async fn rebuild(manager: &Addr<Manager>, engine: &EngineEnv, id: &SessionId) -> Result<Live, SessionError> {
    let LoadedSession { log, state, draft, .. } = load_for_owner(id, engine.store.open(id).await?).await?;
    let numbers = Numbers::reserve(&*log).await?;
    let restored = Some(Restored { cause: RestoreCause::Panic, draft, first_item: first_item(&state, &numbers) });
    start(manager, 0, None, log, StartState { state, numbers, restored }).await
}

/// Returns the result of a start, and reports a failure to the manager.
async fn report_failure(
    manager: &Addr<Manager>,
    id: SessionId,
    started: Result<Live, SessionError>,
) -> Result<Live, SessionError> {
    if let Err(error) = &started {
        notify_failure(manager, id, error.clone()).await;
    }
    started
}

/// Reports to the manager that a session's actor could not be started.
pub(super) async fn notify_failure(manager: &Addr<Manager>, id: SessionId, error: SessionError) {
    // The manager may have ended.
    let _ = manager.send(StartFailed(id, error)).await;
}

/// Loads a saved session and resolves its workspace. Done before taking the start lock, because it
/// can be slow and must not block other sessions.
async fn load_saved(engine: &EngineEnv, id: &SessionId) -> Result<(LoadedSession, PathBuf), SessionError> {
    let found = load_for_owner(id, engine.store.open(id).await?).await?;
    let known = PathBuf::from(&found.state.settings().workspace);
    // If the folder is gone, the conversation can still be read.
    let workspace = resolve_folder(engine, known.clone()).await.unwrap_or(known);
    Ok((found, workspace))
}

/// Returns the loaded session, or loads it again if its log has grown since.
async fn reload_if_grown(
    engine: &EngineEnv,
    id: &SessionId,
    found: LoadedSession,
) -> Result<LoadedSession, SessionError> {
    let log = engine.store.open(id).await?;
    if log.page(found.state.last() + 1..u64::MAX, 1).await?.facts.is_empty() {
        return Ok(LoadedSession { log, ..found });
    }
    load_for_owner(id, log).await
}

/// The first item id that clients have not seen. If all facts were saved, every item that is not in
/// the log took a number. If not, no number was given back, and far more ids are skipped than were
/// seen.
fn first_item(state: &State, numbers: &Numbers) -> ItemId {
    let unsaved = numbers.used().saturating_sub(state.last());
    ItemId(state.next_item().0.saturating_add(unsaved))
}

/// The data that an actor starts with.
struct StartState {
    state: State,
    numbers: Numbers,
    restored: Option<Restored>,
}

/// Starts the actor on an arbiter and watches it. Without `env`, the session keeps its environment.
async fn start(
    manager: &Addr<Manager>,
    seen: u64,
    env: Option<Arc<SessionEnv>>,
    log: Arc<dyn SessionLog>,
    origin: StartState,
) -> Result<Live, SessionError> {
    let StartState { mut state, mut numbers, restored } = origin;
    let id = state.id().clone();
    let get_slot = GetStartSlot { id: id.clone(), env };
    let StartSlot { arbiter, shown, env } = manager.send(get_slot).await.map_err(stopped_error)??;
    let (alive, runs) = mpsc::channel(1);
    let (closes, mut closed) = oneshot::channel();
    let mut corrections = Vec::new();
    // The actor that failed may have changed the model without saving that.
    if env.model.name() != state.settings().model {
        corrections.push(Fact::ModelChanged { model: env.model.name().to_owned(), by: Who::named("holdpoint") });
    }
    let named = state.settings().name.clone();
    let name = manager.send(ClaimName { id: id.clone(), name: named.clone() }).await.map_err(stopped_error)?;
    if name != named {
        corrections.push(Fact::SessionRenamed { name, by: Who::named("holdpoint") });
    }
    log_corrections(corrections, &mut state, &mut numbers, &*log).await?;
    let not_saved = shown.borrow().not_saved.clone();
    // Newer than any snapshot of the previous actor, so that a client notices that the session is
    // open again.
    shown.send_replace(Arc::new(state.snapshot(numbers.used(), 0, not_saved)));
    let args = ActorArgs { state, numbers, log, shown, env, restored, alive, closes };
    // The address is made first, so that senders need not wait for the arbiter.
    let (address, mailbox) = channel::channel(MAILBOX);
    let actor = Addr::new(address);
    let (watcher, ended) = (manager.clone(), id.clone());
    let span = tracing::info_span!("session", %id, debug = tracing::field::Empty);
    // Registered first, so that the manager can't learn of the end before the start.
    let live = manager.send(ActorStarted { id, seen, actor, alive: runs }).await.map_err(stopped_error)??;
    let spawned = arbiter.spawn_fn(move || {
        let context = Context::with_receiver(mailbox);
        let task = actix_rt::spawn(context.into_future(SessionActor::new(args)).instrument(span));
        actix_rt::spawn(async move {
            let panicked = task.await.is_err();
            // Bounded: one for each actor.
            watcher.do_send(ActorEnded { id: ended, panicked, closed: closed.try_recv().is_ok() });
        });
    });
    if spawned { Ok(live) } else { Err(SessionError::Stopped) }
}

/// Logs changes that a start makes, for example of a name that another live session has by now.
async fn log_corrections(
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
