//! The gate: a runner asks the actor before it begins a step or a tool call, and a hold withholds
//! the answer.

use actix::prelude::*;
use holdpoint_common::TurnId;
use tokio::sync::oneshot;

use super::SessionActor;
use super::outbox::Action;
use crate::lane::{GateAnswer, GateKey};
use crate::state::{Gate, GateReply, PassGate, decide};

/// The runners that wait at a gate.
#[derive(Default)]
pub(super) struct Gates {
    next: GateKey,
    waiting: Vec<WaitingGate>,
}

struct WaitingGate {
    key: GateKey,
    turn: TurnId,
    gate: Gate,
    /// Whether the answer is decided and waits in the outbox.
    decided: bool,
    answer_to: oneshot::Sender<GateAnswer>,
}

impl SessionActor {
    pub(super) fn ask_gate(
        &mut self,
        turn: TurnId,
        gate: Gate,
        answer_to: oneshot::Sender<GateAnswer>,
        ctx: &mut Context<Self>,
    ) {
        self.read_if_too_large(ctx);
        let key = self.gates.next;
        self.gates.next += 1;
        self.gates.waiting.push(WaitingGate { key, turn, gate, decided: false, answer_to });
        self.try_gate(key, ctx);
    }

    /// Asks all waiting gates again after a change of the state.
    pub(super) fn ask_gates_again(&mut self, ctx: &mut Context<Self>) {
        let keys: Vec<_> = self.gates.waiting.iter().map(|gate| gate.key).collect();
        for key in keys {
            self.try_gate(key, ctx);
        }
    }

    fn try_gate(&mut self, key: GateKey, ctx: &mut Context<Self>) {
        let unsaved_check = self.check_unsaved_bound();
        // A decided gate is not asked again: its step or call counts as begun.
        let undecided = |gate: &&mut WaitingGate| gate.key == key && !gate.decided;
        let Some(waiting) = self.gates.waiting.iter_mut().find(undecided) else { return };
        let input = PassGate { turn: waiting.turn, gate: waiting.gate.clone() };
        let moment = self.env.moment(self.numbers.next());
        let Ok(decision) = decide(&self.state, moment, input) else { return };
        let reply = decision.reply;
        if unsaved_check.is_err() && reply != GateReply::Cut {
            return self.notify_full(ctx);
        }
        waiting.decided = reply != GateReply::Wait;
        let action = match reply {
            // A cut waits for no save: the runner begins no work, it only ends its turn.
            GateReply::Cut => return self.answer_gate(key, GateAnswer::Cut),
            GateReply::Wait => None,
            GateReply::Go => Some(Action::Pass(
                key,
                match waiting.gate {
                    Gate::Step => GateAnswer::Step(self.state.history()),
                    Gate::Tool { call, .. } => {
                        let approved = self.state.approved(call);
                        GateAnswer::Call {
                            approved: approved.map(|(shown, always)| (shown.clone(), always)),
                        }
                    }
                },
            )),
            GateReply::Denied { reason } => Some(Action::Pass(key, GateAnswer::Denied(reason))),
            GateReply::Limit { reason } => Some(Action::Pass(key, GateAnswer::Limit(reason))),
        };
        let has_changed = !decision.facts.is_empty();
        self.apply_decision(decision.facts, decision.effects, action.into_iter().collect(), ctx);
        if has_changed {
            self.ask_gates_again(ctx);
        }
    }

    /// Answers the runner at a gate. After a cut, the runner has its answer already.
    pub(super) fn answer_gate(&mut self, key: GateKey, answer: GateAnswer) {
        if let Some(at) = self.gates.waiting.iter().position(|gate| gate.key == key) {
            // The runner may be gone.
            let _ = self.gates.waiting.swap_remove(at).answer_to.send(answer);
        }
    }

    /// Answers all waiting gates with [`GateAnswer::Cut`].
    pub(super) fn cut_gates(&mut self) {
        for gate in self.gates.waiting.drain(..) {
            let _ = gate.answer_to.send(GateAnswer::Cut);
        }
    }
}
