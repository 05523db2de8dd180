//! `holdpoint hold` and `release`

use holdpoint_common::Hold;
use holdpoint_session::folders::Folders;
use holdpoint_tools::shown::prose_line;
use serde_json::json;

use crate::error::CliError;
use crate::runtime::block_on;
use crate::said::{paused, unless_saved};
use crate::select::{Faults, SessionsArg};
use crate::sessions::{control, is_saved};
use crate::ui::Ui;

/// Stops sessions at their next boundary: at the end of a step, never in the middle of one
///
/// An idle session stops at once: prompts wait until it is released. A run stops at the end of its iteration.
#[derive(Debug, clap::Args)]
pub(crate) struct HoldArgs {
    #[command(flatten)]
    what: What,
}

/// Lets sessions go on that are held
///
/// A run that is held by a limit is granted as much again.
#[derive(Debug, clap::Args)]
pub(crate) struct ReleaseArgs {
    #[command(flatten)]
    what: What,
}

#[derive(Debug, clap::Args)]
struct What {
    #[command(flatten)]
    sessions: SessionsArg,

    /// Prints what came of it as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn hold(args: &HoldArgs, folders: &Folders, ui: &mut Ui) -> Result<i32, CliError> {
    carry_out(&args.what, true, folders, ui)
}

pub(crate) fn release(args: &ReleaseArgs, folders: &Folders, ui: &mut Ui) -> Result<i32, CliError> {
    carry_out(&args.what, false, folders, ui)
}

fn carry_out(what: &What, holds: bool, folders: &Folders, ui: &mut Ui) -> Result<i32, CliError> {
    block_on(async {
        let sessions = control(folders, if holds { "hold" } else { "release" }).await?;
        let mut faults = Faults::new(folders);
        let found = if holds {
            what.sessions.reach(&sessions, &mut faults, ui).await?
        } else {
            // After a restart, the queue waits under a hold in a session that is only saved.
            what.sessions.open(&sessions, &mut faults, ui).await?
        };
        for session in found {
            let (name, before) = (session.snapshot().settings.name.clone(), session.snapshot().hold.clone());
            let now = match if holds { session.hold().await } else { session.release().await } {
                Ok(now) => now,
                Err(error) if what.sessions.means_no_more(&error) => continue,
                Err(error) => {
                    faults.add(&name, error, ui);
                    continue;
                }
            };
            let saved = is_saved(&sessions, session.id()).await;
            if what.json {
                ui.json(&json!({ "session": session.id(), "hold": now, "saved": saved }))?;
                continue;
            }
            let now = match now {
                Hold::Off if before == Hold::Off => "was not held".to_owned(),
                Hold::Off => "goes on".to_owned(),
                Hold::Requested { .. } => "PAUSING... (at its next boundary)".to_owned(),
                Hold::Standing { cause, .. } => paused(&cause),
            };
            ui.print(&format!("{}: {now}{}\n", prose_line(&name), unless_saved(saved)))?;
        }
        Ok(faults.code())
    })
}
