//! The commands `holdpoint hold` and `release`.

use holdpoint_common::Hold;
use holdpoint_session::folders::Folders;
use holdpoint_tools::shown::prose_line;
use serde_json::json;

use crate::error::CliError;
use crate::runtime::block_on;
use crate::select::{Failures, SessionsArg};
use crate::sessions::{control_sessions, is_saved};
use crate::summaries::{not_saved_suffix, paused};
use crate::ui::Ui;

/// Hold sessions at their next boundary
///
/// In a chat turn the boundary is the end of a step, in a run the end of the iteration. An idle
/// session is held at once: its prompts wait until it is released.
#[derive(Debug, clap::Args)]
pub(crate) struct HoldArgs {
    #[command(flatten)]
    targets: Targets,
}

/// Release held sessions
///
/// A run that is held by a limit is granted the same amount again.
#[derive(Debug, clap::Args)]
pub(crate) struct ReleaseArgs {
    #[command(flatten)]
    targets: Targets,
}

#[derive(Debug, clap::Args)]
struct Targets {
    #[command(flatten)]
    sessions: SessionsArg,

    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn hold(args: &HoldArgs, folders: &Folders, ui: &mut Ui) -> Result<i32, CliError> {
    carry_out(&args.targets, true, folders, ui)
}

pub(crate) fn release(args: &ReleaseArgs, folders: &Folders, ui: &mut Ui) -> Result<i32, CliError> {
    carry_out(&args.targets, false, folders, ui)
}

fn carry_out(
    targets: &Targets,
    holds: bool,
    folders: &Folders,
    ui: &mut Ui,
) -> Result<i32, CliError> {
    block_on(async {
        let sessions = control_sessions(folders, if holds { "hold" } else { "release" }).await?;
        let mut failures = Failures::new(folders);
        let found = if holds {
            targets.sessions.reach(&sessions, &mut failures, ui).await?
        } else {
            // After a restart, the queue of a saved session waits under a hold.
            targets.sessions.open(&sessions, &mut failures, ui).await?
        };
        for session in found {
            let name = session.snapshot().settings.name.clone();
            let before = session.snapshot().hold.clone();
            let result = if holds { session.hold().await } else { session.release().await };
            let after = match result {
                Ok(after) => after,
                Err(error) if targets.sessions.is_ignorable_with_all(&error) => continue,
                Err(error) => {
                    failures.add(&name, error, ui);
                    continue;
                }
            };
            let saved = is_saved(&sessions, session.id()).await;
            if targets.json {
                ui.json(&json!({ "session": session.id(), "hold": after, "saved": saved }))?;
                continue;
            }
            let text = match after {
                Hold::Off if before == Hold::Off => "is not held".to_owned(),
                Hold::Off => "released".to_owned(),
                Hold::Requested { .. } => "PAUSING... (at its next boundary)".to_owned(),
                Hold::Standing { cause, .. } => paused(&cause),
            };
            ui.print(&format!("{}: {text}{}\n", prose_line(&name), not_saved_suffix(saved)))?;
        }
        Ok(failures.code())
    })
}
