//! The command `holdpoint close`.

use holdpoint_common::Refused;
use holdpoint_session::SessionError;
use holdpoint_session::folders::Folders;
use holdpoint_tools::shown::prose_line;
use serde_json::json;

use crate::error::CliError;
use crate::runtime::block_on;
use crate::select::{Failures, SessionsArg};
use crate::sessions::control_sessions;
use crate::ui::Ui;

/// Close sessions: interrupt their work, end their processes and free their names
///
/// They stay saved: `holdpoint attach` or `prompt` opens them again, `holdpoint rm` deletes them.
/// Only a whole id or a name is accepted.
#[derive(Debug, clap::Args)]
#[command(mut_arg("sessions", |sessions| sessions.help("The ids or names of the sessions")))]
pub(crate) struct Args {
    #[command(flatten)]
    sessions: SessionsArg,

    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn carry_out(args: &Args, folders: &Folders, ui: &mut Ui) -> Result<i32, CliError> {
    block_on(async {
        let sessions = control_sessions(folders, "close").await?;
        let mut failures = Failures::new(folders);
        for snapshot in args.sessions.look_exactly(&sessions, &mut failures, ui).await? {
            let settings = &snapshot.settings;
            let result = match sessions.close(&settings.id).await {
                Ok(()) => "closed",
                Err(SessionError::Refused(Refused::Closed)) => "already closed",
                Err(error) if args.sessions.is_ignorable_with_all(&error) => continue,
                Err(error) => {
                    failures.add(&settings.name, error, ui);
                    continue;
                }
            };
            match args.json {
                true => ui.json(&json!({ "session": settings.id, "result": result }))?,
                false => ui.print(&format!("{}: {result}\n", prose_line(&settings.name)))?,
            }
        }
        Ok(failures.code())
    })
}
