//! `holdpoint interrupt`

use holdpoint_session::Interruption;
use holdpoint_tools::shown::prose_line;
use serde_json::json;

use crate::error::CliError;
use crate::folders::Folders;
use crate::runtime::runtime;
use crate::select::SessionsArg;
use crate::sessions::sessions;
use crate::ui::Ui;

/// Ends what sessions do now, and all that it has started; says what that was
///
/// Prompts that wait are handed back, not run. A run ends with it.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    sessions: SessionsArg,

    /// Does not wait until everything has ended
    #[arg(long)]
    no_wait: bool,

    /// Prints what came of it as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn carry_out(args: &Args, folders: &Folders, ui: &mut Ui) -> Result<i32, CliError> {
    runtime()?.block_on(async {
        let sessions = sessions(folders, "interrupt").await?;
        for session in args.sessions.get(&sessions).await? {
            let name = prose_line(&session.snapshot().settings.name).into_owned();
            let found = session.interrupt(None).await?;
            let (what, end) = match found {
                Interruption::NotRunning => (nothing_ran(session.snapshot().queue.len()), None),
                Interruption::RunEnded => ("the run is over".to_owned(), None),
                Interruption::Interrupting(_) if args.no_wait => ("interrupting".to_owned(), None),
                Interruption::Interrupting(turn) => ("Agent interrupted".to_owned(), Some(turn.end().await?)),
            };
            if args.json {
                ui.json(&json!({ "session": session.id(), "what": what, "end": end }))?;
                continue;
            }
            let receipt = end.and_then(|end| end.receipt).map(|receipt| format!(": {receipt}")).unwrap_or_default();
            ui.print(&format!("{name}: {what}{}\n", prose_line(&receipt)))?;
        }
        Ok(0)
    })
}

/// That there was nothing to interrupt. What waits behind a hold is left as it is.
fn nothing_ran(waiting: usize) -> String {
    match waiting {
        0 => "nothing was running".to_owned(),
        1 => "nothing was running; the prompt that waits is kept until it is released".to_owned(),
        many => format!("nothing was running; the {many} prompts that wait are kept until it is released"),
    }
}
