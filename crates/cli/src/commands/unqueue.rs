//! The command `holdpoint unqueue`.

use holdpoint_common::PromptId;
use holdpoint_session::folders::Folders;
use holdpoint_tools::shown::prose_line;

use crate::error::CliError;
use crate::runtime::block_on;
use crate::select::{SessionArg, show_resolved};
use crate::sessions::sessions;
use crate::summaries::not_saved_suffix;
use crate::ui::Ui;

/// Take a queued prompt back, so that it never runs
///
/// `holdpoint show` lists the queued prompts with their numbers. A prompt whose turn has started is
/// no longer queued: `holdpoint interrupt` ends its turn.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    session: SessionArg,

    /// The number of the prompt
    #[arg(value_name = "PROMPT")]
    prompt: u64,

    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn carry_out(args: &Args, folders: &Folders, ui: &mut Ui) -> Result<i32, CliError> {
    let (unqueued, snapshot) = block_on(async {
        let session = sessions(folders, "unqueue").await?.get(&args.session.session).await?;
        let unqueued = session.unqueue(PromptId(args.prompt)).await?;
        Ok::<_, CliError>((unqueued, session.snapshot()))
    })?;
    show_resolved(&args.session.session, &snapshot, ui)?;
    match args.json {
        true => ui.json(&unqueued)?,
        false => ui.print(&format!(
            "handed back, prompt {}: {}{}\n",
            unqueued.prompt,
            prose_line(&unqueued.text),
            not_saved_suffix(unqueued.saved)
        ))?,
    }
    Ok(0)
}
