//! The restore of a session: which parts of its turn continue, and which end.

use std::collections::HashMap;
use std::sync::Arc;

use holdpoint_common::api::ReleaseRequest;
use holdpoint_common::{
    AskCloseCause, AskFact, AskOrigin, AssistantMessage, Block, BlockKind, CutCause, Delta, Event,
    Fact, Hold, HoldCause, JobEnd, Outcome, Receipt, Refused, RestoreCause, RunEnd, SessionFact,
    TurnFact, Usage,
};

use super::DecisionBuilder;
use super::ends::lost_tools;
use crate::state::apply::answer_bytes;
use crate::state::decision::Effect;
use crate::state::input::{Decide, Input, Restore};
use crate::state::{CallStage, OpenStep, Phase, Turn};

impl Input for Restore {
    type Reply = ();

    fn decide(self, builder: &mut DecisionBuilder<'_>) -> Result<(), Refused> {
        let Self { cause, draft } = self;
        // A restart that is already recorded is not recorded again, unless work has begun since. A
        // turn with an open policy Confirm does not count as new work: it stays open.
        let no_new_work = builder.state.turn().is_none_or(Turn::has_open_confirm);
        let already_recorded =
            cause == RestoreCause::Restart && builder.state.restarted && no_new_work;
        if !already_recorded {
            builder.record(SessionFact::Restored { cause });
        }
        let drafted = builder.drafted_answer(&draft);
        builder.record_all(drafted.map(|answer| TurnFact::AssistantMessage(answer.into())));
        let (ask_cause, cut_cause, outcome) = match cause {
            RestoreCause::Panic => (AskCloseCause::Panicked, CutCause::Panic, Outcome::Panicked),
            RestoreCause::Restart | RestoreCause::Unloaded => {
                (AskCloseCause::Restart, CutCause::Restart, Outcome::Interrupted)
            }
        };
        if builder.state.continues && builder.state.can_move() && cause == RestoreCause::Unloaded {
            return builder.continue_now();
        }
        let mut has_run = builder.state.run.is_some();
        match &builder.state.phase {
            Phase::Idle | Phase::Closed => {}
            Phase::Running(turn) if cause != RestoreCause::Panic && turn.has_open_confirm() => {
                builder.continue_turn(turn)
            }
            Phase::Running(turn) => {
                builder.end_lost_turn(turn, ask_cause, outcome, cut_cause, Receipt::default())
            }
            // The cut came first: it keeps its cause, the asks and prompts it released, and the
            // close that follows.
            Phase::Interrupting(turn, cut) => {
                let receipt = Receipt {
                    asks: cut.asks.clone(),
                    prompts: cut.prompts.clone(),
                    ..Receipt::default()
                };
                builder.end_lost_turn(
                    turn,
                    ask_cause,
                    Outcome::Interrupted,
                    cut.cause.clone(),
                    receipt,
                );
                if matches!(cut.cause, CutCause::User { .. }) {
                    builder.end_run(RunEnd::Interrupted, None);
                    has_run = false;
                }
                if let Some(by) = cut.closing.clone() {
                    builder.return_queue();
                    builder.end_session(by);
                    return Ok(());
                }
            }
        }
        builder.end_jobs(JobEnd::Lost);
        builder.hold_pending_work(has_run);
        Ok(())
    }
}

