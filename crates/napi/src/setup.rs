//! What the engine of the process is started with: its configuration, its tools, and where its sessions are saved.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use holdpoint_common::{Config, SessionSettings};
use holdpoint_session::folders::{Folders, LockError, SessionsLock};
use holdpoint_session::model::Catalog;
use holdpoint_session::store::Sqlite;
use holdpoint_session::{Engine, builtin_tools};
use holdpoint_tools::web::Browsers;
use holdpoint_tools::{Supervisor, Toolbox};

use crate::failure::{AS_THEY_ARE, Failure};

/// What the engine is started with.
pub(crate) struct Setup {
    pub(crate) config: Arc<Config>,
    /// Those of all sessions, where there is a folder for them.
    browsers: Option<Browsers>,
    /// Where this user's configuration and sessions are.
    own_folders: Vec<PathBuf>,
    saved: Option<Saved>,
}

/// Sessions that are saved: ours, for as long as the process lives.
struct Saved {
    store: Sqlite,
    _lock: SessionsLock,
}

impl Setup {
    /// By this configuration; with sessions that are saved in this folder, or else end with the process.
    pub(crate) fn new(config: Config, state_dir: Option<&str>) -> Result<Self, Failure> {
        let folders = Folders::find(state_dir.map(Path::new));
        let own_folders = folders.as_ref().map(Folders::all).unwrap_or_default();
        let browsers = folders.as_ref().ok().map(|folders| Browsers::new(config.web.clone(), folders.web()));
        let browsers = browsers.transpose().map_err(|error| Failure::new("config", format!("[web]: {error}")))?;
        let saved = match state_dir {
            Some(_) => Some(Saved::open(&folders?)?),
            None => None,
        };
        Ok(Self { config: Arc::new(config), browsers, own_folders, saved })
    }

    /// An engine.
    pub(crate) fn engine(&self, supervisor: Supervisor) -> Result<Engine, Failure> {
        let Self { config, browsers, own_folders, saved } = self;
        // Each session has what its client brings along.
        let engine = Engine::builder(Catalog::new(config, |_| None)).limits(config.limits.clone());
        let engine = engine.own_folders(own_folders).supervisor(supervisor).tools(tools(browsers.clone()));
        let engine = match saved {
            Some(Saved { store, .. }) => engine.store(store.clone()),
            None => engine,
        };
        Ok(engine.start()?)
    }
}

/// What makes the tools of a session.
fn tools(browsers: Option<Browsers>) -> impl Fn(&SessionSettings) -> Toolbox + Send + Sync {
    move |session| {
        let tools = builtin_tools();
        #[cfg(feature = "test-support")]
        let tools = tools.with(crate::stop::stop);
        match &browsers {
            Some(browsers) => tools.with(browsers.of_session(session.id.clone())),
            None => tools,
        }
    }
}

impl Saved {
    fn open(folders: &Folders) -> Result<Self, Failure> {
        folders.make()?;
        let data = folders.data().display();
        let lock = SessionsLock::take(folders).map_err(|error| match error {
            LockError::Held { pid } => {
                let whose = pid.map(|pid| format!(" (pid {pid})")).unwrap_or_default();
                Failure::new("start", format!("another process has the sessions in {data}{whose}")).hint(
                    "connect({ stateDir }) reaches them if it is the daemon; else let it end, or name another place",
                )
            }
            LockError::Failed(error) => error.into(),
        })?;
        let store = Sqlite::open(folders.data()).map_err(|error| {
            Failure::new("store", format!("the sessions in {data} can't be opened: {error}")).hint(AS_THEY_ARE)
        })?;
        Ok(Self { store, _lock: lock })
    }
}
