//! The ways a session's actor ends: closed by someone, or unloaded to make room.

use actix::prelude::*;
use holdpoint_common::Who;

use super::{Replied, SessionActor};
use crate::state::{Input, Phase, Refused};

/// Ends the session: its turn is cut, its processes end, its actor stops. The reply says that this has
/// begun; the actor's end is seen by the manager.
#[derive(Message)]
#[rtype(result = "Result<(), Refused>")]
pub(crate) struct Close {
    /// Only if it is not in use, and was not behind this fact.
    pub(crate) unused_since: Option<u64>,
    pub(crate) by: Who,
}

/// Ends the actor, if nothing is lost by it: no turn, no queue, no hold, no background job, nobody attached. The session stays
/// in its log.
#[derive(Message)]
#[rtype(result = "bool")]
pub(crate) struct Unload;

impl Handler<Close> for SessionActor {
    type Result = Replied<Result<(), Refused>>;

    fn handle(&mut self, Close { unused_since, by }: Close, ctx: &mut Self::Context) -> Self::Result {
        // What is not saved would end with it; a session that is ending already waits for its own last save.
        let is_ending = match self.state.phase() {
            Phase::Closed => true,
            Phase::Interrupting(_, cut) => cut.closing.is_some(),
            Phase::Idle | Phase::Running(_) => false,
        };
        if let Some(unsaved) = self.outbox.failing().filter(|_| !is_ending) {
            return Replied::Now(Err(Refused::NotSaving { unsaved }));
        }
        tracing::info!(%by, "close");
        Replied::Now(self.take(Input::Close { unused_since, by }, ctx).map(|_| ()))
    }
}

impl Handler<Unload> for SessionActor {
    type Result = bool;

    fn handle(&mut self, _: Unload, ctx: &mut Self::Context) -> bool {
        let free = self.state.is_at_rest() && self.clients.len() == 0 && self.outbox.is_saved();
        if free {
            tracing::info!("unload");
            ctx.stop();
        }
        free
    }
}

/// Ends the actor: the runtime stops. Its turn is cut, and what can go on after a restart stays as it is.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Shutdown;

impl Handler<Shutdown> for SessionActor {
    type Result = ();

    fn handle(&mut self, _: Shutdown, ctx: &mut Self::Context) {
        tracing::info!("shut down");
        // Refused by a session that is closed: it ends anyway.
        let _ = self.take(Input::Shutdown, ctx);
    }
}

/// Panics: a fault to be survived, for tests.
#[cfg(feature = "test-support")]
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct PanicNow;

#[cfg(feature = "test-support")]
impl Handler<PanicNow> for SessionActor {
    type Result = ();

    #[expect(clippy::panic, reason = "that is what it is for")]
    fn handle(&mut self, _: PanicNow, _: &mut Self::Context) {
        panic!("a test asked for it");
    }
}
