//! The command `holdpoint rename`.

use holdpoint_session::folders::Folders;
use serde_json::json;

use crate::error::CliError;
use crate::runtime::block_on;
use crate::select::{SessionArg, show_resolved};
use crate::sessions::{is_saved, sessions};
use crate::summaries::not_saved_suffix;
use crate::ui::Ui;

/// Rename a session
///
/// The name also replaces its title.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    session: SessionArg,

    /// The new name
    #[arg(value_name = "NAME")]
    name: String,

    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn carry_out(args: &Args, folders: &Folders, ui: &mut Ui) -> Result<i32, CliError> {
    let renamed = async {
        let sessions = sessions(folders, "rename").await?;
        let session = sessions.look(&args.session.session).await?;
        sessions.rename(&session.settings.id, &args.name).await?;
        let saved = is_saved(&sessions, &session.settings.id).await;
        Ok::<_, CliError>((session, saved))
    };
    let (session, saved) = block_on(renamed)?;
    show_resolved(&args.session.session, &session, ui)?;
    match args.json {
        true => {
            ui.json(&json!({ "session": session.settings.id, "name": args.name, "saved": saved }))?
        }
        false => ui.print(&format!("renamed{}\n", not_saved_suffix(saved)))?,
    }
    Ok(0)
}
