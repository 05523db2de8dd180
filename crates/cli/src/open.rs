//! Options for opening a session, shared by every command that opens one.

use std::path::PathBuf;

use clap::ValueEnum;
use clap_complete::engine::{ArgValueCandidates, CompletionCandidate};
use holdpoint_common::{AgentSettings, AsksMode, Config, SandboxLevel, SandboxSettings};
use holdpoint_session::model::{Catalog, DefaultModel};
use holdpoint_session::{KNOWN_AGENTS, OpenSession};

use crate::error::CliError;
use crate::mcp;
use crate::policy::PolicyArgs;

/// The names of the known agents, for a shell that completes.
fn agent_names() -> Vec<CompletionCandidate> {
    KNOWN_AGENTS.iter().map(|known| CompletionCandidate::new(known.name)).collect()
}

/// The options of a new session.
#[derive(Debug, clap::Args)]
pub(crate) struct OpenArgs {
    /// The name of the session; by default, that of its folder, with a number if it is taken
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    /// The model, as PROVIDER/NAME or PROVIDER: openai, anthropic, gemini, ollama, or rehearsal; with
    /// --agent, the id of one of the agent's models. By default, the configured one, else the first
    /// provider whose key is set, else rehearsal
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,

    /// Host an agent, which brings a model and tools of its own: claude, codex, gemini, opencode, or
    /// a program that speaks the Agent Client Protocol, with its arguments, as a shell would split
    /// them
    #[arg(long, value_name = "AGENT")]
    #[arg(add = ArgValueCandidates::new(agent_names))]
    agent: Option<String>,

    /// The folder to work in; by default, the current folder
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,

    /// Open the session on this machine of the fleet, in the folder with this path there, with the keys
    /// and the environment of its daemon
    #[arg(long, value_name = "MACHINE", conflicts_with = "mcp")]
    on: Option<String>,

    #[command(flatten)]
    policy: PolicyArgs,

    /// Sandbox level of tool processes; by default, the configured one, else `auto`
    #[arg(long, value_enum, value_name = "LEVEL")]
    sandbox: Option<SandboxArg>,

    /// Add the MCP servers of this file to the configured ones, in the format of `.mcp.json`
    #[arg(long, value_name = "FILE", conflicts_with = "agent")]
    mcp: Option<PathBuf>,

    /// Who answers asks; by default, the configured setting, else `wait`, or `deny` for `run`
    /// without a terminal
    #[arg(long, value_enum)]
    asks: Option<AsksArg>,

    /// End a turn after this many steps (model requests); 0 for no limit
    #[arg(long, value_name = "N")]
    max_steps: Option<u32>,

    /// End a turn before its next request once it has used this many tokens; 0 for no limit
    #[arg(long, value_name = "N")]
    max_turn_tokens: Option<u64>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum SandboxArg {
    /// The strongest level that works here
    Auto,
    /// Namespaces, made by bubblewrap
    Bwrap,
    /// Landlock and seccomp: weaker
    Landlock,
    /// No sandbox: processes have your permissions
    Off,
}

impl From<SandboxArg> for SandboxLevel {
    fn from(level: SandboxArg) -> Self {
        match level {
            SandboxArg::Auto => Self::Auto,
            SandboxArg::Bwrap => Self::Bwrap,
            SandboxArg::Landlock => Self::Landlock,
            SandboxArg::Off => Self::Off,
        }
    }
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum AsksArg {
    /// A user answers
    Wait,
    /// No user: a Continue proceeds, a Confirm is denied, a question is an error for the model
    Deny,
    /// No user: a Continue proceeds, a Confirm is approved, or denied if a deny rule might match
    /// its call, and a question is an error for the model
    Approve,
}

impl From<AsksArg> for AsksMode {
    fn from(asks: AsksArg) -> Self {
        match asks {
            AsksArg::Wait => Self::Wait,
            AsksArg::Deny => Self::Deny,
            AsksArg::Approve => Self::Approve,
        }
    }
}

impl OpenArgs {
    /// Adds the MCP servers of the file to those of the configuration.
    pub(crate) fn add_mcp_file(&self, config: Config) -> Result<Config, CliError> {
        match &self.mcp {
            Some(file) => mcp::add_file(config, file),
            None => Ok(config),
        }
    }

    /// The agent that the session hosts.
    fn agent(&self) -> Result<Option<AgentSettings>, CliError> {
        let Some(command) = &self.agent else { return Ok(None) };
        let failed = |why: &dyn std::fmt::Display| {
            CliError::usage(format!("--agent: {why}")).hint(
                "give a known agent, such as --agent opencode, or a program with its arguments",
            )
        };
        let words = shlex::split(command).ok_or_else(|| failed(&"a quote has no end"))?;
        let agent = AgentSettings::from_command(words).with_model(self.model.clone());
        agent.check().map_err(|error| failed(&error))?;
        Ok(Some(agent))
    }

    /// The model's name, and the reason for this choice.
    pub(crate) fn model(&self, catalog: &Catalog) -> DefaultModel {
        match (&self.model, self.agent()) {
            (_, Ok(Some(agent))) => {
                DefaultModel { name: agent.model_name(), why: "--agent".to_owned() }
            }
            (Some(name), _) => DefaultModel { name: name.clone(), why: "--model".to_owned() },
            (None, _) => match &self.on {
                Some(machine) => {
                    DefaultModel { why: format!("chosen on {machine}"), ..catalog.default_name() }
                }
                None => catalog.default_name(),
            },
        }
    }

    /// The asks mode and the source that set it; `None` if no source did.
    pub(crate) fn asks(&self, config: &Config) -> Option<(AsksMode, &'static str)> {
        match (self.asks, config.asks) {
            (Some(AsksArg::Wait), _) => Some((AsksMode::Wait, "--asks wait")),
            (Some(AsksArg::Deny), _) => Some((AsksMode::Deny, "--asks deny")),
            (Some(AsksArg::Approve), _) => Some((AsksMode::Approve, "--asks approve")),
            (None, Some(mode)) => Some((mode, "`asks` in the configuration")),
            (None, None) => None,
        }
    }

    /// Builds the request that opens the session.
    pub(crate) fn session(
        &self,
        config: &Config,
        model: &str,
        asks: AsksMode,
    ) -> Result<OpenSession, CliError> {
        let folder = match &self.cwd {
            Some(folder) if self.on.is_some() && folder.is_relative() => {
                return Err(CliError::usage("with --on, the path of --cwd has to be absolute")
                    .hint("give the path that the folder has on that machine"));
            }
            Some(folder) => folder.clone(),
            None => std::env::current_dir().map_err(|error| {
                CliError::usage(format!("the current folder can't be used: {error}"))
                    .hint("set another folder with --cwd")
            })?,
        };
        let agent = self.agent()?;
        let configured = &config.sandbox;
        let level = self.sandbox.map_or(configured.level, SandboxLevel::from);
        // Another machine has keys of its own.
        let is_chosen_here = agent.is_none() && (self.on.is_none() || self.model.is_some());
        Ok(OpenSession {
            machine: self.on.clone(),
            name: self.name.clone(),
            model: is_chosen_here.then(|| model.to_owned()),
            agent,
            asks,
            policy: self.policy.mode(config),
            rules: self.policy.rules(config),
            sandbox: Some(SandboxSettings { level, ..configured.clone() }),
            max_steps: self.max_steps.unwrap_or(config.max_steps),
            max_turn_tokens: self.max_turn_tokens.unwrap_or(config.max_turn_tokens),
            ..OpenSession::in_folder(folder)
        })
    }
}
