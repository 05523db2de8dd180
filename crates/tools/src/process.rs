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
mod program;
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

use std::collections::HashSet;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use holdpoint_common::EndedProcesses;
use holdpoint_common::limits::LEAVE_AFTER;
use rustix::event::Timespec;
use rustix::process::Pid;

pub use exit::Exit;
pub use program::{Process, Read};
use running::Running;

/// What a supervisor is called by in `argv[0]`; [`supervise_if_asked`] decides by it. Nothing of this program's name is in it:
/// who ends that by its name, as `pkill -f` does, leaves those that then end what it has started.
pub const SUPERVISOR_NAME: &str = "tool-supervisor";

/// What a program leaves behind has so long to end by itself: the `tee` of `> >(tee log)`.
const SETTLE: Duration = Duration::from_millis(50);

/// How long after the kill it is told that something can't be ended.
const GIVE_UP: Duration = Duration::from_millis(700);

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
        let started = watch::watcher(self.0.grace, Arc::clone(&running)).and_then(|watcher| {
            let started = start::start(&self.0.supervisor, &spec, self.0.grace, &running)?;
            Ok(watcher.watch(started))
        });
        match started {
            Ok((output, over)) => Ok(Process::new(running, self.0.grace, output, over)),
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
        self.finish_by(Instant::now() + self.0.grace + LEAVE_AFTER)
    }

    /// The same, until then at most.
    pub(crate) fn finish_by(&self, by: Instant) -> EndedProcesses {
        self.end();
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

/// What was ended of those that were sent TERM and KILL, if these live.
fn counted(told: &HashSet<Pid>, killed: &HashSet<Pid>, left: Vec<Pid>) -> EndedProcesses {
    let count = |gone: usize| u32::try_from(gone).unwrap_or(u32::MAX);
    EndedProcesses {
        terminated: count(told.iter().filter(|pid| !killed.contains(pid) && !left.contains(pid)).count()),
        killed: count(killed.iter().filter(|pid| !left.contains(pid)).count()),
        left: left.into_iter().map(id).collect(),
    }
}

/// A process by its number, if it can be that of one.
fn pid(id: u32) -> Option<Pid> {
    i32::try_from(id).ok().and_then(Pid::from_raw)
}

/// The number of a process.
fn id(pid: Pid) -> u32 {
    pid.as_raw_pid().unsigned_abs()
}

/// Rounded up to a millisecond, so that a wait never ends just before its time.
fn timespec(duration: Duration) -> Timespec {
    let whole = Duration::from_millis(u64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX));
    Timespec { tv_sec: i64::try_from(whole.as_secs()).unwrap_or(i64::MAX), tv_nsec: whole.subsec_nanos().into() }
}
