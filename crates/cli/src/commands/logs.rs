//! `holdpoint logs`

use holdpoint_session::AttachFrom;

use crate::error::CliError;
use crate::folders::Folders;
use crate::follow::{Followed, Follower, Human};
use crate::runtime::runtime;
use crate::select::SessionArg;
use crate::sessions::sessions;
use crate::signals::{self, Signalled};
use crate::ui::Ui;

/// Prints what a session has done, and with `-f` what it does
///
/// It answers nothing. Ctrl+C leaves: the session goes on.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    session: SessionArg,

    /// Goes on with what happens, until the session is closed or you leave
    #[arg(long, short)]
    follow: bool,

    /// Prints only what came after the event of this number
    #[arg(long, value_name = "N", default_value_t = 0)]
    after: u64,

    /// Of the past, prints at most so many facts: the newest
    #[arg(long, value_name = "N")]
    limit: Option<usize>,

    /// Prints every event, one line of JSON each
    #[arg(long)]
    json: bool,
}

pub(crate) fn carry_out(args: &Args, folders: &Folders, ui: &mut Ui) -> Result<i32, CliError> {
    let leaving = signals::watch(Signalled::Detaches, None)
        .map_err(|error| CliError::failed(format!("signals can't be watched: {error}")))?;
    runtime()?.block_on(async {
        let session = sessions(folders, "logs").await?.get(&args.session.session).await?;
        let from = AttachFrom { after: args.after, limit: args.limit };
        let human = (!args.json).then(|| Human::new(false));
        let followed = Followed { session, from, daemon: Some(folders) };
        let follower = Follower::attach(followed, None, leaving, human, ui).await?;
        match args.follow {
            true => follower.watch().await.map(|_| 0),
            false => follower.past().await.map(|()| 0),
        }
    })
}
