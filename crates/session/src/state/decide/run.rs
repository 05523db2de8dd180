//! What a run does: which iteration follows, what holds it, how it ends.

use holdpoint_common::api::RunRequest;
use holdpoint_common::{
    CutCause, Fact, Hold, HoldCause, Outcome, Run, RunEnd, RunProgress, RunSettings, TaskRequest, Timestamp, TurnId,
    Who,
};

use super::Draft;
use crate::state::decision::{Effect, Refused, Reply};
use crate::state::{Cut, Phase, queued};

impl Draft<'_> {
    pub(super) fn run(&mut self, request: RunRequest, by: Who) -> Result<Reply, Refused> {
        match &self.state.phase {
            Phase::Closed | Phase::Interrupting(_, Cut { closing: Some(_), .. }) => return Err(Refused::Closed),
            _ if self.state.run.is_some() => return Err(Refused::RunOpen),
            Phase::Running(_) | Phase::Interrupting(_, Cut { closing: None, .. }) => return Err(Refused::TurnOpen),
            Phase::Idle => {}
        }
        let RunRequest { goal, tasks, limits, hold_at } = request;
        let most = self.moment.limits.max_prompt_bytes;
        if goal.trim().is_empty() {
            return Err(Refused::EmptyGoal);
        }
        if goal.len() > most {
            return Err(Refused::PromptTooLong { bytes: goal.len(), most });
        }
        let added = self.state.tasks.decide(TaskRequest::Add { titles: tasks }, None)?;
        let settings = RunSettings { goal, limits, hold_at };
        self.facts.push(Fact::RunStarted { run: settings.clone(), by });
        self.facts.extend(added);
        let starts = !matches!(self.state.hold, Hold::Standing { .. });
        if starts {
            self.start_iteration(&Run::begun(settings));
        }
        Ok(Reply::RunStarted { turn: starts.then(|| self.state.next_turn()) })
    }

    /// The time after a failed iteration is over.
    pub(super) fn wait_over(&mut self, turn: TurnId) -> Reply {
        let is_last = self.state.last_turn.as_ref().is_some_and(|last| last.turn == turn);
        let waits = |run: &&Run| run.waits_until.is_some() && is_last;
        match (&self.state.phase, &self.state.hold, self.state.run.as_ref().filter(waits)) {
            (Phase::Idle, Hold::Off, Some(run)) => {
                self.start_iteration(run);
                Reply::Noted
            }
            // It was held meanwhile, went on, or ended; another may wait by now.
            (Phase::Idle | Phase::Running(_) | Phase::Interrupting(..) | Phase::Closed, _, _) => Reply::Stale,
        }
    }

    /// What becomes of the run with the end of its turn. Returns the run as it then is, if it goes on.
    pub(super) fn after_iteration(&mut self, outcome: Outcome, cut: Option<&CutCause>) -> Option<Run> {
        let mut run = self.state.run.as_ref()?.after(outcome, cut);
        run.progress.tokens = self.tokens(&run.progress);
        match cut {
            Some(CutCause::User { .. }) => self.end_run(RunEnd::Interrupted, None),
            // Told with the session's end.
            Some(CutCause::Close { .. }) => {}
            Some(CutCause::Shutdown | CutCause::Restart | CutCause::Panic) => return Some(run),
            None if self.nothing_left(outcome) => self.end_run(RunEnd::Done, None),
            None => return Some(run),
        }
        None
    }

    /// Whether a run has come to its end: no task is left, and nobody has said anything that the model has not heard.
    fn nothing_left(&self, outcome: Outcome) -> bool {
        let counts = self.state.tasks.counts();
        // Where the run has worked none off, there is only the model's word for it.
        let worked_off = counts.closed() > self.state.closed_before_run;
        counts.open() == 0
            && (worked_off || outcome == Outcome::Done)
            && self.state.queue.is_empty()
            && self.state.history.unheard().next().is_none()
    }

    /// Ends a run; `by` whom, if nothing else tells it.
    pub(super) fn end_run(&mut self, end: RunEnd, by: Option<Who>) {
        // With the turn it was interrupted in, if the session closes after that.
        let told = self.facts.iter().any(|fact| matches!(fact, Fact::RunFinished { .. }));
        if let Some(run) = self.state.run.as_ref().filter(|_| !told) {
            let progress = self.taken(&run.progress);
            self.facts.push(Fact::RunFinished { end, progress, by });
        }
    }

    /// What a run has taken in the end, that of a step which ends together with it included.
    fn taken(&self, progress: &RunProgress) -> RunProgress {
        // After a restart: nobody has worked since the last fact.
        let restored = self.facts.iter().any(|fact| matches!(fact, Fact::SessionRestored { .. }));
        let worked = progress.worked(if restored { self.state.last_at } else { self.moment.now });
        let worked_ms = u64::try_from(worked.as_millis()).unwrap_or(u64::MAX);
        RunProgress { worked_ms, working_since: None, tokens: self.tokens(progress), ..*progress }
    }

    /// What a run has used, that of a step which is just ending included.
    fn tokens(&self, progress: &RunProgress) -> u64 {
        let ending = self.facts.iter().map(|fact| match fact {
            Fact::StepFinished { usage, .. } => usage.total(),
            _ => 0,
        });
        ending.fold(progress.tokens, u64::saturating_add)
    }

    /// Goes on with a run whose turn is over: now, after a wait, or not before it is released.
    pub(super) fn iterate(&mut self, run: &Run, turn: TurnId, outcome: Outcome) {
        if let Some(reached) = run.reached(self.moment.now) {
            return self.stand(HoldCause::Limit { reached });
        }
        if run.failures == 0 || !matches!(outcome, Outcome::Failed | Outcome::Panicked) {
            return self.start_iteration(run);
        }
        let wait_ms = self.moment.limits.run_retry_ms << (run.failures - 1).min(8);
        self.facts.push(Fact::RunWaiting { until: Timestamp(self.moment.now.0 + wait_ms) });
        self.effects.push(Effect::Wait { turn, wait_ms });
    }

    /// Grants the run as much again of what it was held for, if `hold` was for a limit. Returns the run as it then is.
    pub(super) fn grant(&mut self, hold: &Hold) -> Option<Run> {
        let mut run = self.state.run.clone()?;
        if let Hold::Standing { cause: HoldCause::Limit { reached }, .. } = hold {
            run.extend(*reached, self.moment.now);
            self.facts.push(Fact::RunExtended { limits: run.limits });
        }
        Some(run)
    }

    /// Goes on with a run that is released between two iterations.
    pub(super) fn go_on(&mut self, run: &Run) {
        match run.reached(self.moment.now) {
            Some(reached) => self.stand(HoldCause::Limit { reached }),
            None => self.start_iteration(run),
        }
    }

    /// Starts the next iteration, or again the one that was cut, and gives it the prompts that wait.
    fn start_iteration(&mut self, run: &Run) {
        let (turn, resumed) = (self.state.next_turn(), run.cut);
        let iteration = if resumed { run.progress.iteration } else { run.progress.iteration.saturating_add(1) };
        self.facts.push(Fact::IterationStarted { turn, iteration, resumed });
        let waiting = self.state.queue.iter().filter_map(|event| queued(event));
        self.facts.extend(waiting.map(|(prompt, _)| Fact::PromptDelivered { prompt, iteration }));
        self.effects.push(Effect::Start { turn });
    }
}
