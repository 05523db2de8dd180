//! What a fresh session is opened with, as the command line says it: for every command that opens one.

use std::path::PathBuf;

use clap::ValueEnum;
use holdpoint_common::{AsksMode, Config};
use holdpoint_session::OpenSession;
use holdpoint_session::model::{Catalog, DefaultModel};

use crate::error::CliError;
use crate::policy::PolicyArgs;

/// What a fresh session is opened with.
#[derive(Debug, clap::Args)]
pub(crate) struct OpenArgs {
    /// What it is called; without it, as the folder is, with a number where that is taken
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    /// The model, as PROVIDER/NAME or PROVIDER: openai, anthropic, gemini, ollama, or rehearsal.
    /// Without it: the configuration's, else the first provider whose key is set, else rehearsal
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,

    /// The folder to work in; without it, this one
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,

    #[command(flatten)]
    policy: PolicyArgs,

    /// Who answers when a tool asks; without it, the configuration's, else `wait`, or `deny` for `run`
    /// without a terminal
    #[arg(long, value_enum)]
    asks: Option<Asks>,

    /// Ends a turn after so many steps (requests to the model); 0 for no limit
    #[arg(long, value_name = "N")]
    max_steps: Option<u32>,

    /// Ends a turn before its next request once it has used so many tokens; 0 for no limit
    #[arg(long, value_name = "N")]
    max_turn_tokens: Option<u64>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Asks {
    /// A person does
    Wait,
    /// Nobody: a Continue goes on, a Confirm is denied
    Deny,
    /// Nobody: a Continue goes on, a Confirm is approved, unless a rule may deny it
    Approve,
}

impl OpenArgs {
    /// The model, and why this one.
    pub(crate) fn model(&self, catalog: &Catalog) -> DefaultModel {
        match &self.model {
            Some(name) => DefaultModel { name: name.clone(), why: "--model".to_owned() },
            None => catalog.default_name(),
        }
    }

    /// Who answers, if it is said, and where.
    pub(crate) fn asks(&self, config: &Config) -> Option<(AsksMode, &'static str)> {
        match (self.asks, config.asks) {
            (Some(Asks::Wait), _) => Some((AsksMode::Wait, "--asks wait")),
            (Some(Asks::Deny), _) => Some((AsksMode::Deny, "--asks deny")),
            (Some(Asks::Approve), _) => Some((AsksMode::Approve, "--asks approve")),
            (None, Some(mode)) => Some((mode, "`asks` in the configuration")),
            (None, None) => None,
        }
    }

    /// All of it.
    pub(crate) fn session(&self, config: &Config, model: &str, asks: AsksMode) -> Result<OpenSession, CliError> {
        let folder = match &self.cwd {
            Some(folder) => folder.clone(),
            None => std::env::current_dir().map_err(|error| {
                CliError::usage(format!("the current folder can't be used: {error}")).hint("--cwd names another")
            })?,
        };
        let open = OpenSession::in_folder(folder)
            .model(model)
            .asks(asks)
            .policy(self.policy.mode(config))
            .rules(self.policy.rules(config))
            .max_steps(self.max_steps.unwrap_or(config.max_steps))
            .max_turn_tokens(self.max_turn_tokens.unwrap_or(config.max_turn_tokens));
        Ok(match &self.name {
            Some(name) => open.name(name),
            None => open,
        })
    }
}
