//! Closing a session, in any state.

use std::sync::Arc;

use actix::prelude::*;
use holdpoint_common::api::CloseRequest;
use tokio::sync::oneshot;

use super::{Entry, Life, Manager, OnSession};
use crate::error::SessionError;
use crate::state::Refused;
use crate::store::StoreError;

/// Replies when the session's actor has ended.
impl Handler<OnSession<CloseRequest>> for Manager {
    type Result = ResponseFuture<Result<(), SessionError>>;

    fn handle(&mut self, close: OnSession<CloseRequest>, ctx: &mut Self::Context) -> Self::Result {
        let id = close.id.clone();
        let manager = ctx.address();
        let (actor, end, shown) = match self.sessions.get_mut(&id) {
            None | Some(Entry { life: Life::Saved, .. }) => {
                let saved = self.offline_entry(id, ctx);
                return Box::pin(async move { saved.close(close).await });
            }
            Some(Entry { life: Life::Starting { waiting }, .. }) => {
                let (started, live) = oneshot::channel();
                waiting.push((0, started));
                return Box::pin(async move {
                    // Whether the start succeeds or fails, the session can be closed then, unless
                    // its log can't be read.
                    if let Ok(Err(error @ SessionError::Store(_))) = live.await {
                        return Err(error);
                    }
                    manager.send(close).await.unwrap_or(Err(SessionError::Stopped))
                });
            }
            Some(Entry { life: Life::Live { actor, .. }, ends, shown, .. }) => {
                let (ended, end) = oneshot::channel();
                // Drop the waiters of closes that were refused.
                ends.retain(|ended| !ended.is_closed());
                ends.push(ended);
                (actor.clone(), end, shown.subscribe())
            }
        };
        let engine = Arc::clone(&self.engine);
        Box::pin(async move {
            let closed = actor.send(close.request.clone()).await;
            match closed {
                // Another close is ending the session, but is not saved yet. Both wait for that.
                Ok(Err(Refused::Closed)) => {
                    end.await.map_err(|_| SessionError::Gone { session: id })?;
                    return Err(Refused::Closed.into());
                }
                Ok(closed) => closed?,
                // The actor is being rebuilt, or was unloaded before the message arrived.
                Err(_) => {
                    end.await.map_err(|_| SessionError::Gone { session: id.clone() })?;
                    return manager.send(close).await.unwrap_or(Err(SessionError::Stopped));
                }
            }
            end.await.map_err(|_| SessionError::Gone { session: id })?;
            if !engine.lacks_saves(&shown.borrow()) {
                return Ok(());
            }
            let message = "the session has ended, but its end could not be saved".to_owned();
            Err(StoreError::Io { message }.into())
        })
    }
}
