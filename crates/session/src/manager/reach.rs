//! Reaching a session that is known: the actor it has, the one it is about to have, or a new one.

use std::sync::Arc;

use actix::prelude::*;
use holdpoint_common::{SessionId, Supplies};
use tokio::sync::oneshot;

use super::{Life, Live, Manager, start};
use crate::error::SessionError;
use crate::saved;
use crate::state::Refused;

/// The session of this id, with an actor; unless it was closed.
#[derive(Message)]
#[rtype(result = "Result<Live, SessionError>")]
pub(crate) struct Reach {
    pub(crate) id: SessionId,
    /// The actor that the asker has seen end, or 0.
    pub(crate) seen: u64,
    /// What it has if it was unloaded; without, it stays so.
    pub(crate) supplies: Option<Arc<Supplies>>,
}

impl Handler<Reach> for Manager {
    type Result = ResponseFuture<Result<Live, SessionError>>;

    fn handle(&mut self, Reach { id, seen, supplies }: Reach, ctx: &mut Self::Context) -> Self::Result {
        self.reach(id, seen, supplies, ctx)
    }
}

impl Manager {
    /// The session, with an actor: the one it has, the one that is starting, or a new one.
    pub(super) fn reach(
        &mut self,
        id: SessionId,
        seen: u64,
        supplies: Option<Arc<Supplies>>,
        ctx: &mut Context<Self>,
    ) -> ResponseFuture<Result<Live, SessionError>> {
        let touched = self.touch();
        let Some(entry) = self.sessions.get_mut(&id) else {
            let base = Arc::clone(&self.base);
            return Box::pin(async move { Err(saved::unknown(&*base.store, id).await) });
        };
        // One that is closing says itself what it takes, and how it ends.
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
            // Its actor has ended, or left its asker unanswered and is ending; how is not told yet.
            Life::Live { .. } => {
                let (ended, end) = oneshot::channel();
                entry.ends.push(ended);
                let manager = ctx.address();
                Box::pin(async move {
                    // Told or dropped: either way it has ended.
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
                let (manager, base, room) = (ctx.address(), Arc::clone(&self.base), Arc::clone(&self.room));
                // As long as it is in somebody's hands, it is not forgotten.
                let held = entry.shown.subscribe();
                Box::pin(async move {
                    let resumed = start::resume(&manager, &base, &room, id, seen, &supplies).await;
                    drop(held);
                    resumed
                })
            }
        }
    }
}
