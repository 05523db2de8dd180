//! Reads a supervisor's reports, and replaces a supervisor that does not report: its program may
//! have stopped it.

use std::io::{self, BufRead, BufReader, PipeReader};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use holdpoint_common::EndedProcesses;
use rustix::event::{PollFd, PollFlags, poll};

use super::wire::Report;
use super::{GIVE_UP, start};

/// How long after the grace a supervisor may take to report the ended processes: a little longer
/// than it takes to give up.
const REPORT_LIMIT: Duration = GIVE_UP.saturating_add(Duration::from_millis(150));

pub(super) struct Reports {
    pub(super) from: BufReader<UnixStream>,
    /// Closed when the owner asks to end everything; `None` once that was noticed.
    pub(super) asked: Option<PipeReader>,
    /// The process id of the supervisor, which is not reaped yet; `None` if it is a thread.
    pub(super) supervisor: Option<u32>,
    pub(super) grace: Duration,
    /// When to end everything in the supervisor's place.
    pub(super) by: Option<Instant>,
    /// The processes that were ended in the supervisor's place.
    pub(super) ended: EndedProcesses,
}

impl Reports {
    /// The next report; `None` when the supervisor is gone.
    pub(super) fn next(&mut self) -> Option<Report> {
        let mut line = String::new();
        loop {
            self.wait();
            match self.from.read_line(&mut line) {
                Ok(0) => return None,
                Ok(_) => match Report::parse(&line) {
                    Some(report) => return Some(report),
                    None => line.clear(),
                },
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.end_when_due(),
                Err(_) => return None,
            }
        }
    }

    /// Drops the deadline: the supervisor has reported the ended processes and may continue to run.
    pub(super) fn clear_deadline(&mut self) {
        (self.asked, self.by) = (None, None);
        let _ = self.from.get_ref().set_read_timeout(None);
    }

    /// Waits until a report arrives or the owner asks to end everything.
    fn wait(&mut self) {
        let Some(asked) = self.asked.as_ref().filter(|_| self.from.buffer().is_empty()) else {
            return;
        };
        let mut fds =
            [PollFd::new(self.from.get_ref(), PollFlags::IN), PollFd::new(asked, PollFlags::IN)];
        // Repeated if a signal interrupts it, because the results are not set then.
        while poll(&mut fds, None).is_err_and(|error| error == rustix::io::Errno::INTR) {}
        if !fds[1].revents().is_empty() {
            self.asked = None;
            if self.supervisor.is_some()
                && self.from.get_ref().set_read_timeout(Some(start::WAKE_INTERVAL)).is_ok()
            {
                self.by = Some(Instant::now() + self.grace + REPORT_LIMIT);
                self.end_when_due();
            }
        }
    }

    fn end_when_due(&mut self) {
        let (Some(supervisor), Some(by)) = (self.supervisor, self.by) else { return };
        if Instant::now() < by {
            start::wake(supervisor);
        } else {
            self.by = None;
            self.ended = start::end_in_its_place(supervisor);
        }
    }
}
