//! Clients that disconnect in the middle of a request, a stream or an ask.

use std::io::{BufRead, BufReader, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use holdpoint_common::{Fact, Outcome, PromptFact};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use super::client::Api;
use super::harness::DaemonWorld;
use crate::world::{patience, rounds};

/// A client in a process of its own, which is killed when dropped.
struct Program(Child);

impl Program {
    /// Attaches and reads until it is killed.
    fn attach(house: &DaemonWorld, session: &str) -> Self {
        let url = format!("http://holdpoint/v1/sessions/{session}/events");
        let mut curl = Command::new("curl");
        curl.args(["--silent", "--no-buffer", "--unix-socket"]).arg(house.socket()).arg(url);
        Self(curl.stdin(Stdio::null()).stdout(Stdio::null()).spawn().expect("curl is installed"))
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.0), signal).unwrap();
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

fn house() -> (DaemonWorld, Api) {
    let house = DaemonWorld::new();
    house.start();
    let api = Api::new(&house);
    (house, api)
}

/// Waits until `count` clients are attached.
#[track_caller]
fn wait_clients(api: &Api, session: &str, count: usize) {
    let by = Instant::now() + patience();
    loop {
        let clients = api.look(session).clients;
        if clients == count {
            return;
        }
        assert!(Instant::now() < by, "{clients} clients are attached, not {count}");
        std::thread::yield_now();
    }
}

#[test]
fn t_t7_a_request_that_is_dropped_is_done_once_or_not_at_all() {
    let (_house, api) = house();
    let session = api.open("all");
    let path = format!("sessions/{session}/prompts");
    let most = rounds(100, 1_000);
    let mut whole = Vec::new();
    for n in 0..most {
        let text = format!("say number {n}.");
        let request =
            api.request("POST", &path, "", json!({ "text": text }).to_string().as_bytes());
        let mut line = api.line();
        // Some requests are cut short, the others are whole, and few clients wait for an answer.
        let sent = if n % 3 == 0 {
            request.len() - 1 - fastrand::usize(..request.len() / 2)
        } else {
            request.len()
        };
        line.send(&request[..sent]).unwrap();
        if sent == request.len() {
            whole.push(text);
            if n % 16 == 14 {
                // Some hang up in the middle of the answer.
                line.head().unwrap();
            }
        }
        // Empty the queue now and then: a full one refuses prompts, which is not under test.
        if n % 16 == 15 {
            drop(line);
            api.settled(&session);
        }
    }
    // The last prompts may still wait in the queue.
    while api.post(&path, &json!({ "text": "say the last one." })).status == 429 {}
    api.settled(&session);
    let mut events = api.attach(&session, "");
    let mut accepted = Vec::new();
    loop {
        match events.until_event(|_| true).fact() {
            Some(Fact::Prompt(PromptFact::Accepted { text, .. })) if text.contains("last") => break,
            Some(Fact::Prompt(PromptFact::Accepted { text, .. })) => {
                accepted.push(text.to_string())
            }
            _ => {}
        }
    }
    let mut once = accepted.clone();
    once.sort();
    once.dedup();
    assert_eq!(once.len(), accepted.len(), "something was done twice");
    assert!(accepted.iter().all(|text| whole.contains(text)), "a part of a request was done");
    assert!(!accepted.is_empty());
}

#[test]
fn t_s11_a_client_that_dies_leaves_nothing_held() {
    let (house, api) = house();
    let session = api.open("ask");
    let client = Program::attach(&house, &session);
    wait_clients(&api, &session, 1);
    api.prompt(&session, "shell: touch made");
    let ask = api.asks(&session, 1).remove(0);
    client.signal(Signal::KILL);
    // No request follows, so the daemon learns of the death from the connection alone.
    wait_clients(&api, &session, 0);
    assert_eq!(api.asks(&session, 1), [ask.as_str()]);
    api.answer(&ask, &json!({ "type": "approve" })).ok();
    assert_eq!(api.settled(&session).last_turn.unwrap().outcome, Outcome::Done);
}

#[test]
fn t_s6_a_half_closed_or_broken_connection_is_detached() {
    let (_house, api) = house();
    let session = api.open("all");
    let half = api.attach(&session, "");
    half.close_half();
    wait_clients(&api, &session, 0);
    // With much of a stream in transit.
    let mut broken = api.attach(&session, "");
    api.prompt(&session, "shell: seq 200000");
    broken.until_event(|event| event.delta().is_some());
    drop(broken);
    wait_clients(&api, &session, 0);
    assert_eq!(api.settled(&session).last_turn.unwrap().outcome, Outcome::Done);
}

#[test]
fn t_s6_a_suspended_client_disturbs_no_session_and_is_dropped() {
    let (house, api) = house();
    let session = api.open("all");
    let client = Program::attach(&house, &session);
    wait_clients(&api, &session, 1);
    client.signal(Signal::STOP);
    api.prompt(&session, "shell: seq 400000");
    assert_eq!(api.settled(&session).last_turn.unwrap().outcome, Outcome::Done);
    if rounds(0, 1) == 0 {
        println!("left out: it takes a minute until it is freed");
        return;
    }
    let sockets = house.sockets();
    let by = Instant::now() + patience();
    while house.sockets() >= sockets {
        assert!(Instant::now() < by, "the connection is still open");
        std::thread::sleep(Duration::from_millis(10));
    }
    wait_clients(&api, &session, 0);
}

#[test]
fn export_and_import_are_all_or_nothing() {
    let (_house, api) = house();
    let session = api.open("all");
    api.prompt(&session, "shell: seq 3000\nsay done");
    api.settled(&session);
    let text = api.export(&session);
    let import = |text: &[u8]| {
        let mut line = api.line();
        line.send(&api.request("POST", "import", "", text)).unwrap();
        line.answer().unwrap()
    };
    let before = api.get("sessions").ok();
    let half = &text[..text.len() / 2];
    assert!(import(half).error(400).message.starts_with("line "));
    assert!(import(b"{\"format\": 1}\n").error(400).message.starts_with("line 1"));
    // The request breaks off.
    let mut line = api.line();
    let request = api.request("POST", "import", "", &text);
    line.send(&request[..request.len() - 10]).unwrap();
    drop(line);
    assert_eq!(api.get("sessions").ok(), before);
    let mut news = api.stream("events", "");
    news.until(|frame| frame.data.contains(&session));
    let copy = import(&text).ok()["settings"]["id"].as_str().unwrap().to_owned();
    // Watchers see the new session.
    news.until(|frame| frame.data.contains(&copy));
    assert_ne!(copy, session);
    assert_eq!(api.look(&copy).title, api.look(&session).title);
}

/// An import keeps its whole text in memory until it is saved.
#[test]
fn t_s3_concurrent_imports_are_limited() {
    const MOST: usize = 4;
    let (_house, api) = house();
    let text = api.export(&api.open("all"));
    let import = || {
        let mut line = api.line();
        line.send(&api.request("POST", "import", "", &text)).unwrap();
        line.answer().unwrap()
    };
    let until = |status: u16| {
        let by = Instant::now() + patience();
        loop {
            let answer = import();
            if answer.status == status {
                return answer;
            }
            assert!(Instant::now() < by, "{}", answer.text());
        }
    };
    // More than the daemon reads before it parses, and never the whole text.
    let half = api.request("POST", "import", "", &[b'x'; 100_000]);
    let begin = |_| {
        let mut line = api.line();
        line.send(&half[..half.len() - 1]).unwrap();
        line
    };
    let mut stalled: Vec<_> = (1..MOST).map(begin).collect();
    assert_eq!(import().status, 200, "a place is left");
    stalled.push(begin(MOST));
    assert_eq!(until(429).error(429).code, "tooManyImports");
    // An import that breaks off frees its place.
    stalled.pop();
    until(200);
}

#[test]
fn t_u6_a_session_is_not_closed_while_it_can_not_be_saved() {
    let (house, api) = house();
    let session = api.open("all");
    let (there, away) = (house.data().join("sessions.db"), house.data().join("away.db"));
    std::fs::rename(&there, &away).unwrap();
    assert_eq!(api.prompt(&session, "say kept")["saved"], false);
    let close = format!("sessions/{session}/close");
    assert_eq!(api.post(&close, &json!(null)).error(507).code, "notSaving");
    let error = house.run(&["close", &session]).code(1).err;
    assert!(error.contains("bytes are not saved") && error.contains("hint: free space"), "{error}");
    std::fs::rename(&away, &there).unwrap();
    let mut stream = api.attach(&session, "?limit=0&snapshots=true");
    stream.until(|frame| frame.kind == "snapshot" && frame.data.contains("\"saved\":true"));
    api.post(&close, &json!(null)).ok();
    house.signal(Signal::KILL);
    house.wait_gone();
    assert!(house.run(&["logs", &session]).code(0).out.contains("kept"));
}

#[test]
fn t_s6_stalled_imports_and_exports_time_out() {
    if rounds(0, 1) == 0 {
        println!("left out: it takes half a minute until they are");
        return;
    }
    let (house, api) = house();
    let session = api.open("all");
    api.prompt(&session, "flood 2000 1000");
    api.settled(&session);
    let sockets = house.sockets();
    // Some send half a text and no more; some read nothing of an export.
    let half = api.request("POST", "import", "", &[b'x'; 1000]);
    let whole = api.request("GET", &format!("sessions/{session}/log"), "", b"");
    let mut stalled: Vec<_> = (0..10).map(|_| api.line()).collect();
    for (n, line) in stalled.iter_mut().enumerate() {
        line.send(if n % 2 == 0 { &half[..half.len() - 1] } else { &whole }).unwrap();
    }
    let by = Instant::now() + patience();
    while house.sockets() > sockets {
        assert!(Instant::now() < by, "{} connections are still open", house.sockets() - sockets);
        std::thread::sleep(Duration::from_millis(10));
    }
    drop(stalled);
}

/// `wait` gives up if every watch ends at once, before anything has arrived.
#[test]
fn t_s6_a_watch_that_always_breaks_is_given_up() {
    let (house, api) = house();
    let session = api.open("all");
    let moved = house.socket().with_extension("moved");
    std::fs::rename(house.socket(), &moved).unwrap();
    relay_with_broken_watch(UnixListener::bind(house.socket()).unwrap(), moved);
    let ran = house.run(&["wait", &session, "--for", "ask"]).code(1);
    assert!(ran.err.contains("the connection keeps breaking"), "{ran:#?}");
}

/// Passes every connection on to `daemon`, but answers a request to watch with a stream that ends at
/// once.
fn relay_with_broken_watch(relay: UnixListener, daemon: PathBuf) {
    std::thread::spawn(move || {
        for client in relay.incoming() {
            let (mut client, daemon) = (client.unwrap(), daemon.clone());
            std::thread::spawn(move || -> std::io::Result<()> {
                let mut from_client = BufReader::new(client.try_clone()?);
                let mut request = String::new();
                while !request.ends_with("\r\n\r\n") && from_client.read_line(&mut request)? > 0 {}
                if request.starts_with("GET /v1/events ") {
                    return client.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
                }
                let mut daemon = UnixStream::connect(daemon)?;
                daemon.write_all(request.as_bytes())?;
                let mut to_daemon = daemon.try_clone()?;
                std::thread::spawn(move || {
                    std::io::copy(&mut from_client, &mut to_daemon)?;
                    to_daemon.shutdown(Shutdown::Write)
                });
                std::io::copy(&mut daemon, &mut client).map(drop)
            });
        }
    });
}

#[test]
fn m_b1_unloaded_sessions_drop_their_supplies() {
    const OPENED: usize = 40;
    const SUPPLIED: usize = 3 << 19;
    let (house, api) = house();
    let before = house.resident();
    let supplies = json!({ "env": [], "systemPrompt": "x".repeat(SUPPLIED) });
    let request =
        json!({ "workspace": house.0.path("work"), "model": "rehearsal", "supplies": supplies });
    let mut opened = Vec::new();
    for _ in 0..OPENED {
        opened.push(
            api.post("sessions", &request).ok()["settings"]["id"].as_str().unwrap().to_owned(),
        );
    }
    // Ten sessions are live, and some of the data is still in transit.
    let grown = house.resident().saturating_sub(before);
    assert!(grown < (20 * SUPPLIED) as u64, "{grown} bytes are kept");
    let first = &opened[0];
    let prompt = json!({ "text": "say Hi." });
    assert_eq!(api.post(&format!("sessions/{first}/prompts"), &prompt).error(409).code, "notLive");
    // The client that opens a session brings the supplies.
    api.post(&format!("sessions/{first}/open"), &api.supplies()).ok();
    api.post(&format!("sessions/{first}/prompts"), &prompt).ok();
}
