//! What a supervisor reports, and what is done about one that does not: its program may have stopped it.

use std::io::{self, BufRead, BufReader, PipeReader};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use holdpoint_common::EndedProcesses;
use rustix::event::{PollFd, PollFlags, poll};

use super::wire::Report;
use super::{GIVE_UP, start};

/// How long after the grace it may take to say what it has ended: a little more than until it gives up itself.
const SAYS_WITHIN: Duration = GIVE_UP.saturating_add(Duration::from_millis(150));

/// The reports of one supervisor.
pub(super) struct Reports {
    pub(super) from: BufReader<UnixStream>,
    /// Closed when everything is to end; none once that was heard.
    pub(super) asked: Option<PipeReader>,
    /// The supervisor's process, not reaped; none where it is a thread of ours.
    pub(super) supervisor: Option<u32>,
    pub(super) grace: Duration,
    /// When everything is ended in its place.
    pub(super) by: Option<Instant>,
    /// What was ended in its place.
    pub(super) ended: EndedProcesses,
}

impl Reports {
    /// The next report; none when the supervisor is gone.
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
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.help(),
                Err(_) => return None,
            }
        }
    }

    /// It has said what it has ended: it is let go on as long as it likes.
    pub(super) fn rest(&mut self) {
        (self.asked, self.by) = (None, None);
        let _ = self.from.get_ref().set_read_timeout(None);
    }

    /// Waits until something is said, or everything is to end.
    fn wait(&mut self) {
        let Some(asked) = self.asked.as_ref().filter(|_| self.from.buffer().is_empty()) else { return };
        let mut fds = [PollFd::new(self.from.get_ref(), PollFlags::IN), PollFd::new(asked, PollFlags::IN)];
        // Woken by a signal, it knows nothing yet.
        while poll(&mut fds, None).is_err_and(|error| error == rustix::io::Errno::INTR) {}
        if !fds[1].revents().is_empty() {
            self.asked = None;
            if self.supervisor.is_some() && self.from.get_ref().set_read_timeout(Some(start::AGAIN)).is_ok() {
                self.by = Some(Instant::now() + self.grace + SAYS_WITHIN);
                self.help();
            }
        }
    }

    fn help(&mut self) {
        let (Some(supervisor), Some(by)) = (self.supervisor, self.by) else { return };
        if Instant::now() < by {
            start::wake(supervisor);
        } else {
            self.by = None;
            self.ended = start::end_in_its_place(supervisor);
        }
    }
}
