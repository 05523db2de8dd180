//! A bench for testing a tool without a session: a real [`ToolContext`], scripted answers, recorded
//! output.
//!
//! A test program that uses [`Bench`] can serve as its own supervisor, because
//! [`supervise_if_asked`](crate::supervise_if_asked) is called before its `main`. Its child
//! processes have the default actions of signals and a umask of 022, however the tests were
//! started.
//!
//! ```
//! use holdpoint_common::PauseResponse;
//! use holdpoint_tools::testing::Bench;
//! use holdpoint_tools::{AskReply, Shell};
//! use serde_json::json;
//!
//! let bench = Bench::new().answer(AskReply::Pause(PauseResponse::Approved));
//! let called = bench.call(Shell::new(), json!({"command": "echo $((6 * 7))"}));
//! assert_eq!(called.output, "42\n");
//! assert!(!called.result.unwrap().failed);
//! ```

mod again;
mod before_main;
#[cfg(target_os = "linux")]
mod census;
mod installed;
mod patience;
mod rounds;
mod session;

use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, bounded};
use holdpoint_common::{AskRequest, CallId, EndedProcesses, TurnId};
use serde_json::Value;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

pub use again::{again, in_own_process, part};
#[cfg(target_os = "linux")]
pub use census::Census;
pub use installed::{installed, run_installer};
pub use patience::patience;
pub use rounds::{full, rounds};

use crate::ask::{AskReply, Asker};
use crate::background::BackgroundJobs;
use crate::context::{Sink, ToolContext};
use crate::error::ToolError;
use crate::policy::Policy;
use crate::process::{Processes, Supervisor};
use crate::sandbox::Sandbox;
use crate::tool::{Tool, ToolOutcome};
use crate::workspace::Workspace;
use session::Session;

/// Lets this test program serve as its own supervisor. The call may be anywhere in the program: it
/// only has to be linked.
pub fn serve_as_supervisor() {
    before_main::keep();
}

/// A bench for tools: a folder, an environment, processes, and scripted answers.
pub struct Bench {
    /// Removed with the bench.
    folder: Option<TempDir>,
    workspace: Workspace,
    supervisor: Supervisor,
    grace: Duration,
    sandbox: Option<Sandbox>,
    answers: Vec<AskReply>,
    approved: Option<AskRequest>,
    background: BackgroundJobs,
    next_call: AtomicU64,
}

/// A call that has ended.
#[derive(Debug)]
pub struct Called {
    /// The outcome or the error of the call.
    pub result: Result<ToolOutcome, ToolError>,
    /// The streamed output, up to its first 4 MiB.
    pub output: String,
    /// How many bytes were streamed.
    pub streamed: u64,
    /// The size of the largest streamed piece, in bytes.
    pub largest_piece: usize,
    /// The asks of the call, in order.
    pub asked: Vec<AskRequest>,
    /// The processes that were ended, and those that could not be.
    pub processes: EndedProcesses,
}

/// A call that is still running.
pub struct Calling {
    thread: thread::JoinHandle<(Result<ToolOutcome, ToolError>, EndedProcesses)>,
    /// Disconnected when the tool has returned.
    done: Receiver<Infallible>,
    session: Session,
    record: Arc<Record>,
    /// The processes of the call, which a cut of the turn would end.
    pub processes: Processes,
    /// The cancel token of the call, which a cut of the turn would cancel.
    pub cancel: CancellationToken,
}

impl Bench {
    /// Creates a bench with its own empty folder, the allowed part of this program's environment, a
    /// supervisor, a grace of 500 ms, and no answers: with [`call`](Self::call), an ask reads as
    /// *Interrupted*.
    ///
    /// # Panics
    /// If the folder can't be created.
    #[must_use]
    #[expect(clippy::expect_used, reason = "tests report faults by panicking")]
    pub fn new() -> Self {
        before_main::keep();
        let folder = tempfile::tempdir().expect("a folder for the test");
        let root = folder.path().canonicalize().expect("the folder exists");
        let mut bench = Self::within(root);
        bench.folder = Some(folder);
        bench
    }

