//! Closing a session, in any state.

use std::rc::Rc;

use holdpoint_common::api::CloseRequest;
use holdpoint_common::{Refused, SessionError, SessionId};

use super::lifecycle::IfSaved;
use super::registry::{Reached, Registry};
use crate::state::ByClient;
use crate::store::StoreError;

impl Registry {
    /// Closes the session. Returns when its actor and everything it started have ended, and other machines
    /// see that.
    pub(super) async fn close(
        self: &Rc<Self>,
        id: &SessionId,
        request: &ByClient<CloseRequest>,
    ) -> Result<(), SessionError> {
        let closed = self.close_live_or_saved(id, request).await;
        // Written after the log was given up.
        self.give_back_names(id).await;
        closed
    }

    async fn close_live_or_saved(
        self: &Rc<Self>,
        id: &SessionId,
        request: &ByClient<CloseRequest>,
    ) -> Result<(), SessionError> {
        let live = loop {
            // 0: this caller has seen no actor end.
            let live = match self.access(id, 0, IfSaved::Change).await? {
                Reached::Saved(owned) => return owned.close(request).await,
                Reached::Live(live) => live,
            };
            match live.actor.address.send(request.clone()).await {
                // Another close is still ending the session. Its end is awaited here, too.
                Ok(Err(Refused::Closed)) => {
                    live.ended().await?;
                    return Err(Refused::Closed.into());
                }
                Ok(closed) => {
                    closed?;
                    break live;
                }
                // The session was unloaded before the message arrived.
                Err(_) => live.ended().await?,
            }
        };
        live.ended().await?;
        if !self.engine.lacks_saves(&live.shown.borrow()) {
            return Ok(());
        }
        let message = "the session has ended, but its end could not be saved".to_owned();
        Err(StoreError::Io { message }.into())
    }
}
