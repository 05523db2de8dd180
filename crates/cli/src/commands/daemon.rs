//! The command `holdpoint daemon`.

use std::time::Duration;

use clap::Subcommand;
use holdpoint_common::api::DaemonStatus;
use holdpoint_session::folders::Folders;
use holdpoint_tools::shown::prose_line;

use crate::daemon::{self, Daemon, Options};
use crate::error::CliError;
use crate::runtime::block_on;
use crate::tone::Tone;
use crate::ui::Ui;

/// Run the daemon in the foreground, or start, stop or restart it in the background
///
/// The daemon keeps sessions running when no client is connected. There is one for each user, and
/// every command that needs it starts it. It listens on a Unix socket that only its user can use,
/// `$XDG_RUNTIME_DIR/holdpoint/holdpoint.sock` (without XDG_RUNTIME_DIR: in `run` in the data
/// folder), or with `--state-dir DIR`: `DIR/run/holdpoint.sock`. Its log is `logs/daemon.log` in
/// the data folder; HOLDPOINT_LOG sets the log levels.
///
/// TERM and Ctrl+C stop it: turns are interrupted, their processes are ended, and the daemon exits
/// within 10 s. It ignores HUP.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Option<DaemonCommand>,

    /// Stop after this time without work and clients, for example 30m; by default, never stop
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    idle_stop: Option<Duration>,

    /// Report to the command that has started this process when the daemon is ready
    #[arg(long, hide = true)]
    detached: bool,
}

#[derive(Debug, Subcommand)]
enum DaemonCommand {
    /// Start the daemon in the background, unless one is running
    Start(Start),
    /// Stop the daemon and wait until it is gone: turns are interrupted, sessions stay saved
    Stop,
    /// Stop the daemon, if one is running, and start the one of this program
    Restart(Start),
}

#[derive(Debug, clap::Args)]
struct Start {
    /// Stop the daemon after this time without work and clients, for example 30m; by default, it
    /// never stops. A daemon that is already running keeps its setting
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    idle_stop: Option<Duration>,
}

impl Args {
    /// Whether this process becomes the daemon.
    pub(crate) fn runs_daemon(&self) -> bool {
        self.command.is_none()
    }
}

pub(crate) fn carry_out(args: &Args, folders: &Folders, ui: &mut Ui) -> Result<i32, CliError> {
    match &args.command {
        Some(DaemonCommand::Stop) => block_on(stop(folders, ui))?,
        Some(DaemonCommand::Start(start_args)) => block_on(start(start_args, folders, ui))?,
        Some(DaemonCommand::Restart(start_args)) => block_on(async {
            stop(folders, ui).await?;
            start(start_args, folders, ui).await
        })?,
        None if args.detached => run_detached(args, folders)?,
        None => {
            daemon::run(
                folders,
                &Options { wait_for_claim: false, idle_stop: args.idle_stop },
                |status| {
                    // The daemon serves even if the output has no reader.
                    let _ = ui.print(&daemon_lines(status));
                },
            )?;
        }
    }
    Ok(0)
}

async fn start(args: &Start, folders: &Folders, ui: &mut Ui) -> Result<(), CliError> {
    let daemon = Daemon::connect_or_start_with(folders, args.idle_stop).await?;
    ui.print(&daemon_lines(&daemon.status))?;
    if args.idle_stop.is_some_and(|idle| daemon.status.idle_stop_s != Some(idle.as_secs())) {
        ui.line(Tone::Warning, "the daemon was already running: --idle-stop has no effect on it")?;
        ui.flush()?;
    }
    Ok(())
}

async fn stop(folders: &Folders, ui: &mut Ui) -> Result<(), CliError> {
    match daemon::stop(folders).await? {
        Some(pid) => ui.print(&format!("The daemon (pid {pid}) has stopped.\n"))?,
        None => ui.print("The daemon is not running.\n")?,
    }
    Ok(())
}

/// Describes the running daemon: its version, process id, socket and log.
fn daemon_lines(status: &DaemonStatus) -> String {
    let DaemonStatus { version, pid, socket, log, .. } = status;
    let lines = [
        format!("The daemon (holdpoint {version}, pid {pid}) is listening on {socket}"),
        format!("log: {}", log.as_deref().unwrap_or("none")),
    ];
    lines.iter().map(|line| format!("{}\n", prose_line(line))).collect()
}

/// Runs the daemon for the command that has started it.
fn run_detached(args: &Args, folders: &Folders) -> Result<(), CliError> {
    daemon::detach();
    let mut announced = false;
    let result =
        daemon::run(folders, &Options { wait_for_claim: true, idle_stop: args.idle_stop }, |_| {
            announced = true;
            // This can fail only after the report is sent, if standard output can't be replaced.
            // The daemon serves anyway.
            let _ = daemon::announce(Ok(()));
        });
    if !announced {
        let _ = daemon::announce(result.as_ref().map(|_| ()));
    }
    result.map(|_| ())
}
