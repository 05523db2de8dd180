//! `holdpoint close`

use holdpoint_tools::shown::prose_line;

use crate::error::CliError;
use crate::folders::Folders;
use crate::runtime::runtime;
use crate::select::SessionsArg;
use crate::sessions::sessions;
use crate::ui::Ui;

/// Ends sessions: what they do is interrupted, what they have started ends, their names are free
///
/// They stay saved: `holdpoint attach` or `prompt` opens them again, `holdpoint rm` deletes them.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    sessions: SessionsArg,
}

pub(crate) fn carry_out(args: &Args, folders: &Folders, ui: &mut Ui) -> Result<i32, CliError> {
    runtime()?.block_on(async {
        let sessions = sessions(folders, "close").await?;
        for session in args.sessions.get(&sessions).await? {
            session.close().await?;
            ui.print(&format!("{}: closed\n", prose_line(&session.snapshot().settings.name)))?;
        }
        Ok(0)
    })
}
