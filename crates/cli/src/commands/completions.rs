//! The command `holdpoint completions`.

use clap::ValueEnum;
use clap_complete::env::{Bash, Elvish, EnvCompleter, Fish, Powershell, Zsh};

use crate::error::CliError;
use crate::ui::Ui;

/// Print a shell completion script
///
/// The script completes commands, options, sessions and asks.
#[derive(Debug, clap::Args)]
#[command(after_help = "For example, in ~/.bashrc:  source <(holdpoint completions bash)")]
pub(crate) struct Args {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Shell {
    Bash,
    Elvish,
    Fish,
    Powershell,
    Zsh,
}

pub(crate) fn carry_out(args: &Args, ui: &mut Ui) -> Result<i32, CliError> {
    let shell: &dyn EnvCompleter = match args.shell {
        Shell::Bash => &Bash,
        Shell::Elvish => &Elvish,
        Shell::Fish => &Fish,
        Shell::Powershell => &Powershell,
        Shell::Zsh => &Zsh,
    };
    let mut script = Vec::new();
    // The script calls this program with the variable `COMPLETE` set.
    shell.write_registration("COMPLETE", "holdpoint", "holdpoint", "holdpoint", &mut script)?;
    ui.write(&script)?;
    Ok(0)
}
