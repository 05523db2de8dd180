//! Decisions on background jobs.

use holdpoint_common::{Fact, Job, JobEnd, JobFact, Refused, TurnId};

use super::DecisionBuilder;
use crate::state::Phase;
use crate::state::decision::Reception;
use crate::state::input::{Input, JobEnded, JobStarted};

impl Input for JobStarted {
    type Reply = Reception;

    fn decide(self, builder: &mut DecisionBuilder<'_>) -> Result<Reception, Refused> {
        let Self { turn, call, command } = self;
        // The report goes through the actor's mailbox, so it may arrive after the result of its
        // call and even after the end of its turn.
        let is_new_job = turn < builder.state.next_turn() && !builder.state.has_job(call);
        match &builder.state.phase {
            Phase::Idle | Phase::Running(_) if is_new_job => {
                let job = Job { id: call, turn, command, since: builder.moment.now };
                builder.record(JobFact::Started { job });
                Ok(Reception::Noted)
            }
            // The job began before the cut, which ends it. A close ends all jobs.
            Phase::Idle | Phase::Running(_) | Phase::Interrupting(..) | Phase::Closed => {
                Ok(Reception::Stale)
            }
        }
    }
}

impl Input for JobEnded {
    type Reply = Reception;

    fn decide(self, builder: &mut DecisionBuilder<'_>) -> Result<Reception, Refused> {
        let Self { job, end } = self;
        if !builder.state.has_job(job) {
            return Ok(Reception::Stale);
        }
        builder.record(JobFact::Ended { job, end });
        Ok(Reception::Noted)
    }
}

impl DecisionBuilder<'_> {
    /// Ends the jobs of a turn that was cut.
    pub(super) fn end_jobs_of(&mut self, turn: TurnId) {
        let of_turn = self.state.jobs.iter().filter(|job| job.turn == turn);
        self.record_all(
            of_turn.map(|job| JobFact::Ended { job: job.id, end: JobEnd::Interrupted }),
        );
    }

    /// Ends every job that this decision has not ended yet.
    pub(super) fn end_jobs(&mut self, end: JobEnd) {
        let has_ended = |id| {
            self.facts
                .iter()
                .any(|fact| matches!(fact, Fact::Job(JobFact::Ended { job, .. }) if *job == id))
        };
        let running: Vec<_> =
            self.state.jobs.iter().map(|job| job.id).filter(|id| !has_ended(*id)).collect();
        self.record_all(running.into_iter().map(|job| JobFact::Ended { job, end }));
    }
}
