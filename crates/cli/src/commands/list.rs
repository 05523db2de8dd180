//! The command `holdpoint list`.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::time::SystemTime;

use holdpoint_common::api::{ListQuery, SessionList};
use holdpoint_common::{SessionSummary, Timestamp};
use holdpoint_session::folders::Folders;
use holdpoint_tools::shown::prose_line;

use super::fleet::membership;
use crate::daemon::Daemon;
use crate::error::{CliError, DAMAGED};
use crate::runtime::{block_on, runtime};
use crate::select::Filter;
use crate::sessions::control_sessions;
use crate::summaries::session::{absence, damage, folder, status};
use crate::table::{age, table};
use crate::tone::Tone;
use crate::ui::Ui;

/// How many sessions a table has without `--limit`.
const TABLE_LIMIT: NonZeroUsize = NonZeroUsize::new(100).unwrap();

/// List sessions: live ones first, newest first
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    filter: Filter,

    /// List only live sessions
    #[arg(long)]
    live: bool,

    /// List only sessions of this machine of the fleet
    #[arg(long, value_name = "NAME")]
    machine: Option<String>,

    /// List at most this many sessions [default: 100; with --json: all]
    #[arg(long, value_name = "N")]
    limit: Option<NonZeroUsize>,

    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn carry_out(args: &Args, folders: &Folders, ui: &mut Ui) -> Result<i32, CliError> {
    let matches_filter = args.filter.test()?;
    let machine = match &args.machine {
        Some(wanted) => Some((wanted, membership(folders)?.name)),
        None => None,
    };
    let is_wanted = |session: &SessionSummary| {
        let is_there = |(wanted, this): &(&String, String)| {
            session.machine.as_ref().unwrap_or(this) == *wanted
        };
        matches_filter(session)
            && (session.live || !args.live)
            && machine.as_ref().is_none_or(is_there)
    };
    let is_filtered = args.filter.is_given() || args.live || machine.is_some();
    let limit = args.limit.or((!args.json).then_some(TABLE_LIMIT));
    // Between two pages a session can be missed, so a filter is applied to the whole list.
    let mut listed = list(folders, limit.filter(|_| !is_filtered))?;
    let total = listed.sessions.len();
    listed.sessions.retain(is_wanted);
    let matching = listed.sessions.len();
    listed.sessions.truncate(limit.map_or(usize::MAX, NonZeroUsize::get));
    let is_cut = listed.next.is_some() || listed.sessions.len() < matching;
    if args.json {
        ui.json(&listed)?;
    } else if matching == 0 && total > 0 {
        ui.print(&format!("No session matches. `holdpoint list` shows all ({total}).\n"))?;
    } else {
        print(&listed.sessions, folders, ui)?;
    }
    if is_cut {
        show_cut(listed.sessions.len(), ui)?;
    }
    Ok(0)
}

/// Lists the sessions when the program is run without a command, and without a terminal for its
/// screen.
pub(crate) fn plain(folders: &Folders, ui: &mut Ui) -> Result<i32, CliError> {
    let SessionList { sessions, next } = list(folders, Some(TABLE_LIMIT))?;
    print(&sessions, folders, ui)?;
    if next.is_some() {
        show_cut(sessions.len(), ui)?;
    }
    let hint = "hint: on a terminal, this shows the screen; `holdpoint --help` lists every command";
    ui.line(Tone::Dim, hint)?;
    ui.flush()?;
    Ok(0)
}

fn list(folders: &Folders, limit: Option<NonZeroUsize>) -> Result<SessionList, CliError> {
    block_on(async {
        let sessions = control_sessions(folders, "list").await?;
        Ok(sessions.list_page(ListQuery { limit, after: None }).await?)
    })
}

/// Shows that there are more sessions than these.
fn show_cut(count: usize, ui: &mut Ui) -> Result<(), CliError> {
    ui.line(Tone::Dim, &format!("hint: the list is cut after {count}; use --limit N"))?;
    Ok(ui.flush()?)
}

fn print(sessions: &[SessionSummary], folders: &Folders, ui: &mut Ui) -> Result<(), CliError> {
    if sessions.is_empty() {
        ui.print("No sessions. `holdpoint new` opens one.\n")?;
        if runtime()?.block_on(Daemon::has_found_damage(folders)) {
            ui.line(Tone::Plain, &format!("hint: {DAMAGED}"))?;
            ui.flush()?;
        }
        return Ok(());
    }
    let rows: Vec<_> = sessions.iter().map(row).collect();
    ui.print(&table(
        ["ID", "NAME", "STATUS", "SINCE", "MODEL", "FOLDER", "TITLE"],
        &rows,
        ui.columns(),
    ))?;
    let now = Timestamp::from(SystemTime::now());
    let absence = |session: &SessionSummary| absence(session.machine.as_deref(), session.away, now);
    for absence in sessions.iter().filter_map(absence).collect::<BTreeSet<_>>() {
        ui.line(Tone::Warning, &absence)?;
    }
    for session in sessions.iter().filter(|session| !session.gaps.is_empty()) {
        ui.line(Tone::Warning, &format!("damaged: {}", damage(session)))?;
    }
    Ok(ui.flush()?)
}

fn row(session: &SessionSummary) -> [String; 7] {
    [
        session.id.to_string(),
        prose_line(&session.name).into_owned(),
        status(session),
        age(session.since),
        prose_line(&session.model).into_owned(),
        folder(session),
        prose_line(&session.title).into_owned(),
    ]
}
