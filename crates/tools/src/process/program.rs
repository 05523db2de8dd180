//! A started program: reads its output, waits for its end, and ends it.

use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use holdpoint_common::EndedProcesses;
use holdpoint_common::limits::{ABANDON_AFTER, MAX_OUTPUT_DELTA};
use rustix::event::{PollFd, PollFlags, poll};

use super::exit::Exit;
use super::lossy::Lossy;
use super::running::Running;
use super::timespec;
use crate::sandbox::RefusedHosts;

/// How long output is still read after the program has ended, if another process holds the pipe.
const LINGER: Duration = Duration::from_millis(1_500);

/// The result of reading output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Read {
    /// The number of bytes read.
    Bytes(usize),
    /// The output is complete.
    Ended,
    /// The deadline for reading has passed.
    TimedOut,
}

/// A started program. Dropping it does not end it; dropping its [`Processes`](super::Processes)
/// does.
#[derive(Debug)]
pub struct Process {
    running: Arc<Running>,
    grace: Duration,
    output: io::PipeReader,
    /// Receives a byte when the program has ended, and is closed when its whole tree has.
    ended_signal: UnixStream,
    /// The time until which output is still read, set when the program has ended.
    drain_deadline: Option<Instant>,
    /// The number of bytes that are still to be read from the pipe, set when later output is not
    /// read any more.
    remaining: Option<usize>,
    refused: Option<RefusedHosts>,
}

impl Process {
    /// `output` is the output that is read.
    pub(super) fn new(
        running: Arc<Running>,
        grace: Duration,
        output: io::PipeReader,
        ended_signal: UnixStream,
        refused: Option<RefusedHosts>,
    ) -> Self {
        Self {
            running,
            grace,
            output,
            ended_signal,
            drain_deadline: None,
            remaining: None,
            refused,
        }
    }

    pub(super) fn grace(&self) -> Duration {
        self.grace
    }

    /// The hosts that the program could not reach through its proxy, if it has one.
    pub(crate) fn refused_hosts(&self) -> Option<RefusedHosts> {
        self.refused.clone()
    }

    /// The program's process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.running.leader()
    }

    /// Reads output, waiting for some until the deadline, if there is one.
    ///
    /// Output that is written more than 1.5 s after the program has ended is not read, even if a
    /// process that can't be ended holds the pipe. Earlier output is read, however late.
    ///
    /// # Errors
    /// The system's error if the output can't be read.
    pub fn read_by(&mut self, buffer: &mut [u8], deadline: Option<Instant>) -> io::Result<Read> {
        loop {
            if let Some(remaining) = self.remaining {
                return self.read_remaining(buffer, remaining);
            }
            let now = Instant::now();
            if self.drain_deadline.is_some_and(|deadline| now >= deadline) {
                self.limit_output()?;
                continue;
            }
            // Checked before reading, so that a flood of output can't extend the time.
            if deadline.is_some_and(|deadline| now >= deadline) {
                return Ok(Read::TimedOut);
            }
            let until = earlier(deadline, self.drain_deadline);
            let timeout = until.map(|until| timespec(until.saturating_duration_since(now)));
            let mut fds = [
                PollFd::from_borrowed_fd(self.output.as_fd(), PollFlags::IN),
                PollFd::from_borrowed_fd(self.ended_signal.as_fd(), PollFlags::IN),
            ];
            match poll(&mut fds, timeout.as_ref()) {
                Ok(_) => {}
                Err(rustix::io::Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            }
            let has_output = !fds[0].revents().is_empty();
            let has_ended_signal = !fds[1].revents().is_empty();
            // Checked before the output, so that a flood of output can't hide the end of the
            // program.
            if has_ended_signal {
                self.drain_deadline.get_or_insert_with(|| Instant::now() + LINGER);
                if io::Read::read(&mut self.ended_signal, &mut [0])? == 0 {
                    self.limit_output()?;
                    continue;
                }
            }
            if has_output {
                return Ok(match io::Read::read(&mut self.output, buffer)? {
                    0 => Read::Ended,
                    bytes => Read::Bytes(bytes),
                });
            }
        }
    }

    /// Passes the output as text to `on_output` until the program has ended or the deadline has
    /// passed. In the latter case, calls `on_timeout` and ends the program. Returns whether the
    /// deadline has passed.
    ///
    /// # Errors
    /// The output can't be read.
    pub(crate) fn follow(
        &mut self,
        mut deadline: Option<Instant>,
        mut on_output: impl FnMut(&str),
        on_timeout: impl Fn(),
    ) -> io::Result<bool> {
        let mut timed_out = false;
        let mut text = Lossy::default();
        let mut buffer = vec![0; MAX_OUTPUT_DELTA];
        loop {
            match self.read_by(&mut buffer, deadline)? {
                Read::Bytes(bytes) => on_output(&text.push(&buffer[..bytes])),
                Read::TimedOut if !timed_out => {
                    timed_out = true;
                    on_timeout();
                    self.end();
                    // Does not wait for a process that can't be ended.
                    deadline = Some(Instant::now() + self.grace + ABANDON_AFTER);
                }
                Read::Ended | Read::TimedOut => break,
            }
        }
        on_output(&text.finish());
        // The program may continue after it has closed its output.
        if !timed_out && self.wait_by(deadline).is_none() {
            timed_out = true;
            on_timeout();
            self.end();
        }
        Ok(timed_out)
    }

    /// Limits reading to the bytes that are in the pipe now.
    fn limit_output(&mut self) -> io::Result<()> {
        let remaining = rustix::io::ioctl_fionread(&self.output)?;
        self.remaining = Some(usize::try_from(remaining).unwrap_or(usize::MAX));
        Ok(())
    }

    /// Reads some of the last `remaining` bytes.
    fn read_remaining(&mut self, buffer: &mut [u8], remaining: usize) -> io::Result<Read> {
        let size = buffer.len().min(remaining);
        let bytes = io::Read::read(&mut self.output, &mut buffer[..size])?;
        self.remaining = Some(remaining - bytes);
        Ok(if bytes == 0 { Read::Ended } else { Read::Bytes(bytes) })
    }

    /// Waits until the program has ended. Returns `None` at the deadline.
    #[must_use]
    pub fn wait_by(&self, deadline: Option<Instant>) -> Option<Exit> {
        self.running.wait_exit(deadline)
    }

    /// Begins to end the program and all processes it started. Returns at once.
    pub fn end(&self) {
        self.running.end();
    }

    /// Ends the program if it still runs, and waits until all processes it started are gone: at
    /// most the grace and one second more. Returns how the program ended and the count of processes
    /// that had to be ended.
    #[must_use]
    pub fn finish(self) -> (Exit, EndedProcesses) {
        self.running.finish(self.grace)
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
