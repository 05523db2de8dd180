//! The command `holdpoint status`.

use std::time::{Duration, SystemTime};

use holdpoint_common::api::{BrowserStatus, DaemonStatus, SessionCounts};
use holdpoint_common::{SandboxLevel, Timestamp};
use holdpoint_session::Sessions;
use holdpoint_session::folders::Folders;
use holdpoint_tools::shown::prose_line;
use holdpoint_tools::{SandboxSupport, Supervisor};
use serde_json::{Value, json};

use crate::daemon::{Daemon, RESTART_HINT};
use crate::error::CliError;
use crate::runtime::block_on;
use crate::sessions::who;
use crate::summaries::{self, counted};
use crate::tone::Tone;
use crate::ui::Ui;

/// The timeout for listing the sessions.
const LIST_TIMEOUT: Duration = Duration::from_secs(10);

/// The exit code when no daemon runs, by the convention of service managers.
const NOT_RUNNING: i32 = 3;

/// Show whether the daemon is running, and its load
///
/// This command does not start the daemon.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Exit codes:
  0  the daemon is running
  1  the daemon does not answer
  3  the daemon is not running")]
pub(crate) struct Args {
    /// Print the result as JSON; `pid` is null if no daemon is running
    #[arg(long)]
    json: bool,
}

pub(crate) fn carry_out(args: &Args, folders: &Folders, ui: &mut Ui) -> Result<i32, CliError> {
    let daemon = block_on(async {
        let mut found = Daemon::find_living(folders).await?;
        if let Some(daemon) = &mut found {
            daemon.status.damaged.extend(damaged_sessions(daemon).await);
        }
        Ok::<_, CliError>(found)
    })?;
    match (&daemon, args.json) {
        (Some(daemon), false) => {
            // An unreadable configuration is reported by `config show`.
            let config_changes =
                folders.config().ok().and_then(|config| daemon.config_changes(&config));
            let sandbox = sandbox(folders);
            ui.print(&text(&daemon.status, config_changes.as_deref(), &sandbox))?;
            if config_changes.is_some() {
                ui.line(Tone::Plain, &format!("hint: {RESTART_HINT}"))?;
                ui.flush()?;
            }
        }
        (Some(daemon), true) => {
            let mut status = json!(daemon.status);
            status["sandbox"] = sandbox_json(&sandbox(folders));
            ui.print(&format!("{status:#}\n"))?;
        }
        (None, false) => {
            ui.print("The daemon is not running. A command that needs it starts it.\n")?
        }
        (None, true) => ui.print(&format!("{:#}\n", json!({ "pid": null })))?,
    }
    Ok(if daemon.is_some() { 0 } else { NOT_RUNNING })
}

/// The levels of the sandbox that work here, tried now.
fn sandbox(folders: &Folders) -> SandboxSupport {
    SandboxSupport::probe(&Supervisor::beside_this_program(), &folders.sandbox().join("trial"))
}

fn sandbox_json(support: &SandboxSupport) -> Value {
    let mut json = json!({ "level": support.strongest() });
    for level in [SandboxLevel::Bwrap, SandboxLevel::Landlock] {
        if let Some(why) = support.why_not(level) {
            json[level.name()] = why.into();
        }
    }
    json
}

/// The strongest level, and the reasons why stronger ones do not work.
fn sandbox_text(support: &SandboxSupport) -> String {
    let strongest = support.strongest();
    let stronger = [SandboxLevel::Bwrap, SandboxLevel::Landlock];
    let stronger = stronger.into_iter().take_while(|level| *level != strongest);
    let reasons = stronger.filter_map(|level| Some((level, support.why_not(level)?)));
    reasons.fold(strongest.to_string(), |text, (level, why)| {
        format!("{text}; `{level}` does not work: {why}")
    })
}

