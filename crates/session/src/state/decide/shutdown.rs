//! The decision for a runtime that stops: an orderly crash, after which a restart can continue.

use holdpoint_common::{AskCloseCause, CutCause, Fact, JobEnd};

use super::DecisionBuilder;
use crate::state::decision::{Effect, Refused, Reply};
use crate::state::{Cut, Phase};

impl DecisionBuilder<'_> {
    pub(super) fn shut_down(&mut self) -> Result<Reply, Refused> {
        match &self.state.phase {
            Phase::Closed => return Err(Refused::Closed),
            Phase::Idle => self.end_actor(self.state.run.is_some()),
            Phase::Running(turn) if turn.has_open_confirm() => {
                self.effects.push(Effect::Abandon);
                self.keep_open_confirms(turn, AskCloseCause::Shutdown, &CutCause::Shutdown);
                self.end_jobs(JobEnd::Shutdown);
                self.effects.push(Effect::Stop);
            }
            Phase::Running(turn) => self.cut(turn.id, CutCause::Shutdown, AskCloseCause::Shutdown),
            // The actor already ends with this turn.
            Phase::Interrupting(_, Cut { closing: Some(_), .. } | Cut { stopping: true, .. }) => {}
            Phase::Interrupting(_, Cut { closing: None, stopping: false, .. }) => {
                self.facts.push(Fact::TurnCut { cause: CutCause::Shutdown });
            }
        }
        Ok(Reply::Stopping)
    }

    /// Ends the actor of a session without an open turn. Its queue and its run wait for the
    /// restart.
    pub(super) fn end_actor(&mut self, run: bool) {
        self.end_jobs(JobEnd::Shutdown);
        self.hold_pending_work(run);
        self.effects.push(Effect::Stop);
    }
}
