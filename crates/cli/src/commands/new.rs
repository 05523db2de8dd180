//! `holdpoint new`

use holdpoint_common::AsksMode;
use holdpoint_session::folders::Folders;
use holdpoint_session::model::{Catalog, DefaultModel};
use holdpoint_tools::shown::prose_line;

use crate::error::CliError;
use crate::open::OpenArgs;
use crate::runtime::block_on;
use crate::sessions::{forget, of_daemon, supplies};
use crate::ui::{Style, Ui};
use crate::words::words_for;

/// Opens a session in the background, gives it something to do, and prints its id
///
/// It runs whether anybody watches or not. `holdpoint attach` shows what it does, `holdpoint inbox` what
/// waits for an answer.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// What to do; `-` reads it from standard input. Without it, the session waits for `holdpoint prompt`
    #[arg(value_name = "PROMPT | -")]
    prompt: Option<String>,

    #[command(flatten)]
    open: OpenArgs,

    /// Prints the session as JSON instead of its id
    #[arg(long)]
    json: bool,
}

pub(crate) fn carry_out(args: &Args, folders: &Folders, ui: &mut Ui) -> Result<i32, CliError> {
    let config = folders.config()?;
    let catalog = Catalog::new(&config, |name| std::env::var(name).ok());
    let DefaultModel { name: model, why } = args.open.model(&catalog);
    let prompt = args.prompt.as_deref().map(|prompt| words_for(&model, Some(prompt), &config, "holdpoint new"));
    let prompt = prompt.transpose()?;
    let asks = args.open.asks(&config).map_or(AsksMode::Wait, |(asks, _)| asks);
    let open = args.open.session(&config, &model, asks)?;
    block_on(async {
        let sessions = of_daemon(folders, "new", supplies(&config, &catalog)).await?;
        let session = sessions.open(open).await?;
        if let Some(prompt) = prompt
            && let Err(error) = session.prompt(prompt).await
        {
            // What was opened for it is of no use.
            forget(&sessions, session.id()).await;
            return Err(CliError::of_first_prompt(error));
        }
        let snapshot = session.snapshot();
        let model = prose_line(&snapshot.settings.model).into_owned();
        ui.line(
            Style::Dim,
            &format!("{}, model: {model} ({})", prose_line(&snapshot.settings.name), prose_line(&why)),
        )?;
        if !args.json {
            ui.print(&format!("{}\n", session.id()))?;
        }
        if args.json {
            // With what the prompt has made of it.
            ui.json(&*sessions.look(session.id().as_str()).await?)?;
        }
        ui.flush()?;
        Ok(0)
    })
}