impl DecisionBuilder<'_> {
    /// Holds the queue and the run, if there are any, so that no work starts by itself. Without
    /// either, the hold is turned off.
    pub(super) fn hold_pending_work(&mut self, has_run: bool) {
        let hold = match (&self.state.hold, self.state.queue.is_empty() && !has_run) {
            (_, true) => Hold::Off,
            (hold @ Hold::Standing { cause: HoldCause::Restored, .. }, false) => hold.clone(),
            (_, false) => Hold::Standing { cause: HoldCause::Restored, since: self.moment.now },
        };
        if self.state.hold != hold {
            self.record(SessionFact::HoldChanged { hold });
        }
    }

    /// The saved part of the answer that was cut, unless the log has the answer itself.
    fn drafted_answer(&self, draft: &[Arc<Event>]) -> Option<AssistantMessage> {
        // If calls are open, the log has their answer, and no other answer begins before their
        // results.
        let turn = self.state.turn().filter(|turn| turn.step > 0 && turn.calls.is_empty())?;
        let of_step =
            |event: &&Arc<Event>| event.turn == Some(turn.id) && event.step == Some(turn.step);
        let mut blocks: Vec<Block> = Vec::new();
        let mut positions = HashMap::new();
        for event in draft.iter().filter(of_step) {
            let (kind, item, text) = match event.delta() {
                Some(Delta::Text { item, text }) => (BlockKind::Text, *item, text),
                Some(Delta::Thought { item, text }) => (BlockKind::Thought, *item, text),
                _ => continue,
            };
            if item < self.state.next_item {
                continue;
            }
            let position = *positions.entry(item).or_insert(blocks.len());
            match blocks.get_mut(position) {
                Some(block) => block.text.push_str(text),
                None => blocks.push(Block {
                    item,
                    kind,
                    text: text.clone(),
                    signature: None,
                    calls_before: 0,
                }),
            }
        }
        (!blocks.is_empty()).then(|| AssistantMessage {
            blocks,
            partial: true,
            ..AssistantMessage::default()
        })
    }

    /// Continues a session that was moved, or whose ask was answered while its machine did not respond.
    /// Nothing of it ran meanwhile. It is released if it was held only for the move.
    fn continue_now(&mut self) -> Result<(), Refused> {
        self.end_jobs(JobEnd::Lost);
        let start = self.state.turn().map(|turn| Effect::Start { turn: turn.id });
        self.effects.extend(start);
        if let Hold::Standing { cause: HoldCause::Move { by }, .. } = &self.state.hold {
            ReleaseRequest {}.decide(by, self)?;
        }
        Ok(())
    }

    /// Continues a turn that has an open policy Confirm.
    fn continue_turn(&mut self, turn: &Turn) {
        self.keep_open_confirms(turn, AskCloseCause::Restart, &CutCause::Restart.to_string());
        self.effects.push(Effect::Start { turn: turn.id });
    }

    /// Keeps the calls of a turn that have an open policy Confirm: their tools have not started,
    /// and start when the user approves. The other open calls end, whether they had started or were
    /// not asked about yet, and are not run again.
    pub(super) fn keep_open_confirms(&mut self, turn: &Turn, ask_cause: AskCloseCause, why: &str) {
        for ask in self.state.asks.iter().filter(|ask| ask.origin == AskOrigin::Tool) {
            self.record(AskFact::Closed { ask: ask.id.clone(), cause: ask_cause });
        }
        let calls =
            turn.calls.iter().filter(|(_, stage)| *stage != CallStage::Asking).cloned().collect();
        self.end_open_calls(&Turn { calls, ..turn.clone() }, why);
    }

    /// Ends a turn whose runner is gone.
    fn end_lost_turn(
        &mut self,
        turn: &Turn,
        ask_cause: AskCloseCause,
        outcome: Outcome,
        cause: CutCause,
        mut receipt: Receipt,
    ) {
        self.close_asks(ask_cause);
        self.end_open_calls(turn, &cause.to_string());
        let usage = self.end_step(turn);
        receipt.uncounted = true;
        receipt.tools.extend(lost_tools(turn));
        receipt.asks.extend(self.state.asks.iter().map(|ask| ask.id.clone()));
        let (cause, receipt) = (Some(cause), Some(receipt));
        self.record(TurnFact::Finished { outcome, error: None, cause, receipt, usage });
    }

    /// Ends the open step and returns the usage of the whole turn. The step's usage was saved with
    /// its answer; without an answer it is estimated.
    pub(super) fn end_step(&mut self, turn: &Turn) -> Usage {
        let mut whole = turn.usage;
        if let Some(step) = turn.open_step {
            let drafted = self.facts.iter().find_map(|fact| match fact {
                Fact::Turn(TurnFact::AssistantMessage(message)) => {
                    Some(OpenStep { answer_bytes: answer_bytes(message), usage: None })
                }
                _ => None,
            });
            let usage = self.state.step_usage(drafted.unwrap_or(step), self.moment);
            self.record(TurnFact::StepFinished {
                usage,
                context: None,
                refused: false,
                omitted: None,
            });
            whole += usage;
        }
        whole
    }
}
