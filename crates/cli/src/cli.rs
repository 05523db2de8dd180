//! The command line: parses it and runs the command it names.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use clap_complete::CompleteEnv;
use holdpoint_session::folders::Folders;

use crate::commands::{
    acp, agents, answer, asks, attach, close, completions, config, daemon, fleet, hold, inbox,
    interrupt, list, logs, r#loop, man, mcp, models, r#move, new, policy, prompt, rename, rm, run,
    show, status, transfer, trust, unqueue, wait,
};
use crate::daemon::Daemon;
use crate::error::{CliError, exit};
use crate::runtime::runtime;
use crate::tui;
use crate::ui::Ui;

/// Run coding agents that stop and ask, can be held, and leave nothing running
///
/// Without a command, on a terminal, holdpoint shows the screen with all sessions.
#[derive(Debug, Parser)]
#[command(name = "holdpoint", version, disable_help_subcommand = true, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Option<Command>,

    /// Keep all data, the configuration (`DIR/config/config.toml`) and the socket in this folder
    /// instead of the user's own folders
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
    Unqueue(unqueue::Args),
    Logs(logs::Args),
    Show(show::Args),
    Wait(wait::Args),
    Inbox(inbox::Args),
    Approve(answer::Approve),
    Deny(answer::Deny),
    Continue(answer::Continue),
    Answer(answer::AnswerArgs),
    Asks(asks::Args),
    #[command(alias = "pause")]
    Hold(hold::HoldArgs),
    #[command(alias = "play")]
    Release(hold::ReleaseArgs),
    Interrupt(interrupt::Args),
    Close(close::Args),
    Rename(rename::Args),
    Move(r#move::Args),
    Rm(rm::Args),
    Export(transfer::Export),
    Import(transfer::Import),
    Status(status::Args),
    Acp(acp::Args),
    Daemon(daemon::Args),
    Fleet(fleet::Args),
    Models(models::Args),
    Agents(agents::Args),
    Policy(policy::Args),
    Mcp(mcp::Args),
    Trust(trust::Args),
    Config(config::Args),
    Completions(completions::Args),
    Man(man::Args),
}

/// Parses the command line and runs its command.
pub(crate) fn main() -> ExitCode {
    // A shell that requests completions sets an environment variable and is answered here.
    CompleteEnv::with_factory(Cli::command).complete();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help goes to stdout, errors to stderr. A failed write can't be reported anywhere.
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
    // The daemon has a log of its own.
    if !matches!(&cli.command, Some(Command::Daemon(args)) if args.runs_daemon()) {
        crate::log::start()?;
    }
    let folders = Folders::find(cli.state_dir.as_deref())?;
    carry_out_command(cli.command, &folders, ui).map_err(|error| match runtime() {
        Ok(runtime) => runtime.block_on(Daemon::explain(&folders, error)),
        // Without a runtime the error is returned unexplained.
        Err(_) => error,
    })
}

fn carry_out_command(
    command: Option<Command>,
    folders: &Folders,
    ui: &mut Ui,
) -> Result<i32, CliError> {
    match command {
        Some(Command::Run(args)) => run::carry_out(&args, folders, ui),
        Some(Command::Loop(args)) => r#loop::carry_out(&args, folders, ui),
        Some(Command::New(args)) => new::carry_out(&args, folders, ui),
        Some(Command::List(args)) => list::carry_out(&args, folders, ui),
        Some(Command::Attach(args)) => attach::carry_out(&args, folders, ui),
        Some(Command::Prompt(args)) => prompt::carry_out(&args, folders, ui),
        Some(Command::Unqueue(args)) => unqueue::carry_out(&args, folders, ui),
        Some(Command::Logs(args)) => logs::carry_out(&args, folders, ui),
        Some(Command::Show(args)) => show::carry_out(&args, folders, ui),
        Some(Command::Wait(args)) => wait::carry_out(&args, folders, ui),
        Some(Command::Inbox(args)) => inbox::carry_out(&args, folders, ui),
        Some(Command::Approve(args)) => answer::approve(&args, folders, ui),
        Some(Command::Deny(args)) => answer::deny(&args, folders, ui),
        Some(Command::Continue(args)) => answer::continue_tool(&args, folders, ui),
        Some(Command::Answer(args)) => answer::answer_question(&args, folders, ui),
        Some(Command::Asks(args)) => asks::carry_out(&args, folders, ui),
        Some(Command::Hold(args)) => hold::hold(&args, folders, ui),
        Some(Command::Release(args)) => hold::release(&args, folders, ui),
        Some(Command::Interrupt(args)) => interrupt::carry_out(&args, folders, ui),
        Some(Command::Close(args)) => close::carry_out(&args, folders, ui),
        Some(Command::Rename(args)) => rename::carry_out(&args, folders, ui),
        Some(Command::Move(args)) => r#move::carry_out(&args, folders, ui),
        Some(Command::Export(args)) => transfer::export(&args, folders, ui),
        Some(Command::Import(args)) => transfer::import(&args, folders, ui),
        Some(Command::Rm(args)) => rm::carry_out(&args, folders, ui),
        Some(Command::Status(args)) => status::carry_out(&args, folders, ui),
        Some(Command::Acp(args)) => acp::carry_out(&args, folders),
        Some(Command::Daemon(args)) => daemon::carry_out(&args, folders, ui),
        Some(Command::Fleet(args)) => fleet::carry_out(&args, folders, ui),
        Some(Command::Models(args)) => models::carry_out(&args, folders, ui),
        Some(Command::Agents(args)) => agents::carry_out(&args, folders, ui),
        Some(Command::Policy(args)) => policy::carry_out(&args, folders, ui),
        Some(Command::Mcp(args)) => mcp::carry_out(&args, folders, ui),
        Some(Command::Trust(args)) => trust::carry_out(&args, folders, ui),
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

    /// Texts for users describe a client by its kind, not by its command.
    #[test]
    fn clients_that_are_commands_are_named_as_the_command_line() {
        for command in Cli::command().get_subcommands() {
            // These do not connect to sessions, or are the client of an editor.
            if !matches!(command.get_name(), "config" | "man" | "acp" | "trust" | "fleet") {
                assert!(COMMANDS.contains(&command.get_name()), "{}", command.get_name());
            }
        }
        assert_eq!(Who::named("approve").origin(), "from the command line");
        assert_eq!(Who { name: "tui".into(), pid: Some(7) }.origin(), "from the screen (pid 7)");
        assert_eq!(Who::named("acp").origin(), "from the editor");
        assert_eq!(Who::named("curl/8.5.0").origin(), "by curl/8.5.0");
    }
}
