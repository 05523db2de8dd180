//! `holdpoint attach`

use holdpoint_session::AttachFrom;
use holdpoint_tools::shown::prose_line;

use crate::error::CliError;
use crate::folders::Folders;
use crate::follow::{Ended, Followed, Follower, Human};
use crate::runtime::runtime;
use crate::select::SessionArg;
use crate::sessions::sessions;
use crate::signals::{self, Signalled};
use crate::terminal::Terminal;
use crate::ui::{Style, Ui};

/// Shows what a session does, from what it did last on, and takes answers
///
/// The model's words go to standard output, everything about them to standard error. Where it asks,
/// you answer by keys. Ctrl+C detaches: the session goes on.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    session: SessionArg,

    /// Shows only what came after the event of this number
    #[arg(long, value_name = "N", default_value_t = 0)]
    after: u64,

    /// Of the past, shows at most so many facts: the newest
    #[arg(long, value_name = "N")]
    limit: Option<usize>,

    /// Writes every event to standard output instead, one line of JSON each
    #[arg(long)]
    json: bool,
}

pub(crate) fn carry_out(args: &Args, folders: &Folders, ui: &mut Ui) -> Result<i32, CliError> {
    let terminal = if args.json { None } else { Terminal::find().filter(|_| ui.err_is_terminal()) };
    let leaving = signals::watch(Signalled::Detaches, terminal.clone())
        .map_err(|error| CliError::failed(format!("signals can't be watched: {error}")))?;
    runtime()?.block_on(async {
        let session = sessions(folders, "attach").await?.get(&args.session.session).await?;
        let name = prose_line(&session.snapshot().settings.name).into_owned();
        let from = AttachFrom { after: args.after, limit: args.limit };
        let human = (!args.json).then(|| Human::new(terminal.is_some()));
        let followed = Followed { session, from, daemon: Some(folders) };
        let ended = Follower::attach(followed, terminal, leaving, human, ui).await?.watch().await?;
        if !args.json {
            let what = match ended {
                Ended::Closed => "the session was closed".to_owned(),
                _ => format!("detached: the session goes on; `holdpoint attach {name}` comes back"),
            };
            ui.line(Style::Dim, &what)?;
            ui.flush()?;
        }
        Ok(0)
    })
}
