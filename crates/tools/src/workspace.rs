//! The workspace of a session: its folder, environment, policy and known files.

use std::path::{Path, PathBuf};

use holdpoint_common::PolicyMode;

use crate::files::Files;
use crate::policy::Policy;
use crate::sandbox::Sandbox;

/// The folder, environment and policy of a session's calls. Clones share the known files.
#[derive(Debug, Clone)]
pub struct Workspace {
    root: PathBuf,
    env: Vec<(String, String)>,
    display: Vec<(String, String)>,
    policy: Policy,
    sandbox: Option<Sandbox>,
    files: Files,
}

impl Workspace {
    /// Creates a workspace in the folder `root`, an absolute path with its links resolved. `env` is
    /// the complete environment of the processes that tools start.
    pub fn new(root: impl Into<PathBuf>, env: Vec<(String, String)>, policy: Policy) -> Self {
        Self {
            root: root.into(),
            env,
            display: Vec::new(),
            policy,
            sandbox: None,
            files: Files::default(),
        }
    }

    /// Sets the additional variables for programs that open windows, see
    /// [`environment::display`](crate::environment::display).
    #[must_use]
    pub fn with_display(self, display: Vec<(String, String)>) -> Self {
        Self { display, ..self }
    }

    /// Sets the sandbox of the processes that tools start. For the policy, it counts only if it
    /// [compares protected files](crate::SandboxProfile::aside).
    #[must_use]
    pub fn with_sandbox(self, sandbox: Option<Sandbox>) -> Self {
        let compares = sandbox.as_ref().is_some_and(|sandbox| sandbox.protected_files().is_some());
        Self { policy: self.policy.sandboxed(compares), sandbox, ..self }
    }

    /// Sets the mode of the policy. A new mode may need another
    /// [sandbox](Self::with_sandbox).
    #[must_use]
    pub fn with_policy_mode(self, mode: PolicyMode) -> Self {
        Self { policy: self.policy.with_mode(mode), ..self }
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

    /// The sandbox of the processes that tools start; `None` if they have the permissions of their
    /// user.
    #[must_use]
    pub fn sandbox(&self) -> Option<&Sandbox> {
        self.sandbox.as_ref()
    }

    /// The files that calls have read or written.
    #[must_use]
    pub fn files(&self) -> &Files {
        &self.files
    }
}
