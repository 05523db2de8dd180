//! `holdpoint status`

use holdpoint_tools::shown::prose_line;
use serde_json::json;

use crate::daemon::{Daemon, Status};
use crate::error::CliError;
use crate::folders::Folders;
use crate::runtime::runtime;
use crate::ui::Ui;

/// No daemon runs; as service managers have it.
const NOT_RUNNING: i32 = 3;

/// Shows whether the daemon runs, and what it has to do
///
/// It is not started by this.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Exit codes:
  0  it runs
  1  it does not answer
  3  it does not run")]
pub(crate) struct Args {
    /// Prints it as JSON; nothing runs: `{\"pid\": null}`
    #[arg(long)]
    json: bool,
}

pub(crate) fn carry_out(args: &Args, folders: &Folders, ui: &mut Ui) -> Result<i32, CliError> {
    let daemon = runtime()?.block_on(Daemon::find(folders))?;
    match (&daemon, args.json) {
        (Some(daemon), false) => ui.print(&text(&daemon.status))?,
        (Some(daemon), true) => ui.print(&format!("{:#}\n", json!(daemon.status)))?,
        (None, false) => ui.print("The daemon does not run. A command that needs it starts it.\n")?,
        (None, true) => ui.print(&format!("{:#}\n", json!({ "pid": null })))?,
    }
    Ok(if daemon.is_some() { 0 } else { NOT_RUNNING })
}

fn text(status: &Status) -> String {
    let mut lines = vec![
        format!("holdpoint {}, pid {}", status.version, status.pid),
        format!("socket    {}", status.socket),
        format!("data      {}", status.data),
        format!("log       {}", status.log),
        format!(
            "sessions  {} live, {} busy, {} waiting for an answer",
            status.sessions.live, status.sessions.busy, status.sessions.waiting
        ),
    ];
    lines.extend(status.damaged.iter().map(|what| format!("damaged   {what}")));
    lines.iter().map(|line| format!("{}\n", prose_line(line))).collect()
}
