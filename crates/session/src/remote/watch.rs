//! All sessions of a daemon, watched.

use holdpoint_common::api::SessionNews;

use super::RemoteSessions;
use super::attachment::read;
use super::sse::Frames;
use crate::error::SessionError;

/// Sees what becomes of all sessions of a daemon.
pub(crate) struct RemoteWatch(Frames);

impl RemoteSessions {
    pub(crate) async fn watch(&self) -> Result<RemoteWatch, SessionError> {
        Ok(RemoteWatch(Frames::new(self.connection().stream("/v1/events").await?)))
    }
}

impl RemoteWatch {
    pub(crate) async fn next(&mut self) -> Option<SessionNews> {
        loop {
            let frame = match self.0.next().await {
                Ok(frame) => frame?,
                Err(error) => {
                    tracing::debug!(%error, "the stream of news broke");
                    return None;
                }
            };
            let news = match frame.event {
                "session" => read(frame.data).map(SessionNews::Session),
                "deleted" => read(frame.data).map(SessionNews::Deleted),
                // Of a later daemon.
                _ => continue,
            };
            match news {
                Ok(news) => return Some(news),
                Err(error) => tracing::warn!(%error, "news of a session can't be read"),
            }
        }
    }
}
