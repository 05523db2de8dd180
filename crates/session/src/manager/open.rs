//! Opening sessions, new or saved, and reaching those that are live.

use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use holdpoint_common::{
    AgentSettings, Body, Event, Fact, OpenSession, Refused, RestoreCause, SessionError,
    SessionFact, SessionId, SessionSettings, Supplies, Who, check_name,
};

use tokio::time::timeout;

use super::Live;
use super::folder::resolve_folder;
use super::lifecycle::IfSaved;
use super::moving::record_move;
use super::owned::Owned;
use super::registry::{Reached, Registry};
use super::rename::check_free;
use super::start::{StartState, first_item};
use crate::actor::{Restored, now};
use crate::hosted::{Hosted, check_restrained};
use crate::model::Unusable;
use crate::names::{folder_name, fresh_id};
use crate::sandboxes::SandboxedSession;
use crate::saved::{LoadedSession, OfflineSession, Tail, damaged_error, load_for_owner};
use crate::session_env::{SessionEnv, Worker};
use crate::state::{HandOver, Phase, State};
use crate::store::{Home, NewLog, Numbers, SessionLog, StoreError};

/// How long another machine may take to give up a session whose home is this machine, and the pause
/// between two looks.
const RELEASE_LIMIT: Duration = Duration::from_secs(5);
const RELEASE_PAUSE: Duration = Duration::from_millis(20);

/// How long the file system of a place may take to find a folder.
const PLACE_LIMIT: Duration = Duration::from_secs(5);

impl Registry {
    /// Opens a new session.
    pub(super) async fn open(
        self: &Rc<Self>,
        open: OpenSession,
        supplies: &Supplies,
    ) -> Result<Live, SessionError> {
        let engine = &self.engine;
        let workspace = self.resolve_workspace(open.workspace).await?;
        let open = OpenSession { workspace: PathBuf::from(&workspace), ..open };
        let catalog = self.catalog_for(supplies.models.clone());
        let worker = match &open.agent {
            Some(agent) => self.hosted(agent, supplies)?,
            None => {
                let name = open.model.clone().unwrap_or_else(|| catalog.default_name().name);
                Worker::Model(catalog.get(&name)?)
            }
        };
        if let Some(name) = &open.name {
            check_free(name, &*engine.store).await?;
        }
        let id = fresh_id();
        let mut owned = self.own_new(&id).await?;
        // A refused name must not unload another session to make room. The name is freed with the
        // log.
        let name = self.reserve_name(&id, open.name, folder_name(&open.workspace)).await?;
        owned.take_place().await?;
        let sandboxed = SandboxedSession {
            id: id.clone(),
            workspace: open.workspace.clone(),
            env: supplies.env.clone(),
            policy: open.policy,
            hosts_agent: open.agent.is_some(),
            settings: open.sandbox.unwrap_or_else(|| engine.sandboxes.default_settings()),
        };
        let (sandbox, process_env) = engine.sandboxes.resolve(sandboxed).await?;
        if open.agent.is_some() {
            check_restrained(open.policy, sandbox.level)?;
        }
        let settings = SessionSettings {
            id: id.clone(),
            name,
            workspace,
            model: worker.name(),
            agent: open.agent.map(Box::new),
            asks: open.asks,
            policy: open.policy,
            rules: open.rules,
            sandbox,
            max_steps: open.max_steps,
            max_turn_tokens: open.max_turn_tokens,
        };
        let env = engine.build_env(worker, &settings, open.workspace, supplies, process_env)?;
        let mut numbers = Numbers::of_new_log();
        let body = Body::Fact(Fact::Session(SessionFact::Opened { settings }));
        let first =
            Arc::new(Event { seq: numbers.take(), at: now(), turn: None, step: None, body });
        let Some(state) = State::open(&first) else {
            return Err(damaged_error(&id, "its log does not begin with an opening".to_owned()));
        };
        let first = Some((first, state.summary()));
        let contents = NewLog { first, reserved: numbers.reserved() };
        let log = engine.store.create(&id, contents).await?;
        let tail = Tail::default();
        owned
            .start(0, StartState { state, tail, numbers, log, restored: None, env: Arc::new(env) })
            .await
    }

