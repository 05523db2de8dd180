//! The policy options of the command line, a mode and rules, shared by every command that has them.

use std::path::PathBuf;

use clap::ValueEnum;
use holdpoint_common::{Config, PolicyMode, PolicyRules, Rule};
use holdpoint_tools::Policy;

use crate::error::CliError;

/// Builds the policy with this mode and these rules for the current user.
///
/// # Errors
/// Fails if a rule is invalid.
pub(crate) fn build_policy(mode: PolicyMode, rules: &PolicyRules) -> Result<Policy, CliError> {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    Ok(Policy::new(mode, rules, home.as_deref())?)
}

/// The policy of a session: a mode and rules.
#[derive(Debug, clap::Args)]
pub(crate) struct PolicyArgs {
    /// What tools may do without asking; by default, the configured mode, else `ask`
    #[arg(long, value_enum)]
    policy: Option<Mode>,

    /// Allow this without asking: TOOL or TOOL(PATTERN), such as 'shell(git status)',
    /// 'shell(npm run *)' or 'write(docs/**)'. May be repeated; adds to the configured rules. See
    /// `holdpoint policy --help`
    #[arg(long, value_name = "RULE")]
    allow: Vec<Rule>,

    /// Ask before this, even if it is allowed. May be repeated
    #[arg(long, value_name = "RULE")]
    ask: Vec<Rule>,

    /// Deny this without asking, whatever other rules allow. May be repeated
    #[arg(long, value_name = "RULE")]
    deny: Vec<Rule>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Mode {
    /// Reading inside the folder is allowed, everything else asks
    Ask,
    /// Writing inside the folder is allowed too, except to protected names
    Edits,
    /// Like `edits`, and commands in a sandbox are allowed; without a sandbox, like `ask`
    Sandboxed,
    /// Everything is allowed except what a rule denies
    All,
    /// Reading inside the folder is allowed, everything else is denied without asking
    Readonly,
}

impl From<Mode> for PolicyMode {
    fn from(mode: Mode) -> Self {
        match mode {
            Mode::Ask => Self::Ask,
            Mode::Edits => Self::Edits,
            Mode::Sandboxed => Self::Sandboxed,
            Mode::All => Self::All,
            Mode::Readonly => Self::Readonly,
        }
    }
}

impl PolicyArgs {
    /// The mode of the command line, else of the configuration.
    pub(crate) fn mode(&self, config: &Config) -> PolicyMode {
        self.policy.map_or(config.policy, PolicyMode::from)
    }

    /// The rules of the configuration and of the command line.
    pub(crate) fn rules(&self, config: &Config) -> PolicyRules {
        PolicyRules {
            allow: [&config.rules.allow[..], &self.allow].concat(),
            ask: [&config.rules.ask[..], &self.ask].concat(),
            deny: [&config.rules.deny[..], &self.deny].concat(),
        }
    }
}
