//! The agent for editors: the time to start, and from an event to the editor.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::{Duration, Instant};

use holdpoint_common::{Fact, SessionFact, Who};
use holdpoint_session::{AttachFrom, Sessions};
use serde_json::{Value, json};

use crate::daemon::StateDir;
use crate::floors::Floor;
use crate::table::{Amount, Samples, Table};

const STARTS: usize = 50;
const EVENTS: usize = 200;
const CANCELS: usize = 100;

/// A turn that streams words and then runs a command, until it is cancelled.
const TURN: &str = "say@200 Some words before the command runs its two processes.\n\
                    shell: sleep 1000 & echo runs; sleep 1000";
/// The most messages of this turn before its command runs.
const MESSAGES: usize = 13;

pub(crate) fn measure(table: &Table) {
    if table.wants("acp", &["acp: start to initialize answered"]) {
        let state = StateDir::new();
        let started = Samples::of(STARTS, || start(&state));
        table.figure_beside(
            Floor::Spawn,
            "acp: start to initialize answered",
            started.median(),
            Amount::ms(30),
        );
        table.note("   … p99", started.p99());
    }
    if table.wants("acp", &["acp: event to the editor"]) {
        let delays = events();
        table.figure_beside(
            Floor::RoundTrip,
            "acp: event at an attached client to the editor",
            delays.median(),
            Amount::ms(1),
        );
        table.note("   … p99", delays.p99());
    }
    if table.wants("acp", &["acp: cancel to its reply"]) {
        let cancelled = cancels();
        table.figure_beside(
            Floor::Kill,
            "acp: cancel to its reply, p99 (t-F15)",
            cancelled.p99(),
            Amount::ms(2_000),
        );
        table.note("   … median", cancelled.median());
    }
}

/// A running agent.
struct Agent {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Agent {
    fn start(state: &StateDir) -> Self {
        let mut command = state.command(&["acp"]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Self { child, input, output: BufReader::new(output) }
    }

    /// Starts an agent with a session. Returns the id of the session.
    fn with_session(state: &StateDir) -> (Self, String) {
        let mut agent = Self::start(state);
        agent.call(1, "initialize", &json!({ "protocolVersion": 1 }));
        let folder = json!({ "cwd": state.folder(), "mcpServers": [] });
        let opened = agent.call(2, "session/new", &folder);
        let session = opened["sessionId"].as_str().unwrap().to_owned();
        (agent, session)
    }

    fn send(&mut self, id: u64, method: &str, params: &Value) {
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        writeln!(self.input, "{request}").unwrap();
    }

    /// Sends a request and reads lines up to its result.
    fn call(&mut self, id: u64, method: &str, params: &Value) -> Value {
        self.send(id, method, params);
        self.result(id)
    }

    /// Reads lines up to the result of this request.
    fn result(&mut self, id: u64) -> Value {
        loop {
            let message = self.read();
            if message["id"] == id {
                return message["result"].clone();
            }
        }
    }

    fn read(&mut self) -> Value {
        let mut line = String::new();
        assert!(self.output.read_line(&mut line).unwrap() > 0, "the agent has ended");
        serde_json::from_str(&line).unwrap()
    }

    fn end(mut self) {
        drop(self.input);
        assert!(self.child.wait().unwrap().success());
    }
}

fn start(state: &StateDir) -> Duration {
    let since = Instant::now();
    let mut agent = Agent::start(state);
    agent.call(1, "initialize", &json!({ "protocolVersion": 1 }));
    let took = since.elapsed();
    agent.end();
    took
}

/// The delays from each event at a client that is attached directly to its line at the editor.
fn events() -> Samples {
    let state = StateDir::new();
    let (agent, session) = Agent::with_session(&state);
    let (sender, lines) = std::sync::mpsc::channel();
    let Agent { mut child, input, mut output } = agent;
    std::thread::spawn(move || {
        let mut line = String::new();
        while output.read_line(&mut line).unwrap() > 0 {
            // A hold and a release are messages of their own.
            if line.contains("agent_message_chunk") && sender.send(Instant::now()).is_err() {
                return;
            }
            line.clear();
        }
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let delays = runtime.block_on(async {
        let sessions = Sessions::remote(state.socket(), &Who::named("bench"));
        let session = sessions.get(&session).await.unwrap();
        let mut attachment = session.attach(AttachFrom::now()).await.unwrap();
        let mut delays = Vec::with_capacity(EVENTS);
        for round in 0..EVENTS {
            let change = async {
                match round % 2 {
                    0 => session.hold().await.unwrap(),
                    _ => session.release().await.unwrap(),
                }
            };
            let event = async {
                loop {
                    let event = attachment.next().await.unwrap();
                    let fact = event.fact();
                    if matches!(fact, Some(Fact::Session(SessionFact::HoldChanged { .. }))) {
                        return Instant::now();
                    }
                }
            };
            let (_, attached) = futures_util::future::join(change, event).await;
            let shown = lines.recv().unwrap();
            delays.push(shown.saturating_duration_since(attached));
        }
        delays
    });
    drop(input);
    assert!(child.wait().unwrap().success());
    state.succeed(&["daemon", "stop"]);
    Samples::new(delays)
}

/// The times from cancels of turns, each after a random message of the turn, to their replies. Every
/// second cancel waits until the command of the turn runs.
fn cancels() -> Samples {
    let state = StateDir::new();
    state.configure("policy = \"all\"\n[sandbox]\nlevel = \"off\"\n");
    let (mut agent, session) = Agent::with_session(&state);
    let prompt = json!({ "sessionId": session, "prompt": [{ "type": "text", "text": TURN }] });
    let mut took = Vec::with_capacity(CANCELS);
    for (round, id) in (3..).enumerate().take(CANCELS) {
        let moment = match round % 2 {
            0 => usize::MAX,
            _ => fastrand::usize(0..MESSAGES),
        };
        agent.send(id, "session/prompt", &prompt);
        for _ in 0..moment {
            let update = &agent.read()["params"]["update"];
            let is_output = update["sessionUpdate"] == "tool_call_update";
            if is_output && update["content"].to_string().contains("runs") {
                break;
            }
        }
        let since = Instant::now();
        let cancel = json!({ "sessionId": session });
        let cancel = json!({ "jsonrpc": "2.0", "method": "session/cancel", "params": cancel });
        writeln!(agent.input, "{cancel}").unwrap();
        assert_eq!(agent.result(id)["stopReason"], "cancelled");
        took.push(since.elapsed());
    }
    agent.end();
    state.succeed(&["daemon", "stop"]);
    Samples::new(took)
}
