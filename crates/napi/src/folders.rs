//! Where a daemon keeps its socket and its user's configuration: as the program `holdpoint` has it.

use std::io;
use std::path::{Path, PathBuf};

use etcetera::BaseStrategy;
use etcetera::base_strategy::Xdg;

use crate::failure::Failure;

/// Where a daemon is.
pub(crate) struct Folders {
    /// Where it may listen; the first is the usual one.
    pub(crate) sockets: Vec<PathBuf>,
    config: PathBuf,
}

impl Folders {
    /// The user's own, or those below `state_dir`.
    pub(crate) fn find(state_dir: Option<&str>) -> Result<Self, Failure> {
        let socket = |folder: &Path| folder.join("holdpoint.sock");
        if let Some(dir) = state_dir {
            let dir = std::path::absolute(dir).map_err(|error| Failure::argument(format!("stateDir: {error}")))?;
            return Ok(Self { sockets: vec![socket(&dir.join("run"))], config: dir.join("config") });
        }
        let no_home = |_| Failure::new("failed", "there is no home folder").hint("set HOME, or pass stateDir");
        let user = Xdg::new().map_err(no_home)?;
        let runtime = user.runtime_dir().map(|dir| socket(&dir.join("holdpoint")));
        let beside = socket(&user.data_dir().join("holdpoint/run"));
        Ok(Self { sockets: runtime.into_iter().chain([beside]).collect(), config: user.config_dir().join("holdpoint") })
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
