//! Where a daemon keeps its socket, its sessions and its user's configuration: as the program `holdpoint` has it.

use std::io;
use std::path::{Path, PathBuf};

use etcetera::BaseStrategy;
use etcetera::base_strategy::Xdg;

use crate::failure::Failure;

/// Where a daemon is, and what it keeps.
pub(crate) struct Folders {
    /// Where it may listen; the first is the usual one.
    pub(crate) sockets: Vec<PathBuf>,
    /// Where sessions are kept.
    pub(crate) data: PathBuf,
    config: PathBuf,
}

impl Folders {
    /// The user's own, or those below `state_dir`.
    pub(crate) fn find(state_dir: Option<&str>) -> Result<Self, Failure> {
        let socket = |folder: &Path| folder.join("holdpoint.sock");
        if let Some(dir) = state_dir {
            let dir = std::path::absolute(dir).map_err(|error| Failure::argument(format!("stateDir: {error}")))?;
            let [config, data, run] = ["config", "data", "run"].map(|name| dir.join(name));
            return Ok(Self { sockets: vec![socket(&run)], data, config });
        }
        let no_home = |_| Failure::new("failed", "there is no home folder").hint("set HOME, or pass stateDir");
        let user = Xdg::new().map_err(no_home)?;
        let data = user.data_dir().join("holdpoint");
        let runtime = user.runtime_dir().map(|dir| socket(&dir.join("holdpoint")));
        let sockets = runtime.into_iter().chain([socket(&data.join("run"))]).collect();
        Ok(Self { sockets, data, config: user.config_dir().join("holdpoint") })
    }

    /// Where browsers have their folders, and pictures of pages are kept.
    pub(crate) fn web(&self) -> PathBuf {
        self.data.join("web")
    }

    /// The text of the user's configuration; nothing if there is none.
    pub(crate) fn config(&self) -> Result<String, Failure> {
        let path = self.config.join("config.toml");
        match std::fs::read_to_string(&path) {
            Ok(text) => Ok(text),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
            Err(error) => Err(Failure::new("config", format!("{}: {error}", path.display()))),
        }
    }
}
