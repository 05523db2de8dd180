//! The command `holdpoint inbox`.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::time::SystemTime;

use holdpoint_common::api::{Inbox, InboxAsk};
use holdpoint_common::{AskRequest, PauseKind, PauseRequest, Timestamp};
use holdpoint_session::folders::Folders;
use holdpoint_tools::shown::prose_line;

use crate::error::CliError;
use crate::runtime::block_on;
use crate::sessions::control_sessions;
use crate::summaries::AskSummary;
use crate::summaries::session::absence;
use crate::table::{age, room_for_last, table};
use crate::tone::Tone;
use crate::ui::Ui;

/// List the open asks of all sessions, oldest first
///
/// `holdpoint show` shows an ask in full. Answer it by its id, with `holdpoint approve` or `deny`
/// (a Confirm), `continue` (a Continue), or `answer` (a question).
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn carry_out(args: &Args, folders: &Folders, ui: &mut Ui) -> Result<i32, CliError> {
    let listed =
        async { Ok::<_, CliError>(control_sessions(folders, "inbox").await?.inbox().await?) };
    let asks = block_on(listed)?;
    if args.json {
        ui.json(&Inbox { asks })?;
    } else if asks.is_empty() {
        ui.print("No open asks.\n")?;
    } else {
        let mut rows: Vec<_> = asks.iter().map(row).collect();
        let room = room_for_last(HEADS, &rows, ui.columns());
        for (row, asked) in rows.iter_mut().zip(&asks) {
            row[HEADS.len() - 1] = AskSummary::new(&asked.ask.request).fit(room);
        }
        ui.print(&table(HEADS, &rows, ui.columns()))?;
        for (absence, names) in absences(&asks) {
            ui.line(Tone::Warning, &format!("{absence}: {}", Vec::from_iter(names).join(", ")))?;
        }
        ui.flush()?;
    }
    Ok(0)
}

/// The machines that do not respond, with the names of their sessions.
fn absences(asks: &[InboxAsk]) -> BTreeMap<String, BTreeSet<Cow<'_, str>>> {
    let (now, mut absences) = (Timestamp::from(SystemTime::now()), BTreeMap::new());
    for asked in asks {
        if let Some(absence) = absence(asked.machine.as_deref(), asked.away, now) {
            let names: &mut BTreeSet<_> = absences.entry(absence).or_default();
            names.insert(prose_line(&asked.name));
        }
    }
    absences
}

const HEADS: [&str; 6] = ["ASK", "KIND", "SESSION", "SINCE", "TOOL", "WANTS"];

/// A row with an empty last cell.
fn row(asked: &InboxAsk) -> [String; 6] {
    let kind = match &asked.ask.request {
        AskRequest::Pause(PauseRequest { kind: PauseKind::Continue, .. }) => "continue",
        AskRequest::Pause(PauseRequest { kind: PauseKind::Confirm, .. }) => "confirm",
        AskRequest::Question(_) => "question",
    };
    [
        asked.ask.id.to_string(),
        kind.to_owned(),
        prose_line(&asked.name).into_owned(),
        age(asked.ask.since),
        prose_line(asked.ask.request.tool_name()).into_owned(),
        String::new(),
    ]
}
