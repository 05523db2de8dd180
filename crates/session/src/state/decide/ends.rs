//! The ends of turns and sessions: by a cut, by the turn itself, or by a close.

use std::sync::Arc;

use holdpoint_common::api::{CloseRequest, InterruptReply, InterruptRequest};
use holdpoint_common::{
    AskCloseCause, CutCause, EndedProcesses, Hold, JobEnd, Outcome, PromptFact, Receipt, Refused,
    RunEnd, SessionFact, StopHow, StoppedTool, ToolFact, ToolResult, ToolStatus, TurnFact, TurnId,
    Who,
};

use super::DecisionBuilder;
use crate::state::decision::Effect;
use crate::state::input::Decide;
use crate::state::{CallStage, Cut, Phase, Turn, queued};

impl Decide for InterruptRequest {
    fn decide(
        &self,
        by: &Who,
        builder: &mut DecisionBuilder<'_>,
    ) -> Result<InterruptReply, Refused> {
        let unchanged =
            InterruptReply { after: builder.moment.next - 1, ..InterruptReply::default() };
        match &builder.state.phase {
            Phase::Closed => Err(Refused::Closed),
            Phase::Idle if builder.state.run.is_some() && self.turn.is_none() => {
                builder.hand_back();
                builder.end_run(RunEnd::Interrupted, Some(by.clone()));
                Ok(InterruptReply { run: true, ..unchanged })
            }
            Phase::Idle => Ok(unchanged),
            Phase::Running(open) | Phase::Interrupting(open, _)
                if self.turn.is_some_and(|turn| turn != open.id) =>
            {
                Ok(unchanged)
            }
            Phase::Interrupting(open, _) => Ok(InterruptReply { turn: Some(open.id), ..unchanged }),
            Phase::Running(open) => {
                let turn = open.id;
                builder.cut(turn, CutCause::User { by: by.clone() }, AskCloseCause::Interrupted);
                builder.hand_back();
                Ok(InterruptReply { turn: Some(turn), ..unchanged })
            }
        }
    }
}

impl Decide for CloseRequest {
    fn decide(&self, by: &Who, builder: &mut DecisionBuilder<'_>) -> Result<(), Refused> {
        match &builder.state.phase {
            Phase::Closed => return Err(Refused::Closed),
            // The session is already closing.
            Phase::Interrupting(_, Cut { closing: Some(_), .. }) => {}
            _ if self.unused_since.is_some_and(|since| builder.state.is_used_since(since)) => {
                return Err(Refused::InUse);
            }
            Phase::Idle => {
                builder.return_queue();
                builder.end_session(by.clone());
            }
            Phase::Running(turn) => {
                let turn = turn.id;
                builder.cut(turn, CutCause::Close { by: by.clone() }, AskCloseCause::SessionClosed);
                builder.hand_back();
            }
            Phase::Interrupting(_, Cut { closing: None, .. }) => {
                builder.record(TurnFact::Cut { cause: CutCause::Close { by: by.clone() } });
                builder.return_queue();
            }
        }
        Ok(())
    }
}

