//! Processes of one tool call: starting, watching and ending them, with all they start in turn.
//!
//! A program is started under a *supervisor*: a small process of its own that is the reaper of everything
//! below it and holds a socket from us. Whatever leaves its group, its session or its parent is still below
//! the supervisor; and when we are gone, even by SIGKILL, the supervisor reads the end of the socket and ends
//! the tree all the same.

#[cfg(target_os = "linux")]
mod abandoned;
mod exit;
mod group;
pub(crate) mod lossy;
mod reports;
mod running;
mod start;
mod started;
#[cfg(target_os = "linux")]
mod supervisor;
#[cfg(target_os = "linux")]
mod tree;
mod watch;
mod wire;

use std::ffi::OsString;
use std::io;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use holdpoint_common::EndedProcesses;
use holdpoint_common::limits::LEAVE_AFTER;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

pub use exit::Exit;
use running::Running;

/// What a supervisor is called by in `argv[0]`; [`supervise_if_asked`] decides by it.
pub const SUPERVISOR_NAME: &str = "holdpoint-supervisor";

/// How long output is still read after the program itself has ended and something else holds the pipe.
const LINGER: Duration = Duration::from_millis(1_500);

/// What a program leaves behind has so long to end by itself: the `tee` of `> >(tee log)`.
const SETTLE: Duration = Duration::from_millis(50);

/// Serves as a supervisor and never returns, if this process was started as one; else returns at once.
///
/// A program whose processes are supervised by [`Supervisor::ThisProgram`] calls this first in `main`, before
/// it starts a thread or opens a file.
pub fn supervise_if_asked() {
    #[cfg(target_os = "linux")]
    if std::env::args_os().next().is_some_and(|name| name == SUPERVISOR_NAME) {
        supervisor::supervise();
    }
}

/// Who supervises the processes of a call.
///
/// Supervision is for Linux. Elsewhere every choice means [`None`](Self::None).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Supervisor {
    /// This program, run once more. It has to call [`supervise_if_asked`] first in `main`; if it does not,
    /// nothing can be started.
    ThisProgram,
    /// The program at this path, which calls [`supervise_if_asked`] first in `main`.
    Program(PathBuf),
    /// Nobody: a program and what stays in its process group are ended, and no more.
    ///
    /// What this can't end: processes that leave the group (`setsid`, daemons, jobs of an interactive
    /// shell), and everything when this program is killed by SIGKILL. A program can open the terminal.
    None,
}

/// What to start. Its standard input is empty; its two outputs are one pipe, so that their order is kept.
#[derive(Debug, Clone)]
pub struct ProcessSpec {
    /// The program: a path, or a name to be found in the `PATH` of `env`.
    pub program: OsString,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// The folder to run it in.
    pub cwd: PathBuf,
    /// Its environment: this and nothing else.
    pub env: Vec<(String, String)>,
}

/// The processes of one tool call. Clones are the same; when the last is dropped, all are ended.
#[derive(Debug, Clone)]
pub struct Processes(Arc<Call>);

#[derive(Debug)]
struct Call {
    supervisor: Supervisor,
    grace: Duration,
    all: Mutex<All>,
}

#[derive(Debug, Default)]
struct All {
    /// Nothing may be started any more.
    ending: bool,
    /// Those that may still live; what is over is folded into `over` now and then.
    running: Vec<Arc<Running>>,
    over: EndedProcesses,
}

impl Processes {
    /// For one call. `grace` is the time between TERM and KILL.
    #[must_use]
    pub fn new(supervisor: Supervisor, grace: Duration) -> Self {
        Self(Arc::new(Call { supervisor, grace, all: Mutex::default() }))
    }

    /// The time between TERM and KILL.
    #[must_use]
    pub fn grace(&self) -> Duration {
        self.0.grace
    }

    /// Processes of their own, with the same supervisor and grace.
    #[must_use]
    pub fn like(&self) -> Self {
        Self::new(self.0.supervisor.clone(), self.0.grace)
    }

    /// Starts a program.
    ///
    /// When it ends, what it has started and left behind is ended too, after 50 ms to end by itself.
    ///
    /// # Errors
    /// What the system says if it can't be started; an error too once [`end`](Self::end) was called, and if
    /// the supervisor does not answer within 10 s.
    pub fn spawn(&self, spec: ProcessSpec) -> io::Result<Process> {
        let running = {
            let mut all = self.0.all();
            all.fold();
            if all.ending {
                return Err(start::over());
            }
            let running = Arc::new(Running::new());
            all.running.push(Arc::clone(&running));
            running
        };
        let started = start::start(&self.0.supervisor, &spec, self.0.grace, &running)
            .and_then(|started| watch::watch(started, self.0.grace, Arc::clone(&running)));
        match started {
            Ok((output, over)) => {
                Ok(Process { running, grace: self.0.grace, output, over, drained_by: None, left: None })
            }
            Err(error) => {
                running.set_gone();
                Err(if running.is_ending() { start::over() } else { error })
            }
        }
    }

    /// Begins to end everything, now, and lets nothing be started any more. Returns at once; may be called
    /// any number of times, from any thread.
    pub fn end(&self) {
        self.0.end();
    }

    /// Ends everything and waits until it is gone: at most the grace and one second more. What still lives
    /// then is told in `left`.
    #[must_use]
    pub fn finish(&self) -> EndedProcesses {
        self.end();
        let by = Instant::now() + self.0.grace + LEAVE_AFTER;
        let running = self.0.all().running.clone();
        for one in running {
            one.wait_gone(by);
        }
        self.so_far()
    }

    /// How many were ended as far as is known now, and in `left` those that live now. Returns at once.
    #[must_use]
    pub fn so_far(&self) -> EndedProcesses {
        let mut all = self.0.all();
        all.fold();
        let mut sum = all.over.clone();
        for one in &all.running {
            sum.add(one.so_far());
        }
        sum
    }
}

impl Call {
    fn all(&self) -> MutexGuard<'_, All> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end(&self) {
        let mut all = self.all();
        all.ending = true;
        for one in &all.running {
            one.end();
        }
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        self.end();
    }
}

impl All {
    fn fold(&mut self) {
        let over = &mut self.over;
        self.running.retain(|one| match one.gone() {
            Some(ended) => {
                over.add(ended);
                false
            }
            None => true,
        });
    }
}

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

/// A program that was started. Dropping it ends nothing: its [`Processes`] do.
#[derive(Debug)]
pub struct Process {
    running: Arc<Running>,
    grace: Duration,
    output: io::PipeReader,
    /// A byte when the program has ended, the end when its whole tree has.
    over: std::os::unix::net::UnixStream,
    /// The program has ended: what comes until then is its output, too.
    drained_by: Option<Instant>,
    /// No more comes: so many bytes that are in the pipe are still to be read.
    left: Option<usize>,
}

impl Process {
    /// The program's process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.running.leader()
    }

    /// The time between TERM and KILL.
    pub(crate) fn grace(&self) -> Duration {
        self.grace
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

/// Rounded up to a millisecond, so that a wait never ends just before its time.
fn timespec(duration: Duration) -> Timespec {
    let whole = Duration::from_millis(u64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX));
    Timespec { tv_sec: i64::try_from(whole.as_secs()).unwrap_or(i64::MAX), tv_nsec: whole.subsec_nanos().into() }
}
