//! How a turn has ended: from the session's actor while it has one, else from its log.

use holdpoint_common::api::TurnEnd;
use holdpoint_common::{Event, Fact, SessionId, TurnId};

use super::LocalSessions;
use crate::actor::AwaitEnd;
use crate::error::SessionError;
use crate::state::Refused;
use crate::store::Pages;

impl LocalSessions {
    /// How this turn has ended, once it has; nothing if there is no such turn. A session that is only saved stays so.
    pub(crate) async fn turn_end(&self, id: &SessionId, turn: TurnId) -> Result<Option<TurnEnd>, SessionError> {
        let waiting = match self.reach(id).await {
            Ok(session) => session.send(|| AwaitEnd { turn }).await,
            Err(error) => Err(error),
        };
        match waiting {
            Ok(Some(end)) => {
                // Without one, its actor has failed.
                if let Ok(end) = end.await {
                    return Ok(Some(end));
                }
            }
            Ok(None) | Err(SessionError::Refused(Refused::Closed) | SessionError::NotLive { .. }) => {}
            Err(error) => return Err(error),
        }
        let base = self.base().await?;
        let log = base.store.open(id).await?;
        let mut pages = Pages::of(&*log);
        while let Some(page) = pages.next().await? {
            if let Some(end) = page.iter().find_map(|event| end_of(event, turn)) {
                return Ok(Some(end));
            }
        }
        Ok(None)
    }
}

/// The end of this turn, if that is what the event tells.
fn end_of(event: &Event, turn: TurnId) -> Option<TurnEnd> {
    match event.fact() {
        Some(Fact::TurnFinished { outcome, receipt, .. }) if event.turn == Some(turn) => {
            Some(TurnEnd { turn, outcome: *outcome, receipt: receipt.clone() })
        }
        _ => None,
    }
}
