//! All functions on sessions, of the engine in this process or of a daemon.

mod answer;
mod attach;
mod change;
mod environment;
mod hold;
mod keep_alive;
mod known_sessions;
mod list;
mod open;
mod snapshot;
mod turn;

use std::future::Future;
use std::sync::Arc;

use holdpoint_common::{Config, SessionId};
use holdpoint_session::{SessionHandle, Sessions as EngineSessions};
use napi::Env;
use napi_derive::napi;

use self::environment::Environment;
use self::known_sessions::{KnownSessions, SessionWatcher};
use crate::convert::{CatchDrop, run_sync};
use crate::engine;
use crate::failure::Failure;

/// The sessions of one engine, with all functions on them. The functions of this package are the
/// methods of such an object, for the engine in this process. `connect` returns one for a daemon's
/// sessions.
///
/// Methods that return a promise accept a session's id, a unique prefix of it with at least 4
/// characters, or its name. Errors have a `code`: {@link HoldpointError}.
#[napi]
pub struct Sessions(CatchDrop<Arc<NodeClient>>);

/// The backend of a `Sessions` object, and the sessions that were used through it.
#[derive(Default)]
pub(crate) struct NodeClient {
    backend: Backend,
    pub(crate) known: KnownSessions,
}

#[derive(Default)]
enum Backend {
    /// The engine of this process, which starts when it is first used.
    #[default]
    Local,
    /// The engine of a daemon.
    Daemon { sessions: EngineSessions, config: Arc<Config>, watched: SessionWatcher },
}

#[napi]
impl Sessions {
    /// Returns the sessions of the engine in this process.
    #[napi(factory, catch_unwind, skip_typescript)]
    pub fn here() -> Self {
        Self(CatchDrop(Arc::default()))
    }

    pub(crate) fn from_daemon(sessions: EngineSessions, config: Config) -> Self {
        let backend = Backend::Daemon {
            sessions,
            config: Arc::new(config),
            watched: SessionWatcher::default(),
        };
        Self(CatchDrop(Arc::new(NodeClient { backend, known: KnownSessions::default() })))
    }

    /// Returns the shared state of the object, for use in a promise.
    pub(crate) fn client(&self) -> Arc<NodeClient> {
        Arc::clone(&self.0.0)
    }

    /// Reads a known session at once.
    fn read_known<T>(
        &self,
        env: &Env,
        id: &str,
        read: impl FnOnce(&NodeClient, &SessionHandle) -> T,
    ) -> napi::Result<T> {
        run_sync(env, || Ok(read(&self.0.0, &self.0.0.known.get(id)?)))
    }

    /// Finds a session by its id, prefix of an id, or name. A saved session is opened, with the
    /// current environment.
    fn session(
        &self,
        given: String,
    ) -> impl Future<Output = Result<SessionHandle, Failure>> + Send + use<> {
        let client = self.client();
        // A known session needs no environment.
        let found = client.known.get(&given).map_err(|_| Environment::or_current(None));
        async move {
            match found {
                Ok(session) => {
                    client.watch();
                    Ok(session)
                }
                Err(environment) => client.find(&given, environment).await,
            }
        }
    }

    /// Runs `act` on a session and refreshes the session's snapshot afterwards.
    fn act<T, Acting, Act>(
        &self,
        given: String,
        act: Act,
    ) -> impl Future<Output = Result<T, Failure>> + Send + use<T, Acting, Act>
    where
        T: Send,
        Acting: Future<Output = Result<T, Failure>> + Send,
        Act: FnOnce(SessionHandle) -> Acting + Send,
    {
        let session = self.session(given);
        async move {
            let session = session.await?;
            let done = act(session.clone()).await?;
            refresh(&session).await;
            Ok(done)
        }
    }
}

impl NodeClient {
    /// Returns the sessions, and the configuration for those that are opened here.
    pub(crate) fn sessions(&self) -> Result<(EngineSessions, Arc<Config>), Failure> {
        match &self.backend {
            Backend::Local => engine::sessions(),
            Backend::Daemon { sessions, config, .. } => Ok((sessions.clone(), Arc::clone(config))),
        }
    }

    /// Like [`NodeClient::sessions`], with this environment for sessions that are opened.
    fn sessions_with(
        &self,
        environment: Environment,
    ) -> Result<(EngineSessions, Arc<Config>), Failure> {
        let (sessions, config) = self.sessions()?;
        Ok((sessions.with_supplies(environment.supplies(&config)), config))
    }

    /// Whether the sessions are those of the engine in this process.
    fn is_local(&self) -> bool {
        matches!(self.backend, Backend::Local)
    }

    /// Finds a session at its engine. A saved session is opened.
    async fn find(
        self: &Arc<Self>,
        given: &str,
        environment: Environment,
    ) -> Result<SessionHandle, Failure> {
        Ok(self.remember(self.sessions_with(environment)?.0.get(given).await?))
    }

    /// Returns the id of a session. A saved session stays saved.
    async fn id(&self, given: &str) -> Result<SessionId, Failure> {
        match self.known.get(given) {
            Ok(session) => Ok(session.id().clone()),
            Err(_) => Ok(self.sessions()?.0.look(given).await?.settings.id.clone()),
        }
    }

    /// Records that a session is used through this object.
    fn remember(self: &Arc<Self>, session: SessionHandle) -> SessionHandle {
        self.watch();
        self.known.insert(session)
    }

    /// Starts to watch a daemon's sessions, because others change them and the snapshots here must
    /// follow.
    fn watch(self: &Arc<Self>) {
        if let Backend::Daemon { sessions, watched, .. } = &self.backend {
            watched.ensure_running(sessions, self);
        }
    }
}

/// Refreshes the cached snapshot of a daemon's session after a command. A failed refresh does not
/// fail the command.
async fn refresh(session: &SessionHandle) {
    if let Err(error) = session.refresh().await {
        tracing::debug!(session = %session.id(), %error, "a session could not be refreshed");
    }
}
