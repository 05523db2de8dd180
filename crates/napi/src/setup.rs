//! The setup of the engine: its configuration, its tools and its store.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use holdpoint_common::{Config, SessionSettings};
use holdpoint_session::folders::{Folders, LockError, SessionsLock, open_unchangeable};
use holdpoint_session::model::Catalog;
use holdpoint_session::store::Sqlite;
use holdpoint_session::{Engine, builtin_tools};
use holdpoint_tools::mcp::McpSource;
use holdpoint_tools::web::Browsers;
use holdpoint_tools::{Supervisor, Toolbox};

use crate::failure::{Failure, UNCHANGED_HINT};

/// The setup of the engine.
pub(crate) struct Setup {
    pub(crate) config: Arc<Config>,
    /// Browsers of all sessions; `None` without a folder for them.
    browsers: Option<Browsers>,
    /// Folders with this user's configuration and sessions.
    own_folders: Vec<PathBuf>,
    /// Folder for the files of sandboxes.
    sandbox_folder: Option<PathBuf>,
    /// User's own instruction file; `None` without a folder for it.
    user_instructions: Option<PathBuf>,
    saved: Option<SavedSessions>,
}

/// The store of saved sessions, locked for the life of the process.
struct SavedSessions {
    store: Sqlite,
    _lock: SessionsLock,
}

impl Setup {
    /// Creates the setup. With a state folder, sessions are saved there; without one, they end with
    /// the process.
    pub(crate) fn new(config: Config, state_dir: Option<&str>) -> Result<Self, Failure> {
        let folders = Folders::find(state_dir.map(Path::new));
        let own_folders = folders.as_ref().map(Folders::all).unwrap_or_default();
        let sandbox_folder = folders.as_ref().ok().map(Folders::sandbox);
        let user_instructions = folders.as_ref().ok().map(Folders::instructions_file);
        let browsers =
            folders.as_ref().ok().map(|folders| Browsers::new(config.web.clone(), folders.web()));
        let browsers = browsers
            .transpose()
            .map_err(|error| Failure::new("config", format!("[web]: {error}")))?;
        let saved = match state_dir {
            Some(_) => Some(SavedSessions::open(&folders?)?),
            None => None,
        };
        Ok(Self {
            config: Arc::new(config),
            browsers,
            own_folders,
            sandbox_folder,
            user_instructions,
            saved,
        })
    }

    /// Starts an engine.
    pub(crate) fn engine(&self, supervisor: Supervisor) -> Result<Engine, Failure> {
        let Self { config, browsers, own_folders, sandbox_folder, user_instructions, saved } = self;
        // Providers come from the supplies of each session.
        let engine = Engine::builder(Catalog::new(config, |_| None))
            .limits(config.limits.clone())
            .sandbox(config.sandbox.clone())
            .host_rules(&config.web.allow, &config.web.deny);
        let engine = engine
            .own_folders(own_folders)
            .supervisor(supervisor)
            .tools(toolbox_maker(browsers.clone()))
            .mcp(|servers, http| Box::new(McpSource::new(servers, http)));
        let engine = match sandbox_folder {
            Some(folder) => engine.sandbox_folder(folder),
            None => engine,
        };
        let engine = match user_instructions {
            Some(file) => engine.user_instructions(file, open_unchangeable),
            None => engine,
        };
        let engine = match saved {
            Some(SavedSessions { store, .. }) => engine.store(store.clone()),
            None => engine,
        };
        Ok(engine.start()?)
    }
}

/// Returns the function that creates the tools of a session.
fn toolbox_maker(browsers: Option<Browsers>) -> impl Fn(&SessionSettings) -> Toolbox + Send + Sync {
    move |session| {
        let tools = builtin_tools();
        #[cfg(feature = "test-support")]
        let tools = tools.with(crate::probe::probe_tool);
        match &browsers {
            Some(browsers) => tools.with(browsers.of_session(session.id.clone())),
            None => tools,
        }
    }
}

impl SavedSessions {
    fn open(folders: &Folders) -> Result<Self, Failure> {
        folders.make()?;
        let data = folders.data().display();
        let lock = SessionsLock::take(folders).map_err(|error| match error {
            LockError::Held { pid } => {
                let holder = pid.map(|pid| format!(" (pid {pid})")).unwrap_or_default();
                Failure::new("start", format!("another process is using the sessions in {data}{holder}"))
                    .hint("if it is the daemon, use connect({ stateDir }); otherwise end it, or pass another stateDir")
            }
            LockError::Failed(error) => error.into(),
        })?;
        if let Some(membership) = folders.fleet().get()? {
            let message = format!(
                "the sessions in {data} are those of a fleet, in which this machine is `{}`: only \
                 the daemon runs them",
                membership.name
            );
            return Err(Failure::new("start", message)
                .hint("use connect({ stateDir }), or pass another stateDir"));
        }
        let store = Sqlite::open(folders.data()).map_err(|error| {
            Failure::new("store", format!("the sessions in {data} can't be opened: {error}"))
                .hint(UNCHANGED_HINT)
        })?;
        Ok(Self { store, _lock: lock })
    }
}
