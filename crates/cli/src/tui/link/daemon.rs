//! The daemon behind the screen: waited for, and started again.

use std::sync::Arc;
use std::time::{Duration, Instant};

use holdpoint_session::folders::Folders;

use super::super::message::Message;
use super::{Shared, Wanted, why};
use crate::daemon::Daemon;
use crate::error::CliError;

/// How often it is looked whether a daemon that was stopped has been started by somebody else.
const LOOK: Duration = Duration::from_secs(1);

/// How long after one break another one is waited with.
const AGAIN: Duration = Duration::from_secs(5);

/// Lets what breaks off again and again be begun again only so often.
#[derive(Default)]
pub(super) struct Pace {
    /// When it broke last.
    broke: Option<Instant>,
}

impl Pace {
    /// It has broken: how long to wait before it is begun again.
    fn breaks(&mut self, now: Instant) -> Duration {
        let again = self.broke.is_some_and(|broke| now.saturating_duration_since(broke) < AGAIN);
        let wait = if again { AGAIN } else { Duration::ZERO };
        self.broke = Some(now + wait);
        wait
    }

    /// Waits as long as that. The screen is told by whoever knows what is wrong.
    pub(super) async fn wait(&mut self) {
        tokio::time::sleep(self.breaks(Instant::now())).await;
    }

    /// The user wants it, or it is there: what broke before has no say in it.
    fn rested(&mut self) {
        self.broke = None;
    }
}

impl Shared {
    /// The daemon was told to stop: nothing is done until the user wants it back, or has started it elsewhere.
    pub(super) async fn rest(&self, pace: &mut Pace) {
        self.daemon.send_replace(Wanted::Stopped);
        self.tell(Message::Stopped).await;
        let mut daemon = self.daemon.subscribe();
        tokio::select! {
            // Its sender is kept right here.
            () = async { drop(daemon.wait_for(|daemon| *daemon != Wanted::Stopped).await) } => {}
            () = next_daemon(&self.folders) => {
                self.daemon.send_replace(Wanted::Here);
                self.tell(Message::Daemon { here: true }).await;
            }
        }
        pace.rested();
    }

    /// The daemon answers.
    pub(super) fn answers(&self) {
        self.turn(Wanted::Back, Wanted::Here);
    }

    fn turn(&self, from: Wanted, to: Wanted) {
        self.daemon.send_if_modified(|daemon| {
            let turns = *daemon == from;
            if turns {
                *daemon = to;
            }
            turns
        });
    }

    /// The daemon can't be reached. One that was told to stop is left so, also where that is told to nobody any more: it
    /// has taken its sockets with it. One that has died has not, and is started again.
    pub(super) async fn unreachable(&self, pace: &mut Pace) {
        if !self.has_stopped() {
            self.broke(pace).await;
        }
        if self.has_stopped() {
            return self.rest(pace).await;
        }
        // One that can't begin takes its sockets with it, too.
        self.turn(Wanted::Here, Wanted::Back);
        if let Err(why) = self.revive().await {
            self.tell(Message::Failed(why)).await;
        }
    }

    fn has_stopped(&self) -> bool {
        match *self.daemon.borrow() {
            Wanted::Stopped => true,
            Wanted::Back => false,
            Wanted::Here => self.folders.sockets().is_ok_and(|sockets| !sockets.iter().any(|socket| socket.exists())),
        }
    }

    /// What was followed has broken off: waits with one that does so again and again. Tells the screen.
    pub(super) async fn broke(&self, pace: &mut Pace) {
        let wait = pace.breaks(Instant::now());
        if !wait.is_zero() {
            self.tell(Message::Daemon { here: false }).await;
            tokio::time::sleep(wait).await;
        }
    }

    /// Starts the daemon again, if it is gone. Tells the screen.
    async fn revive(&self) -> Result<(), String> {
        self.tell(Message::Daemon { here: false }).await;
        let folders = Arc::clone(&self.folders);
        // Starting it blocks.
        let started = tokio::task::spawn_blocking(move || {
            let runtime = crate::runtime::runtime()?;
            runtime.block_on(Daemon::connect_or_start(&folders)).map(|_| ())
        });
        match started.await {
            Ok(Ok(())) => {
                self.tell(Message::Daemon { here: true }).await;
                Ok(())
            }
            Ok(Err(error)) => Err(why(error)),
            Err(error) => Err(why(CliError::failed(error))),
        }
    }
}

/// Waits until there is a daemon: nobody tells it. One that stops can't be found any more when it tells that it does.
async fn next_daemon(folders: &Folders) {
    // One that is about to begin may not answer.
    while !matches!(Daemon::find(folders).await, Ok(Some(_))) {
        tokio::time::sleep(LOOK).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_breaks_off_again_and_again_is_begun_again_so_often() {
        let began = Instant::now();
        let mut pace = Pace::default();
        // Most often it has died once, and is there again.
        assert_eq!(pace.breaks(began), Duration::ZERO);
        assert_eq!(pace.breaks(began), AGAIN);
        assert_eq!(pace.breaks(began + AGAIN), AGAIN, "it broke as soon as it was begun");
        assert_eq!(pace.breaks(began + 4 * AGAIN), Duration::ZERO);
        // It was stopped, and is wanted back at once.
        pace.rested();
        assert_eq!(pace.breaks(began + 4 * AGAIN), Duration::ZERO);
    }
}
