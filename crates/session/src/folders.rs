//! The locations of a user's sessions, their daemon and its configuration, for every program that
//! runs or reaches sessions. Only that user gets access.
//!
//! The engine does not use this module. A program decides whether it runs the user's own sessions
//! (feature `folders`).

mod agents;
mod fleet;
mod lock;
mod logins;
mod private;
mod record;
mod trust;

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use holdpoint_common::api::RequestError;
use holdpoint_common::{Config, ConfigError};
use holdpoint_tools::{Ancestry, SupervisorAbove};

pub use agents::{AgentStore, ApprovedAgent};
pub use fleet::{FleetStore, Membership};
pub use lock::{LockError, SessionsLock};
pub use logins::{LoginKey, LoginStore};
pub use private::{Exposed, check_file, make_folder, open, open_unchangeable};
pub(crate) use private::{check, check_above};
pub(crate) use trust::read_untrusted;
pub use trust::{TrustStore, TrustedFolder};

/// The maximum length of a socket's path in bytes: the size in `sockaddr_un`, without the closing
/// zero.
const MAX_SOCKET_PATH_BYTES: usize = if cfg!(target_os = "macos") { 103 } else { 107 };

/// The locations of the user's files. Creating the value creates no files.
#[derive(Debug, Clone)]
pub struct Folders {
    config: PathBuf,
    data: PathBuf,
    runtime: PathBuf,
    /// The folder of the second socket, in the data folder. `None` if the first socket is there, or
    /// the user has set a state folder.
    second: Option<PathBuf>,
    /// The folder that contains all the others, if the user has set one.
    state_dir: Option<PathBuf>,
    /// Whether these are the folders of the user for whom a tool call has started this process.
    /// Determined at the first use.
    of_tools_user: OnceLock<bool>,
}

