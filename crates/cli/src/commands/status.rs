//! `holdpoint status`

use std::time::{Duration, SystemTime};

use holdpoint_common::Timestamp;
use holdpoint_common::api::{BrowserStatus, DaemonStatus, SessionCounts};
use holdpoint_session::Sessions;
use holdpoint_session::folders::Folders;
use holdpoint_tools::shown::prose_line;
use serde_json::json;

use crate::daemon::{Daemon, READS_ANEW};
use crate::error::CliError;
use crate::runtime::block_on;
use crate::said;
use crate::sessions::who;
use crate::ui::{Style, Ui};

/// How long the list of sessions is waited for.
const LIST: Duration = Duration::from_secs(10);

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
    /// Prints it as JSON; where none runs, its `pid` is null
    #[arg(long)]
    json: bool,
}

pub(crate) fn carry_out(args: &Args, folders: &Folders, ui: &mut Ui) -> Result<i32, CliError> {
    let daemon = block_on(async {
        let mut found = Daemon::find_living(folders).await?;
        if let Some(daemon) = &mut found {
            daemon.status.damaged.extend(damaged(daemon).await);
        }
        Ok::<_, CliError>(found)
    })?;
    match (&daemon, args.json) {
        (Some(daemon), false) => {
            // What is wrong with one that can't be read, `config show` tells.
            let outdated = folders.config().ok().and_then(|config| daemon.outdated(&config));
            ui.print(&text(&daemon.status, outdated.as_deref()))?;
            if outdated.is_some() {
                ui.line(Style::Plain, &format!("hint: {READS_ANEW}"))?;
                ui.flush()?;
            }
        }
        (Some(daemon), true) => ui.print(&format!("{:#}\n", json!(daemon.status)))?,
        (None, false) => ui.print("The daemon does not run. A command that needs it starts it.\n")?,
        (None, true) => ui.print(&format!("{:#}\n", json!({ "pid": null })))?,
    }
    Ok(if daemon.is_some() { 0 } else { NOT_RUNNING })
}

/// The sessions of which something can't be read.
async fn damaged(daemon: &Daemon) -> Vec<String> {
    let sessions = Sessions::remote(daemon.socket.clone(), &who("status"));
    match tokio::time::timeout(LIST, sessions.list()).await {
        Ok(Ok(listed)) => {
            let damaged = listed.iter().filter(|session| !session.gaps.is_empty());
            damaged.map(said::session::damage).collect()
        }
        Ok(Err(error)) => vec![format!("not known, for the sessions can't be listed: {error}")],
        Err(_) => vec![format!("not known: the sessions were not listed within {} s", LIST.as_secs())],
    }
}

fn text(status: &DaemonStatus, outdated: Option<&str>) -> String {
    let DaemonStatus { version, api, pid, socket, data, sessions, connections, clients, queued_prompts, .. } = status;
    let up = Timestamp::from(SystemTime::now()).since(status.since);
    let up = humantime::format_duration(Duration::from_secs(up.as_secs()));
    let mut lines = vec![
        format!("holdpoint {version} (API {api}), pid {pid}, up {up}"),
        format!("socket    {socket}"),
        format!("data      {data}"),
    ];
    lines.extend(status.log.iter().map(|log| format!("log       {log}")));
    lines.extend(outdated.map(|outdated| format!("config    {outdated}")));
    let SessionCounts { live, busy, running, waiting, held, most } = sessions;
    let idle = live.saturating_sub(*busy);
    let busy = match busy {
        0 => "0 busy".to_owned(),
        busy => format!("{busy} busy ({running} running, {waiting} waiting for an answer, {held} held)"),
    };
    lines.push(format!("sessions  {live} of {most} live: {idle} idle, {busy}"));
    lines.push(format!("queued    {queued_prompts} prompts"));
    let many = if *connections == 1 { "connection" } else { "connections" };
    lines.push(format!("clients   {clients} attached, {connections} {many}"));
    if let Some(seconds) = status.idle_stop_s {
        lines.push(format!("stops     when idle for {}", humantime::format_duration(Duration::from_secs(seconds))));
    }
    if !status.saved {
        lines.push("not saved: what happens now can't be written to the disk; see the log".to_owned());
    }
    if status.log_lines_lost > 0 {
        lines.push(format!("{} lines are missing in the log: they came too fast", status.log_lines_lost));
    }
    for BrowserStatus { session, pid, debugging, visible, sandbox } in &status.browsers {
        let window = if *visible { "with a window" } else { "without a window" };
        let sandbox = if *sandbox { "" } else { ", its sandbox is off" };
        lines.push(format!(
            "browser   pid {pid} of {session}, {window}{sandbox}; its developer tools listen on {debugging}"
        ));
    }
    lines.extend(status.damaged.iter().map(|what| format!("damaged   {what}")));
    lines.iter().map(|line| format!("{}\n", prose_line(line))).collect()
}