    /// The path of a folder, as the settings of a session have it.
    pub(super) async fn resolve_workspace(&self, path: PathBuf) -> Result<String, SessionError> {
        let folder = resolve_folder(&self.engine, path).await?;
        folder.into_os_string().into_string().map_err(|path| SessionError::Workspace {
            path: path.display().to_string(),
            message: "its path is not UTF-8, so it can't be saved".to_owned(),
        })
    }

    /// Chooses a name for a new session: the wanted one, or the folder's, with a number if that is
    /// taken.
    async fn reserve_name(
        &self,
        id: &SessionId,
        wanted: Option<String>,
        folder: Option<String>,
    ) -> Result<String, SessionError> {
        let Some(name) = wanted else {
            return self.claim_numbered_name(id, folder.as_deref().unwrap_or("session")).await;
        };
        check_name(&name).map_err(Refused::Name)?;
        self.claim_name(id, &name).await.map(|()| name)
    }

    /// Gets the session's actor: the running one, the starting one or a new one. Without supplies,
    /// a session that is only saved stays so.
    pub(super) async fn reach(
        self: &Rc<Self>,
        id: &SessionId,
        seen: u64,
        supplies: Option<&Supplies>,
    ) -> Result<Live, SessionError> {
        let if_saved = if supplies.is_some() { IfSaved::Open } else { IfSaved::Fail };
        match (self.access(id, seen, if_saved).await?, supplies) {
            (Reached::Live(live), _) => Ok(live),
            (Reached::Saved(owned), Some(supplies)) => owned.open(seen, supplies, if_saved).await,
            (Reached::Saved(_), None) => Err(SessionError::NotLive { session: id.clone() }),
        }
    }

    /// Gets the session's actor, even if the session was closed.
    pub(super) async fn reopen(
        self: &Rc<Self>,
        id: &SessionId,
        supplies: &Supplies,
    ) -> Result<Live, SessionError> {
        match self.access(id, 0, IfSaved::Reopen).await? {
            Reached::Live(live) => Ok(live),
            Reached::Saved(owned) => owned.open(0, supplies, IfSaved::Reopen).await,
        }
    }

    /// Owns a log. If this machine is the home of the session, another one has it only for a moment: it
    /// hands the session over, or ends its cut work.
    async fn own_at_home(&self, id: &SessionId) -> Result<Arc<dyn SessionLog>, SessionError> {
        let store = &self.engine.store;
        let by = Instant::now() + RELEASE_LIMIT;
        loop {
            let error = match store.own(id).await {
                Ok(log) => return Ok(log),
                Err(error) => error,
            };
            let is_owned = matches!(error, StoreError::Owned { .. }) && Instant::now() < by;
            let is_home = is_owned && {
                let saved = store.open(id).await?.saved().await?;
                saved.is_some_and(|saved| matches!(saved.home, Home::Here { .. }))
            };
            if !is_home {
                return Err(error.into());
            }
            tokio::time::sleep(RELEASE_PAUSE).await;
        }
    }

    /// Loads a saved session and resolves its workspace.
    async fn load_saved(&self, id: &SessionId) -> Result<(LoadedSession, PathBuf), SessionError> {
        let log = self.own_at_home(id).await?;
        match log.home() {
            Home::Elsewhere(home) => Err(SessionError::HomeAway { session: id.clone(), home }),
            Home::Here { shared: Some(folder) } => {
                self.check_place(id, &folder).await?;
                let loaded = self.load_in_place(id, log, &folder).await?;
                Ok((loaded, folder.into()))
            }
            Home::Here { shared: None } => {
                let loaded = load_for_owner(id, log).await?;
                let known = PathBuf::from(&loaded.state.settings().workspace);
                // If the folder is gone, the conversation can still be read.
                let workspace = resolve_folder(&self.engine, known.clone()).await.unwrap_or(known);
                Ok((loaded, workspace))
            }
        }
    }

    /// Checks that a session can work in this folder of a place. The place may not be mounted, or hang.
    /// Then another machine can open the session.
    async fn check_place(&self, id: &SessionId, folder: &str) -> Result<(), SessionError> {
        let resolving = timeout(PLACE_LIMIT, self.resolve_workspace(PathBuf::from(folder)));
        let message = match resolving.await {
            Ok(Ok(workspace)) if workspace == folder => return Ok(()),
            Ok(Ok(workspace)) => format!("a link leads to {workspace}"),
            Ok(Err(SessionError::Workspace { message, .. })) => message,
            Ok(Err(error)) => return Err(error),
            Err(_) => format!("no answer in {PLACE_LIMIT:?}"),
        };
        let machine = self.engine.store.machine().unwrap_or_default().to_owned();
        Err(SessionError::PlaceUnusable {
            session: id.clone(),
            machine,
            path: folder.to_owned(),
            message,
        })
    }

