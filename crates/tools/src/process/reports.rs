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

/// The reports of one supervisor.
pub(super) struct Reports {
    pub(super) reader: BufReader<UnixStream>,
    /// Closed when the owner asks to end everything; `None` once that was noticed.
    pub(super) end_request: Option<PipeReader>,
    /// The process id of the supervisor, which is not reaped yet; `None` if it is a thread.
    pub(super) supervisor: Option<u32>,
    pub(super) grace: Duration,
    /// When to end everything in the supervisor's place.
    pub(super) deadline: Option<Instant>,
    /// The processes that were ended in the supervisor's place.
    pub(super) ended: EndedProcesses,
}

impl Reports {
    /// The next report; `None` when the supervisor is gone.
    pub(super) fn next(&mut self) -> Option<Report> {
        let mut line = String::new();
        loop {
            self.wait();
            match self.reader.read_line(&mut line) {
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
        self.end_request = None;
        self.deadline = None;
        let _ = self.reader.get_ref().set_read_timeout(None);
    }

    /// Waits until a report arrives or the owner asks to end everything.
    fn wait(&mut self) {
        let Some(end_request) =
            self.end_request.as_ref().filter(|_| self.reader.buffer().is_empty())
        else {
            return;
        };
        let mut fds = [
            PollFd::new(self.reader.get_ref(), PollFlags::IN),
            PollFd::new(end_request, PollFlags::IN),
        ];
        // The poll is repeated if a signal interrupts it, because its results are not set then.
        while poll(&mut fds, None).is_err_and(|error| error == rustix::io::Errno::INTR) {}
        if !fds[1].revents().is_empty() {
            self.end_request = None;
            if self.supervisor.is_some()
                && self.reader.get_ref().set_read_timeout(Some(start::WAKE_INTERVAL)).is_ok()
            {
                self.deadline = Some(Instant::now() + self.grace + REPORT_LIMIT);
                self.end_when_due();
            }
        }
    }

    fn end_when_due(&mut self) {
        let (Some(supervisor), Some(deadline)) = (self.supervisor, self.deadline) else { return };
        if Instant::now() < deadline {
            start::wake(supervisor);
        } else {
            self.deadline = None;
            self.ended = start::end_in_its_place(supervisor);
        }
    }
}
