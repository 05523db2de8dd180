//! Decisions on the changes that tools make to tasks and notes.

use holdpoint_common::{CallId, TaskRequest, TurnId};

use super::DecisionBuilder;
use crate::state::Phase;
use crate::state::decision::{Refused, Reply};

impl DecisionBuilder<'_> {
    pub(super) fn tasks(&mut self, turn: TurnId, call: CallId, request: TaskRequest) -> Result<Reply, Refused> {
        match &self.state.phase {
            Phase::Running(open) if open.id == turn && open.has_begun(call) => {
                let iteration = self.state.run.as_ref().map(|run| run.progress.iteration);
                self.facts.extend(self.state.tasks.decide(request, iteration)?);
                Ok(Reply::Noted)
            }
            Phase::Idle | Phase::Running(_) | Phase::Interrupting(..) | Phase::Closed => Ok(Reply::Stale),
        }
    }
}
