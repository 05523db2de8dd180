//! All that is done with sessions: of the engine in this process, or of a daemon.

mod answer;
mod attach;
mod change;
mod hold;
mod known;
mod list;
mod look;
mod open;
mod stay;
mod supplies;
mod turn;

use std::future::Future;
use std::sync::Arc;

use holdpoint_common::{Config, SessionId};
use holdpoint_session::{SessionHandle, Sessions as Reached};
use napi::Env;
use napi_derive::napi;

use self::known::{Known, Watched};
use self::supplies::Environment;
use crate::crossing::{Collected, now};
use crate::engine;
use crate::failure::Failure;

/// Sessions, and all that can be done with them. The functions of this package are those of one of these: that of the
/// engine in this process. `connect` gives that of a daemon.
///
/// A session is named by its id, a unique prefix of it (4 characters or more), or its name, wherever a promise is given. What fails has a
/// `code`: {@link HoldpointError}.
#[napi]
pub struct Sessions(Collected<Arc<Place>>);

/// Where sessions are, and which of them have been used from here.
#[derive(Default)]
pub(crate) struct Place {
    way: Way,
    pub(crate) known: Known,
}

#[derive(Default)]
enum Way {
    /// The engine of this process, which starts when it is first used.
    #[default]
    Here,
    /// A daemon.
    There { sessions: Reached, config: Arc<Config>, watched: Watched },
}

#[napi]
impl Sessions {
    /// Those of the engine in this process.
    #[napi(factory, catch_unwind, skip_typescript)]
    pub fn here() -> Self {
        Self(Collected(Arc::default()))
    }

    pub(crate) fn of_daemon(sessions: Reached, config: Config) -> Self {
        let way = Way::There { sessions, config: Arc::new(config), watched: Watched::default() };
        Self(Collected(Arc::new(Place { way, known: Known::default() })))
    }

    /// The place, for what is done by a promise.
    pub(crate) fn place(&self) -> Arc<Place> {
        Arc::clone(&self.0.0)
    }

    /// Reads something of a session that has been used from here, at once.
    fn glance<T>(&self, env: &Env, id: &str, read: impl FnOnce(&Place, &SessionHandle) -> T) -> napi::Result<T> {
        now(env, || Ok(read(&self.0.0, &self.0.0.known.get(id)?)))
    }

    /// The session of this id, prefix of an id, or name: opened, if it is only saved, with the environment of now.
    fn session(&self, what: String) -> impl Future<Output = Result<SessionHandle, Failure>> + Send + use<> {
        let place = self.place();
        // It is opened with nothing if it was used before.
        let found = place.known.get(&what).map_err(|_| Environment::or_ours(None));
        async move {
            match found {
                Ok(session) => {
                    place.watch();
                    Ok(session)
                }
                Err(environment) => place.find(&what, environment).await,
            }
        }
    }

    /// Does something with a session. When it is done, what is read of it at once is as new.
    fn act<T, Acting, Act>(
        &self,
        what: String,
        act: Act,
    ) -> impl Future<Output = Result<T, Failure>> + Send + use<T, Acting, Act>
    where
        T: Send,
        Acting: Future<Output = Result<T, Failure>> + Send,
        Act: FnOnce(SessionHandle) -> Acting + Send,
    {
        let session = self.session(what);
        async move {
            let session = session.await?;
            let done = act(session.clone()).await?;
            read_again(&session).await;
            Ok(done)
        }
    }
}

impl Place {
    /// The sessions, and what is configured for those that are opened from here.
    pub(crate) fn sessions(&self) -> Result<(Reached, Arc<Config>), Failure> {
        match &self.way {
            Way::Here => engine::sessions(),
            Way::There { sessions, config, .. } => Ok((sessions.clone(), Arc::clone(config))),
        }
    }

    /// The same, for a client that brings this along for what it opens.
    fn sessions_with(&self, environment: Environment) -> Result<(Reached, Arc<Config>), Failure> {
        let (sessions, config) = self.sessions()?;
        Ok((sessions.with_supplies(environment.supplies(&config)), config))
    }

    /// Whether its engine is that of this process.
    fn is_here(&self) -> bool {
        matches!(self.way, Way::Here)
    }

    /// Finds a session, whatever is known of it here: opened, if it is only saved.
    async fn find(self: &Arc<Self>, what: &str, environment: Environment) -> Result<SessionHandle, Failure> {
        Ok(self.know(self.sessions_with(environment)?.0.get(what).await?))
    }

    /// The id of a session, which stays saved if it is only that.
    async fn id(&self, what: &str) -> Result<SessionId, Failure> {
        match self.known.get(what) {
            Ok(session) => Ok(session.id().clone()),
            Err(_) => Ok(self.sessions()?.0.look(what).await?.settings.id.clone()),
        }
    }

    /// Notes that a session is used from here.
    fn know(self: &Arc<Self>, session: SessionHandle) -> SessionHandle {
        self.watch();
        self.known.insert(session)
    }

    /// A daemon's sessions change without our doing, and what is shown of them is to be what they are.
    fn watch(self: &Arc<Self>) {
        if let Way::There { sessions, watched, .. } = &self.way {
            watched.ensure(sessions, self);
        }
    }
}

/// Has what is read at once of a daemon's session be what it is now. What was done is done, also if it can't be read.
async fn read_again(session: &SessionHandle) {
    if let Err(error) = session.refresh().await {
        tracing::debug!(session = %session.id(), %error, "a session can't be read again");
    }
}
