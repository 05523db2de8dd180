//! Code shared by the figures: an engine like the program's, a tool that runs a closure, and
//! watched processes.

use std::io::{BufRead, BufReader, Read};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use holdpoint_common::{
    Config, Event, Fact, Hold, Limits, PolicyMode, SessionFact, Supplies, TurnFact, Who,
};
use holdpoint_session::model::Catalog;
use holdpoint_session::{
    AttachFrom, Attachment, Engine, OpenSession, SessionHandle, Sessions, builtin_tools,
};
use holdpoint_tests::model_server::ModelServer;
use holdpoint_tools::{
    Act, Intent, Supervisor, Tool, ToolContext, ToolError, ToolOutcome, Workspace,
};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// The model that [`ModelServer`] plays.
pub(crate) const MODEL: &str = "openai/scripted";

/// An engine with a model over HTTP, and the runtime of its client.
pub(crate) struct EngineWorld {
    pub(crate) server: ModelServer,
    pub(crate) probe: Probe,
    pub(crate) runtime: Runtime,
    sessions: Sessions,
    pub(crate) folder: TempDir,
    // Last, so that it ends after everything that uses it.
    _engine: Engine,
}

impl EngineWorld {
    pub(crate) fn new() -> Self {
        Self::with(Limits::default())
    }

    /// Like [`EngineWorld::new`], with other limits.
    pub(crate) fn with(limits: Limits) -> Self {
        let server = ModelServer::start();
        let (url, probe) = (server.base_url(), Probe::default());
        let catalog = Catalog::new(&Config::default(), |name| {
            (name == "OPENAI_BASE_URL").then(|| url.clone())
        });
        let tool = probe.clone();
        // Large enough to flood for the whole measurement.
        let limits = Limits { max_sessions: 100, max_answer_bytes: 64 * 1024 * 1024, ..limits };
        let engine = Engine::builder(catalog)
            .limits(limits)
            .supervisor(Supervisor::ThisProgram)
            .tools(move |_| {
                let tool = tool.clone();
                builtin_tools().with(move || tool.clone())
            })
            .start()
            .unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let supplies = Supplies::env(vec![("PATH".to_owned(), std::env::var("PATH").unwrap())]);
        let sessions = engine.sessions(Who::named("figures")).with_supplies(supplies);
        Self { server, probe, runtime, sessions, folder: TempDir::new().unwrap(), _engine: engine }
    }

    /// Opens a session that may do everything without approval.
    pub(crate) async fn open(&self, model: &str) -> SessionHandle {
        let open = OpenSession::in_folder(self.folder.path()).model(model).policy(PolicyMode::All);
        self.sessions.open(open).await.unwrap()
    }

    /// Opens a session and attaches a client to it.
    pub(crate) async fn watched(&self, model: &str) -> (SessionHandle, Attachment) {
        let session = self.open(model).await;
        let client = session.attach(AttachFrom::now()).await.unwrap();
        (session, client)
    }
}

/// Reads until `wanted` returns a value.
pub(crate) async fn until<T>(
    client: &mut Attachment,
    mut wanted: impl FnMut(&Event) -> Option<T>,
) -> T {
    loop {
        let event = client.next().await.expect("the stream continues");
        if let Some(found) = wanted(&event) {
            return found;
        }
    }
}

/// Reads until the turn has ended.
pub(crate) async fn turn_finished(client: &mut Attachment) {
    until(client, |event| {
        matches!(event.fact(), Some(Fact::Turn(TurnFact::Finished { .. }))).then_some(())
    })
    .await;
}

/// Reads until the hold is as wanted.
pub(crate) async fn hold_is(client: &mut Attachment, wanted: impl Fn(&Hold) -> bool) {
    until(client, |event| match event.fact() {
        Some(Fact::Session(SessionFact::HoldChanged { hold })) if wanted(hold) => Some(()),
        _ => None,
    })
    .await;
}

type Call = Arc<dyn Fn(&ToolContext) + Send + Sync>;

/// The tool `probe`, which runs the closure that was set last.
#[derive(Clone)]
pub(crate) struct Probe(Arc<Mutex<Call>>);

impl Default for Probe {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(Arc::new(|_| ()))))
    }
}

impl Probe {
    pub(crate) fn does(&self, call: impl Fn(&ToolContext) + Send + Sync + 'static) {
        *self.0.lock().unwrap() = Arc::new(call);
    }
}

impl Tool for Probe {
    fn name(&self) -> &'static str {
        "probe"
    }

    fn description(&self) -> &'static str {
        "Does what the benchmark wants."
    }

    fn schema(&self) -> Value {
        json!({"type": "object"})
    }

    fn intent(&self, _: &Value, _: &Workspace) -> Result<Intent, ToolError> {
        Ok(Intent::new(Act::Other, "Probe?"))
    }

    fn call(&mut self, _: Value, context: &ToolContext) -> Result<ToolOutcome, ToolError> {
        let call = Arc::clone(&self.0.lock().unwrap());
        call(context);
        Ok(ToolOutcome::default())
    }
}

/// The real program, ready to run a prompt: everything is allowed, and the user's configuration is
/// not read.
pub(crate) fn holdpoint(folder: &TempDir, model: &str, prompt: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_holdpoint"));
    command
        .args(["run", "--in-process", "--json", "--policy", "all", "--model", model])
        .arg("--cwd")
        .arg(folder.path())
        .arg("--state-dir")
        .arg(folder.path().join("state"))
        .arg(prompt)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

/// Waits for a program that must succeed.
pub(crate) fn succeed(mut child: Child) {
    let status = child.wait().unwrap();
    assert!(status.success(), "holdpoint ended with {status}");
}

/// The four process ids in the first line that has them after `mark`.
pub(crate) fn line_of(output: impl Read, mark: &str) -> String {
    for line in BufReader::new(output).lines() {
        if let Some(pids) = pids_in(&line.unwrap(), mark) {
            return pids;
        }
    }
    panic!("no process ids came");
}

/// The four process ids after `mark` in a text.
pub(crate) fn pids_in(text: &str, mark: &str) -> Option<String> {
    let rest = &text[text.find(mark)? + mark.len()..];
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != ' ').unwrap_or(rest.len());
    let pids = rest[..end].trim();
    (pids.split(' ').count() == 4).then(|| pids.to_owned())
}

/// Opens a pidfd for each of these processes.
pub(crate) fn pidfds(pids: &str) -> Vec<OwnedFd> {
    let pids = pids.split(' ').map(|pid| Pid::from_raw(pid.parse().unwrap()).unwrap());
    pids.map(|pid| pidfd_open(pid, PidfdFlags::empty()).unwrap()).collect()
}

/// Waits until all of these processes are gone.
pub(crate) fn wait_all(watched: &[OwnedFd]) {
    for one in watched {
        poll(&mut [PollFd::new(one, PollFlags::IN)], None).unwrap();
    }
}
