//! Background jobs of a session: commands that go on when the call that started them has come back.
//!
//! A job belongs to its session and ends with it; one whose turn is cut ends with the turn. Each has a thread that
//! reads its output and tells the session when it is over.

mod kept;
mod watch;

use std::any::Any;
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use holdpoint_common::limits::LEAVE_AFTER;
use holdpoint_common::{CallId, EndedProcesses, JobEnd, TurnId};

use crate::ask::ToolRequest;
use crate::context::ToolContext;
use crate::process::{ProcessSpec, Processes};
use kept::KeptOutput;

/// Jobs of one session that run at once. One more is refused.
pub const MAX_JOBS: usize = 8;

/// Jobs that are over and whose output can still be read, the oldest out first.
const REMEMBERED: usize = 8;

/// The background jobs of one session. Clones are the same.
#[derive(Clone)]
pub struct Background(Arc<Shared>);

struct Shared {
    jobs: Mutex<Jobs>,
    /// Told whenever a job has written or ended, and at a cut.
    changed: Condvar,
    /// Held by every job until nothing of it runs any more.
    keep: Arc<dyn Any + Send + Sync>,
}

#[derive(Default)]
struct Jobs {
    /// The session is over: nothing is started any more.
    closed: bool,
    /// The turn that was cut last: nothing of it is started any more.
    cut: Option<TurnId>,
    /// By the call that started each, so the oldest first.
    all: BTreeMap<CallId, Job>,
}

struct Job {
    turn: TurnId,
    command: String,
    since: Instant,
    processes: Processes,
    output: KeptOutput,
    /// Why it is being ended, if it is.
    ending: Option<JobEnd>,
    end: Option<JobEnd>,
}

/// A job as it is listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobState {
    /// The call that started it.
    pub id: CallId,
    /// What runs.
    pub command: String,
    /// How long it has been, or was, there.
    pub age: Duration,
    /// Bytes it has written.
    pub written: u64,
    /// How it ended, if it has.
    pub end: Option<JobEnd>,
}

/// A piece of a job's output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobOutput {
    /// The text.
    pub text: String,
    /// Where it begins, in bytes from the job's beginning. More than was asked for if that is no longer kept.
    pub from: u64,
    /// Where it ends: what to ask for next.
    pub next: u64,
    /// What the job has written in all.
    pub written: u64,
    /// How it ended, if it has.
    pub end: Option<JobEnd>,
}

impl Background {
    /// For one session. `keep` is dropped when nothing of it, and of its jobs, is left.
    pub fn new(keep: Arc<dyn Any + Send + Sync>) -> Self {
        Self(Arc::new(Shared { jobs: Mutex::default(), changed: Condvar::new(), keep }))
    }

    /// Starts a job for the call of `context`, which it goes by. It ends after `timeout`, if there is one.
    ///
    /// # Errors
    /// What the system says if it can't be started; an error too if [`MAX_JOBS`] run already, if this call has started
    /// one before, and once the turn or the session is over.
    pub fn start(
        &self,
        context: &ToolContext,
        spec: ProcessSpec,
        command: &str,
        timeout: Option<Duration>,
    ) -> io::Result<CallId> {
        let (turn, id) = (context.asker.turn(), context.asker.call());
        let processes = context.processes().like();
        {
            let mut jobs = self.jobs();
            if jobs.closed || jobs.cut == Some(turn) || context.is_cancelled() {
                return Err(io::Error::other("the turn is over: nothing more is started"));
            }
            if jobs.all.values().filter(|job| job.end.is_none()).count() >= MAX_JOBS {
                return Err(io::Error::other(format!("{MAX_JOBS} background jobs run already: stop one first")));
            }
            if jobs.all.contains_key(&id) {
                return Err(io::Error::other("one call starts one background job"));
            }
            jobs.forget_oldest();
            // Known before it runs, so that a cut finds it.
            let (since, output) = (Instant::now(), KeptOutput::default());
            let (processes, command) = (processes.clone(), command.to_owned());
            jobs.all.insert(id, Job { turn, command, since, processes, output, ending: None, end: None });
        }
        let started = processes.spawn(spec).and_then(|process| {
            context.asker.tell(ToolRequest::JobStarted { turn, call: id, command: command.to_owned() });
            watch::watch(Arc::clone(&self.0), context.asker.clone(), process, timeout)
        });
        if let Err(error) = started {
            processes.end();
            self.jobs().all.remove(&id);
            self.0.changed.notify_all();
            return Err(error);
        }
        Ok(id)
    }

    /// Every job that runs, and those that ended last; the oldest first.
    #[must_use]
    pub fn list(&self) -> Vec<JobState> {
        let jobs = self.jobs();
        let all = jobs.all.iter().map(|(id, job)| JobState {
            id: *id,
            command: job.command.clone(),
            age: job.since.elapsed(),
            written: job.output.written(),
            end: job.end,
        });
        all.collect()
    }

