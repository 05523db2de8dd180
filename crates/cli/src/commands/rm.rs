//! `holdpoint rm`

use std::time::{Duration, SystemTime};

use clap_complete::engine::ArgValueCompleter;
use holdpoint_common::Timestamp;
use holdpoint_tools::shown::prose_line;

use crate::error::CliError;
use crate::folders::Folders;
use crate::runtime::runtime;
use crate::select::complete_session;
use crate::sessions::sessions;
use crate::ui::Ui;

/// Deletes saved sessions, with all that was said in them
///
/// A live one has to be closed first.
#[derive(Debug, clap::Args)]
#[group(required = true)]
pub(crate) struct Args {
    /// The sessions: their ids, the beginnings of them, or their names
    #[arg(value_name = "SESSION", add = ArgValueCompleter::new(complete_session), conflicts_with = "older_than")]
    sessions: Vec<String>,

    /// All saved sessions in which nothing has happened for so long: 30d, 12h, ...
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    older_than: Option<Duration>,
}

pub(crate) fn carry_out(args: &Args, folders: &Folders, ui: &mut Ui) -> Result<i32, CliError> {
    runtime()?.block_on(async {
        let sessions = sessions(folders, "rm").await?;
        let mut doomed = args.sessions.clone();
        if let Some(older) = args.older_than {
            let now = Timestamp::from(SystemTime::now());
            let old = sessions.list().await?.into_iter().filter(|session| !session.live);
            doomed
                .extend(old.filter(|session| now.since(session.since) >= older).map(|session| session.id.to_string()));
        }
        for what in &doomed {
            sessions.delete(what).await?;
            ui.print(&format!("{}: deleted\n", prose_line(what)))?;
        }
        if doomed.is_empty() {
            ui.print("Nothing is that old.\n")?;
        }
        Ok(0)
    })
}
