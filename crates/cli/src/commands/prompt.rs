//! The command `holdpoint prompt`.

use holdpoint_common::{HoldState, Refused, SessionError};
use holdpoint_session::folders::Folders;

use crate::error::CliError;
use crate::prompt_input::{check_prompt, read_prompt};
use crate::runtime::block_on;
use crate::select::{SessionArg, show_resolved};
use crate::sessions::sessions;
use crate::summaries::not_saved_suffix;
use crate::tone::Tone;
use crate::ui::Ui;

/// Send a prompt to a session; it runs now or waits in the queue
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    session: SessionArg,

    /// The prompt; `-` (or no prompt, in a pipe) reads it from standard input
    #[arg(value_name = "PROMPT | -")]
    prompt: Option<String>,

    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn carry_out(args: &Args, folders: &Folders, ui: &mut Ui) -> Result<i32, CliError> {
    let usage = format!("holdpoint prompt {}", args.session.session);
    let prompt = read_prompt(args.prompt.as_deref(), &folders.config()?, &usage)?;
    let (prompted, gaps) = block_on(async {
        let sessions = sessions(folders, "prompt").await?;
        // Checked before the session is opened for the prompt.
        let found = sessions.look(&args.session.session).await?;
        check_prompt(&found.settings.model, &prompt.text)?;
        show_resolved(&args.session.session, &found, ui)?;
        let session = sessions.get(&args.session.session).await?;
        let prompted = session.prompt(prompt).await.map_err(|error| {
            let is_held = matches!(error, SessionError::Refused(Refused::QueueFull { .. }))
                && session.snapshot().hold.shown() == HoldState::Standing;
            let error = CliError::from(error);
            if is_held {
                error.hint(format!(
                    "the session is held: `holdpoint release {}` releases it",
                    session.id()
                ))
            } else {
                error
            }
        })?;
        Ok::<_, CliError>((prompted, session.snapshot().gaps.clone()))
    })?;
    if !gaps.is_empty() {
        ui.line(Tone::Warning, &format!("damaged: {gaps}; the model does not receive them"))?;
        ui.flush()?;
    }
    if args.json {
        ui.json(&prompted)?;
        return Ok(0);
    }
    let queue_text = match prompted.position {
        0 => "its turn has begun".to_owned(),
        1 => "it is next".to_owned(),
        2 => "1 prompt is ahead of it".to_owned(),
        position => format!("{} prompts are ahead of it", position - 1),
    };
    ui.print(&format!(
        "prompt {}: {queue_text}{}\n",
        prompted.prompt,
        not_saved_suffix(prompted.saved)
    ))?;
    Ok(0)
}
