//! `holdpoint inbox`

use holdpoint_common::api::{Inbox, InboxAsk};
use holdpoint_common::{AskRequest, PauseKind};
use holdpoint_session::folders::Folders;
use holdpoint_tools::shown::prose_line;

use crate::error::CliError;
use crate::runtime::runtime;
use crate::sessions::control;
use crate::table::{age, table};
use crate::ui::Ui;

/// Lists what waits for an answer, over all sessions: the oldest first
///
/// `holdpoint show` has an ask whole. It is answered by its id: with `holdpoint approve` or `deny` (a
/// Confirm), `continue` (a Continue), or `answer` (a question).
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Prints them as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn carry_out(args: &Args, folders: &Folders, ui: &mut Ui) -> Result<i32, CliError> {
    let asked = async { Ok::<_, CliError>(control(folders, "inbox").await?.inbox().await?) };
    let asks = runtime()?.block_on(asked)?;
    if args.json {
        ui.json(&Inbox { asks })?;
    } else if asks.is_empty() {
        ui.print("Nothing waits for an answer.\n")?;
    } else {
        let rows: Vec<_> = asks.iter().map(row).collect();
        ui.print(&table(["ASK", "KIND", "SESSION", "SINCE", "TOOL", "WANTS"], &rows, ui.columns()))?;
    }
    Ok(0)
}

fn row(asked: &InboxAsk) -> [String; 6] {
    let (kind, wants) = match &asked.ask.request {
        AskRequest::Pause(pause) => {
            let kind = match pause.kind {
                PauseKind::Continue => "continue",
                PauseKind::Confirm => "confirm",
            };
            let details = pause.details.as_deref().and_then(|details| details.lines().next()).unwrap_or_default();
            (kind, format!("{} {details}", pause.message))
        }
        AskRequest::Question(request) => {
            ("question", request.questions.first().map(|question| question.question.clone()).unwrap_or_default())
        }
    };
    let wants = wants.lines().next().unwrap_or_default().trim_end().to_owned();
    [
        asked.ask.id.to_string(),
        kind.to_owned(),
        prose_line(&asked.name).into_owned(),
        age(asked.ask.since),
        prose_line(asked.ask.request.tool_name()).into_owned(),
        prose_line(&wants).into_owned(),
    ]
}
