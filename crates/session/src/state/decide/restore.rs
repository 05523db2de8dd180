//! What can go on after a restart, and what can't.

use holdpoint_common::{
    AskCloseCause, AskOrigin, CutCause, Fact, Hold, HoldCause, JobEnd, Outcome, Receipt, RestoreCause,
};

use super::Draft;
use crate::state::decision::{Effect, Reply};
use crate::state::{CallStage, Phase, Turn};

impl Draft<'_> {
    pub(super) fn restored(&mut self, cause: RestoreCause) -> Reply {
        self.facts.push(Fact::SessionRestored { cause });
        let (ask_cause, cut_cause, outcome) = match cause {
            RestoreCause::Panic => (AskCloseCause::Panicked, CutCause::Panic, Outcome::Panicked),
            RestoreCause::Restart | RestoreCause::Unloaded => {
                (AskCloseCause::Restart, CutCause::Restart, Outcome::Interrupted)
            }
        };
        match &self.state.phase {
            Phase::Idle | Phase::Closed => {}
            Phase::Running(turn) if cause != RestoreCause::Panic && turn.stands() => self.keep(turn),
            Phase::Running(turn) => self.bury(turn, ask_cause, outcome, cut_cause, Receipt::default()),
            // The cut was first: it keeps its cause, what it had released, and the close it was to end with.
            Phase::Interrupting(turn, cut) => {
                let receipt = Receipt { asks: cut.asks.clone(), prompts: cut.prompts.clone(), ..Receipt::default() };
                self.bury(turn, ask_cause, Outcome::Interrupted, cut.cause.clone(), receipt);
                if let Some(by) = cut.closing.clone() {
                    self.return_queue();
                    self.end_session(by);
                    return Reply::Noted;
                }
            }
        }
        self.end_jobs(JobEnd::Lost);
        let hold = match (&self.state.hold, self.state.queue.is_empty()) {
            (_, true) => Hold::Off,
            (hold @ Hold::Standing { cause: HoldCause::Restored, .. }, false) => hold.clone(),
            (_, false) => Hold::Standing { cause: HoldCause::Restored, since: self.moment.now },
        };
        if self.state.hold != hold {
            self.facts.push(Fact::HoldChanged { hold });
        }
        Reply::Noted
    }

    /// Keeps a turn of which a policy's Confirm stands: the tool of that call had not begun, and goes on when it is
    /// answered. What had begun, and what was not asked about yet, is not run again.
    pub(super) fn keep(&mut self, turn: &Turn) {
        for ask in self.state.asks.iter().filter(|ask| ask.origin == AskOrigin::Tool) {
            self.facts.push(Fact::AskClosed { ask: ask.id.clone(), cause: AskCloseCause::Restart });
        }
        let calls = turn.calls.iter().filter(|(_, stage)| *stage != CallStage::Asking).cloned().collect();
        self.answer_open_calls(&Turn { calls, ..turn.clone() }, &CutCause::Restart.to_string());
        self.effects.push(Effect::Start { turn: turn.id });
    }

    /// Ends a turn whose runner is gone.
    pub(super) fn bury(
        &mut self,
        turn: &Turn,
        asks: AskCloseCause,
        outcome: Outcome,
        cause: CutCause,
        mut receipt: Receipt,
    ) {
        self.close_asks(asks);
        self.answer_open_calls(turn, &cause.to_string());
        receipt.asks.extend(self.state.asks.iter().map(|ask| ask.id.clone()));
        let (cause, receipt, usage) = (Some(cause), Some(receipt), turn.usage);
        self.facts.push(Fact::TurnFinished { outcome, error: None, cause, receipt, usage });
    }
}
