//! Decisions on runs: the next iteration, holds at limits, and the end of a run.

use holdpoint_common::api::{RunRequest, RunStarted};
use holdpoint_common::{
    CutCause, Fact, Hold, HoldCause, Outcome, PromptFact, Refused, Run, RunEnd, RunFact,
    RunProgress, RunSettings, SessionFact, TaskRequest, Timestamp, TurnFact, TurnId, Who,
};

use super::DecisionBuilder;
use crate::state::decision::{Effect, Reception};
use crate::state::input::{Decide, Input, WaitOver};
use crate::state::{Cut, Phase, queued};

impl Decide for RunRequest {
    fn decide(&self, by: &Who, builder: &mut DecisionBuilder<'_>) -> Result<RunStarted, Refused> {
        match &builder.state.phase {
            Phase::Closed | Phase::Interrupting(_, Cut { closing: Some(_), .. }) => {
                return Err(Refused::Closed);
            }
            _ if builder.state.run.is_some() => return Err(Refused::RunOpen),
            Phase::Running(_) | Phase::Interrupting(_, Cut { closing: None, .. }) => {
                return Err(Refused::TurnOpen);
            }
            Phase::Idle => {}
        }
        let limit = builder.moment.limits.max_prompt_bytes;
        if self.goal.trim().is_empty() {
            return Err(Refused::EmptyGoal);
        }
        if self.goal.len() > limit {
            return Err(Refused::PromptTooLong { bytes: self.goal.len(), limit });
        }
        let RunRequest { goal, tasks, limits, hold_at } = self.clone();
        let added = builder.state.tasks.decide(TaskRequest::Add { titles: tasks }, None)?;
        let settings = RunSettings { goal, limits, hold_at };
        builder.record(RunFact::Started { run: settings.clone(), by: by.clone() });
        builder.record_all(added);
        let starts = !matches!(builder.state.hold, Hold::Standing { .. });
        if starts {
            builder.start_iteration(&Run::new(settings));
        }
        Ok(RunStarted { turn: starts.then(|| builder.state.next_turn()), saved: false })
    }
}

impl Input for WaitOver {
    type Reply = Reception;

    fn decide(self, builder: &mut DecisionBuilder<'_>) -> Result<Reception, Refused> {
        let is_last = builder.state.last_turn.as_ref().is_some_and(|last| last.turn == self.turn);
        let waits = |run: &&Run| run.waits_until.is_some() && is_last;
        match (&builder.state.phase, &builder.state.hold, builder.state.run.as_ref().filter(waits))
        {
            (Phase::Idle, Hold::Off, Some(run)) => {
                builder.start_iteration(run);
                Ok(Reception::Noted)
            }
            // The run was held, continued or ended in the meantime; another run may wait by now.
            (Phase::Idle | Phase::Running(_) | Phase::Interrupting(..) | Phase::Closed, _, _) => {
                Ok(Reception::Stale)
            }
        }
    }
}

