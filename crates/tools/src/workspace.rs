//! Where a session's calls work: its folder, its environment, its policy, and what is known of its files.

use std::path::{Path, PathBuf};

use crate::files::Files;
use crate::policy::Policy;

/// Where a session's calls work, and what holds there. Clones share what is known of the files.
#[derive(Debug, Clone)]
pub struct Workspace {
    root: PathBuf,
    env: Vec<(String, String)>,
    display: Vec<(String, String)>,
    policy: Policy,
    files: Files,
}

impl Workspace {
    /// In this folder: absolute, links resolved. `env` is the environment of the processes that tools start, and
    /// all of it.
    pub fn new(root: impl Into<PathBuf>, env: Vec<(String, String)>, policy: Policy) -> Self {
        Self { root: root.into(), env, display: Vec::new(), policy, files: Files::default() }
    }

    /// The same with these variables for what opens a window, see [`environment::display`](crate::environment::display).
    #[must_use]
    pub fn with_display(self, display: Vec<(String, String)>) -> Self {
        Self { display, ..self }
    }

    /// The folder: absolute, links resolved.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The environment of the processes that tools start: this and nothing else.
    #[must_use]
    pub fn env(&self) -> &[(String, String)] {
        &self.env
    }

    /// What the environment of a process that opens a window has besides. Commands do not get it.
    #[must_use]
    pub fn display(&self) -> &[(String, String)] {
        &self.display
    }

    /// What may be done here.
    #[must_use]
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// What is known of the files.
    #[must_use]
    pub fn files(&self) -> &Files {
        &self.files
    }
}
