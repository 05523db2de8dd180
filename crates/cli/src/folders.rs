//! Where the user's files are.

mod private;

use std::io;
use std::path::{Path, PathBuf};

use etcetera::BaseStrategy;
use etcetera::base_strategy::Xdg;
use holdpoint_common::Config;

use crate::error::CliError;

/// Bytes of a socket's path: what the system takes at most (`sockaddr_un`, without its closing zero).
const SOCKET_PATH: usize = if cfg!(target_os = "macos") { 103 } else { 107 };

/// Where the user's files are. Nothing is created by knowing this.
#[derive(Debug)]
pub(crate) struct Folders {
    config: PathBuf,
    data: PathBuf,
    runtime: PathBuf,
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
            return Ok(Self { config, data, runtime, state_dir: Some(dir) });
        }
        let user =
            Xdg::new().map_err(|_| CliError::usage("there is no home folder").hint("set HOME, or use --state-dir"))?;
        let data = user.data_dir().join("holdpoint");
        let runtime = match user.runtime_dir() {
            Some(dir) => dir.join("holdpoint"),
            None => data.join("run"),
        };
        Ok(Self { config: user.config_dir().join("holdpoint"), data, runtime, state_dir: None })
    }

    /// Makes the folders of the state, for nobody but this user.
    ///
    /// # Errors
    /// One can't be made, is somebody else's, or is open to others.
    pub(crate) fn make(&self) -> Result<(), CliError> {
        for folder in [&self.data, &self.runtime, &self.logs()] {
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

    /// What all folders are below, if the user said so.
    pub(crate) fn state_dir(&self) -> Option<&Path> {
        self.state_dir.as_deref()
    }

    /// The daemon's socket.
    ///
    /// # Errors
    /// Its path is longer than the system takes.
    pub(crate) fn socket(&self) -> Result<PathBuf, CliError> {
        let path = self.runtime.join("holdpoint.sock");
        let length = path.as_os_str().len();
        if length <= SOCKET_PATH {
            return Ok(path);
        }
        let what = format!(
            "the socket's path has {length} bytes, and the system takes {SOCKET_PATH} at most: {}",
            path.display()
        );
        Err(CliError::usage(what).hint("name a shorter place by --state-dir or XDG_RUNTIME_DIR"))
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
