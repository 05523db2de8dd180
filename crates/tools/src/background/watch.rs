//! The thread of one job: reads its output, waits for its end and reports it to the session.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use holdpoint_common::{CallId, JobEnd};

use super::Shared;
use crate::ask::{Asker, ToolRequest};
use crate::process::{Exit, Process};
use crate::sandbox::RunningCommand;

/// Starts the thread of a job that was just started.
pub(super) fn watch(
    shared: Arc<Shared>,
    session: Asker,
    process: Process,
    running: Option<RunningCommand>,
    timeout: Option<Duration>,
) -> io::Result<()> {
    let id = session.call();
    let watcher = JobWatcher { shared, session, id, end: JobEnd::Lost };
    let thread =
        move || watcher.run(process, running, timeout.map(|timeout| Instant::now() + timeout));
    std::thread::Builder::new().name(format!("job {id}")).spawn(thread)?;
    Ok(())
}

/// A watched job. When this is dropped, for any reason, the job counts as ended.
struct JobWatcher {
    shared: Arc<Shared>,
    session: Asker,
    id: CallId,
    end: JobEnd,
}

impl JobWatcher {
    fn run(
        mut self,
        mut process: Process,
        running: Option<RunningCommand>,
        deadline: Option<Instant>,
    ) {
        let keep = Arc::clone(&self.shared.keep);
        if let Err(error) =
            process.follow(deadline, |text| self.push(text), || self.start_ending(JobEnd::TimedOut))
        {
            tracing::warn!(job = %self.id, %error, "reading the output of a job failed");
        }
        let (exit, _) = process.finish();
        // End the supervisor too, so that no process of the job is left when its end is reported.
        let job =
            self.shared.jobs().all.get(&self.id).map(|job| (job.processes.clone(), job.ending));
        let mut has_living = false;
        let ending = job.and_then(|(processes, ending)| {
            has_living = !processes.finish().not_ended.is_empty();
            ending
        });
        if let Some(running) = running {
            self.push(&running.end(has_living).line());
        }
        self.end = ending.unwrap_or(match exit {
            Exit::Code(code) => JobEnd::Exited { code },
            Exit::Signal(signal) => JobEnd::Signalled { signal },
            Exit::Unknown => JobEnd::Lost,
        });
        drop(self);
        drop(keep);
    }

    fn start_ending(&self, cause: JobEnd) {
        if let Some(job) = self.shared.jobs().all.get_mut(&self.id) {
            job.start_ending(cause);
        }
    }

    fn push(&self, text: &str) {
        let mut jobs = self.shared.jobs();
        if !text.is_empty()
            && let Some(job) = jobs.all.get_mut(&self.id)
        {
            job.output.push(text);
            self.shared.notify(&mut jobs);
        }
    }
}

impl Drop for JobWatcher {
    fn drop(&mut self) {
        // Report first: a caller that waits for the end can rely on the report.
        self.session.send_without_reply(ToolRequest::JobEnded { call: self.id, end: self.end });
        let mut jobs = self.shared.jobs();
        if let Some(job) = jobs.all.get_mut(&self.id) {
            job.end = Some(self.end);
            job.ran = Some(job.since.elapsed());
        }
        self.shared.notify(&mut jobs);
    }
}
