//! The end of a turn, from the session's actor if there is one, and otherwise from its log.

use holdpoint_common::api::TurnEnd;
use holdpoint_common::{Event, Fact, Refused, SessionError, SessionId, TurnFact, TurnId};

use super::LocalSessions;
use crate::actor::AwaitEnd;
use crate::backend::Backend;
use crate::store::Pages;

/// Waits for the end of this turn; `None` if there is no such turn. A session that is only
/// saved is not opened.
pub(super) async fn wait(
    sessions: &LocalSessions,
    id: &SessionId,
    turn: TurnId,
) -> Result<Option<TurnEnd>, SessionError> {
    let waiting = match sessions.reach(id).await {
        Ok(session) => session.send(|| AwaitEnd { turn }).await,
        Err(error) => Err(error),
    };
    match waiting {
        Ok(Some(receiver)) => {
            // If the sender was dropped, the actor has failed.
            if let Ok(end) = receiver.await {
                return Ok(Some(end));
            }
        }
        Ok(None) | Err(SessionError::Refused(Refused::Closed) | SessionError::NotLive { .. }) => {}
        Err(error) => return Err(error),
    }
    let engine = sessions.engine().await?;
    let log = engine.store.open(id).await?;
    let mut pages = Pages::whole_log(&*log);
    while let Some(page) = pages.next().await? {
        if let Some(end) = page.iter().find_map(|event| end_of(event, turn)) {
            return Ok(Some(end));
        }
    }
    Ok(None)
}

/// The end of this turn, if the event reports it.
fn end_of(event: &Event, turn: TurnId) -> Option<TurnEnd> {
    match event.fact() {
        Some(Fact::Turn(TurnFact::Finished { outcome, receipt, .. }))
            if event.turn == Some(turn) =>
        {
            Some(TurnEnd { turn, outcome: *outcome, receipt: receipt.clone() })
        }
        _ => None,
    }
}
