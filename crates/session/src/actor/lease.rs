//! The lease of a log that other machines can own: no work begins before its facts are saved or after
//! the lease has ended, and a session that another machine has taken over ends here.

use std::time::Duration;

use actix::prelude::*;

use super::SessionActor;
use crate::manager::ActorEnd;
use crate::state::Shutdown;
use crate::store::StoreError;

/// How often the lease is checked while the session has processes. A timer for its end would be late
/// after the machine slept.
const CHECK_EVERY: Duration = Duration::from_millis(500);

/// The reason that clients see when the lease has ended.
const LEASE_ENDED: &str =
    "this machine's lease of its sessions has ended; the session's work was cut";

/// Ends the actor if another machine has taken the session over.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct CheckOwner;

impl Handler<CheckOwner> for SessionActor {
    type Result = ();

    fn handle(&mut self, _: CheckOwner, ctx: &mut Self::Context) {
        // Only the owner can reserve numbers, even zero of them.
        let checking = self.log.reserve(0).into_actor(self).map(|checked, actor, ctx| {
            if let Err(error) = checked {
                actor.end_if_fenced(&error, ctx);
            }
        });
        ctx.spawn(checking);
    }
}

impl SessionActor {
    /// Whether work whose facts are `saved` or not may begin. Without a lease, work begins even if
    /// saving fails.
    pub(super) fn may_begin(&self, saved: bool) -> bool {
        self.log.until().is_none_or(|until| saved && !until.has_passed())
    }

    /// Checks the lease until the session has no processes, and no work waits for it.
    pub(super) fn watch_lease(&mut self, ctx: &mut Context<Self>) {
        if self.watching_lease || self.log.until().is_none() {
            return;
        }
        self.watching_lease = true;
        ctx.run_later(CHECK_EVERY, |actor, ctx| {
            actor.watching_lease = false;
            actor.check_lease(ctx);
        });
    }

    fn check_lease(&mut self, ctx: &mut Context<Self>) {
        // Background jobs and the servers of the tools also run between turns.
        let may_run = self.runner.is_some() || self.kept.is_some();
        let has_ended = self.log.until().is_some_and(|until| until.has_passed());
        // After the machine slept, the lease may have been extended before this runs.
        if may_run && (has_ended || self.log.lapses() != self.lapses) {
            return self.lease_ended(ctx);
        }
        self.begin_withheld(ctx);
        if may_run || self.outbox.is_withholding() {
            self.watch_lease(ctx);
        }
    }

    /// Ends everything that runs, and the actor, as an end of the program would. Another machine can
    /// own the session soon. If none does, the session continues when it is opened again.
    fn lease_ended(&mut self, ctx: &mut Context<Self>) {
        self.notify_not_saved(LEASE_ENDED, ctx);
        self.background.close();
        self.kept = None;
        // A closed session refuses this, and ends anyway.
        let _ = self.handle_input(Shutdown, ctx);
    }

    /// Ends the actor if another machine has taken the session over. Facts that are not saved are
    /// dropped, because they would contradict those of the new owner. Returns whether it ends.
    pub(super) fn end_if_fenced(&mut self, error: &StoreError, ctx: &mut Context<Self>) -> bool {
        if !matches!(error, StoreError::Fenced { .. }) {
            return false;
        }
        tracing::warn!(%error, "the session ends on this machine");
        if let Some(turn) = self.state.turn().map(|turn| turn.id) {
            self.cancel_runner(turn);
        }
        self.move_clients();
        self.end_as(ActorEnd::Lost);
        ctx.stop();
        true
    }
}
