//! The options for opening a session.

use std::path::PathBuf;

use holdpoint_common::{AsksMode, PolicyMode, PolicyRules};

/// The options for opening a session.
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
    /// A session that works in this folder. By default, asks wait for the user, reading is allowed,
    /// and everything else asks.
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

    /// Sets the name, which must be unique among live sessions. The default is the folder's name,
    /// with a number if that is taken.
    pub fn name(self, name: impl Into<String>) -> Self {
        Self { name: Some(name.into()), ..self }
    }

    /// Sets the model, as `PROVIDER/NAME` or `PROVIDER`. The default is the catalog's.
    pub fn model(self, model: impl Into<String>) -> Self {
        Self { model: Some(model.into()), ..self }
    }

    /// Sets the asks mode: wait for the user, deny or approve.
    pub fn asks(self, asks: AsksMode) -> Self {
        Self { asks, ..self }
    }

    /// Sets the policy mode, the default rules for the actions of tools.
    pub fn policy(self, policy: PolicyMode) -> Self {
        Self { policy, ..self }
    }

    /// Sets the rules that allow, ask about or deny actions, in addition to the policy mode.
    pub fn rules(self, rules: PolicyRules) -> Self {
        Self { rules, ..self }
    }

    /// Ends each turn after this many steps; 0 for no limit.
    pub fn max_steps(self, max_steps: u32) -> Self {
        Self { max_steps, ..self }
    }

    /// Ends a turn that has used this many tokens, before its next request; 0 for no limit.
    pub fn max_turn_tokens(self, max_turn_tokens: u64) -> Self {
        Self { max_turn_tokens, ..self }
    }
}

/// How a handle treats its session after it was unloaded.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum WhenUnloaded {
    /// Use opens the session again, with the client's supplies.
    Open,
    /// The session stays unloaded, because its client chooses the supplies first.
    Fail,
}
