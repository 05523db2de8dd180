//! The command `holdpoint asks`.

use holdpoint_common::AsksMode;
use holdpoint_session::folders::Folders;
use serde_json::json;

use crate::error::CliError;
use crate::open::AsksArg;
use crate::runtime::block_on;
use crate::select::{SessionArg, show_resolved};
use crate::sessions::{is_saved, sessions};
use crate::summaries::{asks_mode, not_saved_suffix};
use crate::ui::Ui;

/// Change who answers the asks of a session
///
/// The new mode also answers the asks that are open. A saved session is opened.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    session: SessionArg,

    /// The new asks mode
    #[arg(value_enum)]
    mode: AsksArg,

    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn carry_out(args: &Args, folders: &Folders, ui: &mut Ui) -> Result<i32, CliError> {
    let asks = AsksMode::from(args.mode);
    let changed = async {
        let sessions = sessions(folders, "asks").await?;
        let session = sessions.get(&args.session.session).await?;
        session.change_asks(asks).await?;
        let saved = is_saved(&sessions, session.id()).await;
        Ok::<_, CliError>((session.snapshot(), saved))
    };
    let (snapshot, saved) = block_on(changed)?;
    show_resolved(&args.session.session, &snapshot, ui)?;
    match args.json {
        true => {
            ui.json(&json!({ "session": snapshot.settings.id, "asks": asks, "saved": saved }))?
        }
        false => ui.print(&format!("{}{}\n", asks_mode(asks), not_saved_suffix(saved)))?,
    }
    Ok(0)
}
