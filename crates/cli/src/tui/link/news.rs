//! Follows what becomes of all sessions, and comes back when the daemon does.

use std::time::Duration;

use super::super::message::Message;
use super::Shared;

/// After how long a daemon that can't be started is tried again.
const AGAIN: Duration = Duration::from_secs(5);

pub(super) async fn watch(shared: Shared) {
    loop {
        if let Ok(mut watch) = shared.sessions.watch().await {
            shared.tell(Message::Watching).await;
            while let Some(news) = watch.next().await {
                shared.tell(Message::News(news)).await;
            }
            if watch.has_stopped() {
                shared.rest().await;
            }
        }
        if shared.words.is_closed() {
            return;
        }
        if let Err(why) = shared.revive().await {
            shared.tell(Message::Failed(why)).await;
            tokio::time::sleep(AGAIN).await;
        }
    }
}
