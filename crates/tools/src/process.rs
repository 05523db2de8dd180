//! The processes of one tool call: starts, watches and ends them, with all processes they start.
//!
//! A program is started under a *supervisor*: a small process that reaps everything below it and
//! holds a socket to its owner, the process that started it. A process that leaves its group, its
//! session or its parent is still below the supervisor. If the owner dies, even by SIGKILL, the
//! supervisor reads the end of the socket and still ends the tree.

#[cfg(target_os = "linux")]
mod abandoned;
mod ancestry;
mod descriptors;
mod duplex;
mod exit;
mod group;
mod helper;
#[cfg(feature = "lines")]
mod lines;
#[cfg(target_os = "linux")]
mod listener;
pub(crate) mod lossy;
mod program;
mod reports;
mod running;
mod start;
mod started;
mod streams;
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
use holdpoint_common::limits::ABANDON_AFTER;
use rustix::event::Timespec;
use rustix::process::Pid;

pub use ancestry::{Ancestry, SupervisorAbove};
pub use duplex::{Duplex, DuplexProcess, MAX_KEPT_ERRORS};
pub use exit::Exit;
pub use helper::SUPERVISOR_BUILD;
#[cfg(feature = "mcp")]
pub(crate) use lines::LineReader;
#[cfg(feature = "lines")]
pub use lines::Lines;
pub use program::{Process, Read};
use running::Running;
use started::Watched;
use streams::{OwnerEnds, Streams};

use crate::sandbox::Sandbox;

/// The `argv[0]` of a supervisor, which [`supervise_if_asked`] checks, and the name of its process.
/// It does not contain the name of this program: `pkill -f` with that name must leave the
/// supervisors alive, because they end the processes that they started. A process's name has at
/// most 15 bytes.
pub const SUPERVISOR_NAME: &str = "tool-supervisor";

/// How long the processes that a program leaves behind may take to end by themselves, such as the
/// `tee` of `> >(tee log)`.
const SETTLE: Duration = Duration::from_millis(50);

/// How long to wait after KILL before reporting the processes that still live.
const GIVE_UP: Duration = Duration::from_millis(700);

/// Runs as a supervisor and never returns if this process was started as one; otherwise returns at
/// once.
///
/// A program that uses [`Supervisor::ThisProgram`] calls this first in `main`, before it starts a
/// thread or opens a file.
pub fn supervise_if_asked() {
    #[cfg(target_os = "linux")]
    {
        if std::env::args_os().next().is_some_and(|name| name == SUPERVISOR_NAME) {
            supervisor::supervise();
        }
        listener::listen_if_asked();
    }
}

/// The process that supervises the processes of a call.
///
/// Supervision is for Linux. Elsewhere every choice means [`None`](Self::None).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Supervisor {
    /// This program, run once more. It has to call [`supervise_if_asked`] first in `main`;
    /// otherwise every start fails.
    ThisProgram,
    /// The program at this path, which calls [`supervise_if_asked`] first in `main`.
    Program(PathBuf),
    /// No supervisor: only the program and the members of its process group are ended.
    ///
    /// Processes that leave the group (`setsid`, daemons, jobs of an interactive shell) are not
    /// ended. If this program is killed by SIGKILL, no process is ended. A program can open the
    /// terminal.
    None,
}

impl Supervisor {
    /// The program `holdpoint-supervisor` in the folder of this program, if it is of the same build.
    /// It is small, so that it starts in less time. Otherwise [`ThisProgram`](Self::ThisProgram).
    ///
    /// The file stays open while this program runs, so that an upgrade has no effect on it.
    #[must_use]
    pub fn beside_this_program() -> Self {
        helper::open().map_or(Self::ThisProgram, Self::Program)
    }
}

/// A program to start.
#[derive(Debug, Clone)]
pub struct ProcessSpec {
    /// The program: a path, or a name to look up in the `PATH` of `env`.
    pub program: OsString,
    /// The arguments after the program's name.
    pub args: Vec<OsString>,
    /// The working folder of the program.
    pub cwd: PathBuf,
    /// The complete environment of the program.
    pub env: Vec<(String, String)>,
}

