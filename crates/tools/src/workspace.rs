//! The workspace of a session: its folder, environment, policy and known files.

use std::path::{Path, PathBuf};

use crate::files::Files;
use crate::policy::Policy;

/// The folder, environment and policy of a session's calls. Clones share the known files.
#[derive(Debug, Clone)]
pub struct Workspace {
    root: PathBuf,
    env: Vec<(String, String)>,
    display: Vec<(String, String)>,
    policy: Policy,
    files: Files,
}

impl Workspace {
    /// Creates a workspace in the folder `root`, an absolute path with its links resolved. `env` is
    /// the complete environment of the processes that tools start.
    pub fn new(root: impl Into<PathBuf>, env: Vec<(String, String)>, policy: Policy) -> Self {
        Self { root: root.into(), env, display: Vec::new(), policy, files: Files::default() }
    }

    /// Sets the additional variables for programs that open windows, see
    /// [`environment::display`](crate::environment::display).
    #[must_use]
    pub fn with_display(self, display: Vec<(String, String)>) -> Self {
        Self { display, ..self }
    }

    /// The workspace folder: absolute, links resolved.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The complete environment of the processes that tools start.
    #[must_use]
    pub fn env(&self) -> &[(String, String)] {
        &self.env
    }

    /// The additional variables for programs that open windows. Commands do not get them.
    #[must_use]
    pub fn display(&self) -> &[(String, String)] {
        &self.display
    }

    /// The policy for the calls in this workspace.
    #[must_use]
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// The files that calls have read or written.
    #[must_use]
    pub fn files(&self) -> &Files {
        &self.files
    }
}
