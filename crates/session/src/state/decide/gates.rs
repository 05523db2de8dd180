//! The machine's replies to a runner at its gates.

use holdpoint_common::{
    Answer, Ask, AskCloseCause, AskFact, AskOrigin, AsksMode, CallId, Hold, HoldAt, HoldCause,
    Refused, SessionSettings, ToolFact, TurnFact,
};

use super::DecisionBuilder;
use super::asks::{denial_by_setting, denial_by_user};
use crate::state::decision::GateReply;
use crate::state::input::{Clearance, Gate, Input, PassGate};
use crate::state::{CallStage, Phase, Turn};

impl Input for PassGate {
    type Reply = GateReply;

    fn decide(self, builder: &mut DecisionBuilder<'_>) -> Result<GateReply, Refused> {
        Ok(match &builder.state.phase {
            Phase::Running(open) if open.id == self.turn => match self.gate {
                Gate::Step => builder.step_gate(open),
                Gate::Tool { call, clearance } => builder.tool_gate(open, call, clearance),
            },
            Phase::Idle | Phase::Running(_) | Phase::Interrupting(..) | Phase::Closed => {
                GateReply::Cut
            }
        })
    }
}

impl DecisionBuilder<'_> {
    /// Decides before every model request whether the turn may make it.
    pub(super) fn step_gate(&mut self, turn: &Turn) -> GateReply {
        if let Some(reason) = self.turn_limit(turn) {
            return GateReply::Limit { reason };
        }
        let reached =
            self.state.run.as_ref().and_then(|run| run.limit_within_iteration(self.moment.now));
        let cause = match (&self.state.hold, reached) {
            (Hold::Standing { .. }, _) => return GateReply::Wait,
            (Hold::Requested { cause, .. }, reached)
                if reached.is_some() || (turn.step > 0 && self.holds_at_steps()) =>
            {
                cause.clone()
            }
            (Hold::Off, Some(reached)) => HoldCause::Limit { reached },
            (Hold::Requested { .. } | Hold::Off, _) => {
                self.record(TurnFact::StepStarted);
                return GateReply::Go;
            }
        };
        self.put_hold_in_effect(cause);
        GateReply::Wait
    }

    /// The reason to end the turn, if it has reached one of its limits.
    fn turn_limit(&self, turn: &Turn) -> Option<String> {
        let SessionSettings { max_steps, max_turn_tokens, .. } = *self.state.settings;
        let used = turn.usage.total();
        if max_steps > 0 && turn.step >= max_steps {
            Some(format!("the limit of {max_steps} steps is reached"))
        } else if max_turn_tokens > 0 && used >= max_turn_tokens {
            Some(format!("the limit of {max_turn_tokens} tokens is reached: {used} used"))
        } else {
            None
        }
    }

    /// Whether a hold takes effect at the end of a step: always, except in a run that holds at
    /// iterations.
    fn holds_at_steps(&self) -> bool {
        self.state.run.as_ref().is_none_or(|run| run.settings.hold_at == HoldAt::Step)
    }

    pub(super) fn tool_gate(
        &mut self,
        turn: &Turn,
        call: CallId,
        clearance: Clearance,
    ) -> GateReply {
        let Some((_, stage)) = turn.call(call) else { return GateReply::Cut };
        let remembered = clearance.key().and_then(|key| self.state.always.get(key));
        match (stage, clearance) {
            // A remembered denial takes precedence over a rule that allows the call.
            (CallStage::Proposed, _) if let Some(Answer::Deny { reason, .. }) = remembered => {
                GateReply::Denied { reason: denial_by_user(reason.as_deref(), true) }
            }
            (CallStage::Proposed, Clearance::Ask(confirm)) if remembered.is_none() => {
                self.raise(
                    call,
                    AskOrigin::Policy,
                    confirm.request(),
                    confirm.always,
                    confirm.may_be_denied,
                );
                match self.state.settings.asks {
                    AsksMode::Wait => GateReply::Wait,
                    AsksMode::Approve if !confirm.may_be_denied => self.start_call(call),
                    asks @ (AsksMode::Approve | AsksMode::Deny) => {
                        GateReply::Denied { reason: denial_by_setting(asks) }
                    }
                }
            }
            (CallStage::Proposed, _) => self.start_call(call),
            // After a restart the call is judged again, and its effect may differ from the approved
            // one.
            (CallStage::Approved { shown, .. }, Clearance::Ask(confirm))
                if *shown != confirm.request() =>
            {
                GateReply::Denied { reason: OUTDATED.to_owned() }
            }
            (CallStage::Approved { .. }, _) => self.start_call(call),
            (CallStage::Asking, clearance) => self.keep_asking(call, &clearance),
            (CallStage::Denied { why }, _) => GateReply::Denied { reason: why.clone() },
            // A call starts only once.
            (CallStage::Started, _) => GateReply::Cut,
        }
    }

    /// Lets a call with an open Confirm wait, unless its effect is no longer the one that the user
    /// saw. In a folder that the session has moved to, the user is asked again.
    pub(super) fn keep_asking(&mut self, call: CallId, clearance: &Clearance) -> GateReply {
        let of_call = |ask: &&Ask| ask.call == call && ask.origin == AskOrigin::Policy;
        match (self.state.asks.iter().find(of_call), clearance) {
            (Some(ask), Clearance::Ask(confirm)) if ask.request != confirm.request() => {
                let is_moved = self.state.turn_moved;
                let cause = if is_moved { AskCloseCause::Moved } else { AskCloseCause::Restart };
                self.record(AskFact::Closed { ask: ask.id.clone(), cause });
                if !is_moved {
                    return GateReply::Denied { reason: OUTDATED.to_owned() };
                }
                let request = confirm.request();
                let (always, may_be_denied) = (confirm.always.clone(), confirm.may_be_denied);
                self.raise(call, AskOrigin::Policy, request, always, may_be_denied);
                GateReply::Wait
            }
            _ => GateReply::Wait,
        }
    }

    pub(super) fn start_call(&mut self, call: CallId) -> GateReply {
        self.record(ToolFact::Started { call });
        GateReply::Go
    }
}

/// The text that the model receives when a call's effect has changed since the user saw it.
pub(super) const OUTDATED: &str = "not run: the effect of this call has changed since the user saw it; check the current state and try again";
