//! The command `holdpoint interrupt`.

use holdpoint_common::Snapshot;
use holdpoint_session::Interruption;
use holdpoint_session::folders::Folders;
use holdpoint_tools::shown::prose_line;
use serde_json::json;

use crate::error::CliError;
use crate::runtime::block_on;
use crate::select::{Failures, SessionsArg};
use crate::sessions::{control_sessions, is_saved};
use crate::summaries::not_saved_suffix;
use crate::ui::Ui;

/// Interrupt sessions and print the receipts
///
/// The open turn and all its processes end, and so does a run. Queued prompts are handed back, not
/// run. If no turn is open, for example in a held session, they stay in the queue.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    sessions: SessionsArg,

    /// Do not wait until everything has ended
    #[arg(long)]
    no_wait: bool,

    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn carry_out(args: &Args, folders: &Folders, ui: &mut Ui) -> Result<i32, CliError> {
    block_on(async {
        let sessions = control_sessions(folders, "interrupt").await?;
        let mut failures = Failures::new(folders);
        // Every session is interrupted before any end is waited for.
        let mut sent = Vec::new();
        for session in args.sessions.reach(&sessions, &mut failures, ui).await? {
            let reply = session.interrupt(None).await;
            sent.push((session, reply));
        }
        for (session, reply) in sent {
            let name = session.snapshot().settings.name.clone();
            let outcome = match reply {
                Ok(Interruption::NotRunning) => Ok((nothing_ran(&session.snapshot()), None)),
                Ok(Interruption::RunEnded) => {
                    Ok(("Agent interrupted; the run is over".to_owned(), None))
                }
                Ok(Interruption::Interrupting(_)) if args.no_wait => {
                    Ok(("interrupting".to_owned(), None))
                }
                Ok(Interruption::Interrupting(turn)) => {
                    turn.end().await.map(|end| ("Agent interrupted".to_owned(), Some(end)))
                }
                Err(error) => Err(error),
            };
            let (result, end) = match outcome {
                Ok(outcome) => outcome,
                Err(error) if args.sessions.is_ignorable_with_all(&error) => continue,
                Err(error) => {
                    failures.add(&name, error, ui);
                    continue;
                }
            };
            let saved = is_saved(&sessions, session.id()).await;
            if args.json {
                ui.json(
                    &json!({ "session": session.id(), "result": result, "end": end, "saved": saved }),
                )?;
                continue;
            }
            let receipt = end
                .and_then(|end| end.receipt)
                .map(|receipt| format!(": {receipt}"))
                .unwrap_or_default();
            let (name, receipt) = (prose_line(&name), prose_line(&receipt));
            ui.print(&format!("{name}: {result}{receipt}{}\n", not_saved_suffix(saved)))?;
        }
        Ok(failures.code())
    })
}

/// Reports that no turn was open. Prompts behind a hold and background jobs are left as they are.
fn nothing_ran(session: &Snapshot) -> String {
    let queued = match session.queue.len() {
        0 => String::new(),
        1 => "; the queued prompt is kept until the session is released".to_owned(),
        count => format!("; the {count} queued prompts are kept until the session is released"),
    };
    let jobs = match session.jobs.len() {
        0 => String::new(),
        1 => "; 1 background job keeps running until it ends, the agent stops it or the session is closed".to_owned(),
        count => format!(
            "; {count} background jobs keep running until they end, the agent stops them or the session is closed"
        ),
    };
    format!("nothing was running{queued}{jobs}")
}
