//! Watches all sessions, and starts again when the daemon returns.

use holdpoint_session::SessionError;

use super::super::message::Message;
use super::Shared;
use super::daemon::Backoff;

pub(super) async fn watch(shared: Shared) {
    let mut backoff = Backoff::default();
    loop {
        match shared.sessions.watch().await {
            Ok(mut watch) => {
                shared.mark_running();
                shared.send(Message::Watching).await;
                while let Some(news) = watch.next().await {
                    shared.send(Message::SessionChanged(news)).await;
                }
                if watch.has_stopped() {
                    shared.wait_while_stopped(&mut backoff).await;
                }
            }
            Err(SessionError::Unreachable { .. } | SessionError::Disconnected { .. }) => {}
            // The daemon is stopping and still answers.
            Err(SessionError::Stopped) => shared.wait_while_stopped(&mut backoff).await,
            // The daemon runs and reports an error.
            Err(error) => {
                shared.report_failure(error).await;
                backoff.wait().await;
                continue;
            }
        }
        if shared.messages.is_closed() {
            return;
        }
        shared.handle_unreachable(&mut backoff).await;
    }
}
