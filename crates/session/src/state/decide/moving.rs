//! The decision to move a session to another folder: its actor ends, and the next one continues its
//! work there.

use holdpoint_common::{AskCloseCause, Hold, HoldCause, JobEnd, Refused, SessionFact};

use super::DecisionBuilder;
use crate::state::decision::{Effect, Handover};
use crate::state::input::{HandOver, Input};
use crate::state::{CallStage, Phase, State, Turn};

impl Input for &HandOver {
    type Reply = Handover;

    fn decide(self, builder: &mut DecisionBuilder<'_>) -> Result<Handover, Refused> {
        let HandOver { machine, workspace, by } = self.clone();
        if !builder.state.can_move() {
            builder.hold(HoldCause::Move { by })?;
            return Ok(Handover::Waits);
        }
        // A turn that the first opening continues has no actor, and nothing else to keep.
        if let Some(turn) = builder.state.turn().filter(|_| !builder.state.continues) {
            builder.effects.push(Effect::Abandon);
            builder.keep_open_confirms(turn, AskCloseCause::Moved, "the session was moved");
        }
        builder.end_jobs(JobEnd::Shutdown);
        builder.record(SessionFact::Moved { machine, workspace, by });
        builder.effects.push(Effect::Stop);
        Ok(Handover::Done)
    }
}

impl State {
    /// Whether the session can continue its work in another folder: nothing runs, and nothing starts by
    /// itself.
    pub(crate) fn can_move(&self) -> bool {
        match &self.phase {
            Phase::Closed => true,
            Phase::Idle => self.is_held() || self.run.is_none() && self.queue.is_empty(),
            Phase::Running(turn) => self.can_continue(turn),
            Phase::Interrupting(..) => false,
        }
    }

    /// Whether another runner can continue the turn: it is held between two steps, or only waits for
    /// the user's answer to a policy Confirm. A hosted agent has no steps that can be held.
    fn can_continue(&self, turn: &Turn) -> bool {
        let is_between_steps = turn.open_step.is_none() && turn.calls.is_empty();
        let can_be_held = is_between_steps && self.settings.agent.is_none();
        if can_be_held && self.is_held() {
            return true;
        }
        let has_begun = turn.calls.iter().any(|(_, stage)| *stage == CallStage::Started);
        // No actor has seen the answers yet.
        let is_answered_away = self.continues && !turn.calls.is_empty();
        (turn.has_open_confirm() || is_answered_away) && !has_begun
    }

    fn is_held(&self) -> bool {
        matches!(self.hold, Hold::Standing { .. })
    }
}
