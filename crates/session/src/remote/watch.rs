//! Watching all sessions of a daemon.

use holdpoint_common::SessionError;
use holdpoint_common::api::SessionNews;

use super::attachment::read;
use super::connection::Connection;
use super::sse::Frames;
use crate::backend::WatchBackend;

/// A stream of the changes of a daemon's sessions.
pub(crate) struct RemoteWatch {
    frames: Frames,
    /// Whether the stream ended because the daemon was stopped.
    stopped: bool,
}

impl RemoteWatch {
    /// Starts to watch the sessions of this daemon.
    pub(super) async fn open(connection: &Connection) -> Result<Self, SessionError> {
        let frames = Frames::new(connection.stream("/v1/events").await?);
        Ok(Self { frames, stopped: false })
    }
}

impl WatchBackend for RemoteWatch {
    fn has_stopped(&self) -> bool {
        self.stopped
    }

    async fn next(&mut self) -> Option<SessionNews> {
        loop {
            let frame = match self.frames.next().await {
                Ok(Some(frame)) => frame,
                // Only a stopping daemon ends the stream cleanly.
                Ok(None) => {
                    self.stopped = true;
                    return None;
                }
                Err(error) => {
                    tracing::debug!(%error, "stream of session changes broke");
                    return None;
                }
            };
            let news = match frame.event {
                "session" => read(frame.data).map(SessionNews::Session),
                "deleted" => read(frame.data).map(SessionNews::Deleted),
                // An unknown event, from a newer daemon.
                _ => continue,
            };
            match news {
                Ok(news) => return Some(news),
                Err(error) => tracing::warn!(%error, "unreadable session change"),
            }
        }
    }
}