/// The processes of one tool call. Clones share them; dropping the last clone ends all processes.
#[derive(Debug, Clone)]
pub struct Processes(Arc<Call>);

#[derive(Debug)]
struct Call {
    supervisor: Supervisor,
    grace: Duration,
    label: Option<String>,
    sandbox: Option<Sandbox>,
    state: Mutex<CallState>,
}

#[derive(Debug, Default)]
struct CallState {
    /// Whether ending has begun, after which every start fails.
    ending: bool,
    /// The programs that may still live; ended ones are folded into `ended` now and then.
    running: Vec<Arc<Running>>,
    /// The count of the ended processes of programs that are no longer in `running`.
    ended: EndedProcesses,
}

impl Processes {
    /// Creates an empty set for one call. `grace` is the time between TERM and KILL.
    #[must_use]
    pub fn new(supervisor: Supervisor, grace: Duration) -> Self {
        Self::with_settings(supervisor, grace, None, None)
    }

    /// Creates an empty set whose supervisors have a label, such as the id of a session.
    /// [`SupervisorAbove::label`] reads it, and so can every user, for example with `ps`.
    #[must_use]
    pub fn labelled(supervisor: Supervisor, grace: Duration, label: impl Into<String>) -> Self {
        Self::with_settings(supervisor, grace, Some(label.into()), None)
    }

    /// Creates an empty set with the same settings, and with this sandbox for its programs.
    #[must_use]
    pub fn sandboxed(&self, sandbox: Option<Sandbox>) -> Self {
        let Call { supervisor, grace, label, .. } = &*self.0;
        Self::with_settings(supervisor.clone(), *grace, label.clone(), sandbox)
    }

    fn with_settings(
        supervisor: Supervisor,
        grace: Duration,
        label: Option<String>,
        sandbox: Option<Sandbox>,
    ) -> Self {
        Self(Arc::new(Call { supervisor, grace, label, sandbox, state: Mutex::default() }))
    }

    /// Creates an empty set with the same settings, but with another time between TERM and KILL.
    #[must_use]
    pub fn with_grace(&self, grace: Duration) -> Self {
        let Call { supervisor, label, sandbox, .. } = &*self.0;
        Self::with_settings(supervisor.clone(), grace, label.clone(), sandbox.clone())
    }

    /// The time between TERM and KILL.
    #[must_use]
    pub fn grace(&self) -> Duration {
        self.0.grace
    }

    /// The sandbox of the programs, if they have one.
    pub(crate) fn sandbox(&self) -> Option<&Sandbox> {
        self.0.sandbox.as_ref()
    }

    /// Creates an empty set with the same settings.
    #[must_use]
    pub fn with_same_settings(&self) -> Self {
        self.sandboxed(self.0.sandbox.clone())
    }

    /// Starts a program with an empty standard input. Its two outputs share one pipe, which keeps
    /// their order.
    ///
    /// When the program ends, the processes that it leaves behind have 50 ms to end by themselves;
    /// then they are ended, too.
    ///
    /// # Errors
    /// The system's error if the program can't be started. Also an error once [`end`](Self::end)
    /// was called, and if the supervisor does not answer within 10 s.
    pub fn spawn(&self, spec: ProcessSpec) -> io::Result<Process> {
        let (running, Watched { ends, ended_signal, refused }) =
            self.spawn_watched(&spec, Streams::Joined)?;
        Ok(Process::new(running, self.0.grace, ends.output, ended_signal, refused))
    }

    /// Starts a program that is talked to over its standard input and output. Otherwise like
    /// [`spawn`](Self::spawn).
    ///
    /// # Errors
    /// As [`spawn`](Self::spawn).
    pub fn spawn_duplex(&self, spec: ProcessSpec) -> io::Result<Duplex> {
        let (running, Watched { ends, ended_signal, refused }) =
            self.spawn_watched(&spec, Streams::Separate)?;
        let OwnerEnds { output, separate } = ends;
        let (input, errors) = separate.ok_or_else(|| io::Error::other("a pipe is missing"))?;
        let process =
            Process::new(Arc::clone(&running), self.0.grace, errors, ended_signal, refused);
        let process =
            DuplexProcess::new(Arc::clone(&running), process).inspect_err(|_| running.end())?;
        Ok(Duplex { process, input, output })
    }

