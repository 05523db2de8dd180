//! `holdpoint prompt`

use holdpoint_common::HoldShown;
use holdpoint_session::folders::Folders;

use crate::error::CliError;
use crate::runtime::block_on;
use crate::said::unless_saved;
use crate::select::{SessionArg, tell_meant};
use crate::sessions::sessions;
use crate::ui::{Style, Ui};
use crate::words::{check_for, words};

/// Gives a session something to do: now, or when what it does is done
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    session: SessionArg,

    /// What to do; `-` (or no prompt, in a pipe) reads it from standard input
    #[arg(value_name = "PROMPT | -")]
    prompt: Option<String>,

    /// Prints what came of it as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn carry_out(args: &Args, folders: &Folders, ui: &mut Ui) -> Result<i32, CliError> {
    let usage = format!("holdpoint prompt {}", args.session.session);
    let prompt = words(args.prompt.as_deref(), &folders.config()?, &usage)?;
    let (prompted, gaps) = block_on(async {
        let sessions = sessions(folders, "prompt").await?;
        // Before it is opened for it.
        let found = sessions.look(&args.session.session).await?;
        check_for(&found.settings.model, &prompt)?;
        tell_meant(&args.session.session, &found, ui)?;
        let session = sessions.get(&args.session.session).await?;
        let prompted = session.prompt(prompt).await.map_err(|error| {
            let stands = error.code() == "queueFull" && session.snapshot().hold.shown() == HoldShown::Standing;
            let error = CliError::from(error);
            if stands {
                error.hint(format!("it is held: `holdpoint release {}` lets it go on", session.id()))
            } else {
                error
            }
        })?;
        Ok::<_, CliError>((prompted, session.snapshot().gaps.clone()))
    })?;
    if !gaps.is_empty() {
        ui.line(Style::Warning, &format!("damaged: {gaps}; the model does not get them"))?;
        ui.flush()?;
    }
    if args.json {
        ui.json(&prompted)?;
        return Ok(0);
    }
    let place = match prompted.position {
        0 => "its turn has begun".to_owned(),
        1 => "it is next".to_owned(),
        2 => "1 prompt is before it".to_owned(),
        place => format!("{} prompts are before it", place - 1),
    };
    ui.print(&format!("prompt {}: {place}{}\n", prompted.prompt, unless_saved(prompted.saved)))?;
    Ok(0)
}
