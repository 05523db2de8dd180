//! Trying a tool without a session: a real [`ToolContext`], scripted answers, recorded output.
//!
//! A test program that uses [`Bench`] can serve as its own supervisor: before its `main`,
//! [`supervise_if_asked`](crate::supervise_if_asked) is called for it. What it starts has the default actions of signals
//! and a umask of 022, whatever started the tests.
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
pub use patience::patience;
pub use rounds::{full, rounds};

use crate::ask::{AskReply, Asker};
use crate::background::Background;
use crate::context::{Sink, ToolContext};
use crate::error::ToolError;
use crate::policy::Policy;
use crate::process::{Processes, Supervisor};
use crate::tool::{Tool, ToolOutcome};
use crate::workspace::Workspace;
use session::Session;

/// Lets this test program serve as its own supervisor. To be called from any code the program runs: that
/// it is linked is what matters.
pub fn serve_as_supervisor() {
    before_main::keep();
}

/// A place to try tools: a folder, an environment, processes, and somebody who answers.
pub struct Bench {
    /// Removed with the bench.
    folder: Option<TempDir>,
    workspace: Workspace,
    supervisor: Supervisor,
    grace: Duration,
    answers: Vec<AskReply>,
    approved: Option<AskRequest>,
    background: Background,
    /// The next call's number.
    calls: AtomicU64,
}

/// A call that ended.
#[derive(Debug)]
pub struct Called {
    /// What it came to.
    pub result: Result<ToolOutcome, ToolError>,
    /// What it streamed: the first 4 MiB.
    pub output: String,
    /// All bytes it streamed.
    pub streamed: u64,
    /// The bytes of its largest piece.
    pub largest_piece: usize,
    /// What it asked, in order.
    pub asked: Vec<AskRequest>,
    /// The processes that were ended, and those that could not be.
    pub processes: EndedProcesses,
}

/// A call that runs.
pub struct Calling {
    thread: thread::JoinHandle<Result<ToolOutcome, ToolError>>,
    /// Disconnected when the tool is done.
    done: Receiver<Infallible>,
    session: Session,
    record: Arc<Record>,
    /// Its processes: what a session's turn would end at a cut.
    pub processes: Processes,
    /// Its cancel token: what a session's turn would cancel at a cut.
    pub cancel: CancellationToken,
}

impl Bench {
    /// A bench with an empty folder of its own, the allowed part of this program's environment, a
    /// supervisor, a grace of 500 ms, and no answers: with [`call`](Self::call), an ask reads as *Interrupted*.
    ///
    /// # Panics
    /// If no folder can be made.
    #[must_use]
    #[expect(clippy::expect_used, reason = "in tests, a panic is how a fault is told")]
    pub fn new() -> Self {
        before_main::keep();
        let folder = tempfile::tempdir().expect("a folder for the test");
        let root = folder.path().canonicalize().expect("the folder was just made");
        let mut bench = Self::within(root);
        bench.folder = Some(folder);
        bench
    }

    /// The same in a folder that exists: absolute, links resolved.
    pub fn within(root: impl Into<PathBuf>) -> Self {
        before_main::keep();
        let vars =
            std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
        Self {
            folder: None,
            workspace: Workspace::new(root, crate::environment::allowed(vars), Policy::default()),
            supervisor: Supervisor::ThisProgram,
            grace: Duration::from_millis(500),
            answers: Vec::new(),
            approved: None,
            background: Background::new(Arc::new(())),
            calls: AtomicU64::new(1),
        }
    }

    /// Answers the next ask without an answer with `reply`. Each call begins with the first answer.
    #[must_use]
    pub fn answer(mut self, reply: AskReply) -> Self {
        self.answers.push(reply);
        self
    }

    /// Has calls run as if the user had approved this before they began.
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

    /// Sets what may be done.
    #[must_use]
    pub fn policy(mut self, policy: Policy) -> Self {
        let workspace = Workspace::new(self.workspace.root(), self.workspace.env().to_vec(), policy);
        self.workspace = workspace.with_display(self.workspace.display().to_vec());
        self
    }

    /// Sets what the environment of what opens a window has besides.
    #[must_use]
    pub fn display(mut self, display: Vec<(String, String)>) -> Self {
        self.workspace = self.workspace.clone().with_display(display);
        self
    }

    /// Sets who supervises processes.
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

    /// The workspace's folder.
    #[must_use]
    pub fn root(&self) -> &Path {
        self.workspace.root()
    }

    /// The workspace.
    #[must_use]
    pub fn workspace(&self) -> &Workspace {
        &self.workspace
    }

    /// The background jobs of its calls, which are numbered from 1.
    #[must_use]
    pub fn background(&self) -> &Background {
        &self.background
    }

    /// Calls a tool and waits until it is done and its processes are gone. An ask that has no
    /// [answer](Self::answer) reads as *Interrupted*.
    ///
    /// # Panics
    /// If the tool does.
    pub fn call(&self, tool: impl Tool + 'static, input: Value) -> Called {
        self.start(tool, input).wait()
    }

