//! Background jobs of a session: commands that keep running after the call that started them has
//! returned.
//!
//! A job ends with its session, or earlier if its turn is cut. Each job has a thread that reads its
//! output and reports its end to the session.

mod kept;
mod watch;

use std::any::Any;
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use holdpoint_common::limits::ABANDON_AFTER;
use holdpoint_common::{CallId, EndedProcesses, JobEnd, TurnId};
use tokio_util::sync::CancellationToken;

use crate::ask::{Asker, ToolRequest};
use crate::process::{ProcessSpec, Processes};
use crate::sandbox::Sandbox;
use kept::KeptOutput;

/// How many jobs of one session may run at once. Starting another one fails.
pub const MAX_JOBS: usize = 8;

/// How many ended jobs are kept with their output when another job starts, counting that job. The
/// oldest are dropped then.
const MAX_ENDED_JOBS: usize = 8;

/// The background jobs of one session. Clones share the same jobs.
#[derive(Clone)]
pub struct BackgroundJobs(Arc<Shared>);

struct Shared {
    jobs: Mutex<Jobs>,
    /// Notified when a job writes or ends, and at a cut.
    changed: Condvar,
    /// Held by every job until all its processes have ended.
    keep: Arc<dyn Any + Send + Sync>,
}

#[derive(Default)]
struct Jobs {
    /// Whether the session has ended, so that no job may be started.
    closed: bool,
    /// The turn that was cut last. It may start no more jobs.
    cut: Option<TurnId>,
    /// By the call that started each job, so that the oldest is the first.
    all: BTreeMap<CallId, Job>,
    /// Cancelled at the next change of any job; `None` if it is not waited for.
    next_change: Option<CancellationToken>,
}

struct Job {
    turn: TurnId,
    command: String,
    since: Instant,
    processes: Processes,
    output: KeptOutput,
    /// The reason why the job is being ended, if it is.
    ending: Option<JobEnd>,
    end: Option<JobEnd>,
    /// How long the job ran, if it has ended.
    ran: Option<Duration>,
}

/// Jobs that are being stopped.
#[derive(Debug)]
pub struct StoppingJobs(Vec<Processes>);

/// A job as [`BackgroundJobs::list`] returns it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobState {
    /// The call that started the job.
    pub id: CallId,
    /// The command that the job runs.
    pub command: String,
    /// How long the job has run, or ran if it has ended.
    pub age: Duration,
    /// How many bytes the job has written.
    pub written: u64,
    /// How the job ended, if it has.
    pub end: Option<JobEnd>,
}

/// A piece of a job's output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobOutput {
    /// The text of this piece.
    pub text: String,
    /// The offset of the text in the whole output. Larger than the requested one if older output
    /// was dropped.
    pub from: u64,
    /// The offset after the text, where the next read continues.
    pub next: u64,
    /// How many bytes the job has written in total.
    pub written: u64,
    /// How the job ended, if it has.
    pub end: Option<JobEnd>,
}

impl BackgroundJobs {
    /// Creates the jobs of one session. `keep` is dropped once this value, its clones and its jobs
    /// are gone.
    pub fn new(keep: Arc<dyn Any + Send + Sync>) -> Self {
        Self(Arc::new(Shared { jobs: Mutex::default(), changed: Condvar::new(), keep }))
    }

    /// Starts a job in `processes` for the call of `asker`.
    pub(crate) fn start(
        &self,
        asker: &Asker,
        cancel: &CancellationToken,
        processes: Processes,
        spec: ProcessSpec,
        command: &str,
        timeout: Option<Duration>,
    ) -> io::Result<CallId> {
        let (turn, id) = (asker.turn(), asker.call());
        {
            let mut jobs = self.jobs();
            if jobs.closed || jobs.cut == Some(turn) || cancel.is_cancelled() {
                return Err(io::Error::other("the turn has ended"));
            }
            if jobs.all.values().filter(|job| job.end.is_none()).count() >= MAX_JOBS {
                return Err(io::Error::other(format!(
                    "{MAX_JOBS} background jobs are already running: stop one first"
                )));
            }
            if jobs.all.contains_key(&id) {
                return Err(io::Error::other("this call has already started a background job"));
            }
            jobs.forget_oldest_ended();
            // Registered before it runs, so that a cut finds it.
            let job = Job {
                turn,
                command: command.to_owned(),
                since: Instant::now(),
                processes: processes.clone(),
                output: KeptOutput::default(),
                ending: None,
                end: None,
                ran: None,
            };
            jobs.all.insert(id, job);
        }
        let running = processes.sandbox().and_then(Sandbox::begin_command);
        let started = processes.spawn(spec).and_then(|process| {
            asker.send_without_reply(ToolRequest::JobStarted {
                turn,
                call: id,
                command: command.to_owned(),
            });
            watch::watch(Arc::clone(&self.0), asker.clone(), process, running, timeout)
        });
        if let Err(error) = started {
            processes.end();
            let mut jobs = self.jobs();
            jobs.all.remove(&id);
            self.0.notify(&mut jobs);
            return Err(error);
        }
        Ok(id)
    }

