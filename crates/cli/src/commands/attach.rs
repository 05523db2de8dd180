//! The command `holdpoint attach`.

use holdpoint_session::AttachFrom;
use holdpoint_session::folders::Folders;

use crate::error::CliError;
use crate::follow::{FollowEnd, FollowRequest, Follower, View};
use crate::runtime::block_on;
use crate::select::StreamArgs;
use crate::sessions::sessions;
use crate::signals::{self, SignalAction};
use crate::terminal::KeyTerminal;
use crate::tone::Tone;
use crate::tui;
use crate::ui::Ui;

/// The exit code of a program that Ctrl+C ends: 128 + SIGINT.
const DETACHED: i32 = 130;

/// Attach to a session: show its activity and answer its asks
///
/// On a terminal, this opens the session on the screen: Ctrl+X D detaches, and the session keeps
/// running; Ctrl+C interrupts the agent. With --plain, --json, --after or --limit, or without a
/// terminal, the model's text goes to standard output and everything else to standard error. Keys
/// answer asks, Esc interrupts, and Ctrl+C detaches: the session keeps running.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    stream: StreamArgs,

    /// Print lines instead of showing the screen
    #[arg(long)]
    plain: bool,
}

pub(crate) fn carry_out(args: &Args, folders: &Folders, ui: &mut Ui) -> Result<i32, CliError> {
    let from_start = args.stream.from() == AttachFrom::start();
    if from_start && !args.plain && !args.stream.json && tui::can_be_shown() {
        return tui::show(Some(args.stream.session()), folders, ui);
    }
    let terminal =
        if args.stream.json { None } else { KeyTerminal::find().filter(|_| ui.err_is_terminal()) };
    let leaving = signals::watch(SignalAction::Detaches, terminal.clone()).map_err(|error| {
        CliError::failed(format!("signal handlers can't be installed: {error}"))
    })?;
    block_on(async {
        let session = sessions(folders, "attach").await?.get(args.stream.session()).await?;
        let id = session.id().clone();
        let view = View::transcript(args.stream.json, terminal.is_some());
        let followed = FollowRequest {
            session,
            from: args.stream.from(),
            daemon: Some(folders),
            answers: true,
        };
        let ended =
            Follower::attach(followed, terminal, leaving.clone(), view, ui).await?.watch().await?;
        if ended == FollowEnd::Stopped {
            return Err(CliError::stopped(format!(
                "`holdpoint attach {id}` starts it again and returns to the session"
            )));
        }
        if !args.stream.json {
            let message = match ended {
                FollowEnd::Closed => "the session was closed".to_owned(),
                _ => format!(
                    "detached; the session keeps running. Return with `holdpoint attach {id}`"
                ),
            };
            ui.line(Tone::Dim, &message)?;
            ui.flush()?;
        }
        // Ctrl+C is the normal way to leave.
        Ok(leaving.code().filter(|code| *code != DETACHED).unwrap_or(0))
    })
}
