//! How an ask has ended, read from the events of its session.

use holdpoint_common::AskId;
use holdpoint_session::{AttachFrom, SessionError};

use super::super::ask;
use super::super::message::Message;
use super::Shared;

/// Events that are taken at once.
const BATCH: usize = 256;

/// Reports how this ask has ended. The screen already shows that it is closed: a session that can't be read changes nothing.
pub(super) async fn read(shared: &Shared, ask: AskId) {
    match find(shared, &ask).await {
        Ok(Some(how)) => shared.tell(Message::AskEnded { ask, how }).await,
        Ok(None) => {}
        Err(error) => tracing::debug!(%ask, %error, "the end of the ask can't be read"),
    }
}

/// Looks through the events behind the ask. A session that was closed or unloaded since is not opened for it.
async fn find(shared: &Shared, ask: &AskId) -> Result<Option<String>, SessionError> {
    let session = shared.sessions.reach(&ask.session).await?;
    let mut stream = session.attach(AttachFrom::after(ask.seq)).await?;
    let mut batch = Vec::new();
    while stream.next_past(&mut batch, BATCH).await > 0 {
        if let Some(how) = batch.drain(..).find_map(|event| ask::end(&event, ask)) {
            return Ok(Some(how));
        }
    }
    Ok(None)
}
