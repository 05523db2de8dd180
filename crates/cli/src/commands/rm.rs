//! `holdpoint rm`

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
use crate::select::{Faults, complete_session, look_exactly};
use crate::sessions::sessions;
use crate::ui::{Style, Ui};

/// Deletes saved sessions, with all that was said in them
///
/// A live one has to be closed first. One that waits for an answer is kept. A prefix of an id is not enough, nor is a
/// name that several sessions have.
#[derive(Debug, clap::Args)]
#[command(group = ArgGroup::new("which").required(true).args(["sessions", "older_than"]))]
pub(crate) struct Args {
    /// The sessions: their ids or names
    #[arg(value_name = "SESSION", add = ArgValueCompleter::new(complete_session), conflicts_with = "older_than")]
    sessions: Vec<String>,

    /// All saved sessions in which nothing has happened for so long: 30d, 12h, ...
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    older_than: Option<Duration>,

    /// Also those that wait for an answer
    #[arg(long)]
    force: bool,

    /// Prints what came of it as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn carry_out(args: &Args, folders: &Folders, ui: &mut Ui) -> Result<i32, CliError> {
    block_on(async {
        let sessions = sessions(folders, "rm").await?;
        let mut faults = Faults::new(folders);
        let look = async |what: &str| match look_exactly(&sessions, what).await {
            Ok(session) => {
                let ask = session.asks.first().map(|ask| ask.id.clone());
                let SessionSettings { id, name, .. } = &*session.settings;
                Ok((what.to_owned(), id.clone(), name.clone(), ask))
            }
            // What is left of it asks nothing.
            Err(SessionError::Elsewhere(body)) if body.code == "damaged" && !body.ids.is_empty() => {
                Ok((what.to_owned(), body.ids[0].clone(), what.to_owned(), None))
            }
            Err(error) => Err(error),
        };
        for (what, id, name, ask) in faults.find(&args.sessions, ui, look).await {
            if let Some(ask) = ask.filter(|_| !args.force) {
                let waits = CliError::failed(format!("it waits for an answer (ask {ask})"));
                faults.add(&what, waits.hint("answer it, or delete it all the same with --force"), ui);
                continue;
            }
            // By what it was called: a name that several have names none.
            match sessions.delete(&what).await {
                Ok(()) => deleted(&id, &name, args, ui)?,
                Err(error) => faults.add(&what, error, ui),
            }
        }
        let Some(older) = args.older_than else { return Ok(faults.code()) };
        let now = Timestamp::from(SystemTime::now());
        let mut old = sessions.list().await?;
        old.retain(|session| !session.live && now.since(session.since) >= older);
        for session in &old {
            if let Some(ask) = session.waits_for.as_ref().filter(|_| !args.force) {
                ui.line(Style::Warning, &format!("{}: kept, it waits for an answer (ask {})", session.id, ask.id))?;
                continue;
            }
            match sessions.delete(session.id.as_str()).await {
                Ok(()) => deleted(&session.id, session.id.as_str(), args, ui)?,
                Err(error) => faults.add(session.id.as_str(), error, ui),
            }
        }
        if old.is_empty() && !args.json {
            ui.print("Nothing is that old.\n")?;
        }
        ui.flush()?;
        Ok(faults.code())
    })
}

/// Reports a deleted session, by its name.
fn deleted(id: &SessionId, name: &str, args: &Args, ui: &mut Ui) -> io::Result<()> {
    match args.json {
        true => ui.json(&json!({ "session": id, "what": "deleted" })),
        false => ui.print(&format!("{}: deleted\n", prose_line(name))),
    }
}
