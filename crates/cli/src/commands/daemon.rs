//! `holdpoint daemon`

use std::time::Duration;

use clap::Subcommand;
use holdpoint_common::api::DaemonStatus;
use holdpoint_session::folders::Folders;
use holdpoint_tools::shown::prose_line;

use crate::daemon::{self, Daemon, Options};
use crate::error::CliError;
use crate::runtime::block_on;
use crate::ui::{Style, Ui};

/// Runs the daemon here, in the foreground; or starts it in the background, or stops it
///
/// The daemon keeps sessions running when nobody is there. There is one for each user, and every command that
/// needs it starts it. It listens on a Unix socket that only its user can use,
/// `$XDG_RUNTIME_DIR/holdpoint/holdpoint.sock` (without XDG_RUNTIME_DIR: in `run` in the data folder), or with
/// `--state-dir DIR`: `DIR/run/holdpoint.sock`. Its log is in the data folder, `logs/daemon.log`;
/// HOLDPOINT_LOG sets its levels.
///
/// TERM and Ctrl+C stop it: turns are interrupted, what they have started is ended, and within 10 s it is
/// gone. A hang-up means nothing to it.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: Option<What>,

    /// Stops after so long without work and clients, for example 30m; without it, never
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    idle_stop: Option<Duration>,

    /// Was started by another command, and tells it when it serves
    #[arg(long, hide = true)]
    detached: bool,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Starts the daemon in the background, unless one runs
    Start(Start),
    /// Stops the daemon and waits until it is gone: turns are interrupted, sessions stay saved
    Stop,
    /// Stops the daemon, if one runs, and starts this program's
    Restart(Start),
}

#[derive(Debug, clap::Args)]
struct Start {
    /// It stops after so long without work and clients, for example 30m; without it, never. One that runs already
    /// stays as it is
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    idle_stop: Option<Duration>,
}

impl Args {
    /// This process becomes the daemon.
    pub(crate) fn serves(&self) -> bool {
        self.what.is_none()
    }
}

pub(crate) fn carry_out(args: &Args, folders: &Folders, ui: &mut Ui) -> Result<i32, CliError> {
    match &args.what {
        Some(What::Stop) => block_on(stop(folders, ui))?,
        Some(What::Start(how)) => block_on(start(how, folders, ui))?,
        Some(What::Restart(how)) => block_on(async {
            stop(folders, ui).await?;
            start(how, folders, ui).await
        })?,
        None if args.detached => detached(args, folders)?,
        None => {
            daemon::run(folders, &Options { patient: false, idle_stop: args.idle_stop }, |status| {
                // If nobody reads it, it serves all the same.
                let _ = ui.print(&serves(status));
            })?;
        }
    }
    Ok(0)
}

async fn start(how: &Start, folders: &Folders, ui: &mut Ui) -> Result<(), CliError> {
    let daemon = Daemon::connect_or_start_with(folders, how.idle_stop).await?;
    ui.print(&serves(&daemon.status))?;
    if how.idle_stop.is_some_and(|idle| daemon.status.idle_stop_s != Some(idle.as_secs())) {
        ui.line(Style::Warning, "it ran already: --idle-stop changes nothing about it")?;
        ui.flush()?;
    }
    Ok(())
}

async fn stop(folders: &Folders, ui: &mut Ui) -> Result<(), CliError> {
    match daemon::stop(folders).await? {
        Some(pid) => ui.print(&format!("The daemon (pid {pid}) has stopped.\n"))?,
        None => ui.print("The daemon does not run.\n")?,
    }
    Ok(())
}

/// That it serves, and where.
fn serves(status: &DaemonStatus) -> String {
    let DaemonStatus { version, pid, socket, log, .. } = status;
    let lines = [
        format!("The daemon (holdpoint {version}, pid {pid}) serves on {socket}"),
        format!("its log: {}", log.as_deref().unwrap_or("none")),
    ];
    lines.iter().map(|line| format!("{}\n", prose_line(line))).collect()
}

/// As started by another command.
fn detached(args: &Args, folders: &Folders) -> Result<(), CliError> {
    daemon::detach();
    let mut told = false;
    let ran = daemon::run(folders, &Options { patient: true, idle_stop: args.idle_stop }, |_| {
        told = true;
        // If they can't be told, they see it by the socket.
        let _ = daemon::announce(Ok(()));
    });
    if !told {
        let _ = daemon::announce(ran.as_ref().map(|_| ()));
    }
    ran.map(|_| ())
}
