//! The request to open a session.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::agent::AgentSettings;
use crate::ask::AsksMode;
use crate::config::Config;
use crate::policy::{PolicyMode, PolicyRules};
use crate::sandbox::SandboxSettings;
use crate::supplies::Supplies;

/// A request to open a new session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[must_use]
pub struct OpenSession {
    /// Path of the session's workspace. A daemon accepts only an absolute path.
    pub workspace: PathBuf,
    /// Machine of the fleet to open the session on, with the supplies of its daemon. Default: the
    /// machine of the client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
    /// Name of the session, unique among live sessions: one line of at most 255 bytes. Default: the
    /// name of the workspace's folder, with a number if it is taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Model of the session, as `PROVIDER/NAME` or `PROVIDER`. Default: the model in `supplies`,
    /// else the first provider with a key, else `rehearsal`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Agent that the session hosts, instead of a model and tools of its own. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentSettings>,
    /// Asks mode of the session. Default: `wait`.
    #[serde(default)]
    pub asks: AsksMode,
    /// Mode of the session's policy. Default: `ask`.
    #[serde(default)]
    pub policy: PolicyMode,
    /// Rules of the session's policy, in addition to the mode. Default: none.
    #[serde(default, skip_serializing_if = "PolicyRules::is_empty")]
    pub rules: PolicyRules,
    /// Sandbox of the session's tool processes. Default: the sandbox in the configuration of the
    /// daemon, or of the program that runs the engine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxSettings>,
    /// Maximum number of steps (model requests) in one turn; 0 means no limit. Default: 0.
    #[serde(default)]
    pub max_steps: u32,
    /// Maximum number of tokens that one turn may use, requests and answers together; 0 means no
    /// limit. The limit is checked before each request, so the last request may exceed it.
    /// Default: 0.
    #[serde(default)]
    pub max_turn_tokens: u64,
    /// Environment, provider settings and system prompt that the client supplies. Default: none.
    /// Rust programs set them with `Sessions::with_supplies`, which replaces these.
    #[serde(default)]
    pub supplies: Supplies,
}

impl OpenSession {
    /// Creates a request for a session that works in this folder. By default, asks wait for the
    /// user, reading inside the folder is allowed, and everything else asks.
    pub fn in_folder(workspace: impl Into<PathBuf>) -> Self {
        Self {
            workspace: workspace.into(),
            machine: None,
            name: None,
            model: None,
            agent: None,
            asks: AsksMode::default(),
            policy: PolicyMode::default(),
            rules: PolicyRules::default(),
            sandbox: None,
            max_steps: 0,
            max_turn_tokens: 0,
            supplies: Supplies::default(),
        }
    }

    /// Sets the asks mode, the policy, the sandbox and the limits of turns to those of a
    /// configuration.
    pub fn configured(self, config: &Config) -> Self {
        Self {
            asks: config.asks.unwrap_or_default(),
            policy: config.policy,
            rules: config.rules.clone(),
            sandbox: Some(config.sandbox.clone()),
            max_steps: config.max_steps,
            max_turn_tokens: config.max_turn_tokens,
            ..self
        }
    }

    /// Sets the name.
    pub fn name(self, name: impl Into<String>) -> Self {
        Self { name: Some(name.into()), ..self }
    }

    /// Sets the model, as `PROVIDER/NAME` or `PROVIDER`.
    pub fn model(self, model: impl Into<String>) -> Self {
        Self { model: Some(model.into()), ..self }
    }

    /// Sets the agent that the session hosts.
    pub fn agent(self, agent: AgentSettings) -> Self {
        Self { agent: Some(agent), ..self }
    }

    /// Sets the asks mode.
    pub fn asks(self, asks: AsksMode) -> Self {
        Self { asks, ..self }
    }

    /// Sets the policy mode.
    pub fn policy(self, policy: PolicyMode) -> Self {
        Self { policy, ..self }
    }

    /// Sets the rules.
    pub fn rules(self, rules: PolicyRules) -> Self {
        Self { rules, ..self }
    }

    /// Sets the sandbox.
    pub fn sandbox(self, sandbox: SandboxSettings) -> Self {
        Self { sandbox: Some(sandbox), ..self }
    }

    /// Sets the maximum number of steps in one turn.
    pub fn max_steps(self, max_steps: u32) -> Self {
        Self { max_steps, ..self }
    }

    /// Sets the maximum number of tokens in one turn.
    pub fn max_turn_tokens(self, max_turn_tokens: u64) -> Self {
        Self { max_turn_tokens, ..self }
    }
}
