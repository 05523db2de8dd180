//! The command line: what can be said, and who carries it out.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

use crate::commands::{completions, config, daemon, models, policy, run, status};
use crate::error::{CliError, exit};
use crate::folders::Folders;
use crate::ui::Ui;

/// Runs coding agents that stop and ask, that can be held, and that leave nothing running
#[derive(Debug, Parser)]
#[command(name = "holdpoint", version, disable_help_subcommand = true, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Option<Command>,

    /// Keeps everything in this folder instead of the user's own: the configuration in `DIR/config/config.toml`
    #[arg(long, global = true, value_name = "DIR")]
    state_dir: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum Command {
    Run(run::Args),
    Status(status::Args),
    Daemon(daemon::Args),
    Models(models::Args),
    Policy(policy::Args),
    Config(config::Args),
    Completions(completions::Args),
}

/// Does what the command line says.
pub(crate) fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help goes to stdout, faults to stderr; if nobody reads either, there is nobody to tell.
            let _ = error.print();
            return exit(error.exit_code());
        }
    };
    let mut ui = Ui::new();
    match carry_out(cli, &mut ui) {
        Ok(code) => exit(code),
        Err(error) => {
            error.show(&mut ui);
            exit(error.code())
        }
    }
}

fn carry_out(cli: Cli, ui: &mut Ui) -> Result<i32, CliError> {
    // A daemon has a log of its own.
    if !matches!(&cli.command, Some(Command::Daemon(args)) if args.serves()) {
        crate::log::start()?;
    }
    let folders = Folders::find(cli.state_dir)?;
    match cli.command {
        Some(Command::Run(args)) => run::carry_out(&args, &folders, ui),
        Some(Command::Status(args)) => status::carry_out(&args, &folders, ui),
        Some(Command::Daemon(args)) => daemon::carry_out(&args, &folders, ui),
        Some(Command::Models(args)) => models::carry_out(&args, &folders, ui),
        Some(Command::Policy(args)) => policy::carry_out(&args, &folders, ui),
        Some(Command::Config(args)) => config::carry_out(&args, &folders, ui),
        Some(Command::Completions(args)) => completions::carry_out(&args, &mut Cli::command(), ui),
        None => {
            ui.print(&Cli::command().render_help().to_string())?;
            Ok(0)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }
}