    fn spawn_watched(
        &self,
        spec: &ProcessSpec,
        streams: Streams,
    ) -> io::Result<(Arc<Running>, Watched)> {
        let running = {
            let mut state = self.0.lock_state();
            state.fold_ended();
            if state.ending {
                return Err(start::call_ended());
            }
            let running = Arc::new(Running::new());
            state.running.push(Arc::clone(&running));
            running
        };
        let started =
            watch::spawn_watcher(self.0.grace, Arc::clone(&running)).and_then(|watcher| {
                let started = start::start(&self.0, spec, streams, &running)?;
                Ok(watcher.watch(started))
            });
        match started {
            Ok(watched) => Ok((running, watched)),
            Err(error) => {
                running.set_gone();
                Err(if running.is_ending() { start::call_ended() } else { error })
            }
        }
    }

    /// Begins to end all processes and makes every later start fail. Returns at once; may be called
    /// any number of times, from any thread.
    pub fn end(&self) {
        self.0.end();
    }

    /// Ends all processes and waits until they are gone: at most the grace and one second more.
    /// `not_ended` lists the processes that still live then.
    #[must_use]
    pub fn finish(&self) -> EndedProcesses {
        self.finish_by(Instant::now() + self.0.grace + ABANDON_AFTER)
    }

    /// Like [`finish`](Self::finish), but waits until `deadline` at most.
    pub(crate) fn finish_by(&self, deadline: Instant) -> EndedProcesses {
        self.end();
        let running = self.0.lock_state().running.clone();
        for program in running {
            program.wait_gone(deadline);
        }
        self.so_far()
    }

    /// Counts the processes that were ended so far, and lists those that live now in `not_ended`.
    /// Returns at once.
    #[must_use]
    pub fn so_far(&self) -> EndedProcesses {
        let mut state = self.0.lock_state();
        state.fold_ended();
        let mut sum = state.ended.clone();
        for program in &state.running {
            sum.add(program.so_far());
        }
        sum
    }
}

impl Call {
    fn lock_state(&self) -> MutexGuard<'_, CallState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end(&self) {
        let mut state = self.lock_state();
        state.ending = true;
        for program in &state.running {
            program.end();
        }
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        self.end();
    }
}

impl CallState {
    fn fold_ended(&mut self) {
        let sum = &mut self.ended;
        self.running.retain(|program| match program.final_count() {
            Some(ended) => {
                sum.add(ended);
                false
            }
            None => true,
        });
    }
}

/// Counts the processes that were sent TERM (`sent_term`) or KILL (`killed`), of which `not_ended`
/// still live.
fn end_counts(
    sent_term: &HashSet<Pid>,
    killed: &HashSet<Pid>,
    not_ended: Vec<Pid>,
) -> EndedProcesses {
    let to_u32 = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    EndedProcesses {
        terminated: to_u32(
            sent_term
                .iter()
                .filter(|pid| !killed.contains(pid) && !not_ended.contains(pid))
                .count(),
        ),
        killed: to_u32(killed.iter().filter(|pid| !not_ended.contains(pid)).count()),
        not_ended: not_ended.into_iter().map(id).collect(),
    }
}

/// Converts a process number, if it is valid.
fn pid(id: u32) -> Option<Pid> {
    i32::try_from(id).ok().and_then(Pid::from_raw)
}

fn id(pid: Pid) -> u32 {
    pid.as_raw_pid().unsigned_abs()
}

/// Rounded up to a millisecond, so that a wait never ends early.
fn timespec(duration: Duration) -> Timespec {
    let whole = Duration::from_millis(
        u64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX),
    );
    Timespec {
        tv_sec: i64::try_from(whole.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: whole.subsec_nanos().into(),
    }
}
