//! Closing a session, whatever it is doing.

use actix::prelude::*;
use holdpoint_common::{SessionId, Who};
use tokio::sync::oneshot;

use super::{Entry, Life, Manager};
use crate::actor;
use crate::error::SessionError;
use crate::state::Refused;
use crate::store::StoreError;

/// Closes a session; replies when its actor has ended.
#[derive(Message)]
#[rtype(result = "Result<(), SessionError>")]
pub(crate) struct CloseSession {
    pub(crate) id: SessionId,
    pub(crate) by: Who,
}

impl Handler<CloseSession> for Manager {
    type Result = ResponseFuture<Result<(), SessionError>>;

    fn handle(&mut self, CloseSession { id, by }: CloseSession, ctx: &mut Self::Context) -> Self::Result {
        let manager = ctx.address();
        let (actor, end, shown) = match self.sessions.get_mut(&id) {
            None | Some(Entry { life: Life::Saved, .. }) => {
                let saved = self.saved(id, ctx);
                return Box::pin(async move { saved.close(by).await });
            }
            Some(Entry { closed: true, .. }) => {
                return Box::pin(async move { Err(SessionError::Refused(Refused::Closed)) });
            }
            Some(Entry { life: Life::Starting { waiting }, .. }) => {
                let (started, live) = oneshot::channel();
                waiting.push((0, started));
                return Box::pin(async move {
                    // Started or not: then it can be closed. But not while its log can't be read.
                    if let Ok(Err(error @ SessionError::Store(_))) = live.await {
                        return Err(error);
                    }
                    manager.send(CloseSession { id, by }).await.unwrap_or(Err(SessionError::Stopped))
                });
            }
            Some(Entry { life: Life::Live { actor, .. }, closed, ends, shown, .. }) => {
                let (ended, end) = oneshot::channel();
                *closed = true;
                ends.push(ended);
                (actor.clone(), end, shown.subscribe())
            }
        };
        Box::pin(async move {
            let closed = actor.send(actor::Close { by: by.clone() }).await;
            if !matches!(closed, Ok(Ok(()))) {
                // It lives on, is rebuilt, or was unloaded before it heard of it.
                manager.send(Reopen(id.clone())).await.map_err(|_| SessionError::Stopped)?;
            }
            match closed {
                Ok(closed) => closed?,
                Err(_) => {
                    end.await.map_err(|_| SessionError::Gone { session: id.clone() })?;
                    return manager.send(CloseSession { id, by }).await.unwrap_or(Err(SessionError::Stopped));
                }
            }
            end.await.map_err(|_| SessionError::Gone { session: id })?;
            if shown.borrow().saved {
                return Ok(());
            }
            let message = "the session has ended, and its end is not saved".to_owned();
            Err(StoreError::Io { message }.into())
        })
    }
}

/// A close did not come to pass.
#[derive(Message)]
#[rtype(result = "()")]
struct Reopen(SessionId);

impl Handler<Reopen> for Manager {
    type Result = ();

    fn handle(&mut self, Reopen(id): Reopen, _: &mut Self::Context) {
        if let Some(entry) = self.sessions.get_mut(&id) {
            entry.closed = false;
        }
    }
}
