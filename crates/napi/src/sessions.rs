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
mod turn;

use std::sync::Arc;

use holdpoint_common::Config;
use holdpoint_session::{SessionHandle, Sessions as Reached};
use napi::Env;
use napi_derive::napi;

use self::known::{Known, Watched};
use crate::crossing::{Collected, now};
use crate::engine;
use crate::failure::Failure;

/// Sessions, and all that can be done with them. The functions of this package are those of one of these: that of the
/// engine in this process. `connect` gives that of a daemon.
///
/// A session is named by its id, a unique beginning of it, or its name, wherever a promise is given. What fails has a
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
    #[napi(factory, skip_typescript)]
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
}

impl Place {
    /// The sessions, and what is configured for those that are opened from here.
    pub(crate) fn sessions(&self) -> Result<(Reached, Arc<Config>), Failure> {
        match &self.way {
            Way::Here => engine::sessions(),
            Way::There { sessions, config, .. } => Ok((sessions.clone(), Arc::clone(config))),
        }
    }

    /// Whether its engine is that of this process.
    fn is_here(&self) -> bool {
        matches!(self.way, Way::Here)
    }

    /// The session of this id, beginning of an id, or name: opened, if it is only saved.
    pub(crate) async fn session(self: &Arc<Self>, what: &str) -> Result<SessionHandle, Failure> {
        if let Ok(session) = self.known.get(what) {
            self.watch();
            return Ok(session);
        }
        let session = self.sessions()?.0.get(what).await?;
        Ok(self.know(session))
    }

    /// Notes that a session is used from here.
    pub(crate) fn know(self: &Arc<Self>, session: SessionHandle) -> SessionHandle {
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
