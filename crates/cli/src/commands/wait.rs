//! `holdpoint wait`

use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use holdpoint_common::api::SessionNews;
use holdpoint_common::{Hold, HoldCause, HoldShown, SessionId, Snapshot};
use holdpoint_session::folders::Folders;
use holdpoint_session::{SessionError, Sessions};
use holdpoint_tools::shown::prose_line;
use serde_json::json;

use crate::daemon::Daemon;
use crate::error::CliError;
use crate::runtime::block_on;
use crate::select::SessionArg;
use crate::sessions::{control, who};
use crate::ui::Ui;

/// The time was up.
const TIMED_OUT: i32 = 124;

/// How often news that break off at once are asked for again.
const BREAKS: u32 = 5;

/// How long after a daemon was stopped the next one may come, as `holdpoint daemon restart` starts it.
const RESTART: Duration = Duration::from_secs(5);

/// How often it is looked for then: nobody tells that it is there.
const LOOK: Duration = Duration::from_millis(50);

/// Waits until a session is idle, asks, or is held
///
/// Without `--for`, for whichever comes first: nothing goes on there then without somebody. A saved session stays
/// saved; a daemon that is started again is waited with.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Exit codes:
  0    it is so; the status is printed
  1    it was closed before it asked or was held, or deleted; the daemon was stopped; or it failed
  124  the time was up")]
pub(crate) struct Args {
    #[command(flatten)]
    session: SessionArg,

    /// What for
    #[arg(long = "for", value_enum, value_name = "WHAT")]
    what: Option<What>,

    /// Waits no longer than this: 30s, 10m, ...
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    timeout: Option<Duration>,

    /// Prints what came of it as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum What {
    /// Nothing is open, and nothing waits
    Idle,
    /// It waits for an answer
    Ask,
    /// It is held: by somebody, by a limit of its run, after a restart
    Hold,
}

pub(crate) fn carry_out(args: &Args, folders: &Folders, ui: &mut Ui) -> Result<i32, CliError> {
    block_on(async {
        let sessions = control(folders, "wait").await?;
        let mut last = sessions.look(&args.session.session).await?;
        let waits = wait(folders, sessions, args.what, &mut last);
        let seen = match args.timeout {
            Some(timeout) => tokio::time::timeout(timeout, waits).await.ok().transpose()?.is_some(),
            None => waits.await.map(|()| true)?,
        };
        let ask = last.asks.first().map(|ask| &ask.id);
        if args.json {
            let (session, status) = (&last.settings.id, last.status);
            ui.json(&json!({ "session": session, "status": status, "ask": ask, "timedOut": !seen }))?;
        } else {
            let status = match (ask, &last.hold) {
                (Some(ask), _) => format!("{} (ask {ask})", last.status),
                (None, Hold::Standing { cause: cause @ HoldCause::User { .. }, .. }) => cause.to_string(),
                (None, Hold::Standing { cause, .. }) => format!("held ({cause})"),
                (None, Hold::Off | Hold::Requested { .. }) => last.status.to_string(),
            };
            ui.print(&format!("{}: {}\n", prose_line(&last.settings.name), prose_line(&status)))?;
        }
        Ok(if seen { 0 } else { TIMED_OUT })
    })
}

/// How a watch ended.
enum Watched {
    /// It is so.
    So,
    /// The daemon was told to stop.
    Stopped,
    /// The connection to the daemon broke.
    Broke,
}

/// Waits until it is so. `last` is what the session was when it was last looked at.
async fn wait(
    folders: &Folders,
    mut all: Sessions,
    what: Option<What>,
    last: &mut Arc<Snapshot>,
) -> Result<(), CliError> {
    let mut breaks = 0;
    loop {
        match watch(&all, what, last, &mut breaks).await {
            Ok(Watched::So) => return Ok(()),
            Ok(Watched::Stopped) | Err(SessionError::Stopped) => {}
            Ok(Watched::Broke) | Err(SessionError::Unreachable { .. } | SessionError::Disconnected { .. }) => {
                breaks += 1;
                if breaks > BREAKS {
                    return Err(CliError::failed("what becomes of sessions can't be watched: the connection breaks"));
                }
            }
            Err(error) => return Err(error.into()),
        }
        // One that was stopped has taken its sockets with it, and is left so; one that has died has not.
        let died = folders.sockets()?.iter().any(|socket| socket.exists());
        all = if died { control(folders, "wait").await? } else { next_daemons(folders).await? };
    }
}

/// The same, for as long as one daemon lives. Nothing is attached for it, so that nothing is opened.
async fn watch(
    sessions: &Sessions,
    what: Option<What>,
    last: &mut Arc<Snapshot>,
    breaks: &mut u32,
) -> Result<Watched, SessionError> {
    let id = last.settings.id.clone();
    // Begun before it is looked at, so that nothing is missed between.
    let mut news = sessions.watch().await?;
    let (mut was_live, mut is_over) = (false, false);
    loop {
        let looked = match sessions.look(id.as_str()).await {
            Ok(session) => {
                *last = session;
                true
            }
            // A daemon that stops takes no more requests, and its news end when it has. One that is busy may refuse a
            // single request: the session is looked at again.
            Err(SessionError::Unreachable { .. }) => false,
            Err(error) => return Err(error),
        };
        if looked && is_so(last, what) {
            return Ok(Watched::So);
        }
        if looked && is_over {
            return Err(SessionError::NotLive { session: id });
        }
        let is_live = loop {
            let next = tokio::select! {
                next = news.next() => next,
                () = tokio::time::sleep(LOOK), if !looked => break was_live,
            };
            *breaks = 0;
            match next {
                Some(SessionNews::Session(session)) if session.id == id => break session.live,
                Some(SessionNews::Deleted(deleted)) if deleted == id => return Err(unknown(id)),
                Some(_) => {}
                None if news.has_stopped() => return Ok(Watched::Stopped),
                None => return Ok(Watched::Broke),
            }
        };
        // Closed, or unloaded: nothing happens there any more.
        is_over = !is_live && (is_over || was_live);
        was_live = is_live;
    }
}

fn is_so(session: &Snapshot, what: Option<What>) -> bool {
    let idle = session.turn.is_none() && session.run.is_none() && session.queue.is_empty();
    let asks = !session.asks.is_empty();
    let held = session.hold.shown() == HoldShown::Standing;
    match what {
        None => idle || asks || held,
        Some(What::Idle) => idle,
        Some(What::Ask) => asks,
        Some(What::Hold) => held,
    }
}

fn unknown(id: SessionId) -> SessionError {
    SessionError::Unknown { what: id.to_string() }
}

/// The sessions of the next daemon, which somebody else starts.
async fn next_daemons(folders: &Folders) -> Result<Sessions, CliError> {
    let by = Instant::now() + RESTART;
    while Instant::now() < by {
        // One that is about to begin or to end may not answer.
        if let Ok(Some(daemon)) = Daemon::find(folders).await {
            daemon.check(folders)?;
            return Ok(Sessions::remote(daemon.socket, &who("wait")));
        }
        tokio::time::sleep(LOOK).await;
    }
    Err(CliError::stopped("`holdpoint wait` starts it, and waits on"))
}
