//! Hosted agents: the time from a permission request to its ask, and the time for each of many calls.

use std::fs;
use std::time::{Duration, Instant, SystemTime};

use holdpoint_common::{Answer, AskFact, AskRequest, Fact, Who};
use holdpoint_session::{AttachFrom, Sessions};

use crate::daemon::StateDir;
use crate::floors::Floor;
use crate::table::{Amount, Samples, Table};

const ASKS: usize = 200;

/// An agent that asks for permission as often as its argument says, each time with the current time
/// as the title, or with `calls` makes this many calls without asking.
const AGENT: &str = r#"
import json, sys, time
kind, count = sys.argv[1], int(sys.argv[2])
def send(**message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()
def update(**fields):
    send(method="session/update", params={"sessionId": "s", "update": fields})
def read():
    return json.loads(sys.stdin.readline() or "null")
while request := read():
    method = request.get("method")
    if method == "initialize":
        send(id=request["id"], result={"protocolVersion": 1, "agentCapabilities": {}})
    elif method == "session/new":
        send(id=request["id"], result={"sessionId": "s"})
    elif method == "session/prompt":
        for n in range(count):
            if kind == "calls":
                update(sessionUpdate="tool_call", toolCallId=f"c{n}", title="x", kind="read", status="in_progress")
                update(sessionUpdate="tool_call_update", toolCallId=f"c{n}", status="completed")
            else:
                # The last answer has been shown by then.
                time.sleep(0.005)
                options = [{"optionId": "y", "name": "Yes", "kind": "allow_once"}, {"optionId": "n", "name": "No", "kind": "reject_once"}]
                call = {"toolCallId": f"c{n}", "title": str(time.time_ns()), "kind": "other", "status": "pending"}
                send(id=f"r{n}", method="session/request_permission", params={"sessionId": "s", "toolCall": call, "options": options})
                while "result" not in read():
                    pass
                update(sessionUpdate="tool_call_update", toolCallId=f"c{n}", status="completed")
        send(id=request["id"], result={"stopReason": "end_turn"})
"#;

pub(crate) fn measure(table: &Table) {
    let ask = "hosted: permission request to the ask at a client";
    if table.wants("hosted", &[ask]) {
        let delays = asks();
        table.figure_beside(Floor::RoundTrip, ask, delays.median(), Amount::ms(2));
        table.note("   … p99", delays.p99());
    }
    if table.wants("hosted", &["hosted: each of many calls"]) {
        for count in [100, 1_000, 4_000] {
            let each = Amount::Time(calls(count));
            table.note(&format!("hosted: each of {count} calls in a turn"), each);
        }
    }
}

/// A folder with the agent, whose start is allowed.
fn world() -> StateDir {
    let state = StateDir::new();
    state.configure("[sandbox]\nlevel = \"off\"\n[rules]\nallow = [\"agent(python3)\"]\n");
    fs::write(state.folder().join("agent.py"), AGENT).unwrap();
    state
}

fn command(state: &StateDir, kind: &str, count: usize) -> String {
    format!("python3 {} {kind} {count}", state.folder().join("agent.py").display())
}

/// The delays from each permission request to its ask at a client.
fn asks() -> Samples {
    let state = world();
    let agent = command(&state, "asks", ASKS);
    state.succeed(&["new", "--name", "one", "--agent", &agent]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let delays = runtime.block_on(async {
        let sessions = Sessions::remote(state.socket(), &Who::named("bench"));
        let session = sessions.get("one").await.unwrap();
        let mut attachment = session.attach(AttachFrom::now()).await.unwrap();
        session.prompt("Go.").await.unwrap();
        let mut delays = Vec::with_capacity(ASKS);
        while delays.len() < ASKS {
            let event = attachment.next().await.unwrap();
            let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
            let Some(Fact::Ask(AskFact::Raised { ask })) = event.fact() else { continue };
            let AskRequest::Pause(pause) = &ask.request else { panic!("{ask:?}") };
            let mut numbers = pause.message.split(|c: char| !c.is_ascii_digit());
            let sent = numbers.find(|number| number.len() > 15).unwrap().parse().unwrap();
            delays.push(now.saturating_sub(Duration::from_nanos(sent)));
            let approve = Answer::Approve { always: false };
            session.answer(&ask.id, approve).await.unwrap();
        }
        delays
    });
    state.succeed(&["daemon", "stop"]);
    Samples::new(delays)
}

/// The time for each of these many calls in one turn.
fn calls(count: usize) -> Duration {
    let state = world();
    let agent = command(&state, "calls", count);
    let start = Instant::now();
    state.succeed(&["run", "--agent", &agent, "Go."]);
    start.elapsed() / u32::try_from(count).unwrap()
}
