//! `holdpoint rename`

use holdpoint_session::folders::Folders;
use serde_json::json;

use crate::error::CliError;
use crate::runtime::block_on;
use crate::select::SessionArg;
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
        let id = sessions.look(&args.session.session).await?.settings.id.clone();
        sessions.rename(&id, &args.name).await?;
        Ok::<_, CliError>(id)
    };
    let id = block_on(renamed)?;
    match args.json {
        true => ui.json(&json!({ "session": id, "name": args.name }))?,
        false => ui.print("renamed\n")?,
    }
    Ok(0)
}
