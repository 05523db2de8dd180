//! Moving a session to another folder, up to its end in this one.

use std::rc::Rc;
use std::sync::Arc;

use holdpoint_common::{Refused, SessionError, SessionId, Snapshot};
use tokio::sync::watch;

use super::lifecycle::{ActorEnd, IfSaved};
use super::owned::Owned;
use super::registry::{Reached, Registry};
use crate::saved::OfflineSession;
use crate::state::{HandOver, Handover};
use crate::store::StoreError;

/// The reply to a request to hand a session over.
pub(crate) enum HandoverReply {
    /// It is only saved now, in its new folder.
    Done {
        /// Whether it was live.
        live: bool,
    },
    /// It can't be handed over yet. It is held at its next boundary.
    Waits {
        /// Changes when the request can be repeated.
        shown: watch::Receiver<Arc<Snapshot>>,
    },
}

impl Registry {
    /// Hands a session over, whose new folder is checked.
    pub(super) async fn hand_over(
        self: &Rc<Self>,
        id: &SessionId,
        request: &HandOver,
    ) -> Result<HandoverReply, SessionError> {
        let live = loop {
            let live = match self.access(id, 0, IfSaved::Change).await? {
                Reached::Saved(owned) => {
                    owned.hand_over(request).await?;
                    break None;
                }
                Reached::Live(live) => live,
            };
            match live.actor.address.send(request.clone()).await {
                Ok(Ok(Handover::Done)) => break Some(live),
                Ok(Ok(Handover::Waits)) => return Ok(HandoverReply::Waits { shown: live.shown }),
                // It is ending, or has ended.
                Ok(Err(Refused::Closed)) | Err(_) => live.ended().await?,
                Ok(Err(refused)) => return Err(refused.into()),
            }
        };
        if let Some(live) = &live
            && (live.end.clone().await != ActorEnd::Lost
                || self.engine.lacks_saves(&live.shown.borrow()))
        {
            let message = "the session has ended, but its move could not be saved".to_owned();
            return Err(StoreError::Io { message }.into());
        }
        // Written after the log was given up, so that another machine can own it from here on.
        self.give_back_names(id).await;
        Ok(HandoverReply::Done { live: live.is_some() })
    }
}

/// Appends the move of a session to its log. Work that a crash has cut ends before.
pub(super) async fn record_move(
    mut session: OfflineSession<'_>,
    request: &HandOver,
) -> Result<(), SessionError> {
    if !session.state().can_move() {
        session.end_open_work()?;
    }
    session.handle_input(request)?;
    session.save().await.map(drop)
}

impl Owned {
    /// Records the move of a session that is only saved.
    async fn hand_over(self, request: &HandOver) -> Result<(), SessionError> {
        let session = OfflineSession::load(&self.registry.engine, &self.id).await?;
        record_move(session, request).await?;
        // It is of the old folder.
        self.registry.forget_record(&self.id);
        self.registry.roster.borrow_mut().saved_changed();
        Ok(())
    }
}