    /// Creates a bench in the existing folder `root`, an absolute path with its links resolved.
    pub fn within(root: impl Into<PathBuf>) -> Self {
        before_main::keep();
        let vars = std::env::vars_os().filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        });
        Self {
            folder: None,
            workspace: Workspace::new(root, crate::environment::allowed(vars), Policy::default()),
            supervisor: Supervisor::ThisProgram,
            grace: Duration::from_millis(500),
            sandbox: None,
            answers: Vec::new(),
            approved: None,
            background: BackgroundJobs::new(Arc::new(())),
            next_call: AtomicU64::new(1),
        }
    }

    /// Adds an answer for the next ask without one. Each call begins with the first answer.
    #[must_use]
    pub fn answer(mut self, reply: AskReply) -> Self {
        self.answers.push(reply);
        self
    }

    /// Makes calls run as if the user had approved this Confirm before they began.
    #[must_use]
    pub fn approved(mut self, confirm: AskRequest) -> Self {
        self.approved = Some(confirm);
        self
    }

    /// Adds a variable to the environment of processes.
    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        let mut env = self.workspace.env().to_vec();
        env.push((name.into(), value.into()));
        let workspace = Workspace::new(self.workspace.root(), env, self.workspace.policy().clone());
        self.workspace = workspace.with_display(self.workspace.display().to_vec());
        self
    }

    /// Sets the policy of the workspace.
    #[must_use]
    pub fn policy(mut self, policy: Policy) -> Self {
        let workspace =
            Workspace::new(self.workspace.root(), self.workspace.env().to_vec(), policy);
        self.workspace = workspace.with_display(self.workspace.display().to_vec());
        self
    }

    /// Sets the additional variables for programs that open windows.
    #[must_use]
    pub fn display(mut self, display: Vec<(String, String)>) -> Self {
        self.workspace = self.workspace.clone().with_display(display);
        self
    }

    /// Sets the supervisor of the processes.
    #[must_use]
    pub fn supervisor(mut self, supervisor: Supervisor) -> Self {
        self.supervisor = supervisor;
        self
    }

    /// Sets the time between TERM and KILL.
    #[must_use]
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Sets the sandbox of the processes.
    #[must_use]
    pub fn sandbox(mut self, sandbox: Option<Sandbox>) -> Self {
        self.sandbox = sandbox;
        self
    }

    /// The folder of the workspace.
    #[must_use]
    pub fn root(&self) -> &Path {
        self.workspace.root()
    }

    /// The workspace of all calls.
    #[must_use]
    pub fn workspace(&self) -> &Workspace {
        &self.workspace
    }

    /// The background jobs of the calls, which are numbered from 1.
    #[must_use]
    pub fn background(&self) -> &BackgroundJobs {
        &self.background
    }

    /// Calls a tool and waits until it has returned and its processes have ended. An ask without an
    /// [answer](Self::answer) reads as *Interrupted*.
    ///
    /// # Panics
    /// If the tool panics.
    pub fn call(&self, tool: impl Tool + 'static, input: Value) -> Called {
        self.start(tool, input).wait()
    }

    /// Calls a tool on its own thread. An ask without an [answer](Self::answer) waits for
    /// [`Calling::answer`], [`Calling::cut`] or [`Calling::wait`].
    pub fn start(&self, mut tool: impl Tool + 'static, input: Value) -> Calling {
        let session = Session::start(self.answers.clone());
        let record = Arc::new(Record::default());
        let processes = Processes::new(self.supervisor.clone(), self.grace);
        let processes = processes.sandboxed(self.sandbox.clone());
        let cancel = CancellationToken::new();
        let context = ToolContext::new(
            tool.name(),
            Arc::new(self.workspace.clone()),
            Asker::new(
                session.recipient(),
                TurnId(1),
                CallId(self.next_call.fetch_add(1, Ordering::Relaxed)),
            ),
            Arc::clone(&record) as Arc<dyn Sink>,
            processes.clone(),
            self.background.clone(),
            cancel.clone(),
        )
        .with_approved(self.approved.clone().map(|confirm| (confirm, false)));
        let (running, done) = bounded(0);
        let thread = thread::spawn(move || {
            let _running = running;
            (tool.call(input, &context), context.finish_processes())
        });
        Calling { thread, done, session, record, processes, cancel }
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        self.background.close();
    }
}

impl Default for Bench {
    fn default() -> Self {
        Self::new()
    }
}

impl Calling {
    /// The output streamed so far.
    #[must_use]
    pub fn output(&self) -> String {
        self.record.lock().output.clone()
    }

