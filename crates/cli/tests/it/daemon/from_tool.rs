//! A process that a tool call has started can't use the daemon that runs the call, and so can't act
//! as the user.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};

use holdpoint_common::{Event, Fact, RefusedClient, SessionFact};
use holdpoint_tools::testing::{again, part};
use rustix::process::{Signal, geteuid};
use serde_json::json;

use super::client::Api;
use super::harness::DaemonWorld;
use crate::world::{Ran, patience, program};

/// The requests that are tried, as shell commands. `H` is the program, `S` a session, `A` its open
/// ask and `SOCKET` the daemon's socket; `ask` is curl on this socket. Any of them is enough to act
/// as the user, or to read the user's sessions.
const REQUESTS: &str = r#"
ask() { curl -sS -w "%{http_code}" --max-time "${MAX:-300}" --unix-socket "$SOCKET" "$@"; }
# The program keeps reading until its second reply has come.
acp() {
    rm -f acp.out
    { printf '{"id":%s,"method":"%s","params":{%s}}\n' 1 initialize '"protocolVersion":1' \
        2 session/load '"cwd":"/","mcpServers":[],"sessionId":"'$S'"'
    until grep -q '"id":2' acp.out; do sleep 0.01; done; } | $H acp > acp.out
    cat acp.out
}
try() { echo "$WAY|$*|$("$@" 2>&1 < /dev/null | tr '\n' ' ')"; }
try $H status
try $H list
try $H inbox
try $H show $S
try $H logs $S
try $H export $S
try $H new --policy all 'say hello'
try $H run --policy all 'say hello'
try $H prompt $S 'say hello'
try $H hold $S
try $H release $S
try $H asks $S wait
try $H policy set $S all
try $H rename $S other
try acp
try ask http://x/v1/status
try ask http://x/v1/sessions
try ask http://x/v1/events
try ask http://x/v1/sessions/$S/events
try ask http://x/v1/asks/$A/answer -H 'content-type: application/json' -d '{"type":"approve"}'
try ask http://x/v1/sessions -H 'content-type: application/json' -d '{"policy":"all"}'
SOCKET=$SECOND try ask http://x/v1/status
try $H approve $A
[ -z "$MAX" ] || until [ -e approved ]; do sleep 0.01; done
try $H deny $A
try $H interrupt $S
try $H close $S
try $H rm $S
try ask http://x/v1/stop -X POST
try $H daemon restart
try $H daemon stop
"#;

/// The ways in which a command of an agent starts the requests, besides a background job.
const WAYS: &str = r#"
WAY=plain bash requests
WAY=setsid setsid --wait bash requests
env -i WAY=cleared PATH="$PATH" HOME="$HOME" XDG_CONFIG_HOME="$XDG_CONFIG_HOME" \
    XDG_DATA_HOME="$XDG_DATA_HOME" XDG_RUNTIME_DIR="$XDG_RUNTIME_DIR" bash requests
# A process without its parent, which the supervisor adopts.
bash -c 'setsid bash -c "while kill -0 $$ 2> /dev/null; do sleep 0.01; done
    WAY=orphan bash requests > orphan.out; touch orphan.done" &'
until [ -e orphan.done ]; do sleep 0.01; done
cat orphan.out
# A process whose parent ends gets the first process of its pid namespace as its parent.
[ -z "$NAMESPACE" ] || {
nsenter $NAMESPACE bash -c 'setsid bash -c "while kill -0 $$ 2> /dev/null; do sleep 0.01; done
    WAY=namespace bash requests > namespace.out; touch namespace.done" &'
until [ -e namespace.done ]; do sleep 0.01; done
cat namespace.out
}
# An engine of its own, with a supervisor below that of the call.
$H --state-dir own run --in-process --policy all --sandbox off 'shell: WAY=nested bash requests > nested.out'
cat nested.out
"#;

const REFUSAL: &str = "a command that an agent has started can't use holdpoint as the user";

struct Tried {
    way: String,
    request: String,
    answer: String,
}

/// A pid namespace of the user, outside of any tool call.
struct Namespace {
    child: Child,
    /// The arguments of `nsenter` for it; empty if the system allows none.
    arguments: String,
}

