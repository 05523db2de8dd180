//! What a session is opened with, and whether it is opened by being used.

use std::path::PathBuf;

use holdpoint_common::{AsksMode, PolicyMode, PolicyRules};

/// What a session is opened with.
#[derive(Debug, Clone)]
#[must_use]
pub struct OpenSession {
    pub(crate) workspace: PathBuf,
    pub(crate) name: Option<String>,
    pub(crate) model: Option<String>,
    pub(crate) asks: AsksMode,
    pub(crate) policy: PolicyMode,
    pub(crate) rules: PolicyRules,
    pub(crate) max_steps: u32,
    pub(crate) max_turn_tokens: u64,
}

impl OpenSession {
    /// A session that works in this folder: asks wait for the user, reading is allowed, the rest asks.
    pub fn in_folder(workspace: impl Into<PathBuf>) -> Self {
        Self {
            workspace: workspace.into(),
            name: None,
            model: None,
            asks: AsksMode::default(),
            policy: PolicyMode::default(),
            rules: PolicyRules::default(),
            max_steps: 0,
            max_turn_tokens: 0,
        }
    }

    /// Calls it this; unique among live sessions. Without it: the folder's name, numbered where taken.
    pub fn name(self, name: impl Into<String>) -> Self {
        Self { name: Some(name.into()), ..self }
    }

    /// Uses this model, as `PROVIDER/NAME` or `PROVIDER`. Without it: the catalog's default.
    pub fn model(self, model: impl Into<String>) -> Self {
        Self { model: Some(model.into()), ..self }
    }

    /// Says who answers its asks.
    pub fn asks(self, asks: AsksMode) -> Self {
        Self { asks, ..self }
    }

    /// Says what its tools may do unasked.
    pub fn policy(self, policy: PolicyMode) -> Self {
        Self { policy, ..self }
    }

    /// Says what is allowed, asked or denied besides.
    pub fn rules(self, rules: PolicyRules) -> Self {
        Self { rules, ..self }
    }

    /// Ends a turn after so many steps; 0 for no limit.
    pub fn max_steps(self, max_steps: u32) -> Self {
        Self { max_steps, ..self }
    }

    /// Ends a turn that has used so many tokens, before its next request; 0 for no limit.
    pub fn max_turn_tokens(self, max_turn_tokens: u64) -> Self {
        Self { max_turn_tokens, ..self }
    }
}

/// What becomes of a session that was unloaded, when it is used.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unloaded {
    /// It is opened again, with what its client supplies.
    Opens,
    /// It stays so: its client says first what with.
    Stays,
}
