//! Waits for the daemon behind the screen, and starts it again.

use std::sync::Arc;
use std::time::{Duration, Instant};

use holdpoint_session::folders::Folders;

use super::super::message::Message;
use super::{DaemonState, Shared, error_line};
use crate::daemon::Daemon;
use crate::error::CliError;

/// The interval of checks whether another client has started a stopped daemon.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// A break this soon after another delays the retry by the same time.
const BREAK_WINDOW: Duration = Duration::from_secs(5);

/// A backoff for streams that break repeatedly.
#[derive(Default)]
pub(super) struct Backoff {
    /// The time of the last break, plus its delay.
    last_break: Option<Instant>,
}

impl Backoff {
    /// Records a break. Returns the delay before the next attempt.
    fn delay_after_break(&mut self, now: Instant) -> Duration {
        let again = self
            .last_break
            .is_some_and(|broke| now.saturating_duration_since(broke) < BREAK_WINDOW);
        let wait = if again { BREAK_WINDOW } else { Duration::ZERO };
        self.last_break = Some(now + wait);
        wait
    }

    /// Records a break and waits out its delay. The caller reports the error.
    pub(super) async fn wait(&mut self) {
        tokio::time::sleep(self.delay_after_break(Instant::now())).await;
    }

    /// Forgets earlier breaks, because the daemon is running or the user wants it back.
    fn reset(&mut self) {
        self.last_break = None;
    }
}

impl Shared {
    /// Handles a stopped daemon: waits until the user wants it back or another client has started
    /// it.
    pub(super) async fn wait_while_stopped(&self, backoff: &mut Backoff) {
        // A late report of another task stops neither a daemon that the user wants back nor the
        // next daemon, which has sockets.
        if self.has_stopped() && self.replace_state(DaemonState::Running, DaemonState::Stopped) {
            self.send(Message::Stopped).await;
        }
        let mut daemon = self.daemon.subscribe();
        tokio::select! {
            // The wait can't fail: `self` holds the sender.
            () = async { drop(daemon.wait_for(|daemon| *daemon != DaemonState::Stopped).await) } => {}
            () = wait_for_daemon(&self.folders) => {
                self.daemon.send_replace(DaemonState::Running);
                self.send(Message::Daemon { running: true }).await;
            }
        }
        backoff.reset();
    }

    /// Records that the daemon has answered.
    pub(super) fn mark_running(&self) {
        self.replace_state(DaemonState::Starting, DaemonState::Running);
    }

    /// Returns whether the state was `from`.
    fn replace_state(&self, from: DaemonState, to: DaemonState) -> bool {
        self.daemon.send_if_modified(|daemon| {
            let is_replaced = *daemon == from;
            if is_replaced {
                *daemon = to;
            }
            is_replaced
        })
    }

    /// Handles an unreachable daemon. A stopped daemon removes its sockets, and is left stopped
    /// even if its report did not arrive. A crashed one leaves them, and is started again.
    pub(super) async fn handle_unreachable(&self, backoff: &mut Backoff) {
        if !self.has_stopped() {
            self.handle_break(backoff).await;
        }
        if self.has_stopped() {
            return self.wait_while_stopped(backoff).await;
        }
        // From now on, missing sockets do not mean stopped: a daemon that fails to start removes
        // them, too.
        self.replace_state(DaemonState::Running, DaemonState::Starting);
        if let Err(why) = self.start_daemon().await {
            self.send(Message::Failed(why)).await;
        }
    }

    fn has_stopped(&self) -> bool {
        match *self.daemon.borrow() {
            DaemonState::Stopped => true,
            DaemonState::Starting => false,
            DaemonState::Running => self
                .folders
                .sockets()
                .is_ok_and(|sockets| !sockets.iter().any(|socket| socket.exists())),
        }
    }

    /// Handles a broken stream, and delays the retry if it breaks repeatedly.
    pub(super) async fn handle_break(&self, backoff: &mut Backoff) {
        let wait = backoff.delay_after_break(Instant::now());
        if !wait.is_zero() {
            self.send(Message::Daemon { running: false }).await;
            tokio::time::sleep(wait).await;
        }
    }

    /// Starts the daemon, if it is gone, and reports to the screen when it runs.
    async fn start_daemon(&self) -> Result<(), String> {
        self.send(Message::Daemon { running: false }).await;
        let folders = Arc::clone(&self.folders);
        // Starting the daemon blocks.
        let started = tokio::task::spawn_blocking(move || {
            let runtime = crate::runtime::runtime()?;
            runtime.block_on(Daemon::connect_or_start(&folders)).map(|_| ())
        });
        match started.await {
            Ok(Ok(())) => {
                self.send(Message::Daemon { running: true }).await;
                Ok(())
            }
            Ok(Err(error)) => Err(error_line(error)),
            Err(error) => Err(error_line(CliError::failed(error))),
        }
    }
}

/// Polls until a daemon runs, because its start is not reported. A daemon that is stopping can no
/// longer be found.
async fn wait_for_daemon(folders: &Folders) {
    // An error counts as no daemon: one that is starting may not answer yet.
    while !matches!(Daemon::find(folders).await, Ok(Some(_))) {
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

#[cfg(test)]
mod tests {
    use holdpoint_common::Who;
    use holdpoint_session::Sessions;
    use holdpoint_tools::testing::patience;
    use tokio::sync::{mpsc, watch};
    use tokio::time::timeout;

    use super::*;

    #[tokio::test]
    async fn a_late_report_does_not_stop_a_daemon_that_is_wanted_back() {
        report_late(DaemonState::Starting).await;
    }

    #[tokio::test]
    async fn a_late_report_does_not_stop_the_next_daemon() {
        report_late(DaemonState::Running).await;
    }

    /// Reports the previous daemon's stop while the next one has sockets.
    async fn report_late(state: DaemonState) {
        let state_dir = tempfile::tempdir().unwrap();
        let folders = Folders::find(Some(state_dir.path())).unwrap();
        folders.make().unwrap();
        // The last socket is with the data.
        std::fs::File::create(folders.sockets().unwrap().last().unwrap()).unwrap();
        let who = Who { name: "tui".to_owned(), pid: None };
        let (messages, mut receiver) = mpsc::channel(1);
        let shared = Shared {
            sessions: Sessions::remote(state_dir.path().join("none.sock"), &who),
            folders: Arc::new(folders),
            messages,
            daemon: watch::Sender::new(state),
        };
        let mut backoff = Backoff::default();
        let waited = timeout(patience(), shared.wait_while_stopped(&mut backoff)).await;
        waited.expect("it waits for a daemon that has not stopped");
        assert_eq!(*shared.daemon.borrow(), state);
        assert!(receiver.try_recv().is_err(), "the screen shows no panel");
    }

    #[test]
    fn repeated_breaks_delay_the_retry() {
        let began = Instant::now();
        let mut backoff = Backoff::default();
        // A daemon that crashed once has usually been started again.
        assert_eq!(backoff.delay_after_break(began), Duration::ZERO);
        assert_eq!(backoff.delay_after_break(began), BREAK_WINDOW);
        assert_eq!(
            backoff.delay_after_break(began + BREAK_WINDOW),
            BREAK_WINDOW,
            "it broke right after the delay"
        );
        assert_eq!(backoff.delay_after_break(began + 4 * BREAK_WINDOW), Duration::ZERO);
        // A daemon that was stopped and is wanted back.
        backoff.reset();
        assert_eq!(backoff.delay_after_break(began + 4 * BREAK_WINDOW), Duration::ZERO);
    }
}
