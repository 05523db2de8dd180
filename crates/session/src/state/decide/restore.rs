//! What can go on after a restart, and what can't.

use std::sync::Arc;

use holdpoint_common::{
    AskCloseCause, AskOrigin, AssistantMessage, Block, BlockKind, CutCause, Delta, Event, Fact, Hold, HoldCause,
    JobEnd, Outcome, Receipt, RestoreCause, RunEnd, Usage,
};

use super::Draft;
use super::ends::lost_tools;
use crate::state::apply::said;
use crate::state::decision::{Effect, Reply};
use crate::state::{CallStage, OpenStep, Phase, Turn};

impl Draft<'_> {
    pub(super) fn restored(&mut self, cause: RestoreCause, draft: &[Arc<Event>]) -> Reply {
        // It was told of already, and nothing has come of it yet, nor does it now: what stands goes on standing.
        let nothing_new = self.state.turn().is_none_or(Turn::stands);
        let told = cause == RestoreCause::Restart && self.state.restarted && nothing_new;
        if !told {
            self.facts.push(Fact::SessionRestored { cause });
        }
        self.facts.extend(self.said(draft).map(Fact::AssistantMessage));
        let (ask_cause, cut_cause, outcome) = match cause {
            RestoreCause::Panic => (AskCloseCause::Panicked, CutCause::Panic, Outcome::Panicked),
            RestoreCause::Restart | RestoreCause::Unloaded => {
                (AskCloseCause::Restart, CutCause::Restart, Outcome::Interrupted)
            }
        };
        let mut run = self.state.run.is_some();
        match &self.state.phase {
            Phase::Idle | Phase::Closed => {}
            Phase::Running(turn) if cause != RestoreCause::Panic && turn.stands() => self.keep(turn),
            Phase::Running(turn) => self.bury(turn, ask_cause, outcome, cut_cause, Receipt::default()),
            // The cut was first: it keeps its cause, what it had released, and the close it was to end with.
            Phase::Interrupting(turn, cut) => {
                let receipt = Receipt { asks: cut.asks.clone(), prompts: cut.prompts.clone(), ..Receipt::default() };
                self.bury(turn, ask_cause, Outcome::Interrupted, cut.cause.clone(), receipt);
                if matches!(cut.cause, CutCause::User { .. }) {
                    self.end_run(RunEnd::Interrupted, None);
                    run = false;
                }
                if let Some(by) = cut.closing.clone() {
                    self.return_queue();
                    self.end_session(by);
                    return Reply::Noted;
                }
            }
        }
        self.end_jobs(JobEnd::Lost);
        self.hold_what_waits(run);
        Reply::Noted
    }

    /// Holds the queue and the run, if there are such: nothing starts by itself.
    pub(super) fn hold_what_waits(&mut self, run: bool) {
        let hold = match (&self.state.hold, self.state.queue.is_empty() && !run) {
            (_, true) => Hold::Off,
            (hold @ Hold::Standing { cause: HoldCause::Restored, .. }, false) => hold.clone(),
            (_, false) => Hold::Standing { cause: HoldCause::Restored, since: self.moment.now },
        };
        if self.state.hold != hold {
            self.facts.push(Fact::HoldChanged { hold });
        }
    }

    /// What had come of the answer that was cut, as far as it was saved. Of one that is in the log, that is nothing.
    fn said(&self, draft: &[Arc<Event>]) -> Option<AssistantMessage> {
        // One with calls is in the log, and nothing comes between it and their results.
        let turn = self.state.turn().filter(|turn| turn.step > 0 && turn.calls.is_empty())?;
        let of_step = |event: &&Arc<Event>| event.turn == Some(turn.id) && event.step == Some(turn.step);
        let mut blocks: Vec<Block> = Vec::new();
        for event in draft.iter().filter(of_step) {
            let (kind, item, text) = match event.delta() {
                Some(Delta::Text { item, text }) => (BlockKind::Text, *item, text),
                Some(Delta::Thought { item, text }) => (BlockKind::Thought, *item, text),
                _ => continue,
            };
            if item < self.state.next_item {
                continue;
            }
            match blocks.iter_mut().find(|block| block.item == item) {
                Some(block) => block.text.push_str(text),
                None => blocks.push(Block { item, kind, text: text.clone(), signature: None, calls_before: 0 }),
            }
        }
        (!blocks.is_empty()).then(|| AssistantMessage { blocks, partial: true, ..AssistantMessage::default() })
    }

    /// Goes on with a turn of which a policy's Confirm stands.
    fn keep(&mut self, turn: &Turn) {
        self.let_stand(turn, AskCloseCause::Restart, &CutCause::Restart);
        self.effects.push(Effect::Start { turn: turn.id });
    }

    /// Leaves of a turn what a policy's Confirm stands for: the tool of that call had not begun, and goes on when it is
    /// answered. What had begun, and what was not asked about yet, is not run again.
    pub(super) fn let_stand(&mut self, turn: &Turn, asks: AskCloseCause, why: &CutCause) {
        for ask in self.state.asks.iter().filter(|ask| ask.origin == AskOrigin::Tool) {
            self.facts.push(Fact::AskClosed { ask: ask.id.clone(), cause: asks });
        }
        let calls = turn.calls.iter().filter(|(_, stage)| *stage != CallStage::Asking).cloned().collect();
        self.answer_open_calls(&Turn { calls, ..turn.clone() }, &why.to_string());
    }

    /// Ends a turn whose runner is gone.
    fn bury(&mut self, turn: &Turn, asks: AskCloseCause, outcome: Outcome, cause: CutCause, mut receipt: Receipt) {
        self.close_asks(asks);
        self.answer_open_calls(turn, &cause.to_string());
        let usage = self.end_step(turn);
        receipt.uncounted = true;
        receipt.tools.extend(lost_tools(turn));
        receipt.asks.extend(self.state.asks.iter().map(|ask| ask.id.clone()));
        let (cause, receipt) = (Some(cause), Some(receipt));
        self.facts.push(Fact::TurnFinished { outcome, error: None, cause, receipt, usage });
    }

    /// Ends the open step. Its usage was saved with its answer; without an answer, it is estimated. Returns the usage of the
    /// whole turn.
    pub(super) fn end_step(&mut self, turn: &Turn) -> Usage {
        let mut whole = turn.usage;
        if let Some(step) = turn.open_step {
            let drafted = self.facts.iter().find_map(|fact| match fact {
                Fact::AssistantMessage(message) => Some(OpenStep { said: said(message), usage: None }),
                _ => None,
            });
            let usage = self.state.used(drafted.unwrap_or(step), self.moment);
            self.facts.push(Fact::StepFinished { usage, context: None, refused: false, omitted: None });
            whole += usage;
        }
        whole
    }
}