impl Namespace {
    fn new() -> Self {
        let (unshare, enter) = match geteuid().is_root() {
            true => ("-pf", "-p"),
            false => ("-Urpf", "--preserve-credentials -U -p"),
        };
        let mut command = Command::new("unshare");
        command.args([unshare, "--kill-child", "bash", "-c", "echo; exec sleep 1000"]);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let ready = child.stdout.take().unwrap().read(&mut [0]).unwrap() > 0;
        let first = fs::read_to_string(format!("/proc/{0}/task/{0}/children", child.id()));
        let arguments = match first {
            Ok(first) if ready => format!("{enter} -t {}", first.trim()),
            _ => {
                println!("skipped: the system allows no pid namespace");
                String::new()
            }
        };
        Self { child, arguments }
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // The namespace ends with it.
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// A daemon with a session that waits for an answer, and the requests for it as a script.
pub(super) fn world() -> (DaemonWorld, String, String) {
    let house = DaemonWorld::new();
    house.start();
    let api = Api::new(&house);
    let session = api.open("ask");
    api.prompt(&session, "shell: touch approved");
    let ask = api.asks(&session, 1).remove(0);
    let second = house.data().join("run/holdpoint.sock");
    let variables = format!(
        "H={} S={session} A={ask} SOCKET={} SECOND={}",
        program().display(),
        house.socket().display(),
        second.display()
    );
    fs::write(house.0.work("requests"), format!("{variables}{REQUESTS}")).unwrap();
    fs::write(house.0.work("ways"), format!("{variables}{WAYS}")).unwrap();
    (house, session, ask)
}

/// Reads the lines of the requests.
fn tried(output: &str) -> Vec<Tried> {
    let line = |line: &str| {
        let mut parts = line.splitn(3, '|').map(str::to_owned);
        let mut part = || parts.next().unwrap_or_else(|| panic!("{line}"));
        Tried { way: part(), request: part(), answer: part() }
    };
    output.lines().map(line).collect()
}

pub(super) fn requests() -> usize {
    REQUESTS.lines().filter(|line| line.starts_with("try ") || line.contains(" try ")).count()
}

/// The refused clients in a session's log.
fn refused(api: &Api, session: &str) -> Vec<RefusedClient> {
    let log = String::from_utf8(api.export(session)).unwrap();
    let events = log.lines().filter_map(|line| serde_json::from_str::<Event>(line).ok());
    let clients = events.filter_map(|event| match event.fact() {
        Some(Fact::Session(SessionFact::ClientRefused(client))) => Some(client.clone()),
        _ => None,
    });
    clients.collect()
}

#[test]
fn m_g1_nothing_that_a_tool_call_starts_reaches_the_daemon() {
    let (house, session, ask) = world();
    let (pid, api, namespace) = (house.pid(), Api::new(&house), Namespace::new());
    let agent = api.open("all");
    let run = |command: String, background: bool| {
        let limit = (!background).then(|| patience().as_millis());
        let input = json!({ "command": command, "background": background, "timeout_ms": limit });
        api.prompt(&agent, &format!("call shell {input}"));
        api.settled(&agent);
    };
    let enter = &namespace.arguments;
    run(format!("NAMESPACE='{enter}' bash ways | grep '|' > tried"), false);
    run("WAY=last bash requests >> tried".to_owned(), false);
    run("WAY=job bash requests > job; touch job.done".to_owned(), true);
    run("until [ -e job.done ]; do sleep 0.01; done".to_owned(), false);

    let read = |file| fs::read_to_string(house.0.work(file)).unwrap();
    let tried = tried(&(read("tried") + &read("job")));
    for way in ["plain", "setsid", "cleared", "orphan", "nested", "last", "job"] {
        let of_it = tried.iter().filter(|tried| tried.way == way);
        assert_eq!(of_it.count(), requests(), "{way}: {}", house.log());
    }
    let of_namespace = tried.iter().filter(|tried| tried.way == "namespace").count();
    assert_eq!(of_namespace, if namespace.arguments.is_empty() { 0 } else { requests() });
    for Tried { way, request, answer } in &tried {
        let refusals = match way.as_str() {
            "namespace" => ["can't be identified", "is not one of this user's processes here"],
            _ => [REFUSAL; 2],
        };
        let is_refused = refusals.iter().any(|refusal| answer.contains(refusal));
        assert!(is_refused, "{way}, {request}: {answer}");
    }
    // Nothing has changed: the daemon, the sessions and the open ask.
    assert_eq!(house.pid(), pid);
    assert_eq!(api.asks(&session, 1), std::slice::from_ref(&ask));
    assert!(!house.0.work("approved").exists());
    let sessions = api.get("sessions").ok();
    assert_eq!(sessions["sessions"].as_array().unwrap().len(), 2, "{sessions}");
    // The different requests of each command are in the log of its session, up to ten.
    assert_eq!(refused(&api, &session), []);
    let clients = refused(&api, &agent);
    let answer = format!("POST /v1/asks/{ask}/answer");
    let answers = clients.iter().filter(|client| client.request == answer).count();
    assert_eq!((clients.len(), answers), (3 * 7, 3), "{clients:?}");
    let shown = house.run(&["logs", &agent]).code(0).out;
    assert!(shown.contains(", which the agent has started: GET /v1/status"), "{shown}");
}

/// The control: the same requests by the user.
#[test]
fn m_g1_the_same_requests_reach_the_daemon_from_outside_of_a_tool_call() {
    let (house, ..) = world();
    let mut script = Command::new("bash");
    script.arg("requests").current_dir(house.0.path("work"));
    script.env_clear().envs(house.0.env()).env("WAY", "user").env("MAX", "2");
    let tried = tried(&Ran::of(script).code(0).out);
    assert_eq!(tried.len(), requests());
    for Tried { request, answer, .. } in &tried {
        assert!(!answer.contains(REFUSAL) && !answer.is_empty(), "{request}: {answer}");
    }
    assert!(house.0.work("approved").exists(), "{}", house.log());
}

#[test]
fn m_g1_a_tool_call_has_its_own_daemon_in_its_own_folders() {
    let house = DaemonWorld::new();
    house.start();
    let (api, h) = (Api::new(&house), program().display());
    let agent = api.open("all");
    let own = format!("{h} --state-dir own");
    api.prompt(
        &agent,
        &format!(
            "shell: {own} run --policy all 'shell: touch made' && {own} list > sessions && {own} daemon stop",
        ),
    );
    api.settled(&agent);
    assert!(house.0.work("made").exists(), "{}", house.run(&["logs", &agent]).out);
    assert!(fs::read_to_string(house.0.work("sessions")).unwrap().contains("touch made"));
    assert_eq!(refused(&api, &agent), []);
}

/// Without a daemon to refuse it, the program refuses to open the folders of its user.
#[test]
fn m_g1_a_tool_call_does_not_open_the_folders_of_the_user() {
    let house = DaemonWorld::new();
    let h = program().display();
    let script = format!("shell: {h} list > list 2>&1; {h} policy explain ls > explain 2>&1");
    let session = [
        "--state-dir",
        "own",
        "run",
        "--in-process",
        "--policy",
        "all",
        "--sandbox",
        "off",
        &script,
    ];
    let ran = house.run(&session);
    let read = |file| fs::read_to_string(house.0.work(file)).unwrap();
    assert!(read("list").contains(REFUSAL) && read("list").contains("hint: "), "{ran:?}");
    assert!(!house.data().exists(), "a folder was made");
    // A command that opens no folder of the user works.
    assert!(read("explain").contains("ls"), "{}", read("explain"));
    // The control: the user, in the same folders.
    house.run(&["list"]).code(0);
}

/// A process that sends its request and ends can't be identified any more.
#[test]
fn m_g1_a_process_that_has_ended_is_refused() {
    if part().is_some() {
        let mut stream = UnixStream::connect(std::env::var_os("SOCKET").unwrap()).unwrap();
        stream
            .write_all(b"POST /v1/stop HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n")
            .unwrap();
        return;
    }
    let house = DaemonWorld::new();
    let pid = house.start();
    house.signal(Signal::STOP);
    let mut stop = again("stop");
    assert!(stop.env("SOCKET", house.socket()).status().unwrap().success());
    house.signal(Signal::CONT);
    // The daemon accepts this connection after that of the ended process.
    assert_eq!(house.pid(), pid);
    let log = house.last_words();
    assert!(log.contains("can't be identified"), "{log}");
}
