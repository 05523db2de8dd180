//! Where the user's files are.

use std::io;
use std::path::{Path, PathBuf};

use etcetera::BaseStrategy;
use etcetera::base_strategy::Xdg;
use holdpoint_common::Config;

use crate::error::CliError;

/// Where the user's files are. Nothing is created by knowing this.
#[derive(Debug)]
pub(crate) struct Folders {
    config: PathBuf,
}

impl Folders {
    /// The user's own folders, or all of them below `state_dir`.
    pub(crate) fn find(state_dir: Option<PathBuf>) -> Result<Self, CliError> {
        let config = match state_dir {
            Some(dir) => std::path::absolute(&dir)
                .map_err(|error| CliError::usage(format!("{}: {error}", dir.display())))?
                .join("config"),
            None => Xdg::new()
                .map_err(|_| CliError::usage("there is no home folder").hint("set HOME, or use --state-dir"))?
                .config_dir()
                .join("holdpoint"),
        };
        Ok(Self { config })
    }

    /// The user's configuration file; it may not be there.
    pub(crate) fn config_file(&self) -> PathBuf {
        self.config.join("config.toml")
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
