//! The command line: what can be said, and who carries it out.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use clap_complete::CompleteEnv;
use holdpoint_session::folders::Folders;

use crate::commands::{
    answer, attach, close, completions, config, daemon, hold, inbox, interrupt, list, logs, r#loop, man, models, new,
    policy, prompt, rename, rm, run, show, status, transfer, wait,
};
use crate::daemon::Daemon;
use crate::error::{CliError, exit};
use crate::runtime::runtime;
use crate::tui;
use crate::ui::Ui;

/// Runs coding agents that stop and ask, that can be held, and that leave nothing running
///
/// Without a command, on a terminal: the screen with all sessions.
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
    Loop(r#loop::Args),
    New(new::Args),
    #[command(alias = "ls")]
    List(list::Args),
    Attach(attach::Args),
    Prompt(prompt::Args),
    Logs(logs::Args),
    Show(show::Args),
    Wait(wait::Args),
    Inbox(inbox::Args),
    Approve(answer::Approve),
    Deny(answer::Deny),
    Continue(answer::Continue),
    Answer(answer::Words),
    #[command(alias = "pause")]
    Hold(hold::HoldArgs),
    #[command(alias = "play")]
    Release(hold::ReleaseArgs),
    Interrupt(interrupt::Args),
    Close(close::Args),
    Rename(rename::Args),
    Rm(rm::Args),
    Export(transfer::Export),
    Import(transfer::Import),
    Status(status::Args),
    Daemon(daemon::Args),
    Models(models::Args),
    Policy(policy::Args),
    Config(config::Args),
    Completions(completions::Args),
    Man(man::Args),
}

/// Does what the command line says.
pub(crate) fn main() -> ExitCode {
    // A shell that completes what is typed asks by an environment variable, and gets its answer instead.
    CompleteEnv::with_factory(Cli::command).complete();
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
    let folders = Folders::find(cli.state_dir.as_deref())?;
    carry_out_command(cli.command, &folders, ui).map_err(|error| match runtime() {
        Ok(runtime) => runtime.block_on(Daemon::explain(&folders, error)),
        // If that can't be asked, what went wrong is told as it is.
        Err(_) => error,
    })
}

fn carry_out_command(command: Option<Command>, folders: &Folders, ui: &mut Ui) -> Result<i32, CliError> {
    match command {
        Some(Command::Run(args)) => run::carry_out(&args, folders, ui),
        Some(Command::Loop(args)) => r#loop::carry_out(&args, folders, ui),
        Some(Command::New(args)) => new::carry_out(&args, folders, ui),
        Some(Command::List(args)) => list::carry_out(&args, folders, ui),
        Some(Command::Attach(args)) => attach::carry_out(&args, folders, ui),
        Some(Command::Prompt(args)) => prompt::carry_out(&args, folders, ui),
        Some(Command::Logs(args)) => logs::carry_out(&args, folders, ui),
        Some(Command::Show(args)) => show::carry_out(&args, folders, ui),
        Some(Command::Wait(args)) => wait::carry_out(&args, folders, ui),
        Some(Command::Inbox(args)) => inbox::carry_out(&args, folders, ui),
        Some(Command::Approve(args)) => answer::approve(&args, folders, ui),
        Some(Command::Deny(args)) => answer::deny(&args, folders, ui),
        Some(Command::Continue(args)) => answer::go_on(&args, folders, ui),
        Some(Command::Answer(args)) => answer::words(&args, folders, ui),
        Some(Command::Hold(args)) => hold::hold(&args, folders, ui),
        Some(Command::Release(args)) => hold::release(&args, folders, ui),
        Some(Command::Interrupt(args)) => interrupt::carry_out(&args, folders, ui),
        Some(Command::Close(args)) => close::carry_out(&args, folders, ui),
        Some(Command::Rename(args)) => rename::carry_out(&args, folders, ui),
        Some(Command::Export(args)) => transfer::export(&args, folders, ui),
        Some(Command::Import(args)) => transfer::import(&args, folders, ui),
        Some(Command::Rm(args)) => rm::carry_out(&args, folders, ui),
        Some(Command::Status(args)) => status::carry_out(&args, folders, ui),
        Some(Command::Daemon(args)) => daemon::carry_out(&args, folders, ui),
        Some(Command::Models(args)) => models::carry_out(&args, folders, ui),
        Some(Command::Policy(args)) => policy::carry_out(&args, folders, ui),
        Some(Command::Config(args)) => config::carry_out(&args, folders, ui),
        Some(Command::Completions(args)) => completions::carry_out(&args, ui),
        Some(Command::Man(args)) => man::carry_out(&args, Cli::command(), ui),
        None if tui::can_be_shown() => tui::show(None, folders, ui),
        None => list::plain(folders, ui),
    }
}

#[cfg(test)]
mod tests {
    use holdpoint_common::{COMMANDS, Who};

    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }

    /// Texts for people name a client by its kind, not by its command.
    #[test]
    fn clients_that_are_commands_are_named_as_the_command_line() {
        for command in Cli::command().get_subcommands() {
            // These speak to no session.
            if !matches!(command.get_name(), "policy" | "config" | "man") {
                assert!(COMMANDS.contains(&command.get_name()), "{}", command.get_name());
            }
        }
        assert_eq!(Who::named("approve").origin(), "from the command line");
        assert_eq!(Who { name: "tui".into(), pid: Some(7) }.origin(), "from the screen (pid 7)");
        assert_eq!(Who::named("curl/8.5.0").origin(), "by curl/8.5.0");
    }
}
