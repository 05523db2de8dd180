//! The gate: before a runner begins anything, the actor says go. Holding is nothing but not saying it.

use actix::prelude::*;
use holdpoint_common::TurnId;
use tokio::sync::oneshot;

use super::SessionActor;
use super::outbox::Action;
use crate::lane::{GateKey, Passage};
use crate::state::{Gate, GateReply, Input, Reply, decide};

/// Runners that wait to begin something.
#[derive(Default)]
pub(super) struct Gates {
    next: GateKey,
    waiting: Vec<Waiting>,
}

struct Waiting {
    key: GateKey,
    turn: TurnId,
    gate: Gate,
    /// It has been decided, and the answer is on its way through the outbox.
    decided: bool,
    runner: oneshot::Sender<Passage>,
}

impl SessionActor {
    pub(super) fn ask_gate(
        &mut self,
        turn: TurnId,
        gate: Gate,
        runner: oneshot::Sender<Passage>,
        ctx: &mut Context<Self>,
    ) {
        let key = self.gates.next;
        self.gates.next += 1;
        self.gates.waiting.push(Waiting { key, turn, gate, decided: false, runner });
        self.try_gate(key, ctx);
    }

    /// Something has changed: asks every gate that waits.
    pub(super) fn ask_gates_again(&mut self, ctx: &mut Context<Self>) {
        let keys: Vec<_> = self.gates.waiting.iter().map(|gate| gate.key).collect();
        for key in keys {
            self.try_gate(key, ctx);
        }
    }

    fn try_gate(&mut self, key: GateKey, ctx: &mut Context<Self>) {
        let takes_on = self.takes_on();
        // One that was let through on the way here is not asked again: it would be told that it has begun.
        let undecided = |gate: &&mut Waiting| gate.key == key && !gate.decided;
        let Some(waiting) = self.gates.waiting.iter_mut().find(undecided) else { return };
        let input = Input::Gate { turn: waiting.turn, gate: waiting.gate.clone() };
        let moment = self.outfit.moment(self.numbers.next());
        let Ok(decision) = decide(&self.state, moment, input) else { return };
        let Reply::Gate(reply) = decision.reply else { return };
        if takes_on.is_err() && reply != GateReply::Cut {
            return self.stand_until_saved(ctx);
        }
        waiting.decided = reply != GateReply::Wait;
        let action = match reply {
            // Who begins nothing waits for no save: a runner that comes here when its turn is cut ends it.
            GateReply::Cut => return self.pass(key, Passage::Cut),
            GateReply::Wait => None,
            GateReply::Go => Some(Action::Pass(
                key,
                match waiting.gate {
                    Gate::Step => Passage::Step(self.state.history()),
                    Gate::Tool { call, .. } => Passage::Call { approved: self.state.approved(call).cloned() },
                },
            )),
            GateReply::Denied { reason } => Some(Action::Pass(key, Passage::Denied(reason))),
            GateReply::Limit { reason } => Some(Action::Pass(key, Passage::Limit(reason))),
        };
        let moved = !decision.facts.is_empty();
        self.enact(decision.facts, decision.effects, action.into_iter().collect(), ctx);
        if moved {
            self.ask_gates_again(ctx);
        }
    }

    /// Tells a runner; if the cut was first, it knows already.
    pub(super) fn pass(&mut self, key: GateKey, passage: Passage) {
        if let Some(at) = self.gates.waiting.iter().position(|gate| gate.key == key) {
            // A runner that is gone needs no answer.
            let _ = self.gates.waiting.swap_remove(at).runner.send(passage);
        }
    }

    /// The turn is cut: whoever waits begins nothing.
    pub(super) fn cut_gates(&mut self) {
        for gate in self.gates.waiting.drain(..) {
            let _ = gate.runner.send(Passage::Cut);
        }
    }
}