impl DecisionBuilder<'_> {
    /// Cuts the turn: no work of the turn starts any more, and its asks are closed.
    pub(super) fn cut(&mut self, turn: TurnId, cause: CutCause, ask_cause: AskCloseCause) {
        self.effects.push(Effect::Cancel { turn });
        self.record(TurnFact::Cut { cause });
        self.close_asks(ask_cause);
    }

    /// Returns the queue to the client and turns the hold off, after an interrupt or a close.
    fn hand_back(&mut self) {
        self.return_queue();
        if self.state.hold != Hold::Off {
            self.record(SessionFact::HoldChanged { hold: Hold::Off });
        }
    }

    pub(super) fn return_queue(&mut self) {
        let waiting = self.state.queue.iter().filter_map(|event| queued(event));
        self.record_all(
            waiting.map(|(prompt, text)| PromptFact::Returned { prompt, text: Arc::clone(text) }),
        );
    }

    pub(super) fn end_session(&mut self, by: Who) {
        if self.state.hold != Hold::Off {
            self.record(SessionFact::HoldChanged { hold: Hold::Off });
        }
        self.end_run(RunEnd::Closed, None);
        self.end_jobs(JobEnd::SessionClosed);
        self.record(SessionFact::Closed { by });
        self.effects.push(Effect::Stop);
    }

    pub(super) fn finish_turn(
        &mut self,
        turn: &Turn,
        outcome: Outcome,
        error: Option<String>,
        mut tools: Vec<StoppedTool>,
        processes: EndedProcesses,
    ) {
        self.close_asks(AskCloseCause::TurnEnded);
        let cut = match &self.state.phase {
            Phase::Interrupting(_, cut) => Some(cut),
            Phase::Idle | Phase::Running(_) | Phase::Closed => None,
        };
        self.end_open_calls(
            turn,
            if cut.is_some() { "the turn was interrupted" } else { "the turn ended" },
        );
        // The turn's jobs ended with the cut, and the runner waited for that. Their own reports may
        // arrive later.
        let jobs_ended = outcome != Outcome::Panicked && processes.not_ended.is_empty();
        if jobs_ended && cut.is_some() {
            self.end_jobs_of(turn.id);
        }
        // A runner that panicked or vanished reports no tools.
        if outcome == Outcome::Panicked {
            let reported: Vec<_> = tools.iter().map(|tool| tool.call).collect();
            tools.extend(lost_tools(turn).filter(|lost| !reported.contains(&lost.call)));
        }
        // The request of a step without an answer may never have been sent. Such a step counts only
        // if its runner panicked.
        let step_counts = outcome == Outcome::Panicked
            || turn.open_step.is_some_and(|step| step.answer_bytes > 0);
        let usage = if step_counts { self.end_step(turn) } else { turn.usage };
        self.record(match cut {
            Some(cut) => TurnFact::Finished {
                outcome: Outcome::Interrupted,
                error,
                cause: Some(cut.cause.clone()),
                receipt: Some(Receipt {
                    tools,
                    processes,
                    asks: cut.asks.clone(),
                    prompts: cut.prompts.clone(),
                    uncounted: false,
                }),
                usage,
            },
            None => TurnFact::Finished { outcome, error, cause: None, receipt: None, usage },
        });
        let run = self.after_iteration(outcome, cut.map(|cut| &cut.cause));
        if let Some(by) = cut.and_then(|cut| cut.closing.clone()) {
            return self.end_session(by);
        }
        if cut.is_some_and(|cut| cut.stopping) {
            return self.end_actor(run.is_some());
        }
        let waits = !self.state.queue.is_empty() || run.is_some();
        match &self.state.hold {
            Hold::Requested { cause, .. } if waits => self.put_hold_in_effect(cause.clone()),
            Hold::Requested { .. } => self.record(SessionFact::HoldChanged { hold: Hold::Off }),
            Hold::Standing { .. } => {}
            Hold::Off => match run {
                Some(run) => self.iterate(&run, turn.id, outcome),
                None => self.start_next(),
            },
        }
    }

    /// Gives every open call a result that says how the call ended.
    pub(super) fn end_open_calls(&mut self, turn: &Turn, why: &str) {
        for (call, stage) in &turn.calls {
            let (status, text) = match stage {
                CallStage::Started => (
                    ToolStatus::Interrupted,
                    format!("{why} before this call returned; its effects so far remain"),
                ),
                CallStage::Denied { why } => (ToolStatus::Denied, why.clone()),
                CallStage::Proposed | CallStage::Asking | CallStage::Approved { .. } => {
                    (ToolStatus::Interrupted, format!("not run: {why}"))
                }
            };
            self.record(ToolFact::Finished(ToolResult::not_run(call.id, status, text).into()));
        }
    }
}

/// The started calls without a result, for the receipt of a turn whose runner is gone.
pub(super) fn lost_tools(turn: &Turn) -> impl Iterator<Item = StoppedTool> + '_ {
    let started = turn.calls.iter().filter(|(_, stage)| *stage == CallStage::Started);
    started.map(|(call, _)| StoppedTool {
        call: call.id,
        name: call.name.clone(),
        how: StopHow::Lost,
    })
}
