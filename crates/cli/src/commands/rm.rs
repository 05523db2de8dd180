//! The command `holdpoint rm`.

use std::io;
use std::time::{Duration, SystemTime};

use clap::ArgGroup;
use clap_complete::engine::ArgValueCompleter;
use holdpoint_common::{SessionId, SessionSettings, Timestamp};
use holdpoint_session::SessionError;
use holdpoint_session::folders::Folders;
use holdpoint_tools::shown::prose_line;
use serde_json::json;

use crate::error::CliError;
use crate::runtime::block_on;
use crate::select::{Failures, complete_session, look_exactly};
use crate::sessions::sessions;
use crate::tone::Tone;
use crate::ui::Ui;

const ANSWER_HINT: &str = "answer the ask, or delete the session anyway with --force";
const DAMAGED_HINT: &str =
    "its asks can't be answered, because the session is damaged; --force deletes it";

/// Delete saved sessions and their logs
///
/// A live session must be closed first, and a session with an open ask is kept unless --force is
/// given. A prefix of an id is not accepted, nor is a name that several sessions share.
#[derive(Debug, clap::Args)]
#[command(group = ArgGroup::new("which").required(true).args(["sessions", "older_than"]))]
pub(crate) struct Args {
    /// The ids or names of the sessions
    #[arg(value_name = "SESSION", add = ArgValueCompleter::new(complete_session), conflicts_with = "older_than")]
    sessions: Vec<String>,

    /// Delete all saved sessions without activity for this long: 30d, 12h, ...
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    older_than: Option<Duration>,

    /// Also delete sessions with an open ask
    #[arg(long)]
    force: bool,

    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn carry_out(args: &Args, folders: &Folders, ui: &mut Ui) -> Result<i32, CliError> {
    block_on(async {
        let sessions = sessions(folders, "rm").await?;
        let mut failures = Failures::new(folders);
        let look = async |given: &str| match look_exactly(&sessions, given).await {
            Ok(session) => {
                let ask = session.asks.first().map(|ask| ask.id.clone());
                let SessionSettings { id, name, .. } = &*session.settings;
                Ok((given.to_owned(), id.clone(), name.clone(), ask, ANSWER_HINT))
            }
            // The asks of a damaged session can't be read, but the list has the first one.
            Err(SessionError::Damaged { session: id, .. }) => {
                let listed = if args.force { Vec::new() } else { sessions.list().await? };
                let listed = listed.into_iter().find(|session| session.id == id);
                let ask = listed.and_then(|session| session.waits_for).map(|ask| ask.id);
                Ok((given.to_owned(), id, given.to_owned(), ask, DAMAGED_HINT))
            }
            Err(error) => Err(error),
        };
        for (given, id, name, ask, hint) in failures.find(&args.sessions, ui, look).await {
            if let Some(ask) = ask.filter(|_| !args.force) {
                let error = CliError::failed(format!("it has an open ask ({ask})"));
                failures.add(&given, error.hint(hint), ui);
                continue;
            }
            // Deletes by the given name, so that an ambiguous name is an error.
            match sessions.delete(&given).await {
                Ok(()) => report_deleted(&id, &name, args, ui)?,
                Err(error) => failures.add(&given, error, ui),
            }
        }
        let Some(min_age) = args.older_than else { return Ok(failures.code()) };
        let now = Timestamp::from(SystemTime::now());
        let mut old = sessions.list().await?;
        old.retain(|session| !session.live && now.since(session.since) >= min_age);
        for session in &old {
            if let Some(ask) = session.waits_for.as_ref().filter(|_| !args.force) {
                ui.line(
                    Tone::Warning,
                    &format!("{}: kept, it has an open ask ({})", session.id, ask.id),
                )?;
                continue;
            }
            match sessions.delete(session.id.as_str()).await {
                Ok(()) => report_deleted(&session.id, session.id.as_str(), args, ui)?,
                Err(error) => failures.add(session.id.as_str(), error, ui),
            }
        }
        if old.is_empty() && !args.json {
            ui.print("No saved session is that old.\n")?;
        }
        ui.flush()?;
        Ok(failures.code())
    })
}

/// Reports a deleted session by its name.
fn report_deleted(id: &SessionId, name: &str, args: &Args, ui: &mut Ui) -> io::Result<()> {
    match args.json {
        true => ui.json(&json!({ "session": id, "result": "deleted" })),
        false => ui.print(&format!("{}: deleted\n", prose_line(name))),
    }
}
