//! `holdpoint close`

use holdpoint_session::SessionError;
use holdpoint_session::folders::Folders;
use holdpoint_session::state::Refused;
use holdpoint_tools::shown::prose_line;
use serde_json::json;

use crate::error::CliError;
use crate::runtime::block_on;
use crate::select::{Faults, SessionsArg};
use crate::sessions::control;
use crate::ui::Ui;

/// Ends sessions: what they do is interrupted, what they have started ends, their names are free
///
/// They stay saved: `holdpoint attach` or `prompt` opens them again, `holdpoint rm` deletes them. A prefix of an id is
/// not enough here.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    sessions: SessionsArg,

    /// Prints what came of it as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn carry_out(args: &Args, folders: &Folders, ui: &mut Ui) -> Result<i32, CliError> {
    block_on(async {
        let sessions = control(folders, "close").await?;
        let mut faults = Faults::new(folders);
        for session in args.sessions.look_exactly(&sessions, &mut faults, ui).await? {
            let settings = &session.settings;
            let what = match sessions.close(&settings.id).await {
                Ok(()) => "closed",
                Err(SessionError::Refused(Refused::Closed)) => "was closed already",
                Err(error) if args.sessions.means_no_more(&error) => continue,
                Err(error) => {
                    faults.add(&settings.name, error, ui);
                    continue;
                }
            };
            match args.json {
                true => ui.json(&json!({ "session": settings.id, "what": what }))?,
                false => ui.print(&format!("{}: {what}\n", prose_line(&settings.name)))?,
            }
        }
        Ok(faults.code())
    })
}
