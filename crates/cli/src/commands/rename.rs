//! `holdpoint rename`

use holdpoint_session::folders::Folders;
use serde_json::json;

use crate::error::CliError;
use crate::runtime::block_on;
use crate::select::{SessionArg, tell_meant};
use crate::sessions::sessions;
use crate::ui::Ui;

/// Gives a session another name, which is its title, too
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    session: SessionArg,

    /// The new name
    #[arg(value_name = "NAME")]
    name: String,

    /// Prints what came of it as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn carry_out(args: &Args, folders: &Folders, ui: &mut Ui) -> Result<i32, CliError> {
    let renamed = async {
        let sessions = sessions(folders, "rename").await?;
        let session = sessions.look(&args.session.session).await?;
        sessions.rename(&session.settings.id, &args.name).await?;
        Ok::<_, CliError>(session)
    };
    let session = block_on(renamed)?;
    tell_meant(&args.session.session, &session, ui)?;
    match args.json {
        true => ui.json(&json!({ "session": session.settings.id, "name": args.name }))?,
        false => ui.print("renamed\n")?,
    }
    Ok(0)
}
