//! The command `holdpoint wait`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use holdpoint_common::api::SessionNews;
use holdpoint_common::{Hold, HoldCause, HoldState, SessionId, Snapshot};
use holdpoint_session::folders::Folders;
use holdpoint_session::{SessionError, Sessions};
use holdpoint_tools::shown::prose_line;
use serde_json::json;

use crate::daemon::Daemon;
use crate::error::CliError;
use crate::runtime::block_on;
use crate::select::SessionArg;
use crate::sessions::{control_sessions, who};
use crate::ui::Ui;

/// The exit code when the time is up.
const TIMED_OUT: i32 = 124;

/// How many times in a row a watch that breaks at once is restarted.
const MAX_BREAKS: u32 = 5;

/// The longest wait for the next daemon after a stop: `holdpoint daemon restart` starts one.
const RESTART_TIMEOUT: Duration = Duration::from_secs(5);

/// The polling interval for the next daemon, which has no way to announce itself, and for a session
/// that could not be read.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Wait until a session is idle, waits for an answer, or is held
///
/// Without `--for`, the first of these ends the wait: the session does nothing more without a user.
/// A saved session stays saved. If the daemon is restarted, the wait continues.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Exit codes:
  0    the condition is met; the status is printed
  1    the session was closed before it asked or was held, or was deleted; the daemon was stopped; or
       this program failed
  124  the timeout expired")]
pub(crate) struct Args {
    #[command(flatten)]
    session: SessionArg,

    /// The condition to wait for
    #[arg(long = "for", value_enum, value_name = "WHAT")]
    condition: Option<Condition>,

    /// Wait no longer than this: 30s, 10m, ...
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    timeout: Option<Duration>,

    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Condition {
    /// No turn or run is open, and no prompt is queued
    Idle,
    /// The session waits for an answer
    Ask,
    /// The session is held: by a client, by a limit of its run, or after a restart
    Hold,
}

pub(crate) fn carry_out(args: &Args, folders: &Folders, ui: &mut Ui) -> Result<i32, CliError> {
    block_on(async {
        let sessions = control_sessions(folders, "wait").await?;
        let mut last = sessions.look(&args.session.session).await?;
        let waiting = wait(folders, sessions, args.condition, &mut last);
        let met = match args.timeout {
            Some(timeout) => {
                tokio::time::timeout(timeout, waiting).await.ok().transpose()?.is_some()
            }
            None => waiting.await.map(|()| true)?,
        };
        let ask = last.asks.first().map(|ask| &ask.id);
        if args.json {
            let (session, status) = (&last.settings.id, last.status);
            ui.json(
                &json!({ "session": session, "status": status, "ask": ask, "timedOut": !met }),
            )?;
        } else {
            let status = match (ask, &last.hold) {
                (Some(ask), _) => format!("{} (ask {ask})", last.status),
                (None, Hold::Standing { cause: cause @ HoldCause::User { .. }, .. }) => {
                    cause.to_string()
                }
                (None, Hold::Standing { cause, .. }) => format!("held ({cause})"),
                (None, Hold::Off | Hold::Requested { .. }) => last.status.to_string(),
            };
            ui.print(&format!("{}: {}\n", prose_line(&last.settings.name), prose_line(&status)))?;
        }
        Ok(if met { 0 } else { TIMED_OUT })
    })
}

/// Waits until the condition is met. `last` is the latest snapshot of the session.
async fn wait(
    folders: &Folders,
    mut all: Sessions,
    condition: Option<Condition>,
    last: &mut Arc<Snapshot>,
) -> Result<(), CliError> {
    let mut breaks = 0;
    loop {
        match watch(&all, condition, last, &mut breaks).await {
            Ok(true) => return Ok(()),
            // The daemon is stopping.
            Err(SessionError::Stopped) => {}
            Ok(false)
            | Err(SessionError::Unreachable { .. } | SessionError::Disconnected { .. }) => {
                breaks += 1;
                if breaks > MAX_BREAKS {
                    return Err(CliError::failed(
                        "the sessions can't be watched: the connection keeps breaking",
                    ));
                }
            }
            Err(error) => return Err(error.into()),
        }
        // A stopped daemon has removed its sockets and stays stopped. A crashed one has left them
        // and is restarted.
        let has_crashed = folders.sockets()?.iter().any(|socket| socket.exists());
        all = if has_crashed {
            control_sessions(folders, "wait").await?
        } else {
            next_daemon_sessions(folders).await?
        };
    }
}

/// Like [`wait`], for the life of one daemon. Returns `false` if the watch ended before the
/// condition was met. It does not attach, so the session is not opened.
async fn watch(
    sessions: &Sessions,
    condition: Option<Condition>,
    last: &mut Arc<Snapshot>,
    breaks: &mut u32,
) -> Result<bool, SessionError> {
    let id = last.settings.id.clone();
    // Started before the first look, so that no change is missed in between.
    let mut news = sessions.watch().await?;
    let (mut was_live, mut is_over) = (false, false);
    loop {
        let looked = match sessions.look(id.as_str()).await {
            Ok(session) => {
                *last = session;
                true
            }
            // A daemon that stops refuses requests, and its watch ends when it has stopped. A busy
            // one may refuse a single request, so the session is read again.
            Err(SessionError::Unreachable { .. }) => false,
            Err(error) => return Err(error),
        };
        if looked && is_met(last, condition) {
            return Ok(true);
        }
        if looked && is_over {
            return Err(SessionError::NotLive { session: id });
        }
        let is_live = loop {
            let next = tokio::select! {
                next = news.next() => next,
                () = tokio::time::sleep(POLL_INTERVAL), if !looked => break was_live,
            };
            if next.is_some() {
                *breaks = 0;
            }
            match next {
                Some(SessionNews::Session(session)) if session.id == id => break session.live,
                Some(SessionNews::Deleted(deleted)) if deleted == id => return Err(unknown(id)),
                Some(_) => {}
                None => return Ok(false),
            }
        };
        // Closed or unloaded: the session does nothing more.
        is_over = !is_live && (is_over || was_live);
        was_live = is_live;
    }
}

fn is_met(session: &Snapshot, condition: Option<Condition>) -> bool {
    let idle = session.turn.is_none() && session.run.is_none() && session.queue.is_empty();
    let asks = !session.asks.is_empty();
    let held = session.hold.shown() == HoldState::Standing;
    match condition {
        None => idle || asks || held,
        Some(Condition::Idle) => idle,
        Some(Condition::Ask) => asks,
        Some(Condition::Hold) => held,
    }
}

fn unknown(id: SessionId) -> SessionError {
    SessionError::UnknownSession { given: id.to_string() }
}

/// The sessions of the next daemon, which another command starts.
async fn next_daemon_sessions(folders: &Folders) -> Result<Sessions, CliError> {
    let deadline = Instant::now() + RESTART_TIMEOUT;
    while Instant::now() < deadline {
        // A daemon that is starting or stopping may not answer.
        if let Ok(Some(daemon)) = Daemon::find(folders).await {
            daemon.check(folders)?;
            return Ok(Sessions::remote(daemon.socket, &who("wait")));
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    Err(CliError::stopped("`holdpoint wait` starts it again and continues to wait"))
}
