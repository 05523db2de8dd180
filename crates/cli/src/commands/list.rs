//! `holdpoint list`

use std::time::SystemTime;

use holdpoint_common::api::SessionList;
use holdpoint_common::{Hold, HoldCause, RunProgress, SessionStatus, SessionSummary, TaskCounts, Timestamp};
use holdpoint_session::folders::Folders;
use holdpoint_tools::shown::prose_line;

use crate::daemon::Daemon;
use crate::error::{CliError, DAMAGED};
use crate::runtime::runtime;
use crate::select::Filter;
use crate::sessions::control;
use crate::table::{age, span, table};
use crate::ui::{Style, Ui};

/// Lists sessions: live ones first, the newest first
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    filter: Filter,

    /// Only those that are live: saved ones are left out
    #[arg(long)]
    live: bool,

    /// Prints them as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn carry_out(args: &Args, folders: &Folders, ui: &mut Ui) -> Result<i32, CliError> {
    let wanted = args.filter.test()?;
    let mut listed = runtime()?.block_on(async { Ok::<_, CliError>(control(folders, "list").await?.list().await?) })?;
    let all = listed.len();
    listed.retain(|session| wanted(session) && (session.live || !args.live));
    if args.json {
        ui.json(&SessionList { sessions: listed })?;
    } else {
        match all {
            all if all > 0 && listed.is_empty() => ui.print(&format!("None of {all} sessions.\n"))?,
            _ => print(&listed, folders, ui)?,
        }
    }
    Ok(0)
}

/// What the program shows without a command where there is no terminal for its screen.
pub(crate) fn plain(folders: &Folders, ui: &mut Ui) -> Result<i32, CliError> {
    let listed = runtime()?.block_on(async { Ok::<_, CliError>(control(folders, "list").await?.list().await?) })?;
    print(&listed, folders, ui)?;
    ui.line(Style::Dim, "hint: on a terminal this is a screen with all of them; `holdpoint --help` has every command")?;
    ui.flush()?;
    Ok(0)
}

fn print(listed: &[SessionSummary], folders: &Folders, ui: &mut Ui) -> Result<(), CliError> {
    if listed.is_empty() {
        ui.print("No sessions. `holdpoint new` opens one.\n")?;
        if runtime()?.block_on(Daemon::found_damage(folders)) {
            ui.line(Style::Plain, &format!("hint: {DAMAGED}"))?;
            ui.flush()?;
        }
        return Ok(());
    }
    let rows: Vec<_> = listed.iter().map(row).collect();
    Ok(ui.print(&table(["ID", "NAME", "STATUS", "SINCE", "MODEL", "FOLDER", "TITLE"], &rows))?)
}

fn row(session: &SessionSummary) -> [String; 7] {
    [
        session.id.to_string(),
        prose_line(&session.name).into_owned(),
        status(session),
        age(session.since),
        prose_line(&session.model).into_owned(),
        prose_line(&session.workspace).into_owned(),
        prose_line(&session.title).into_owned(),
    ]
}

/// How far a run is: `#3 ✓2 ●1 ○3, 1200 tokens, 12m`.
fn progress(run: &RunProgress, tasks: TaskCounts) -> String {
    let tasks = if tasks.is_empty() { String::new() } else { format!(" {tasks}") };
    let worked = run.worked(Timestamp::from(SystemTime::now()));
    format!("#{}{tasks}, {} tokens, {}", run.iteration, run.tokens, span(worked))
}

/// What it does, how far its run is, and whether it is only saved.
pub(crate) fn status(session: &SessionSummary) -> String {
    let status = doing(session);
    let status = match &session.run {
        Some(run) => format!("{status}, {}", progress(run, session.tasks)),
        None => status,
    };
    if session.live { status } else { format!("saved, {status}") }
}

/// What it does, and why it does not go on.
pub(crate) fn doing(session: &SessionSummary) -> String {
    match (&session.waits_for, &session.hold, session.status) {
        (Some(ask), Hold::Requested { .. }, _) => format!("asks ({}), pausing", prose_line(ask.request.tool_name())),
        (Some(ask), ..) => format!("asks ({})", prose_line(ask.request.tool_name())),
        (None, Hold::Standing { cause: HoldCause::User { .. }, .. }, _) => "held".to_owned(),
        (None, Hold::Standing { cause, .. }, _) => format!("held ({cause})"),
        (None, Hold::Requested { .. }, _) => "pausing".to_owned(),
        (None, Hold::Off, SessionStatus::Idle) => match ended(session) {
            Some(ended) => format!("idle ({ended})"),
            None => "idle".to_owned(),
        },
        (None, Hold::Off, status) => status.to_string(),
    }
}

/// How what it did last has ended: its run, if no turn came after that.
fn ended(session: &SessionSummary) -> Option<String> {
    let turn = session.last_turn.as_ref().map(|last| last.turn);
    let run = session.last_run.filter(|run| run.turn == turn).map(|run| run.end.to_string());
    run.or_else(|| session.last_turn.as_ref().map(|last| last.outcome.to_string()))
}
