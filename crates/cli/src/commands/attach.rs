//! `holdpoint attach`

use holdpoint_session::AttachFrom;
use holdpoint_session::folders::Folders;

use crate::error::CliError;
use crate::follow::{Ended, Followed, Follower, View};
use crate::runtime::block_on;
use crate::select::StreamArgs;
use crate::sessions::sessions;
use crate::signals::{self, Signalled};
use crate::terminal::Terminal;
use crate::tui;
use crate::ui::{Style, Ui};

/// What leaving by Ctrl+C would be: 128 + SIGINT.
const DETACHED: i32 = 130;

/// Shows what a session does, from what it did last on, and takes answers
///
/// On a terminal: the screen, with the session open. Ctrl+X D leaves it, and the session goes on; Ctrl+C interrupts
/// what it does. With --plain, --json, --after or --limit, or without a terminal, the model's words go to standard
/// output, everything about them to standard error. Where it asks, you answer by keys; Esc interrupts it.
/// Ctrl+C leaves there: the session goes on.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    stream: StreamArgs,

    /// Writes line after line instead of showing a screen
    #[arg(long)]
    plain: bool,
}

pub(crate) fn carry_out(args: &Args, folders: &Folders, ui: &mut Ui) -> Result<i32, CliError> {
    let all = args.stream.from() == AttachFrom::start();
    if all && !args.plain && !args.stream.json && tui::can_be_shown() {
        return tui::show(Some(args.stream.session()), folders, ui);
    }
    let terminal = if args.stream.json { None } else { Terminal::find().filter(|_| ui.err_is_terminal()) };
    let leaving = signals::watch(Signalled::Detaches, terminal.clone())
        .map_err(|error| CliError::failed(format!("signals can't be watched: {error}")))?;
    block_on(async {
        let session = sessions(folders, "attach").await?.get(args.stream.session()).await?;
        let id = session.id().clone();
        let left = leaving.clone();
        let view = View::transcript(args.stream.json, terminal.is_some());
        let followed = Followed { session, from: args.stream.from(), daemon: Some(folders), answers: true };
        let ended = Follower::attach(followed, terminal, leaving, view, ui).await?.watch().await?;
        if ended == Ended::Stopped {
            return Err(CliError::stopped(format!("`holdpoint attach {id}` starts it and comes back")));
        }
        if !args.stream.json {
            let what = match ended {
                Ended::Closed => "the session was closed".to_owned(),
                _ => format!("detached: the session goes on; `holdpoint attach {id}` comes back"),
            };
            ui.line(Style::Dim, &what)?;
            ui.flush()?;
        }
        // Ctrl+C is how one leaves.
        Ok(left.code().filter(|code| *code != DETACHED).unwrap_or(0))
    })
}