    /// All running jobs and the last ended ones, oldest first.
    #[must_use]
    pub fn list(&self) -> Vec<JobState> {
        let jobs = self.jobs();
        let all = jobs.all.iter().map(|(id, job)| JobState {
            id: *id,
            command: job.command.clone(),
            age: job.ran.unwrap_or_else(|| job.since.elapsed()),
            written: job.output.written(),
            end: job.end,
        });
        all.collect()
    }

    /// Reads up to `max_bytes` of a job's output from offset `from` on, or the newest. Waits until
    /// the deadline for new output or the end of the job; without a deadline, it does not wait.
    /// `None` if there is no such job.
    pub(crate) fn read(
        &self,
        cancel: &CancellationToken,
        id: CallId,
        from: Option<u64>,
        max_bytes: usize,
        deadline: Option<Instant>,
    ) -> Option<JobOutput> {
        let mut jobs = self.jobs();
        loop {
            let job = jobs.all.get(&id)?;
            let written = job.output.written();
            let has_new_output = from.map_or(written > 0, |from| written > from);
            let remaining = deadline.map_or(Duration::ZERO, |deadline| {
                deadline.saturating_duration_since(Instant::now())
            });
            if has_new_output || job.end.is_some() || remaining.is_zero() || cancel.is_cancelled() {
                return Some(job.read(from, max_bytes));
            }
            jobs = self
                .0
                .changed
                .wait_timeout(jobs, remaining)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }

    /// Stops a job and waits until it has ended, at most the grace plus two seconds. `None` if
    /// there is no such job.
    pub fn stop(&self, id: CallId) -> Option<JobEnd> {
        let deadline = {
            let mut jobs = self.jobs();
            let job = jobs.all.get_mut(&id)?;
            job.start_ending(JobEnd::Stopped);
            Instant::now() + job.processes.grace() + 2 * ABANDON_AFTER
        };
        self.wait_for_ends(deadline, |known, _| known == id);
        self.jobs().all.get(&id).map(|job| job.end.unwrap_or(JobEnd::Stopped))
    }

    /// Reads up to `max_bytes` of a job's output from offset `from` on, or the newest, without
    /// waiting. `None` if there is no such job.
    #[must_use]
    pub fn output(&self, id: CallId, from: Option<u64>, max_bytes: usize) -> Option<JobOutput> {
        self.jobs().all.get(&id).map(|job| job.read(from, max_bytes))
    }

    /// A token that is cancelled at the next output or end of any job. Get it before looking at the
    /// jobs, so that no change is missed.
    #[must_use]
    pub fn next_change(&self) -> CancellationToken {
        self.jobs().next_change.get_or_insert_default().clone()
    }

    /// Begins to stop a job, if it runs. Returns at once.
    pub fn begin_stop(&self, id: CallId) {
        if let Some(job) = self.jobs().all.get_mut(&id) {
            job.start_ending(JobEnd::Stopped);
        }
    }

    /// Begins to stop these jobs, except those that are already being ended for another reason.
    /// Returns at once.
    #[must_use]
    pub fn begin_stop_all(&self, ids: &[CallId]) -> StoppingJobs {
        let mut stopping = Vec::new();
        let mut jobs = self.jobs();
        for id in ids {
            let Some(job) = jobs.all.get_mut(id).filter(|job| job.end.is_none()) else { continue };
            job.start_ending(JobEnd::Stopped);
            if job.ending == Some(JobEnd::Stopped) {
                stopping.push(job.processes.clone());
            }
        }
        StoppingJobs(stopping)
    }

    /// Begins to end the jobs of a turn, and prevents it from starting more. Returns at once.
    pub fn cut(&self, turn: TurnId) {
        let mut jobs = self.jobs();
        jobs.cut = Some(turn);
        jobs.all
            .values_mut()
            .filter(|job| job.turn == turn)
            .for_each(|job| job.start_ending(JobEnd::Interrupted));
        // Wake the calls that wait for output, so that they notice the cut.
        self.0.notify(&mut jobs);
    }

    /// Whether a cut has ended jobs of this turn.
    #[must_use]
    pub fn has_cut(&self, turn: TurnId) -> bool {
        self.jobs().all.values().any(|job| job.is_cut_with(turn))
    }

    /// Waits until the jobs of a cut turn have ended, at most their longest grace plus two seconds.
    /// Returns the processes that were ended, and in `not_ended` those that are still alive.
    #[must_use]
    pub fn finish(&self, turn: TurnId) -> EndedProcesses {
        let of_turn: Vec<_> = self
            .jobs()
            .all
            .values()
            .filter(|job| job.is_cut_with(turn))
            .map(|job| job.processes.clone())
            .collect();
        let mut ended = EndedProcesses::default();
        if let Some(grace) = of_turn.iter().map(Processes::grace).max() {
            let deadline = Instant::now() + grace + ABANDON_AFTER;
            of_turn.iter().for_each(|processes| ended.add(processes.finish_by(deadline)));
            self.wait_for_ends(deadline + ABANDON_AFTER, |_, job| job.turn == turn);
        }
        ended
    }

    /// Begins to end all jobs, because the session has ended. Returns at once.
    pub fn close(&self) {
        let mut jobs = self.jobs();
        jobs.closed = true;
        jobs.all.values_mut().for_each(|job| job.start_ending(JobEnd::SessionClosed));
        self.0.notify(&mut jobs);
    }

    /// Waits until all jobs that `is_included` selects have ended, or until the deadline.
    fn wait_for_ends(&self, deadline: Instant, is_included: impl Fn(CallId, &Job) -> bool) {
        let mut jobs = self.jobs();
        while jobs.all.iter().any(|(id, job)| is_included(*id, job) && job.end.is_none()) {
            let remaining = deadline.saturating_duration_since(Instant::now());
            if remaining.is_zero() {
                return;
            }
            jobs = self
                .0
                .changed
                .wait_timeout(jobs, remaining)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }

    fn jobs(&self) -> MutexGuard<'_, Jobs> {
        self.0.jobs()
    }
}

impl StoppingJobs {
    /// Waits until the processes of the jobs have ended, at most their longest grace plus one second.
    /// Returns the count of those that were ended, and in `not_ended` those that are still alive.
    #[must_use]
    pub fn finish(&self) -> EndedProcesses {
        let mut ended = EndedProcesses::default();
        if let Some(grace) = self.0.iter().map(Processes::grace).max() {
            let deadline = Instant::now() + grace + ABANDON_AFTER;
            self.0.iter().for_each(|processes| ended.add(processes.finish_by(deadline)));
        }
        ended
    }
}

impl Shared {
    fn jobs(&self) -> MutexGuard<'_, Jobs> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes everything that waits for a change of the jobs.
    fn notify(&self, jobs: &mut Jobs) {
        self.changed.notify_all();
        jobs.next_change.take().iter().for_each(CancellationToken::cancel);
    }
}

impl Jobs {
    /// Drops the oldest ended jobs. One place stays free for the job that is about to start.
    fn forget_oldest_ended(&mut self) {
        let ended: Vec<_> =
            self.all.iter().filter(|(_, job)| job.end.is_some()).map(|(id, _)| *id).collect();
        for id in ended.iter().take(ended.len().saturating_sub(MAX_ENDED_JOBS - 1)) {
            self.all.remove(id);
        }
    }
}

impl Job {
    fn read(&self, from: Option<u64>, max_bytes: usize) -> JobOutput {
        let (from, text) = self.output.read(from, max_bytes);
        let next = from + text.len() as u64;
        JobOutput { text, from, next, written: self.output.written(), end: self.end }
    }

    fn is_cut_with(&self, turn: TurnId) -> bool {
        self.turn == turn && self.ending == Some(JobEnd::Interrupted)
    }

    /// Begins to end the job, unless it is already being ended for another reason.
    fn start_ending(&mut self, cause: JobEnd) {
        if self.end.is_none() {
            self.ending.get_or_insert(cause);
            self.processes.end();
        }
    }
}