impl DecisionBuilder<'_> {
    /// Updates the run at the end of its turn, and returns it if it continues.
    pub(super) fn after_iteration(
        &mut self,
        outcome: Outcome,
        cut: Option<&CutCause>,
    ) -> Option<Run> {
        let mut run = self.state.run.as_ref()?.after_turn(outcome, cut);
        run.progress.tokens = self.tokens(&run.progress);
        match cut {
            Some(CutCause::User { .. }) => self.end_run(RunEnd::Interrupted, None),
            // The end of the session also ends the run.
            Some(CutCause::Close { .. }) => {}
            Some(CutCause::Shutdown | CutCause::Restart | CutCause::Panic) => return Some(run),
            None if self.is_run_finished(outcome) => self.end_run(RunEnd::Done, None),
            None => return Some(run),
        }
        None
    }

    /// Whether a run is finished: no task is open, and the model has answered every prompt.
    fn is_run_finished(&self, outcome: Outcome) -> bool {
        let counts = self.state.tasks.counts();
        // If the run has closed no task itself, the model's word decides: the turn has to end as
        // done.
        let has_closed_tasks = counts.closed() > self.state.closed_before_run;
        counts.open() == 0
            && (has_closed_tasks || outcome == Outcome::Done)
            && self.state.queue.is_empty()
            && self.state.history.unanswered_prompts().next().is_none()
    }

    /// Ends the run. `by` is the client that ended it, unless another fact names that client.
    pub(super) fn end_run(&mut self, end: RunEnd, by: Option<Who>) {
        // An interrupt followed by a close has already ended the run with its turn.
        let already_ended =
            self.facts.iter().any(|fact| matches!(fact, Fact::Run(RunFact::Finished { .. })));
        if let Some(run) = self.state.run.as_ref().filter(|_| !already_ended) {
            let progress = self.final_progress(&run.progress);
            self.record(RunFact::Finished { end, progress, by });
        }
    }

    /// The final progress of a run, including a step that ends with it.
    fn final_progress(&self, progress: &RunProgress) -> RunProgress {
        // After a restart: the session did no work after its last fact.
        let restored = self
            .facts
            .iter()
            .any(|fact| matches!(fact, Fact::Session(SessionFact::Restored { .. })));
        let worked = progress.worked(if restored { self.state.last_at } else { self.moment.now });
        let worked_ms = u64::try_from(worked.as_millis()).unwrap_or(u64::MAX);
        RunProgress { worked_ms, working_since: None, tokens: self.tokens(progress), ..*progress }
    }

    /// The tokens a run has used, including those of a step that is just ending.
    fn tokens(&self, progress: &RunProgress) -> u64 {
        let ending = self.facts.iter().map(|fact| match fact {
            Fact::Turn(TurnFact::StepFinished { usage, .. }) => usage.total(),
            _ => 0,
        });
        ending.fold(progress.tokens, u64::saturating_add)
    }

    /// Continues a run after a turn: now, after a wait, or, at a limit, when the user releases it.
    pub(super) fn iterate(&mut self, run: &Run, turn: TurnId, outcome: Outcome) {
        if let Some(reached) = run.limit_between_iterations(self.moment.now) {
            return self.put_hold_in_effect(HoldCause::Limit { reached });
        }
        if run.failures == 0 || !matches!(outcome, Outcome::Failed | Outcome::Panicked) {
            return self.start_iteration(run);
        }
        // The wait doubles with each failure. The run is held before the bound of 8 matters.
        let wait_ms = self.moment.limits.run_retry_ms << (run.failures - 1).min(8);
        self.record(RunFact::Waiting { until: Timestamp(self.moment.now.0 + wait_ms) });
        self.effects.push(Effect::Wait { turn, wait_ms });
    }

    /// If a limit of the run caused `hold`, extends that limit. Returns the run, if there is one.
    pub(super) fn extend_limit(&mut self, hold: &Hold) -> Option<Run> {
        let mut run = self.state.run.clone()?;
        if let Hold::Standing { cause: HoldCause::Limit { reached }, .. } = hold {
            run.extend(*reached, self.moment.now);
            self.record(RunFact::Extended { limits: run.limits });
        }
        Some(run)
    }

    /// Continues a run that was released between two iterations.
    pub(super) fn continue_run(&mut self, run: &Run) {
        match run.limit_between_iterations(self.moment.now) {
            Some(reached) => self.put_hold_in_effect(HoldCause::Limit { reached }),
            None => self.start_iteration(run),
        }
    }

    /// Starts the next iteration, or repeats the one that was cut, and delivers the queued prompts.
    fn start_iteration(&mut self, run: &Run) {
        let turn = self.state.next_turn();
        let resumed = run.cut;
        let iteration =
            if resumed { run.progress.iteration } else { run.progress.iteration.saturating_add(1) };
        self.record(RunFact::IterationStarted { turn, iteration, resumed });
        let waiting = self.state.queue.iter().filter_map(|event| queued(event));
        self.record_all(waiting.map(|(prompt, _)| PromptFact::Delivered { prompt, iteration }));
        self.effects.push(Effect::Start { turn });
    }
}
