//! The decision for a change that a tool makes to the tasks and notes.

use holdpoint_common::Refused;

use super::DecisionBuilder;
use crate::state::Phase;
use crate::state::decision::Reception;
use crate::state::input::{ChangeTasks, Input};

impl Input for ChangeTasks {
    type Reply = Reception;

    fn decide(self, builder: &mut DecisionBuilder<'_>) -> Result<Reception, Refused> {
        match &builder.state.phase {
            Phase::Running(open) if open.id == self.turn && open.has_begun(self.call) => {
                let iteration = builder.state.run.as_ref().map(|run| run.progress.iteration);
                builder.record_all(builder.state.tasks.decide(self.request, iteration)?);
                Ok(Reception::Noted)
            }
            Phase::Idle | Phase::Running(_) | Phase::Interrupting(..) | Phase::Closed => {
                Ok(Reception::Stale)
            }
        }
    }
}
