//! `holdpoint wait`

use std::time::Duration;

use clap::ValueEnum;
use holdpoint_common::Snapshot;
use holdpoint_session::{AttachFrom, SessionHandle};
use holdpoint_tools::shown::prose_line;

use crate::error::CliError;
use crate::folders::Folders;
use crate::runtime::runtime;
use crate::select::SessionArg;
use crate::sessions::sessions;
use crate::ui::Ui;

/// The time was up.
const TIMED_OUT: i32 = 124;

/// Waits until a session is idle, or asks
///
/// Without `--for`, for either.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Exit codes:
  0    it is so; the status is printed
  1    the session was closed meanwhile, or the daemon failed
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
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum What {
    /// Nothing is open, and nothing waits
    Idle,
    /// It waits for an answer
    Ask,
}

pub(crate) fn carry_out(args: &Args, folders: &Folders, ui: &mut Ui) -> Result<i32, CliError> {
    runtime()?.block_on(async {
        let session = sessions(folders, "wait").await?.get(&args.session.session).await?;
        let waits = wait(&session, args.what);
        let seen = match args.timeout {
            Some(timeout) => tokio::time::timeout(timeout, waits).await.unwrap_or(Ok(false))?,
            None => waits.await?,
        };
        let snapshot = session.snapshot();
        let ask = snapshot.asks.first().map(|ask| format!(" (ask {})", ask.id)).unwrap_or_default();
        ui.print(&format!("{}: {}{ask}\n", prose_line(&snapshot.settings.name), snapshot.status))?;
        Ok(if seen { 0 } else { TIMED_OUT })
    })
}

/// Waits until it is so.
async fn wait(session: &SessionHandle, what: Option<What>) -> Result<bool, CliError> {
    let is_so = |snapshot: &Snapshot| {
        let idle = snapshot.turn.is_none() && snapshot.run.is_none() && snapshot.queue.is_empty();
        let asks = !snapshot.asks.is_empty();
        asks && what != Some(What::Idle) || idle && what != Some(What::Ask)
    };
    let mut events = session.attach(AttachFrom::now()).await?;
    while !is_so(&session.snapshot()) {
        if events.next().await.is_none() {
            events = session.attach(AttachFrom::now()).await?;
        }
    }
    Ok(true)
}
