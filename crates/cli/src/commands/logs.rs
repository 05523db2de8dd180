//! The command `holdpoint logs`.

use holdpoint_session::folders::Folders;

use crate::error::CliError;
use crate::follow::{FollowEnd, FollowRequest, Follower, View, saved};
use crate::runtime::block_on;
use crate::select::{StreamArgs, show_resolved};
use crate::sessions::control_sessions;
use crate::signals::{self, SignalAction};
use crate::ui::Ui;

/// Print a session's events, and follow them with `-f`
///
/// All output goes to standard output, and asks are shown but not answered. Ctrl+C detaches: the
/// session keeps running. A saved session stays saved, except with `-f`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    stream: StreamArgs,

    /// Keep printing new events until the session is closed or you detach
    #[arg(long, short)]
    follow: bool,
}

pub(crate) fn carry_out(args: &Args, folders: &Folders, ui: &mut Ui) -> Result<i32, CliError> {
    let mut leaving = signals::watch(SignalAction::Detaches, None).map_err(|error| {
        CliError::failed(format!("signal handlers can't be installed: {error}"))
    })?;
    if !args.stream.json {
        ui.lines_to_stdout();
    }
    block_on(async {
        let sessions = control_sessions(folders, "logs").await?;
        let view = View::transcript(args.stream.json, false);
        let found = sessions.look(args.stream.session()).await?;
        show_resolved(args.stream.session(), &found, ui)?;
        if !args.follow {
            let id = found.settings.id.clone();
            if sessions.list().await?.iter().any(|session| session.id == id && !session.live) {
                return saved::show(&sessions, &id, args.stream.from(), &mut leaving, view, ui)
                    .await
                    .map(|()| 0);
            }
        }
        let session = sessions.get(args.stream.session()).await?;
        let id = session.id().clone();
        let followed = FollowRequest {
            session,
            from: args.stream.from(),
            daemon: Some(folders),
            answers: false,
        };
        let follower = Follower::attach(followed, None, leaving, view, ui).await?;
        if !args.follow {
            return follower.show_past_only().await.map(|()| 0);
        }
        match follower.watch().await? {
            FollowEnd::Stopped => Err(CliError::stopped(format!(
                "`holdpoint logs -f {id}` starts it again and continues"
            ))),
            _ => Ok(0),
        }
    })
}
