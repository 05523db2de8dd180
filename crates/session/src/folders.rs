//! Where a user's sessions, their daemon and its configuration are, for every program that runs or reaches them; and that
//! nobody else gets at them.
//!
//! An engine knows of none of this: who starts one decides whether it is the user's own (feature `folders`).

mod lock;
mod private;

use std::io;
use std::path::{Path, PathBuf};

use etcetera::BaseStrategy;
use etcetera::base_strategy::Xdg;
use holdpoint_common::{Config, ConfigError};

pub use lock::{LockError, SessionsLock};
pub use private::{Exposed, check_file, make_folder, open};
pub(crate) use private::{check, check_above};

/// Bytes of a socket's path: what the system takes at most (`sockaddr_un`, without its closing zero).
const SOCKET_PATH: usize = if cfg!(target_os = "macos") { 103 } else { 107 };

/// Where the user's files are. Nothing is created by knowing this.
#[derive(Debug, Clone)]
pub struct Folders {
    config: PathBuf,
    data: PathBuf,
    runtime: PathBuf,
    /// Where there is a second socket: with the data, if the first is elsewhere.
    second: Option<PathBuf>,
    /// What all of them are below, if the user said so.
    state_dir: Option<PathBuf>,
}

/// What is wrong with the user's folders.
#[derive(Debug, thiserror::Error)]
pub enum FoldersError {
    /// Nobody says where they would be.
    #[error("there is no home folder")]
    NoHome,
    /// One of them can't be made, or something in it can't be read or written.
    #[error("{}: {error}", path.display())]
    Io {
        /// Where.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// Somebody else may have been there. It is left as it is.
    #[error(transparent)]
    Exposed(#[from] Exposed),
    /// The socket's path is longer than the system takes.
    #[error("the socket's path has {bytes} bytes, and the system takes {most} at most: {}", path.display())]
    SocketPath {
        /// The path.
        path: PathBuf,
        /// Its length.
        bytes: usize,
        /// The longest there may be.
        most: usize,
    },
    /// The user's configuration can't be read.
    #[error("{}: {error}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The user's configuration is none.
    #[error("{}: {error}", path.display())]
    Config {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        error: ConfigError,
    },
}

impl Folders {
    /// The user's own folders, by the XDG base directories, or all of them below `state_dir`.
    ///
    /// # Errors
    /// There is no home folder; or `state_dir` is relative, and there is no current folder.
    pub fn find(state_dir: Option<&Path>) -> Result<Self, FoldersError> {
        if let Some(dir) = state_dir {
            let dir = std::path::absolute(dir).map_err(|error| FoldersError::Io { path: dir.to_owned(), error })?;
            let [config, data, runtime] = ["config", "data", "run"].map(|name| dir.join(name));
            return Ok(Self { config, data, runtime, second: None, state_dir: Some(dir) });
        }
        let user = Xdg::new().map_err(|_| FoldersError::NoHome)?;
        let data = user.data_dir().join("holdpoint");
        let beside = data.join("run");
        let (runtime, second) = match user.runtime_dir() {
            Some(dir) => (dir.join("holdpoint"), Some(beside)),
            None => (beside, None),
        };
        Ok(Self { config: user.config_dir().join("holdpoint"), data, runtime, second, state_dir: None })
    }

    /// Makes the folders of the state, for nobody but this user.
    ///
    /// # Errors
    /// One can't be made, belongs to another user, would be in another user's folder, or is open to others. If one would be
    /// in another user's folder, no folder is made.
    pub fn make(&self) -> Result<(), FoldersError> {
        let logs = self.logs();
        let all = || [&self.data, &self.runtime, &logs].into_iter().chain(&self.second);
        all().try_for_each(|folder| private::check_above(folder))?;
        all().try_for_each(|folder| private::make(folder))
    }

    /// The user's configuration file; it may not be there.
    #[must_use]
    pub fn config_file(&self) -> PathBuf {
        self.config.join("config.toml")
    }

    /// Where sessions are kept.
    #[must_use]
    pub fn data(&self) -> &Path {
        &self.data
    }

    /// Where the daemon's logs are kept.
    #[must_use]
    pub fn logs(&self) -> PathBuf {
        self.data.join("logs")
    }

    /// All of them: nothing that an agent writes there is written unasked, see
    /// [`EngineBuilder::own_folders`](crate::EngineBuilder::own_folders).
    #[must_use]
    pub fn all(&self) -> Vec<PathBuf> {
        [&self.config, &self.data, &self.runtime].into_iter().chain(&self.second).cloned().collect()
    }

    /// Where browsers have their folders, and pictures of pages are kept.
    #[must_use]
    pub fn web(&self) -> PathBuf {
        self.data.join("web")
    }

    /// What all folders are below, if the user said so.
    #[must_use]
    pub fn state_dir(&self) -> Option<&Path> {
        self.state_dir.as_deref()
    }

    /// The daemon's sockets. Where the first is in a folder that the system removes when its user has left, or gives to
    /// some of their processes only (a service, cron), there is a second one with the data.
    ///
    /// # Errors
    /// The path of the first is longer than the system takes. A second one that is too long is left out.
    pub fn sockets(&self) -> Result<Vec<PathBuf>, FoldersError> {
        let [first, second] = [Some(&self.runtime), self.second.as_ref()].map(|dir| Some(dir?.join("holdpoint.sock")));
        let length = |path: &PathBuf| path.as_os_str().len();
        if let Some(path) = first.as_ref().filter(|path| length(path) > SOCKET_PATH) {
            return Err(FoldersError::SocketPath { bytes: length(path), most: SOCKET_PATH, path: path.clone() });
        }
        Ok(first.into_iter().chain(second.filter(|path| length(path) <= SOCKET_PATH)).collect())
    }

    /// The text of the user's configuration; nothing if there is none.
    ///
    /// # Errors
    /// It is there and can't be read.
    pub fn config_text(&self) -> Result<Option<String>, FoldersError> {
        let path = self.config_file();
        match std::fs::read_to_string(&path) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(FoldersError::Unreadable { path, error }),
        }
    }

    /// The user's configuration; the defaults if there is none.
    ///
    /// # Errors
    /// It is there and can't be read, or is none.
    pub fn config(&self) -> Result<Config, FoldersError> {
        let Some(text) = self.config_text()? else { return Ok(Config::default()) };
        Config::parse(&text).map_err(|error| FoldersError::Config { path: self.config_file(), error })
    }
}