    /// Calls a tool, on a thread of its own. An ask that has no [answer](Self::answer) waits for
    /// [`Calling::answer`], [`Calling::cut`] or [`Calling::wait`].
    pub fn start(&self, mut tool: impl Tool + 'static, input: Value) -> Calling {
        let session = Session::start(self.answers.clone());
        let record = Arc::new(Record::default());
        let processes = Processes::new(self.supervisor.clone(), self.grace);
        let cancel = CancellationToken::new();
        let context = ToolContext::new(
            tool.name(),
            Arc::new(self.workspace.clone()),
            Asker::new(session.recipient(), TurnId(1), CallId(self.calls.fetch_add(1, Ordering::Relaxed))),
            Arc::clone(&record) as Arc<dyn Sink>,
            processes.clone(),
            self.background.clone(),
            cancel.clone(),
        )
        .with_approved(self.approved.clone());
        let (running, done) = bounded(0);
        let thread = thread::spawn(move || {
            let _running = running;
            tool.call(input, &context)
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
    /// What it has streamed so far.
    #[must_use]
    pub fn output(&self) -> String {
        self.record.lock().output.clone()
    }

    /// Waits until it has streamed `text`.
    ///
    /// # Panics
    /// If it has not within [`patience()`].
    #[expect(clippy::panic, reason = "in tests, a panic is how a fault is told")]
    pub fn wait_for(&self, text: &str) {
        let by = Instant::now() + patience();
        let mut record = self.record.lock();
        while !record.output.contains(text) {
            let left = by.saturating_duration_since(Instant::now());
            if left.is_zero() {
                panic!("{text:?} was not streamed, but {:?}", record.output);
            }
            record = self.record.1.wait_timeout(record, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Waits until it asks something that has no answer, and shows that.
    ///
    /// # Panics
    /// If it has not within [`patience()`].
    #[must_use]
    pub fn wait_asked(&self) -> AskRequest {
        self.session.wait_asked()
    }

    /// Answers its oldest open ask, or its next one if none is open.
    pub fn answer(&self, reply: AskReply) {
        self.session.answer(reply);
    }

    /// Cuts it, as an interrupt does: the token, the open ask, the processes.
    pub fn cut(&self) {
        self.cancel.cancel();
        self.session.drop_asks();
        self.processes.end();
    }

    /// Waits until the tool is done and its processes are gone.
    ///
    /// From now on an ask that has no answer reads as *Interrupted*. An open one that [`wait_asked`](Self::wait_asked)
    /// has shown stays open: its [subject](crate::Subject) may end it.
    ///
    /// # Panics
    /// If the tool does, or if it still waits for an answer after [`patience()`].
    #[must_use]
    pub fn wait(self) -> Called {
        self.wait_within(patience())
    }

    #[expect(clippy::panic, reason = "in tests, a panic is how a fault is told")]
    fn wait_within(self, patience: Duration) -> Called {
        self.session.leave();
        // A tool may work for longer, but an ask that is still open now is never answered.
        if self.done.recv_timeout(patience) == Err(RecvTimeoutError::Timeout)
            && let Some(ask) = self.session.open()
        {
            panic!("waited {patience:?} for the tool, which waits for an answer to {ask:?}");
        }
        let result = self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let processes = self.processes.finish();
        let Recorded { output, streamed, largest_piece } = self.record.lock().clone();
        Called { result, output, streamed, largest_piece, asked: self.session.stop(), processes }
    }
}

/// Bytes of output that are recorded, so that a flood can be tried in bounded memory.
const RECORDED: usize = 4 * 1024 * 1024;

#[derive(Default)]
struct Record(Mutex<Recorded>, Condvar);

#[derive(Default, Clone)]
struct Recorded {
    output: String,
    streamed: u64,
    largest_piece: usize,
}

impl Record {
    fn lock(&self) -> MutexGuard<'_, Recorded> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sink for Record {
    fn output(&self, text: &str) {
        let mut record = self.lock();
        let room = RECORDED - record.output.len();
        record.output.push_str(&text[..text.floor_char_boundary(room)]);
        record.streamed += text.len() as u64;
        record.largest_piece = record.largest_piece.max(text.len());
        self.1.notify_all();
    }

    fn pieces(&self) -> u64 {
        0
    }
}

#[cfg(test)]
mod tests {
    use holdpoint_common::PauseKind;
    use serde_json::json;

    use super::*;
    use crate::tool::Intent;

    /// Pauses, and then is done.
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
            Ok(Intent::new(crate::Act::Talk, "Pause?"))
        }

        fn call(&mut self, _: Value, context: &ToolContext) -> Result<ToolOutcome, ToolError> {
            context.pause(PauseKind::Continue, "Go on?", None);
            Ok(ToolOutcome::default())
        }
    }

    #[test]
    #[should_panic(expected = "which waits for an answer to Pause(PauseRequest { kind: Continue")]
    fn a_call_that_waits_for_an_answer_after_the_patience_fails_with_its_ask() {
        let bench = Bench::new();
        let calling = bench.start(Pauses, Value::Null);
        let _ = calling.wait_asked();
        drop(calling.wait_within(Duration::ZERO));
    }
}
