//! Reaching a known session: the actor it has, the one that is starting, or a new one.

use std::sync::Arc;

use actix::prelude::*;
use holdpoint_common::{SessionId, Supplies};
use tokio::sync::oneshot;

use super::{Life, Live, Manager, start};
use crate::error::SessionError;
use crate::saved;
use crate::state::Refused;

/// Gets the session with this id, with an actor, unless it was closed.
#[derive(Message)]
#[rtype(result = "Result<Live, SessionError>")]
pub(crate) struct Reach {
    pub(crate) id: SessionId,
    /// The incarnation that the caller has seen end, or 0.
    pub(crate) seen: u64,
    /// The supplies to open it with, if it was unloaded. Without them it stays unloaded.
    pub(crate) supplies: Option<Arc<Supplies>>,
}

impl Handler<Reach> for Manager {
    type Result = ResponseFuture<Result<Live, SessionError>>;

    fn handle(&mut self, Reach { id, seen, supplies }: Reach, ctx: &mut Self::Context) -> Self::Result {
        self.reach(id, seen, supplies, ctx)
    }
}

impl Manager {
    /// Gets the session's actor: the running one, the starting one or a new one.
    pub(super) fn reach(
        &mut self,
        id: SessionId,
        seen: u64,
        supplies: Option<Arc<Supplies>>,
        ctx: &mut Context<Self>,
    ) -> ResponseFuture<Result<Live, SessionError>> {
        let touched = self.touch();
        let Some(entry) = self.sessions.get_mut(&id) else {
            let engine = Arc::clone(&self.engine);
            return Box::pin(async move { Err(saved::why_not_live(&*engine.store, id).await) });
        };
        // A closing actor decides itself which messages it accepts.
        if entry.closed && !matches!(entry.life, Life::Live { .. }) {
            return Box::pin(async move { Err(SessionError::Refused(Refused::Closed)) });
        }
        entry.touched = touched;
        match &mut entry.life {
            Life::Live { actor, .. } if actor.connected() && entry.incarnation != seen => {
                let actor = actor.clone();
                let live = entry.live(id, actor, seen);
                Box::pin(async move { Ok(live) })
            }
            // The actor has ended, or is ending and left the caller without a reply. How it ended
            // is not known yet.
            Life::Live { .. } => {
                let (ended, end) = oneshot::channel();
                entry.ends.push(ended);
                let manager = ctx.address();
                Box::pin(async move {
                    // Sent or dropped, it means that the actor has ended.
                    let _ = end.await;
                    manager.send(Reach { id, seen, supplies }).await.unwrap_or(Err(SessionError::Stopped))
                })
            }
            Life::Starting { waiting } => {
                let (started, live) = oneshot::channel();
                waiting.push((seen, started));
                Box::pin(async move { live.await.unwrap_or(Err(SessionError::Stopped)) })
            }
            Life::Saved if self.stopping => Box::pin(async move { Err(SessionError::Stopped) }),
            Life::Saved => {
                let Some(supplies) = supplies else {
                    return Box::pin(async move { Err(SessionError::NotLive { session: id }) });
                };
                let (manager, engine, room) = (ctx.address(), Arc::clone(&self.engine), Arc::clone(&self.room));
                // A held receiver keeps the manager from removing the entry.
                let held = entry.shown.subscribe();
                Box::pin(async move {
                    let resumed = start::resume(&manager, &engine, &room, id, seen, &supplies).await;
                    drop(held);
                    resumed
                })
            }
        }
    }
}
