//! What the command line says of the policy: its mode and its rules, for every command that has one.

use std::path::PathBuf;

use clap::ValueEnum;
use holdpoint_common::{Config, PolicyMode, PolicyRules, Rule};
use holdpoint_tools::Policy;

use crate::error::CliError;

/// The policy of this mode and these rules, for this user.
///
/// # Errors
/// A rule can't be kept.
pub(crate) fn of(mode: PolicyMode, rules: &PolicyRules) -> Result<Policy, CliError> {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    Ok(Policy::new(mode, rules, home.as_deref())?)
}

/// What tools may do.
#[derive(Debug, clap::Args)]
pub(crate) struct PolicyArgs {
    /// What tools may do unasked; without it, the configuration's, else `ask`
    #[arg(long, value_enum)]
    policy: Option<Mode>,

    /// Allows this too: TOOL or TOOL(PATTERN), such as 'shell(git status)', 'shell(npm run *)' or
    /// 'write(docs/**)'. May be repeated, and adds to the configuration's; see `holdpoint policy --help`
    #[arg(long, value_name = "RULE")]
    allow: Vec<Rule>,

    /// Asks for this, even where it is allowed. May be repeated
    #[arg(long, value_name = "RULE")]
    ask: Vec<Rule>,

    /// Denies this, unasked and whatever else is said. May be repeated
    #[arg(long, value_name = "RULE")]
    deny: Vec<Rule>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Mode {
    /// Reading inside the folder is allowed, the rest asks
    Ask,
    /// Also writing inside the folder, but for protected names
    Edits,
    /// Everything is allowed but what a rule denies
    All,
    /// Reading inside the folder is allowed, the rest is denied unasked
    Readonly,
}

impl PolicyArgs {
    /// The mode: this one, else the configuration's.
    pub(crate) fn mode(&self, config: &Config) -> PolicyMode {
        match self.policy {
            None => config.policy,
            Some(Mode::Ask) => PolicyMode::Ask,
            Some(Mode::Edits) => PolicyMode::Edits,
            Some(Mode::All) => PolicyMode::All,
            Some(Mode::Readonly) => PolicyMode::Readonly,
        }
    }

    /// The rules: the configuration's and these.
    pub(crate) fn rules(&self, config: &Config) -> PolicyRules {
        PolicyRules {
            allow: [&config.rules.allow[..], &self.allow].concat(),
            ask: [&config.rules.ask[..], &self.ask].concat(),
            deny: [&config.rules.deny[..], &self.deny].concat(),
        }
    }
}
