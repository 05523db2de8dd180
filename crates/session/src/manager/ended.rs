//! What becomes of a session whose actor has ended: it is only saved, or rebuilt if that failed.

use std::sync::Arc;
use std::time::Duration;

use actix::prelude::*;
use holdpoint_common::SessionId;
use holdpoint_common::limits::LEAVE_AFTER;
use tokio::sync::{mpsc, oneshot};

use super::room::Room;
use super::{Life, Manager, start};

/// A session's actor has ended.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct ActorEnded {
    pub(super) id: SessionId,
    pub(super) panicked: bool,
}

impl Handler<ActorEnded> for Manager {
    type Result = ();

    fn handle(&mut self, ActorEnded { id, panicked }: ActorEnded, ctx: &mut Self::Context) {
        self.roster.changed();
        let Some(entry) = self.sessions.get_mut(&id) else { return };
        let before = match std::mem::replace(&mut entry.life, Life::Saved) {
            Life::Live { alive, .. } => Some(alive),
            Life::Starting { .. } | Life::Saved => None,
        };
        if panicked {
            entry.failed.insert(entry.incarnation);
            entry.life = Life::Starting { waiting: Vec::new(), before };
            // If it was being closed, that has not come to pass, and who waits for it is told so by this.
            entry.closed = false;
            entry.ends.clear();
            tracing::error!(session = %id, "the session's actor panicked and is rebuilt from its log");
            rebuild(id, ctx.address(), Arc::clone(&self.room));
            return;
        }
        tell_ended(before, std::mem::take(&mut entry.ends), self.base.limits.grace() + LEAVE_AFTER);
        entry.outfit = None;
        let name = entry.name.clone();
        // From now on the store knows all there is to know.
        if entry.closed && entry.shown.borrow().saved {
            self.sessions.remove(&id);
        }
        self.free_name(&name, &id);
        self.forget_unused();
    }
}

/// Gives a session whose actor has failed the next one.
fn rebuild(id: SessionId, manager: Addr<Manager>, room: Arc<Room>) {
    actix_rt::spawn(async move {
        if let Err(error) = start::resume(&manager, &room, id.clone(), 0, None).await {
            tracing::error!(session = %id, %error, "the session could not be rebuilt");
        }
    });
}

/// Tells those who wait for an actor's end of it, once nothing of the session runs any more.
fn tell_ended(alive: Option<mpsc::Receiver<()>>, ends: Vec<oneshot::Sender<()>>, patience: Duration) {
    actix_rt::spawn(async move {
        // What its background jobs have started is ending; what can't be ended is left.
        if let Some(mut alive) = alive {
            let _ = tokio::time::timeout(patience, async { while alive.recv().await.is_some() {} }).await;
        }
        ends.into_iter().for_each(|ended| {
            // Who waited may be gone.
            let _ = ended.send(());
        });
    });
}