    /// Output of a job from a byte on, at most so many bytes of it; without `from`, the newest. Waits until the
    /// deadline for some to come, or for the job's end; not at all without one. `None` if there is no such job.
    pub fn read(
        &self,
        context: &ToolContext,
        id: CallId,
        from: Option<u64>,
        most: usize,
        deadline: Option<Instant>,
    ) -> Option<JobOutput> {
        let mut jobs = self.jobs();
        loop {
            let job = jobs.all.get(&id)?;
            let written = job.output.written();
            let has_come = from.map_or(written > 0, |from| written > from);
            let left = deadline.map_or(Duration::ZERO, |by| by.saturating_duration_since(Instant::now()));
            if has_come || job.end.is_some() || left.is_zero() || context.is_cancelled() {
                let (from, text) = job.output.read(from, most);
                let next = from + text.len() as u64;
                return Some(JobOutput { text, from, next, written, end: job.end });
            }
            jobs = self.0.changed.wait_timeout(jobs, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Stops a job and waits until it is gone: at most the grace and two seconds. `None` if there is no such
    /// job.
    pub fn stop(&self, id: CallId) -> Option<JobEnd> {
        let by = {
            let mut jobs = self.jobs();
            let job = jobs.all.get_mut(&id)?;
            job.finish(JobEnd::Stopped);
            Instant::now() + job.processes.grace() + 2 * LEAVE_AFTER
        };
        self.wait_over(by, |known, _| known == id);
        self.jobs().all.get(&id).map(|job| job.end.unwrap_or(JobEnd::Stopped))
    }

    /// Begins to end the jobs of a turn, and lets none of it be started any more. Returns at once.
    pub fn cut(&self, turn: TurnId) {
        let mut jobs = self.jobs();
        jobs.cut = Some(turn);
        jobs.all.values_mut().filter(|job| job.turn == turn).for_each(|job| job.finish(JobEnd::Interrupted));
        // Calls that wait for output look whether they are cut.
        self.0.changed.notify_all();
    }

    /// Whether a cut has ended jobs of this turn.
    #[must_use]
    pub fn has_cut(&self, turn: TurnId) -> bool {
        self.jobs().all.values().any(|job| job.is_cut_with(turn))
    }

    /// Waits until the jobs of a turn that was cut are gone: at most the longest of their graces and two seconds. What had
    /// to be ended for it; what still lives is told in `left`.
    #[must_use]
    pub fn finish(&self, turn: TurnId) -> EndedProcesses {
        let of_turn: Vec<_> =
            self.jobs().all.values().filter(|job| job.is_cut_with(turn)).map(|job| job.processes.clone()).collect();
        let mut ended = EndedProcesses::default();
        if let Some(grace) = of_turn.iter().map(Processes::grace).max() {
            let by = Instant::now() + grace + LEAVE_AFTER;
            of_turn.iter().for_each(|processes| ended.add(processes.finish_by(by)));
            self.wait_over(by + LEAVE_AFTER, |_, job| job.turn == turn);
        }
        ended
    }

    /// Begins to end all jobs: the session is over. Returns at once.
    pub fn close(&self) {
        let mut jobs = self.jobs();
        jobs.closed = true;
        jobs.all.values_mut().for_each(|job| job.finish(JobEnd::SessionClosed));
        self.0.changed.notify_all();
    }

    fn wait_over(&self, by: Instant, which: impl Fn(CallId, &Job) -> bool) {
        let mut jobs = self.jobs();
        while jobs.all.iter().any(|(id, job)| which(*id, job) && job.end.is_none()) {
            let left = by.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            jobs = self.0.changed.wait_timeout(jobs, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn jobs(&self) -> MutexGuard<'_, Jobs> {
        self.0.jobs()
    }
}

impl Shared {
    fn jobs(&self) -> MutexGuard<'_, Jobs> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Jobs {
    fn forget_oldest(&mut self) {
        let over: Vec<_> = self.all.iter().filter(|(_, job)| job.end.is_some()).map(|(id, _)| *id).collect();
        for id in over.iter().take(over.len().saturating_sub(REMEMBERED - 1)) {
            self.all.remove(id);
        }
    }
}

impl Job {
    fn is_cut_with(&self, turn: TurnId) -> bool {
        self.turn == turn && self.ending == Some(JobEnd::Interrupted)
    }

    /// Begins to end it, for this reason, unless there is one already.
    fn finish(&mut self, why: JobEnd) {
        if self.end.is_none() {
            self.ending.get_or_insert(why);
            self.processes.end();
        }
    }
}
