//! The messages that end a session's actor and leave the session as it is: unload, shutdown, and the
//! move to another folder.

use actix::prelude::*;

use holdpoint_common::Refused;

use super::{Replied, SessionActor};
use crate::state::{HandOver, Handover, Shutdown};

/// Ends the actor if the session is at rest, has no clients and is completely saved. The session
/// stays in its log. The reply says whether the actor ends.
#[derive(Message)]
#[rtype(result = "bool")]
pub(crate) struct Unload;

impl Handler<Unload> for SessionActor {
    type Result = bool;

    fn handle(&mut self, _: Unload, ctx: &mut Self::Context) -> bool {
        let can_unload =
            self.state.is_at_rest() && self.clients.len() == 0 && self.outbox.is_saved();
        if can_unload {
            tracing::info!("unload");
            ctx.stop();
        }
        can_unload
    }
}

impl Message for Shutdown {
    type Result = ();
}

impl Handler<Shutdown> for SessionActor {
    type Result = ();

    fn handle(&mut self, _: Shutdown, ctx: &mut Self::Context) {
        tracing::info!("shut down");
        // A closed session refuses this, and ends anyway.
        let _ = self.handle_input(Shutdown, ctx);
    }
}

impl Message for HandOver {
    type Result = Result<Handover, Refused>;
}

/// The reply means that the facts are saved. The manager notices the end of the actor.
impl Handler<HandOver> for SessionActor {
    type Result = Replied<Result<Handover, Refused>>;

    fn handle(&mut self, request: HandOver, ctx: &mut Self::Context) -> Self::Result {
        if self.outbox.is_ending() {
            return Replied::Never;
        }
        // The move has to be saved before the session can continue elsewhere.
        if let Some(unsaved) = self.outbox.unsaved_while_failing() {
            return Replied::Now(Err(Refused::NotSaving { unsaved }));
        }
        match self.handle_input(&request, ctx) {
            Ok(reply) => {
                let HandOver { machine, workspace, by } = &request;
                tracing::info!(machine, workspace, %by, ?reply, "move");
                self.handed_over = reply == Handover::Done;
                self.reply(move |_| Ok(reply), ctx)
            }
            Err(refused) => Replied::Now(Err(refused)),
        }
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