    /// Waits until the streamed output contains `text`.
    ///
    /// # Panics
    /// If it does not after [`patience()`].
    #[expect(clippy::panic, reason = "tests report faults by panicking")]
    pub fn wait_for(&self, text: &str) {
        let deadline = Instant::now() + patience();
        let mut record = self.record.lock();
        while !record.output.contains(text) {
            let remaining = deadline.saturating_duration_since(Instant::now());
            if remaining.is_zero() {
                panic!("{text:?} was not streamed; the output is {:?}", record.output);
            }
            let waited = self.record.changed.wait_timeout(record, remaining);
            record = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Waits for an ask without a scripted answer and returns it.
    ///
    /// # Panics
    /// If there is none after [`patience()`].
    #[must_use]
    pub fn wait_asked(&self) -> AskRequest {
        self.session.wait_asked()
    }

    /// Answers the oldest open ask, or the next one if none is open.
    pub fn answer(&self, reply: AskReply) {
        self.session.answer(reply);
    }

    /// Cuts the call like an interrupt: cancels its token, interrupts its asks and ends its
    /// processes.
    pub fn cut(&self) {
        self.cancel.cancel();
        self.session.drop_asks();
        self.processes.end();
    }

    /// Waits until the tool has returned and its processes have ended.
    ///
    /// From now on, an ask without an answer reads as *Interrupted*. An open one that
    /// [`wait_asked`](Self::wait_asked) has returned stays open: its [subject](crate::Subject) may
    /// end it.
    ///
    /// # Panics
    /// If the tool panics, or if it still waits for an answer after [`patience()`].
    #[must_use]
    pub fn wait(self) -> Called {
        self.wait_within(patience())
    }

    #[expect(clippy::panic, reason = "tests report faults by panicking")]
    fn wait_within(self, patience: Duration) -> Called {
        self.session.interrupt_unanswered();
        // A tool may work for longer, but an ask that is open now is never answered.
        if self.done.recv_timeout(patience) == Err(RecvTimeoutError::Timeout)
            && let Some(ask) = self.session.oldest_open()
        {
            panic!("the tool still waits for an answer after {patience:?}: {ask:?}");
        }
        let joined = self.thread.join();
        let (result, processes) = joined.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let Recorded { output, streamed, largest_piece } = self.record.lock().clone();
        Called { result, output, streamed, largest_piece, asked: self.session.stop(), processes }
    }
}

/// The most bytes of output that are recorded, so that a test of a flood needs bounded memory.
const MAX_RECORDED: usize = 4 * 1024 * 1024;

#[derive(Default)]
struct Record {
    recorded: Mutex<Recorded>,
    /// Notified when output is recorded.
    changed: Condvar,
}

#[derive(Default, Clone)]
struct Recorded {
    output: String,
    streamed: u64,
    largest_piece: usize,
}

impl Record {
    fn lock(&self) -> MutexGuard<'_, Recorded> {
        self.recorded.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sink for Record {
    fn output(&self, text: &str) {
        let mut record = self.lock();
        let room = MAX_RECORDED - record.output.len();
        record.output.push_str(&text[..text.floor_char_boundary(room)]);
        record.streamed += text.len() as u64;
        record.largest_piece = record.largest_piece.max(text.len());
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use holdpoint_common::PauseKind;
    use serde_json::json;

    use super::*;
    use crate::tool::Intent;

    /// Pauses once and then returns.
    struct Pauses;

    impl Tool for Pauses {
        fn name(&self) -> &str {
            "pauses"
        }

        fn description(&self) -> &str {
            "Pauses."
        }

        fn schema(&self) -> Value {
            json!({})
        }

        fn intent(&self, _: &Value, _: &Workspace) -> Result<Intent, ToolError> {
            Ok(Intent::new(crate::Act::Internal, "Pause?"))
        }

        fn call(&mut self, _: Value, context: &ToolContext) -> Result<ToolOutcome, ToolError> {
            context.pause(PauseKind::Continue, "Continue?", None);
            Ok(ToolOutcome::default())
        }
    }

    #[test]
    #[should_panic(expected = "waits for an answer after 0ns: Pause(PauseRequest { kind: Continue")]
    fn a_call_that_waits_for_an_answer_after_the_patience_fails_with_its_ask() {
        let bench = Bench::new();
        let calling = bench.start(Pauses, Value::Null);
        let _ = calling.wait_asked();
        drop(calling.wait_within(Duration::ZERO));
    }
}
