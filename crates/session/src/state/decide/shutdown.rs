//! A runtime that stops: a tidy crash, after which a restart finds everything where it can go on.

use holdpoint_common::{AskCloseCause, CutCause, Fact, JobEnd};

use super::Draft;
use crate::state::decision::{Effect, Refused, Reply};
use crate::state::{Cut, Phase};

impl Draft<'_> {
    pub(super) fn shut_down(&mut self) -> Result<Reply, Refused> {
        match &self.state.phase {
            Phase::Closed => return Err(Refused::Closed),
            Phase::Idle => self.end_actor(self.state.run.is_some()),
            Phase::Running(turn) if turn.stands() => {
                self.effects.push(Effect::Abandon);
                self.let_stand(turn, AskCloseCause::Shutdown, &CutCause::Shutdown);
                self.end_jobs(JobEnd::Shutdown);
                self.effects.push(Effect::Stop);
            }
            Phase::Running(turn) => self.cut(turn.id, CutCause::Shutdown, AskCloseCause::Shutdown),
            // It ends with its turn already.
            Phase::Interrupting(_, Cut { closing: Some(_), .. } | Cut { stopping: true, .. }) => {}
            Phase::Interrupting(_, Cut { closing: None, stopping: false, .. }) => {
                self.facts.push(Fact::TurnCut { cause: CutCause::Shutdown });
            }
        }
        Ok(Reply::Stopping)
    }

    /// Ends the actor of a session whose turn is over. Its queue, and the run that is open, wait for the restart.
    pub(super) fn end_actor(&mut self, run: bool) {
        self.end_jobs(JobEnd::Shutdown);
        self.hold_what_waits(run);
        self.effects.push(Effect::Stop);
    }
}
