//! A program that was started: reading its output, waiting for its end, ending it.

use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use holdpoint_common::EndedProcesses;
use holdpoint_common::limits::{LEAVE_AFTER, OUTPUT_DELTA};
use rustix::event::{PollFd, PollFlags, poll};

use super::exit::Exit;
use super::lossy::Lossy;
use super::running::Running;
use super::timespec;

/// How long output is still read after the program itself has ended and something else holds the pipe.
const LINGER: Duration = Duration::from_millis(1_500);

/// What reading brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Read {
    /// So many bytes.
    Bytes(usize),
    /// There is no more.
    Ended,
    /// The deadline passed.
    TimedOut,
}

/// A program that was started. Dropping it ends nothing: its [`Processes`](super::Processes) do.
#[derive(Debug)]
pub struct Process {
    running: Arc<Running>,
    grace: Duration,
    output: io::PipeReader,
    /// A byte when the program has ended, the end when its whole tree has.
    over: UnixStream,
    /// The program has ended: what comes until then is its output, too.
    drained_by: Option<Instant>,
    /// No more comes: so many bytes that are in the pipe are still to be read.
    left: Option<usize>,
}

impl Process {
    /// `over` gets a byte when it has ended, and is closed when all it has started has.
    pub(super) fn new(running: Arc<Running>, grace: Duration, output: io::PipeReader, over: UnixStream) -> Self {
        Self { running, grace, output, over, drained_by: None, left: None }
    }

    /// The program's process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.running.leader()
    }

    /// Reads output, waiting for some until the deadline, if there is one.
    ///
    /// What comes later than 1.5 s after the program has ended is not read, even if something that can't be ended
    /// holds the pipe. What came before is, however late.
    ///
    /// # Errors
    /// What the system says.
    pub fn read_by(&mut self, buffer: &mut [u8], deadline: Option<Instant>) -> io::Result<Read> {
        loop {
            if let Some(left) = self.left {
                return self.read_left(buffer, left);
            }
            let now = Instant::now();
            if self.drained_by.is_some_and(|by| now >= by) {
                self.end_of_output()?;
                continue;
            }
            // Before reading: somebody who floods the pipe must not keep its time from running out.
            if deadline.is_some_and(|deadline| now >= deadline) {
                return Ok(Read::TimedOut);
            }
            let until = earlier(deadline, self.drained_by);
            let timeout = until.map(|until| timespec(until.saturating_duration_since(now)));
            let (output, over) = (self.output.as_fd(), self.over.as_fd());
            let mut fds =
                [PollFd::from_borrowed_fd(output, PollFlags::IN), PollFd::from_borrowed_fd(over, PollFlags::IN)];
            match poll(&mut fds, timeout.as_ref()) {
                Ok(_) => {}
                Err(rustix::io::Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            }
            let (readable, news) = (!fds[0].revents().is_empty(), !fds[1].revents().is_empty());
            // First of all: somebody who floods the pipe must not keep it from us that the program has ended.
            if news {
                self.drained_by.get_or_insert_with(|| Instant::now() + LINGER);
                if io::Read::read(&mut self.over, &mut [0])? == 0 {
                    self.end_of_output()?;
                    continue;
                }
            }
            if readable {
                return Ok(match io::Read::read(&mut self.output, buffer)? {
                    0 => Read::Ended,
                    bytes => Read::Bytes(bytes),
                });
            }
        }
    }

    /// Has its output told as text, as it comes, until it has ended or the deadline has passed: then `late` is called, and
    /// it is ended. Whether that was so.
    ///
    /// # Errors
    /// The output can't be read.
    pub(crate) fn follow(
        &mut self,
        mut deadline: Option<Instant>,
        tell: impl Fn(&str),
        late: impl Fn(),
    ) -> io::Result<bool> {
        let mut timed_out = false;
        let mut text = Lossy::default();
        let mut buffer = vec![0; OUTPUT_DELTA];
        loop {
            match self.read_by(&mut buffer, deadline)? {
                Read::Bytes(bytes) => tell(&text.push(&buffer[..bytes])),
                Read::TimedOut if !timed_out => {
                    timed_out = true;
                    late();
                    self.end();
                    // What can't be ended is not waited for.
                    deadline = Some(Instant::now() + self.grace + LEAVE_AFTER);
                }
                Read::Ended | Read::TimedOut => break,
            }
        }
        tell(&text.finish());
        // It may go on after it has closed its output.
        if !timed_out && self.wait_by(deadline).is_none() {
            timed_out = true;
            late();
            self.end();
        }
        Ok(timed_out)
    }

    /// What is in the pipe now is all there is.
    fn end_of_output(&mut self) -> io::Result<()> {
        let left = rustix::io::ioctl_fionread(&self.output)?;
        self.left = Some(usize::try_from(left).unwrap_or(usize::MAX));
        Ok(())
    }

    /// Reads of what is all there is.
    fn read_left(&mut self, buffer: &mut [u8], left: usize) -> io::Result<Read> {
        let most = buffer.len().min(left);
        let bytes = io::Read::read(&mut self.output, &mut buffer[..most])?;
        self.left = Some(left - bytes);
        Ok(if bytes == 0 { Read::Ended } else { Read::Bytes(bytes) })
    }

    /// Waits until the program has ended; `None` if it has not by the deadline.
    #[must_use]
    pub fn wait_by(&self, deadline: Option<Instant>) -> Option<Exit> {
        self.running.wait_exit(deadline)
    }

    /// Begins to end the program and all it has started. Returns at once.
    pub fn end(&self) {
        self.running.end();
    }

    /// Ends the program if it still runs, waits until all it has started is gone (at most the grace and one
    /// second more), and says how it ended and what else had to be ended.
    #[must_use]
    pub fn finish(self) -> (Exit, EndedProcesses) {
        if self.running.wait_exit(Some(Instant::now())).is_none() {
            self.running.end();
        }
        let ended = self.running.wait_ended(Instant::now() + self.grace + LEAVE_AFTER);
        let exit = self.running.wait_exit(Some(Instant::now())).unwrap_or(Exit::Unknown);
        (exit, ended)
    }
}

impl io::Read for Process {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.read_by(buffer, None)? {
            Read::Bytes(bytes) => Ok(bytes),
            Read::Ended | Read::TimedOut => Ok(0),
        }
    }
}

fn earlier(one: Option<Instant>, other: Option<Instant>) -> Option<Instant> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}
