//! Where the user's files are.

pub(crate) mod private;

use std::io;
use std::path::{Path, PathBuf};

use etcetera::BaseStrategy;
use etcetera::base_strategy::Xdg;
use holdpoint_common::Config;

use crate::error::CliError;

/// Bytes of a socket's path: what the system takes at most (`sockaddr_un`, without its closing zero).
const SOCKET_PATH: usize = if cfg!(target_os = "macos") { 103 } else { 107 };

/// Where the user's files are. Nothing is created by knowing this.
#[derive(Debug, Clone)]
pub(crate) struct Folders {
    config: PathBuf,
    data: PathBuf,
    runtime: PathBuf,
    /// Where there is a second socket: with the data, if the first is elsewhere.
    second: Option<PathBuf>,
    /// What all of them are below, if the user said so.
    state_dir: Option<PathBuf>,
}

impl Folders {
    /// The user's own folders, or all of them below `state_dir`.
    pub(crate) fn find(state_dir: Option<PathBuf>) -> Result<Self, CliError> {
        if let Some(dir) = state_dir {
            let dir =
                std::path::absolute(&dir).map_err(|error| CliError::usage(format!("{}: {error}", dir.display())))?;
            let [config, data, runtime] = ["config", "data", "run"].map(|name| dir.join(name));
            return Ok(Self { config, data, runtime, second: None, state_dir: Some(dir) });
        }
        let user =
            Xdg::new().map_err(|_| CliError::usage("there is no home folder").hint("set HOME, or use --state-dir"))?;
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
    /// One can't be made, is somebody else's, or is open to others.
    pub(crate) fn make(&self) -> Result<(), CliError> {
        for folder in [&self.data, &self.runtime, &self.logs()].into_iter().chain(&self.second) {
            private::make(folder)?;
        }
        Ok(())
    }

    /// The user's configuration file; it may not be there.
    pub(crate) fn config_file(&self) -> PathBuf {
        self.config.join("config.toml")
    }

    /// Where sessions are kept.
    pub(crate) fn data(&self) -> &Path {
        &self.data
    }

    /// Where the daemon's logs are kept.
    pub(crate) fn logs(&self) -> PathBuf {
        self.data.join("logs")
    }

    /// Where browsers have their folders, and pictures of pages are kept.
    pub(crate) fn web(&self) -> PathBuf {
        self.data.join("web")
    }

    /// What all folders are below, if the user said so.
    pub(crate) fn state_dir(&self) -> Option<&Path> {
        self.state_dir.as_deref()
    }

    /// The daemon's sockets. Where the first is in a folder that the system removes when its user has left, or gives to
    /// some of their processes only (a service, cron), there is a second one with the data.
    ///
    /// # Errors
    /// The path of the first is longer than the system takes. A second one that is too long is left out.
    pub(crate) fn sockets(&self) -> Result<Vec<PathBuf>, CliError> {
        let [first, second] = [Some(&self.runtime), self.second.as_ref()].map(|dir| Some(dir?.join("holdpoint.sock")));
        let length = |path: &PathBuf| path.as_os_str().len();
        if let Some(path) = first.as_ref().filter(|path| length(path) > SOCKET_PATH) {
            let what = format!(
                "the socket's path has {} bytes, and the system takes {SOCKET_PATH} at most: {}",
                length(path),
                path.display()
            );
            return Err(CliError::usage(what).hint("name a shorter place by --state-dir or XDG_RUNTIME_DIR"));
        }
        Ok(first.into_iter().chain(second.filter(|path| length(path) <= SOCKET_PATH)).collect())
    }

    /// The user's configuration; the defaults if there is no file.
    pub(crate) fn config(&self) -> Result<Config, CliError> {
        let path = self.config_file();
        match read(&path)? {
            Some(text) => Config::parse(&text).map_err(|error| CliError::config(&path, &error)),
            None => Ok(Config::default()),
        }
    }
}

fn read(path: &Path) -> Result<Option<String>, CliError> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(CliError::usage(format!("{}: {error}", path.display()))
            .hint("without its rules nothing runs: make it readable, or --state-dir names another place")),
    }
}
