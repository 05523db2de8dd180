//! Follows what becomes of all sessions, and comes back when the daemon does.

use holdpoint_session::SessionError;

use super::super::message::Message;
use super::Shared;
use super::daemon::Pace;

pub(super) async fn watch(shared: Shared) {
    let mut pace = Pace::default();
    loop {
        match shared.sessions.watch().await {
            Ok(mut watch) => {
                shared.answers();
                shared.tell(Message::Watching).await;
                while let Some(news) = watch.next().await {
                    shared.tell(Message::News(news)).await;
                }
                if watch.has_stopped() {
                    shared.rest(&mut pace).await;
                }
            }
            Err(SessionError::Unreachable { .. } | SessionError::Disconnected { .. }) => {}
            // It is being stopped, and still answers.
            Err(SessionError::Stopped) => shared.rest(&mut pace).await,
            // The daemon is there, and says what is wrong.
            Err(error) => {
                shared.failed(error).await;
                pace.wait().await;
                continue;
            }
        }
        if shared.words.is_closed() {
            return;
        }
        shared.unreachable(&mut pace).await;
    }
}
