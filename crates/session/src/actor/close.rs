//! The messages that end a session's actor: close, unload and shutdown.

use actix::prelude::*;
use holdpoint_common::Who;

use super::{Replied, SessionActor};
use crate::state::{Input, Phase, Refused};

/// Closes the session: cuts its turn, ends its processes and stops its actor. The reply means that
/// this has begun. The manager notices the actor's end.
#[derive(Message)]
#[rtype(result = "Result<(), Refused>")]
pub(crate) struct Close {
    /// If set, refuses to close a session that is in use or was given work after this fact.
    pub(crate) unused_since: Option<u64>,
    pub(crate) by: Who,
}

/// Ends the actor if the session is at rest, has no clients and is completely saved. The session
/// stays in its log. The reply says whether the actor ends.
#[derive(Message)]
#[rtype(result = "bool")]
pub(crate) struct Unload;

impl Handler<Close> for SessionActor {
    type Result = Replied<Result<(), Refused>>;

    fn handle(&mut self, Close { unused_since, by }: Close, ctx: &mut Self::Context) -> Self::Result {
        // Unsaved facts would be lost. A session that is already ending waits for its last save
        // anyway.
        let is_ending = match self.state.phase() {
            Phase::Closed => true,
            Phase::Interrupting(_, cut) => cut.closing.is_some(),
            Phase::Idle | Phase::Running(_) => false,
        };
        if let Some(unsaved) = self.outbox.failing().filter(|_| !is_ending) {
            return Replied::Now(Err(Refused::NotSaving { unsaved }));
        }
        tracing::info!(%by, "close");
        Replied::Now(self.handle_input(Input::Close { unused_since, by }, ctx).map(|_| ()))
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

/// Ends the actor because the engine stops. The open turn is cut, and everything that can continue
/// after a restart is left as it is.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Shutdown;

impl Handler<Shutdown> for SessionActor {
    type Result = ();

    fn handle(&mut self, _: Shutdown, ctx: &mut Self::Context) {
        tracing::info!("shut down");
        // A closed session refuses this, and ends anyway.
        let _ = self.handle_input(Input::Shutdown, ctx);
    }
}

/// Makes the actor panic, so that tests can check the recovery.
#[cfg(feature = "test-support")]
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct PanicNow;

#[cfg(feature = "test-support")]
impl Handler<PanicNow> for SessionActor {
    type Result = ();

    #[expect(clippy::panic, reason = "the message exists to cause a panic")]
    fn handle(&mut self, _: PanicNow, _: &mut Self::Context) {
        panic!("a test requested a panic");
    }
}
