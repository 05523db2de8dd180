//! `holdpoint completions`

use clap_complete::Shell;

use crate::error::CliError;
use crate::ui::Ui;

/// Prints what makes a shell complete this program's commands and options
#[derive(Debug, clap::Args)]
#[command(after_help = "For example, in ~/.bashrc:  source <(holdpoint completions bash)")]
pub(crate) struct Args {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

pub(crate) fn carry_out(args: &Args, command: &mut clap::Command, ui: &mut Ui) -> Result<i32, CliError> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, command, "holdpoint", &mut script);
    ui.write(&script)?;
    Ok(0)
}
