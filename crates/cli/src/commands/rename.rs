//! `holdpoint rename`

use crate::error::CliError;
use crate::folders::Folders;
use crate::runtime::runtime;
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
}

pub(crate) fn carry_out(args: &Args, folders: &Folders, ui: &mut Ui) -> Result<i32, CliError> {
    let renamed = async {
        let session = sessions(folders, "rename").await?.get(&args.session.session).await?;
        session.rename(&args.name).await?;
        Ok::<_, CliError>(())
    };
    runtime()?.block_on(renamed)?;
    ui.print("renamed\n")?;
    Ok(0)
}
