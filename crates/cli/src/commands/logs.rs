//! `holdpoint logs`

use holdpoint_session::folders::Folders;

use crate::error::CliError;
use crate::follow::{Ended, Followed, Follower, View, saved};
use crate::runtime::block_on;
use crate::select::{StreamArgs, tell_meant};
use crate::sessions::control;
use crate::signals::{self, Signalled};
use crate::ui::Ui;

/// Prints what a session has done, and with `-f` what it does
///
/// All of it goes to standard output. It answers nothing. Ctrl+C leaves: the session goes on. A saved session stays saved,
/// but for `-f`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    stream: StreamArgs,

    /// Goes on with what happens, until the session is closed or you leave
    #[arg(long, short)]
    follow: bool,
}

pub(crate) fn carry_out(args: &Args, folders: &Folders, ui: &mut Ui) -> Result<i32, CliError> {
    let mut leaving = signals::watch(Signalled::Detaches, None)
        .map_err(|error| CliError::failed(format!("signals can't be watched: {error}")))?;
    if !args.stream.json {
        ui.tell_all();
    }
    block_on(async {
        let sessions = control(folders, "logs").await?;
        let view = View::transcript(args.stream.json, false);
        let found = sessions.look(args.stream.session()).await?;
        tell_meant(args.stream.session(), &found, ui)?;
        if !args.follow {
            let id = found.settings.id.clone();
            if sessions.list().await?.iter().any(|session| session.id == id && !session.live) {
                return saved::show(&sessions, &id, args.stream.from(), &mut leaving, view, ui).await.map(|()| 0);
            }
        }
        let session = sessions.get(args.stream.session()).await?;
        let id = session.id().clone();
        let followed = Followed { session, from: args.stream.from(), daemon: Some(folders), answers: false };
        let follower = Follower::attach(followed, None, leaving, view, ui).await?;
        if !args.follow {
            return follower.past().await.map(|()| 0);
        }
        match follower.watch().await? {
            Ended::Stopped => Err(CliError::stopped(format!("`holdpoint logs -f {id}` starts it and goes on"))),
            _ => Ok(0),
        }
    })
}
