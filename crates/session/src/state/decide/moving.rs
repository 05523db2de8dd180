//! The decision to move a session to another folder: its actor ends, and the next one continues its
//! work there.

use holdpoint_common::api::HoldRequest;
use holdpoint_common::{Hold, JobEnd, Refused, SessionFact};

use super::DecisionBuilder;
use crate::state::decision::{Effect, Handover};
use crate::state::input::{Decide, HandOver, Input};
use crate::state::{CallStage, Phase, State, Turn};

impl Input for &HandOver {
    type Reply = Handover;

    fn decide(self, builder: &mut DecisionBuilder<'_>) -> Result<Handover, Refused> {
        if !builder.state.can_move() {
            let holds = builder.state.hold == Hold::Off;
            HoldRequest {}.decide(&self.by, builder)?;
            return Ok(Handover::Waits { holds });
        }
        if builder.state.turn().is_some() {
            builder.effects.push(Effect::Abandon);
        }
        builder.end_jobs(JobEnd::Shutdown);
        let HandOver { machine, workspace, by } = self.clone();
        builder.record(SessionFact::Moved { machine, workspace, by });
        builder.effects.push(Effect::Stop);
        Ok(Handover::Done)
    }
}

impl State {
    /// Whether the session can continue its work in another folder as it is: nothing runs, and nothing
    /// starts by itself.
    pub(crate) fn can_move(&self) -> bool {
        match &self.phase {
            Phase::Closed => true,
            Phase::Idle => self.is_held() || (self.run.is_none() && self.queue.is_empty()),
            Phase::Running(turn) => self.can_continue(turn),
            Phase::Interrupting(..) => false,
        }
    }

    /// Whether another runner can continue the turn: it is held between two steps, or only waits for
    /// the user's answer to a policy Confirm.
    pub(super) fn can_continue(&self, turn: &Turn) -> bool {
        let is_between_steps = turn.open_step.is_none() && turn.calls.is_empty();
        let has_begun = turn.calls.iter().any(|(_, stage)| *stage == CallStage::Started);
        is_between_steps && self.is_held() || turn.has_open_confirm() && !has_begun
    }

    fn is_held(&self) -> bool {
        matches!(self.hold, Hold::Standing { .. })
    }
}
