//! The command `holdpoint list`.

use std::collections::BTreeSet;
use std::time::SystemTime;

use holdpoint_common::api::SessionList;
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

    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn carry_out(args: &Args, folders: &Folders, ui: &mut Ui) -> Result<i32, CliError> {
    let wanted = args.filter.test()?;
    let mut listed = block_on(async {
        Ok::<_, CliError>(control_sessions(folders, "list").await?.list().await?)
    })?;
    let total = listed.len();
    listed.retain(|session| wanted(session) && (session.live || !args.live));
    if let Some(wanted) = &args.machine {
        let this = membership(folders)?.name;
        listed.retain(|session| session.machine.as_ref().unwrap_or(&this) == wanted);
    }
    if args.json {
        ui.json(&SessionList { sessions: listed })?;
    } else if total > 0 && listed.is_empty() {
        ui.print(&format!("No session matches. `holdpoint list` shows all ({total}).\n"))?;
    } else {
        print(&listed, folders, ui)?;
    }
    Ok(0)
}

/// Lists the sessions when the program is run without a command, and without a terminal for its
/// screen.
pub(crate) fn plain(folders: &Folders, ui: &mut Ui) -> Result<i32, CliError> {
    let listed = block_on(async {
        Ok::<_, CliError>(control_sessions(folders, "list").await?.list().await?)
    })?;
    print(&listed, folders, ui)?;
    let hint = "hint: on a terminal, this shows the screen; `holdpoint --help` lists every command";
    ui.line(Tone::Dim, hint)?;
    ui.flush()?;
    Ok(0)
}

fn print(listed: &[SessionSummary], folders: &Folders, ui: &mut Ui) -> Result<(), CliError> {
    if listed.is_empty() {
        ui.print("No sessions. `holdpoint new` opens one.\n")?;
        if runtime()?.block_on(Daemon::has_found_damage(folders)) {
            ui.line(Tone::Plain, &format!("hint: {DAMAGED}"))?;
            ui.flush()?;
        }
        return Ok(());
    }
    let rows: Vec<_> = listed.iter().map(row).collect();
    ui.print(&table(
        ["ID", "NAME", "STATUS", "SINCE", "MODEL", "FOLDER", "TITLE"],
        &rows,
        ui.columns(),
    ))?;
    let now = Timestamp::from(SystemTime::now());
    let absence = |session: &SessionSummary| absence(session.machine.as_deref(), session.away, now);
    for absence in listed.iter().filter_map(absence).collect::<BTreeSet<_>>() {
        ui.line(Tone::Warning, &absence)?;
    }
    for session in listed.iter().filter(|session| !session.gaps.is_empty()) {
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
