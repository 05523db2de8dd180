//! Watches all sessions, and starts again when the daemon returns.

use std::collections::HashSet;

use holdpoint_common::SessionId;
use holdpoint_common::api::SessionNews;
use holdpoint_session::{SessionError, Watch};

use super::super::message::Message;
use super::Shared;
use super::daemon::Backoff;

pub(super) async fn watch(shared: Shared) {
    let mut backoff = Backoff::default();
    let mut known = HashSet::new();
    loop {
        match start(&shared, &mut known).await {
            Ok(mut watch) => {
                shared.mark_running();
                shared.send(Message::Watching).await;
                while let Some(news) = watch.next().await {
                    match &news {
                        SessionNews::Session(summary) => _ = known.insert(summary.id.clone()),
                        SessionNews::Deleted(id) => _ = known.remove(id),
                    }
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

/// Starts a watch. Reports known sessions that were deleted while there was no watch, because a new
/// watch does not.
async fn start(shared: &Shared, known: &mut HashSet<SessionId>) -> Result<Watch, SessionError> {
    let watch = shared.sessions.watch().await?;
    if !known.is_empty() {
        let listed: HashSet<_> =
            shared.sessions.list().await?.into_iter().map(|session| session.id).collect();
        for id in known.extract_if(|id| !listed.contains(id)) {
            shared.send(Message::SessionChanged(SessionNews::Deleted(id))).await;
        }
    }
    Ok(watch)
}
