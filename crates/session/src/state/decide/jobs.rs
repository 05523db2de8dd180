//! Decisions on background jobs.

use holdpoint_common::{CallId, Fact, Job, JobEnd, TurnId};

use super::DecisionBuilder;
use crate::state::Phase;
use crate::state::decision::Reply;

impl DecisionBuilder<'_> {
    pub(super) fn job_started(&mut self, turn: TurnId, call: CallId, command: String) -> Reply {
        // The report goes through the actor's mailbox, so it may arrive after the result of its
        // call and even after the end of its turn.
        let known = turn < self.state.next_turn() && !self.state.has_job(call);
        match &self.state.phase {
            Phase::Idle | Phase::Running(_) if known => {
                let job = Job { id: call, turn, command, since: self.moment.now };
                self.facts.push(Fact::JobStarted { job });
                Reply::Noted
            }
            // The job began before the cut, which ends it. A close ends all jobs.
            Phase::Idle | Phase::Running(_) | Phase::Interrupting(..) | Phase::Closed => Reply::Stale,
        }
    }

    pub(super) fn job_ended(&mut self, job: CallId, end: JobEnd) -> Reply {
        if !self.state.has_job(job) {
            return Reply::Stale;
        }
        self.facts.push(Fact::JobEnded { job, end });
        Reply::Noted
    }

    /// Ends the jobs of a turn that was cut.
    pub(super) fn end_jobs_of(&mut self, turn: TurnId) {
        let of_turn = self.state.jobs.iter().filter(|job| job.turn == turn);
        self.facts.extend(of_turn.map(|job| Fact::JobEnded { job: job.id, end: JobEnd::Interrupted }));
    }

    /// Ends every job that this decision has not ended yet.
    pub(super) fn end_jobs(&mut self, end: JobEnd) {
        let has_ended = |id| self.facts.iter().any(|fact| matches!(fact, Fact::JobEnded { job, .. } if *job == id));
        let open: Vec<_> = self.state.jobs.iter().map(|job| job.id).filter(|id| !has_ended(*id)).collect();
        self.facts.extend(open.into_iter().map(|job| Fact::JobEnded { job, end }));
    }
}
