//! The decision for a runtime that stops: an orderly crash, after which a restart can continue.

use holdpoint_common::{AskCloseCause, CutCause, JobEnd, Refused, TurnFact};

use super::DecisionBuilder;
use crate::state::decision::Effect;
use crate::state::input::{Input, Shutdown};
use crate::state::{Cut, Phase};

impl Input for Shutdown {
    type Reply = ();

    fn decide(self, builder: &mut DecisionBuilder<'_>) -> Result<(), Refused> {
        match &builder.state.phase {
            Phase::Closed => return Err(Refused::Closed),
            Phase::Idle => builder.end_actor(builder.state.run.is_some()),
            Phase::Running(turn) if turn.has_open_confirm() => {
                builder.effects.push(Effect::Abandon);
                let why = CutCause::Shutdown.to_string();
                builder.keep_open_confirms(turn, AskCloseCause::Shutdown, &why);
                builder.end_jobs(JobEnd::Shutdown);
                builder.effects.push(Effect::Stop);
            }
            Phase::Running(turn) => {
                builder.cut(turn.id, CutCause::Shutdown, AskCloseCause::Shutdown)
            }
            // The actor already ends with this turn.
            Phase::Interrupting(_, Cut { closing: Some(_), .. } | Cut { stopping: true, .. }) => {}
            Phase::Interrupting(_, Cut { closing: None, stopping: false, .. }) => {
                builder.record(TurnFact::Cut { cause: CutCause::Shutdown });
            }
        }
        Ok(())
    }
}

impl DecisionBuilder<'_> {
    /// Ends the actor of a session without an open turn. Its queue and its run wait for the
    /// restart.
    pub(super) fn end_actor(&mut self, has_run: bool) {
        self.end_jobs(JobEnd::Shutdown);
        self.hold_pending_work(has_run);
        self.effects.push(Effect::Stop);
    }
}