    /// Loads a session that continues in the folder that its place has on this machine. If it was in
    /// another one, that is recorded; work that a crash has cut ends before.
    async fn load_in_place(
        &self,
        id: &SessionId,
        log: Arc<dyn SessionLog>,
        folder: &str,
    ) -> Result<LoadedSession, SessionError> {
        let loaded = load_for_owner(id, Arc::clone(&log)).await?;
        if *loaded.state.settings().workspace == *folder {
            return Ok(loaded);
        }
        let machine = self.engine.store.machine().map(str::to_owned);
        let by = Who::named("holdpoint");
        let request = HandOver { machine, workspace: folder.to_owned(), by };
        record_move(OfflineSession::of(&self.engine, loaded), &request).await?;
        load_for_owner(id, log).await
    }

    /// The environment of a session that is opened again.
    async fn session_env(
        &self,
        state: &State,
        workspace: PathBuf,
        supplies: &Supplies,
    ) -> Result<Arc<SessionEnv>, SessionError> {
        let settings = state.settings();
        let worker = match &settings.agent {
            Some(agent) => self.hosted(agent, supplies)?,
            None => {
                let catalog = self.catalog_for(supplies.models.clone());
                let model = catalog.get(&settings.model).unwrap_or_else(|error| {
                    // Without its model, the session can still be read. Every request to the model
                    // fails with this error.
                    Arc::new(Unusable { name: settings.model.clone(), error })
                });
                Worker::Model(model)
            }
        };
        let engine = &self.engine;
        let process_env = engine.process_env(settings, &workspace, supplies).await?;
        Ok(Arc::new(engine.build_env(worker, settings, workspace, supplies, process_env)?))
    }

    /// The agent that a session hosts.
    fn hosted(&self, agent: &AgentSettings, supplies: &Supplies) -> Result<Worker, SessionError> {
        agent.check().map_err(|error| SessionError::Model { message: error.to_string() })?;
        let engine = &self.engine;
        let (approvals, runtime) = (engine.approvals.clone(), engine.runtime.clone());
        Ok(Worker::Agent(Hosted::new(agent, &supplies.env, approvals, runtime)))
    }
}

impl Owned {
    /// Opens the session with these supplies.
    async fn open(
        mut self,
        seen: u64,
        supplies: &Supplies,
        if_saved: IfSaved,
    ) -> Result<Live, SessionError> {
        let opened = self.try_open(seen, supplies, if_saved).await;
        match &opened {
            // Of the waiting callers, only those that reopen a closed session may open this one.
            Err(SessionError::Refused(Refused::Closed)) => self.set_closed(true),
            Err(error) => self.failed = Some(error.clone()),
            Ok(_) => {}
        }
        opened
    }

    async fn try_open(
        &mut self,
        seen: u64,
        supplies: &Supplies,
        if_saved: IfSaved,
    ) -> Result<Live, SessionError> {
        let (LoadedSession { log, state, tail, draft, .. }, workspace) =
            self.registry.load_saved(&self.id).await?;
        let closed = matches!(state.phase(), Phase::Closed);
        if closed && if_saved != IfSaved::Reopen {
            return Err(Refused::Closed.into());
        }
        self.take_place().await?;
        let env = self.registry.session_env(&state, workspace, supplies).await?;
        let numbers = Numbers::reserve(&*log).await?;
        let last_failed = self.registry.lifecycle().last_failed(&self.id);
        let cause = match last_failed {
            Some(true) => RestoreCause::Panic,
            Some(false) => RestoreCause::Unloaded,
            // The session was not live in this process yet.
            None if closed || state.is_at_rest() || state.continues_when_opened() => {
                RestoreCause::Unloaded
            }
            None => RestoreCause::Restart,
        };
        let restored = Some(Restored { cause, draft, first_item: first_item(&state, &numbers) });
        self.start(seen, StartState { state, tail, numbers, log, restored, env }).await
    }
}