/// Describes the damaged sessions.
async fn damaged_sessions(daemon: &Daemon) -> Vec<String> {
    let sessions = Sessions::remote(daemon.socket.clone(), &who("status"));
    match tokio::time::timeout(LIST_TIMEOUT, sessions.list()).await {
        Ok(Ok(listed)) => {
            let damaged = listed.iter().filter(|session| !session.gaps.is_empty());
            damaged.map(summaries::session::damage).collect()
        }
        Ok(Err(error)) => vec![format!("unknown, because the sessions can't be listed: {error}")],
        Err(_) => vec![format!(
            "unknown, because the sessions were not listed within {} s",
            LIST_TIMEOUT.as_secs()
        )],
    }
}

fn text(status: &DaemonStatus, config_changes: Option<&str>, sandbox: &SandboxSupport) -> String {
    let DaemonStatus {
        version,
        api,
        pid,
        socket,
        data,
        machine,
        sessions,
        connections,
        clients,
        queued_prompts,
        ..
    } = status;
    let up = Timestamp::from(SystemTime::now()).since(status.since);
    let up = humantime::format_duration(Duration::from_secs(up.as_secs()));
    let mut lines = vec![
        format!("holdpoint {version} (API {api}), pid {pid}, up {up}"),
        format!("socket    {socket}"),
        format!("data      {data}"),
    ];
    lines.extend(machine.iter().map(|machine| format!("fleet     this machine is `{machine}`")));
    lines.extend(status.log.iter().map(|log| format!("log       {log}")));
    lines.extend(config_changes.map(|changes| format!("config    {changes}")));
    lines.push(format!("sandbox   {}", sandbox_text(sandbox)));
    let SessionCounts { live, busy, running, waiting, held, limit } = sessions;
    let idle = live.saturating_sub(*busy);
    let busy = match busy {
        0 => "0 busy".to_owned(),
        busy => {
            format!("{busy} busy ({running} running, {waiting} waiting for an answer, {held} held)")
        }
    };
    lines.push(format!("sessions  {live} of {limit} live: {idle} idle, {busy}"));
    lines.push(format!("queued    {}", counted(*queued_prompts, "prompt")));
    lines.push(format!("clients   {clients} attached, {}", counted(*connections, "connection")));
    if let Some(seconds) = status.idle_stop_s {
        lines.push(format!(
            "stops     when idle for {}",
            humantime::format_duration(Duration::from_secs(seconds))
        ));
    }
    if !status.saved {
        lines.push("not saved: new events can't be written to the disk; see the log".to_owned());
    }
    if status.log_lines_lost > 0 {
        lines.push(format!(
            "{} missing from the log: logged too fast to be written",
            counted(status.log_lines_lost, "line")
        ));
    }
    for BrowserStatus { session, pid, debugging, visible, sandbox } in &status.browsers {
        let window = if *visible { "with a window" } else { "without a window" };
        let sandbox = if *sandbox { "" } else { ", its sandbox is off" };
        lines.push(format!(
            "browser   pid {pid} of {session}, {window}{sandbox}; its developer tools listen on {debugging}"
        ));
    }
    lines.extend(status.damaged.iter().map(|damage| format!("damaged   {damage}")));
    lines.iter().map(|line| format!("{}\n", prose_line(line))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nouns_agree_with_their_counts() {
        let shown = |count: usize| {
            let status = json!({
                "version": "1", "api": 1, "pid": 1, "socket": "", "data": "", "since": 0,
                "config": {}, "logLinesLost": count, "sessions": {}, "connections": count,
                "clients": 0, "queuedPrompts": count, "saved": true,
            });
            text(&serde_json::from_value(status).unwrap(), None, &SandboxSupport::none("a test"))
        };
        let (one, two) = (shown(1), shown(2));
        for noun in ["prompt\n", "connection\n", "line missing"] {
            assert!(one.contains(&format!("1 {noun}")), "{one}");
        }
        for noun in ["prompts\n", "connections\n", "lines missing"] {
            assert!(two.contains(&format!("2 {noun}")), "{two}");
        }
    }
}
