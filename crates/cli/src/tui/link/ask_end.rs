//! Finds out how an ask was closed, from the events of its session.

use holdpoint_common::AskId;
use holdpoint_session::{AttachFrom, SessionError};

use super::super::ask;
use super::super::message::Message;
use super::Shared;

/// The number of events that are taken from the stream at once.
const BATCH: usize = 256;

/// Reports how an ask was closed. Errors are only logged: the screen already shows that the ask is
/// closed.
pub(super) async fn report(shared: &Shared, ask: AskId) {
    match find(shared, &ask).await {
        Ok(Some(how)) => shared.send(Message::AskEnded { ask, how }).await,
        Ok(None) => {}
        Err(error) => tracing::debug!(%ask, %error, "failed to read how the ask was closed"),
    }
}

/// Searches the events after the ask. A session that was closed or unloaded since is not opened.
async fn find(shared: &Shared, ask: &AskId) -> Result<Option<String>, SessionError> {
    let session = shared.sessions.reach(&ask.session).await?;
    let mut stream = session.attach(AttachFrom::after(ask.seq)).await?;
    let mut batch = Vec::new();
    while stream.next_past(&mut batch, BATCH).await > 0 {
        if let Some(how) = batch.drain(..).find_map(|event| ask::describe_close(&event, ask)) {
            return Ok(Some(how));
        }
    }
    Ok(None)
}
