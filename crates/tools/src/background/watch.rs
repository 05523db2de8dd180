//! The thread of one job: reads its output, waits for its end, tells the session.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use holdpoint_common::{CallId, JobEnd};

use super::Shared;
use crate::ask::{Asker, ToolRequest};
use crate::process::{Exit, Process};

/// Watches a job that has just been started.
pub(super) fn watch(
    shared: Arc<Shared>,
    session: Asker,
    process: Process,
    timeout: Option<Duration>,
) -> io::Result<()> {
    let id = session.call();
    let watch = Watch { shared, session, id, end: JobEnd::Lost };
    let thread = move || watch.run(process, timeout.map(|timeout| Instant::now() + timeout));
    std::thread::Builder::new().name(format!("job {id}")).spawn(thread)?;
    Ok(())
}

/// A job that is watched. Dropped, however that comes, the job counts as over.
struct Watch {
    shared: Arc<Shared>,
    session: Asker,
    id: CallId,
    end: JobEnd,
}

impl Watch {
    fn run(mut self, mut process: Process, deadline: Option<Instant>) {
        let keep = Arc::clone(&self.shared.keep);
        if let Err(error) = process.follow(deadline, |text| self.push(text), || self.finish(JobEnd::TimedOut)) {
            tracing::warn!(job = %self.id, %error, "a job's output could not be read");
        }
        let (exit, _) = process.finish();
        // Its supervisor included: who is told of the end finds nothing of it.
        let job = self.shared.jobs().all.get(&self.id).map(|job| (job.processes.clone(), job.ending));
        let ending = job.and_then(|(processes, ending)| {
            let _ = processes.finish();
            ending
        });
        self.end = ending.unwrap_or(match exit {
            Exit::Code(code) => JobEnd::Exited { code },
            Exit::Signal(signal) => JobEnd::Signalled { signal },
            Exit::Unknown => JobEnd::Lost,
        });
        drop(self);
        drop(keep);
    }

    fn finish(&self, why: JobEnd) {
        if let Some(job) = self.shared.jobs().all.get_mut(&self.id) {
            job.finish(why);
        }
    }

    fn push(&self, text: &str) {
        if !text.is_empty()
            && let Some(job) = self.shared.jobs().all.get_mut(&self.id)
        {
            job.output.push(text);
            self.shared.changed.notify_all();
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // Told first: who waits for the end finds it told.
        self.session.tell(ToolRequest::JobEnded { call: self.id, end: self.end });
        if let Some(job) = self.shared.jobs().all.get_mut(&self.id) {
            job.end = Some(self.end);
        }
        self.shared.changed.notify_all();
    }
}
