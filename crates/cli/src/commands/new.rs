//! The command `holdpoint new`.

use holdpoint_common::AsksMode;
use holdpoint_session::folders::Folders;
use holdpoint_session::model::{Catalog, DefaultModel};
use holdpoint_tools::shown::prose_line;

use crate::error::CliError;
use crate::open::OpenArgs;
use crate::prompt_input::read_prompt_for;
use crate::runtime::block_on;
use crate::sessions::{daemon_sessions, discard_unused, is_saved, supplies};
use crate::summaries::{self, not_saved_suffix};
use crate::tone::Tone;
use crate::ui::Ui;

/// Open a session in the background, prompt it, and print its id
///
/// The session runs with or without clients. `holdpoint attach` shows its activity, `holdpoint
/// inbox` its open asks.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The prompt; `-` reads it from standard input. Without one, the session waits for `holdpoint
    /// prompt`
    #[arg(value_name = "PROMPT | -")]
    prompt: Option<String>,

    #[command(flatten)]
    open: OpenArgs,

    /// Print the session as JSON instead of its id
    #[arg(long)]
    json: bool,
}

pub(crate) fn carry_out(args: &Args, folders: &Folders, ui: &mut Ui) -> Result<i32, CliError> {
    let config = args.open.add_mcp_file(folders.config()?)?;
    let catalog = Catalog::new(&config, |name| std::env::var(name).ok());
    let DefaultModel { name: model, why } = args.open.model(&catalog);
    let prompt = args
        .prompt
        .as_deref()
        .map(|prompt| read_prompt_for(&model, Some(prompt), &config, "holdpoint new"));
    let prompt = prompt.transpose()?;
    let asks = args.open.asks(&config).map_or(AsksMode::Wait, |(asks, _)| asks);
    let open = args.open.session(&config, &model, asks)?;
    block_on(async {
        let sessions = daemon_sessions(folders, "new", supplies(&config, &catalog)).await?;
        let session = sessions.open(open).await?;
        if let Some(prompt) = prompt
            && let Err(error) = session.prompt(prompt).await
        {
            // The session was opened for this prompt only.
            discard_unused(&sessions, session.id()).await;
            return Err(CliError::from_first_prompt(error));
        }
        let saved = is_saved(&sessions, session.id()).await;
        let snapshot = session.snapshot();
        let model = prose_line(&snapshot.settings.model).into_owned();
        ui.line(
            Tone::Dim,
            &format!(
                "{}, model: {model} ({}){}",
                prose_line(&snapshot.settings.name),
                prose_line(&why),
                not_saved_suffix(saved)
            ),
        )?;
        ui.line(
            Tone::Dim,
            &format!("sandbox: {}", summaries::sandbox(&snapshot.settings.sandbox)),
        )?;
        if args.json {
            // A fresh snapshot, which includes the effects of the prompt.
            ui.json(&*sessions.look(session.id().as_str()).await?)?;
        } else {
            ui.print(&format!("{}\n", session.id()))?;
        }
        ui.flush()?;
        Ok(0)
    })
}