/// An error with the user's folders.
#[derive(Debug, thiserror::Error)]
pub enum FoldersError {
    /// The user has no home folder.
    #[error("no home folder found")]
    NoHome,
    /// A tool call has started this process, so it must not use the user's own folders; or the
    /// process's ancestors can't be read.
    #[error(transparent)]
    Refused(#[from] RequestError),
    /// A folder can't be created, or a file in it can't be read or written.
    #[error("{}: {error}", path.display())]
    Io {
        /// The path of the folder or file.
        path: PathBuf,
        /// The error of the system.
        error: io::Error,
    },
    /// Another user may have had access. The folder or file is left as it is.
    #[error(transparent)]
    Exposed(#[from] Exposed),
    /// The socket's path is longer than the system allows.
    #[error("the socket path has {bytes} bytes, but the system allows at most {most}: {}", path.display())]
    SocketPath {
        /// The path of the socket.
        path: PathBuf,
        /// The length of the path in bytes.
        bytes: usize,
        /// The maximum length in bytes.
        most: usize,
    },
    /// The user's configuration can't be read.
    #[error("{}: {error}", path.display())]
    Unreadable {
        /// The path of the file.
        path: PathBuf,
        /// The error of the system.
        error: io::Error,
    },
    /// The user's configuration is invalid.
    #[error("{}: {error}", path.display())]
    Config {
        /// The path of the file.
        path: PathBuf,
        /// The fault of the configuration.
        error: ConfigError,
    },
}

impl Folders {
    /// The user's own folders, according to the XDG base directories, or all of them below
    /// `state_dir`.
    ///
    /// # Errors
    /// There is no home folder, or `state_dir` is relative and there is no current folder.
    pub fn find(state_dir: Option<&Path>) -> Result<Self, FoldersError> {
        let Some(dir) = state_dir else {
            return Self::from_env(std::env::home_dir(), |name| std::env::var_os(name));
        };
        let dir = std::path::absolute(dir)
            .map_err(|error| FoldersError::Io { path: dir.to_owned(), error })?;
        let [config, data, runtime] = ["config", "data", "run"].map(|name| dir.join(name));
        Ok(Self {
            config,
            data,
            runtime,
            second: None,
            state_dir: Some(dir),
            of_tools_user: OnceLock::from(false),
        })
    }

    /// The folders of a user with this home and environment, according to the XDG base directories.
    fn from_env(
        home: Option<PathBuf>,
        env: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Self, FoldersError> {
        let absolute = |name| env(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let home = home.filter(|home| home.is_absolute()).ok_or(FoldersError::NoHome)?;
        let base = |name, default| absolute(name).unwrap_or_else(|| home.join(default));
        let data = base("XDG_DATA_HOME", ".local/share").join("holdpoint");
        let run_in_data = data.join("run");
        let (runtime, second) = match absolute("XDG_RUNTIME_DIR") {
            Some(dir) => (dir.join("holdpoint"), Some(run_in_data)),
            None => (run_in_data, None),
        };
        let config = base("XDG_CONFIG_HOME", ".config").join("holdpoint");
        Ok(Self { config, data, runtime, second, state_dir: None, of_tools_user: OnceLock::new() })
    }

    /// Fails if a tool call has started this process, and these are the folders of its user. A
    /// `state_dir` is always accepted, because it is unknown whose it is.
    fn check_not_of_tools_user(&self) -> Result<(), FoldersError> {
        let of_tools_user = match self.of_tools_user.get() {
            Some(known) => *known,
            None => {
                let ancestry = Ancestry::of_this_process().map_err(RequestError::unverified)?;
                let found = ancestry.supervisors.iter().any(|above| self.is_of_user_of(above));
                *self.of_tools_user.get_or_init(|| found)
            }
        };
        if of_tools_user { Err(RequestError::FromTool.into()) } else { Ok(()) }
    }

    /// Whether the user of a tool call has one of these folders, or it is unknown.
    fn is_of_user_of(&self, supervisor: &SupervisorAbove) -> bool {
        let Ok(env) = supervisor.environment() else { return true };
        let value = |name: &str| {
            env.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone())
        };
        let Ok(theirs) = Self::from_env(value("HOME").map(PathBuf::from), value) else {
            return true;
        };
        let ours = self.all();
        theirs.all().iter().any(|folder| ours.contains(folder))
    }

    /// Creates the folders for the state, with access for this user only.
    ///
    /// # Errors
    /// A folder can't be created, belongs to another user, would be in another user's folder, or is
    /// open to others. If one would be in another user's folder, no folder is created. Also if
    /// a tool call has started this process, and these are the folders of its user.
    pub fn make(&self) -> Result<(), FoldersError> {
        self.check_not_of_tools_user()?;
        let logs = self.logs();
        private::check_above(&self.data)?;
        if !self.runtime.starts_with(&self.data) {
            private::check_above(&self.runtime)?;
        }
        // The data folder comes first, because others are in it.
        let mut all = [&self.data, &self.runtime, &logs].into_iter().chain(&self.second);
        all.try_for_each(|folder| private::make(folder))
    }

    /// The path of the user's configuration file, which need not exist.
    #[must_use]
    pub fn config_file(&self) -> PathBuf {
        self.config.join("config.toml")
    }

    /// The path of the user's own instruction file, which need not exist; see
    /// [`EngineBuilder::user_instructions`](crate::EngineBuilder::user_instructions).
    #[must_use]
    pub fn instructions_file(&self) -> PathBuf {
        self.config.join("AGENTS.md")
    }

    /// The folder that holds the sessions.
    #[must_use]
    pub fn data(&self) -> &Path {
        &self.data
    }

    /// The folder that holds the daemon's logs.
    #[must_use]
    pub fn logs(&self) -> PathBuf {
        self.data.join("logs")
    }

    /// All of these folders. Every write of an agent to one of them asks; see
    /// [`EngineBuilder::own_folders`](crate::EngineBuilder::own_folders).
    #[must_use]
    pub fn all(&self) -> Vec<PathBuf> {
        [&self.config, &self.data, &self.runtime].into_iter().chain(&self.second).cloned().collect()
    }

    /// The folder for the temporary files and caches of sandboxes.
    #[must_use]
    pub fn sandbox(&self) -> PathBuf {
        self.data.join("sandbox")
    }

    /// The folder for the files of browsers and for pictures of pages.
    #[must_use]
    pub fn web(&self) -> PathBuf {
        self.data.join("web")
    }

    /// The folders with MCP servers that the user trusts.
    #[must_use]
    pub fn trust(&self) -> TrustStore {
        TrustStore::new(self.data.join("trust"))
    }

    /// The user's logins at MCP servers.
    #[must_use]
    pub fn logins(&self) -> LoginStore {
        LoginStore::new(self.data.join("logins"))
    }

    /// The hosted agents that the user has approved for all sessions.
    #[must_use]
    pub fn agents(&self) -> AgentStore {
        AgentStore::new(self.data.join("agents"))
    }

    /// The membership of this machine in a fleet.
    #[must_use]
    pub fn fleet(&self) -> FleetStore {
        FleetStore::new(&self.data)
    }

    /// The folder that contains all the others, if the user has set one.
    #[must_use]
    pub fn state_dir(&self) -> Option<&Path> {
        self.state_dir.as_deref()
    }

    /// The paths of the daemon's sockets. The first may be in a folder that the system removes when
    /// the user logs out, or that some of the user's processes (a service, cron) do not get. Then
    /// there is a second socket with the data.
    ///
    /// # Errors
    /// The first path is longer than the system allows. A second one that is too long is left out.
    /// Also if a tool call has started this process, and these are the folders of its user.
    pub fn sockets(&self) -> Result<Vec<PathBuf>, FoldersError> {
        self.check_not_of_tools_user()?;
        let [first, second] = [Some(&self.runtime), self.second.as_ref()]
            .map(|dir| Some(dir?.join("holdpoint.sock")));
        let length = |path: &PathBuf| path.as_os_str().len();
        if let Some(path) = first.as_ref().filter(|path| length(path) > MAX_SOCKET_PATH_BYTES) {
            return Err(FoldersError::SocketPath {
                bytes: length(path),
                most: MAX_SOCKET_PATH_BYTES,
                path: path.clone(),
            });
        }
        Ok(first
            .into_iter()
            .chain(second.filter(|path| length(path) <= MAX_SOCKET_PATH_BYTES))
            .collect())
    }

    /// The text of the user's configuration; `None` if there is none.
    ///
    /// # Errors
    /// The file exists but can't be read, or another user could change or replace it: its commands
    /// run as this user.
    pub fn config_text(&self) -> Result<Option<String>, FoldersError> {
        let path = self.config_file();
        match private::read_unchangeable(&path) {
            Ok(text) => text.map(Some).map_err(FoldersError::from),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(FoldersError::Unreadable { path, error }),
        }
    }

    /// The user's configuration, or the defaults if there is none.
    ///
    /// # Errors
    /// As [`config_text`](Self::config_text), or the file is invalid.
    pub fn config(&self) -> Result<Config, FoldersError> {
        let Some(text) = self.config_text()? else { return Ok(Config::default()) };
        Config::parse(&text)
            .map_err(|error| FoldersError::Config { path: self.config_file(), error })
    }
}
