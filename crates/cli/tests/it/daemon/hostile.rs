//! Requests that no client of ours sends: too large, too many, malformed. Each is refused with an
//! error and changes nothing.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use holdpoint_common::Outcome;
use holdpoint_common::api::API_VERSION;
use serde_json::{Value, json};

use super::client::Api;
use super::harness::DaemonWorld;
use crate::world::{patience, rounds};

/// The largest body: six bytes for each byte of a prompt, plus room for an environment.
const MOST: usize = 10 * 1024 * 1024;

fn house() -> (DaemonWorld, Api) {
    let house = DaemonWorld::new();
    house.start();
    let api = Api::new(&house);
    (house, api)
}

/// Checks that the daemon still serves and has not panicked.
#[track_caller]
fn assert_well(house: &DaemonWorld, api: &Api, session: &str) {
    api.prompt(session, "say well");
    assert_eq!(api.settled(session).last_turn.unwrap().outcome, Outcome::Done);
    assert!(!house.log().contains("panic"), "{}", house.log());
}

#[test]
fn t_s3_a_request_that_is_too_large_is_refused() {
    let (house, api) = house();
    let session = api.open("all");
    let path = format!("sessions/{session}/prompts");
    let before = house.resident();
    // The length is declared, so the body need not arrive.
    for length in [MOST as u64 + 1, 4 << 30, u64::MAX] {
        let mut line = api.line();
        let request = api.request("POST", &path, "", b"");
        let request =
            String::from_utf8(request).unwrap().replace("length: 0", &format!("length: {length}"));
        line.send(request.as_bytes()).unwrap();
        assert_eq!(line.answer().unwrap().error(413).code, "tooLarge");
    }
    // The length is not declared.
    let mut line = api.line();
    line.send(
        format!("POST /v1/{path} HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n")
            .as_bytes(),
    )
    .unwrap();
    let piece =
        [format!("{:x}\r\n", 1 << 20).into_bytes(), vec![b' '; 1 << 20], b"\r\n".to_vec()].concat();
    // The connection may be closed before everything is sent.
    while line.send(&piece).is_ok() && !line.has_answer() {}
    assert_eq!(line.answer().unwrap().error(413).code, "tooLarge");
    // A line that does not end, and headers without an end.
    for endless in ["GET /v1/", "GET /v1/status HTTP/1.1\r\n", "GET /v1/status HTTP/1.1\r\nx: "] {
        let mut line = api.line();
        line.send(endless.as_bytes()).unwrap();
        let more: &[u8] = if endless.ends_with('\n') { b"x: y\r\n" } else { &[b'x'; 4096] };
        while line.send(more).is_ok() && !line.has_answer() {}
        assert!(line.answer().map_or(true, |answer| (400..500).contains(&answer.status)));
    }
    // A prompt has a limit of its own.
    let long = "x".repeat(1024 * 1024 + 1);
    assert_eq!(api.post(&path, &json!({ "text": long })).error(413).code, "promptTooLong");
    let grown = house.resident().saturating_sub(before);
    assert!(grown <= 2 * MOST as u64, "{grown} bytes are kept");
    assert_well(&house, &api, &session);
}

#[test]
fn t_s4_invalid_json_is_refused_with_its_position() {
    let (house, api) = house();
    let session = api.open("all");
    let path = format!("sessions/{session}/prompts");
    let deep = [vec![b'['; 100_000], vec![b']'; 100_000]].concat();
    let deep_inside = [&br#"{"text":"#[..], &deep, b"}"].concat();
    let deep_beside = [&br#"{"other":"#[..], &deep, b"}"].concat();
    let bodies: [(&[u8], &str); 14] = [
        (b"{\"text\":", "line 1 column 8"),
        (b"{\"text\":NaN}", "line 1 column 9"),
        (b"{\n\"text\":\n,}", "line 3 column 1"),
        (b"{\"text\":\"a\",\"text\":\"b\"}", "duplicate field"),
        (b"{\"text\":1}", "invalid type"),
        (b"{}", "missing field `text`"),
        (b"", "missing field `text`"),
        (b"[]", "line 1"),
        (b"{\"text\":\"a\"}{}", "trailing characters"),
        (b"\xef\xbb\xbf{\"text\":\"a\"}", "byte order mark"),
        (b"{\"text\":\"\xff\xfe\"}", "not UTF-8 at byte 9"),
        (b"\0", "line 1 column 1"),
        (&deep, "line 1"),
        (&deep_inside, "line 1"),
    ];
    let mut line = api.line();
    for (body, place) in bodies {
        // The connection stays usable.
        line.send(&api.request("POST", &path, "", body)).unwrap();
        let error = line.answer().unwrap().error(400);
        assert_eq!(error.code, "malformed");
        assert!(error.message.contains(place), "{}", error.message);
    }
    line.send(&api.request("POST", &path, "", &deep_beside)).unwrap();
    assert_eq!(line.answer().unwrap().error(400).code, "malformed");
    for body in [
        &br#"{"type":"approve","type":"deny"}"#[..],
        br#"{"type":"deny","reason":"a","reason":"b"}"#,
    ] {
        line.send(&api.request("POST", &format!("asks/{session}.1/answer"), "", body)).unwrap();
        assert!(line.answer().unwrap().error(400).message.contains("duplicate field"));
    }
    assert_eq!(api.look(&session).last_turn, None);
    assert_well(&house, &api, &session);
}

#[test]
fn t_s4_a_connection_stays_usable_after_a_refusal() {
    let (_house, api) = house();
    let mut line = api.line();
    for (method, path, version, status) in [
        ("POST", "sessions/nobody/prompts", "", 404),
        ("POST", "sessions/nobody/prompts", "holdpoint-api: 99\r\n", 426),
        ("POST", "asks/none/answer", "", 400),
        ("POST", "nowhere", "", 404),
        ("DELETE", "sessions/nobody", "", 404),
        ("PATCH", "sessions", "", 405),
        ("GET", "status", "", 200),
    ] {
        line.send(&api.request(method, path, version, br#"{"text": "nobody has read this"}"#))
            .unwrap();
        assert_eq!(line.answer().unwrap().status, status, "{method} {path}");
    }
}

#[test]
fn t_s4_no_garbled_request_stops_it() {
    let (house, api) = house();
    let session = api.open("all");
    let good: Vec<(&str, String, Value)> = vec![
        (
            "POST",
            "sessions".into(),
            json!({ "workspace": "/nowhere", "rules": { "deny": ["shell(x)"] }, "maxSteps": 3 }),
        ),
        ("POST", format!("sessions/{session}/toggle"), json!({ "shown": "requested" })),
        ("POST", format!("sessions/{session}/interrupt"), json!({ "turn": 99, "noWait": true })),
        (
            "POST",
            format!("asks/{session}.7/answer"),
            json!({ "type": "reply", "answers": [{ "id": "a", "answer": "b" }] }),
        ),
        ("GET", format!("sessions/{session}/asks"), Value::Null),
        ("GET", "sessions/%ff%00/".into(), Value::Null),
    ];
    for round in 0..rounds(1_000, 10_000) {
        let (method, path, body) = &good[round % good.len()];
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let mut request = api.request(method, path, "", body.as_bytes());
        // Half of them are garbled anywhere, half only in the body, where the connection must
        // survive.
        let head = request.windows(4).position(|four| four == b"\r\n\r\n").unwrap() + 4;
        let from = if round % 2 == 0 || body.is_empty() { 0 } else { head };
        for _ in 0..fastrand::usize(1..8) {
            let at = fastrand::usize(from..request.len());
            request[at] = fastrand::u8(..);
        }
        let mut line = api.line();
        line.send(&request).unwrap();
        if from == 0 {
            // The daemon may wait for more or have closed the connection. Send nothing more.
            line.close_half();
            drop(line);
            continue;
        }
        let answer = line
            .answer()
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&request)));
        assert!(answer.status < 500, "{}: {}", String::from_utf8_lossy(&request), answer.text());
        line.send(&api.request("GET", "status", "", b"")).unwrap();
        line.answer().unwrap().ok();
    }
    assert_well(&house, &api, &session);
}

#[test]
fn t_s5_a_connection_over_the_limit_gets_an_error_and_disturbs_no_client() {
    let (house, api) = house();
    let session = api.open("all");
    let mut watched = api.attach(&session, "");
    watched.until(|frame| frame.kind == "snapshot");
    let sockets = house.sockets();
    for _ in 0..rounds(1, 10) {
        // One stream is open already.
        let streams: Vec<_> = (1..256).map(|_| api.stream("events", "")).collect();
        for path in
            ["events", &format!("sessions/{session}/events"), &format!("sessions/{session}/log")]
        {
            let mut line = api.line();
            line.send(&api.request("GET", path, "", b"")).unwrap();
            let error = line.answer().unwrap().error(429);
            assert_eq!(error.code, "tooManyStreams");
            assert!(error.message.contains("limit of 256 open streams"), "{}", error.message);
        }
        let error = house.run(&["attach", "--plain", &session]).code(1).err;
        assert!(
            error.contains("limit of 256 open streams") && error.contains("hint: detach a client"),
            "{error}"
        );
        // A session that can't be followed is not left behind.
        for args in [
            &["run", "--name", "unseen", "say hi"][..],
            &["loop", "--name", "unseen", "--goal", "say hi"],
        ] {
            let error = house.run(args).code(1).err;
            assert!(error.contains("limit of 256 open streams"), "{error}");
            house.run(&["show", "unseen"]).code(1);
        }
        // Connections without a complete request take no needed place.
        let request = api.request(
            "POST",
            &format!("sessions/{session}/prompts"),
            "",
            br#"{"text":"say no"}"#,
        );
        let silent: Vec<_> = (0..200)
            .map(|n| {
                let mut line = api.line();
                // The connection may be cut already.
                let _ = line.send(&request[..request.len() * (n % 3) / 3]);
                line
            })
            .collect();
        for args in [&["list"][..], &["status"], &["show", &session], &["interrupt", &session]] {
            house.run(args).code(0);
        }
        // Nor do idle connections that have had an answer.
        let answered: Vec<_> = (0..64)
            .map(|_| {
                let mut line = api.line();
                line.send(&api.request("GET", "status", "", b"")).unwrap();
                line.answer().unwrap().ok();
                line
            })
            .collect();
        // An interrupt that waits for its receipt takes no place of a stream.
        house.run(&["prompt", &session, "hang"]).code(0);
        let out = house.run(&["interrupt", &session]).code(0).out;
        assert!(out.contains("Agent interrupted"), "{out}");
        // Requests that wait for a turn take places of streams, and are refused with them.
        house.run(&["prompt", &session, "hang"]).code(0);
        let shown: Value =
            serde_json::from_str(&house.run(&["show", &session, "--json"]).code(0).out).unwrap();
        let turn = shown["turn"].as_u64().unwrap();
        let path = format!("sessions/{session}/turns/{turn}");
        let mut line = api.line();
        line.send(&api.request("GET", &path, "", b"")).unwrap();
        line.answer().unwrap().error(429);
        drop(streams);
        let waiting: Vec<_> = (0..65)
            .map(|_| {
                let mut line = api.line();
                line.send(&api.request("GET", &path, "", b"")).unwrap();
                line
            })
            .collect();
        for args in [
            &["list"][..],
            &["status"],
            &["hold", &session],
            &["release", &session],
            &["interrupt", &session],
        ] {
            house.run(args).code(0);
        }
        for mut line in waiting {
            line.answer().unwrap().ok();
        }
        drop((silent, answered));
        while house.sockets() > sockets {
            std::thread::yield_now();
        }
    }
    for _ in 0..rounds(500, 10_000) {
        drop(api.try_line());
    }
    while house.sockets() > sockets {
        std::thread::yield_now();
    }
    api.prompt(&session, "say well");
    watched.until_event(|event| {
        matches!(
            event.fact(),
            Some(holdpoint_common::Fact::Turn(holdpoint_common::TurnFact::Finished { .. }))
        )
    });
    assert_well(&house, &api, &session);
}

#[test]
fn a_connection_with_half_a_small_body_is_not_cut_for_another() {
    let (_house, api) = house();
    let session = api.open("all");
    let mut first = api.line();
    let body = br#"{"text":"say no"}"#;
    let request = api.request("POST", &format!("sessions/{session}/prompts"), "", body);
    let (begin, end) = request.split_at(request.len() - body.len() / 2);
    first.send(begin).unwrap();
    let mut kept = api.line();
    let status = api.request("GET", "status", "", b"");
    // The daemon has read half of the body when it answers a later request.
    kept.send(&status).unwrap();
    kept.answer().unwrap().ok();
    // More than the daemon has places for: the last ones replace connections without a request.
    let mut others: Vec<_> = (0..66).map(|_| api.line()).collect();
    let last = others.last_mut().unwrap();
    last.send(&status).unwrap();
    last.answer().unwrap().ok();
    first.send(end).unwrap();
    first.answer().unwrap().ok();
}

#[test]
fn t_s5_connections_with_half_a_body_take_no_needed_place() {
    let (house, api) = house();
    let session = api.open("all");
    let body = br#"{"text":"say no"}"#;
    let request = api.request("POST", &format!("sessions/{session}/prompts"), "", body);
    let half = |_| {
        let mut line = api.line();
        line.send(&request[..request.len() - body.len() / 2]).unwrap();
        line
    };
    let mut halves: Vec<_> = (0..63).map(half).collect();
    let mut kept = api.line();
    // The daemon has read the half bodies when it answers a later request.
    kept.send(&api.request("GET", "status", "", b"")).unwrap();
    kept.answer().unwrap().ok();
    drop(kept);
    halves.extend((0..3).map(half));
    for args in [&["list"][..], &["status"], &["show", &session], &["hold", &session]] {
        house.run(args).code(0);
    }
    drop(halves);
}

#[test]
fn t_s5_thousands_of_stalled_connections_do_not_disturb_a_working_one() {
    let (house, api) = house();
    let sockets = house.sockets();
    let storm = Duration::from_millis(rounds(1_000, 60_000) as u64);
    let mut kept = api.line();
    let request = api.request("GET", "status", "", b"");
    // A connection without a request yet may be dropped to make room.
    kept.send(&request).unwrap();
    kept.answer().unwrap().ok();
    let (over, answers) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                kept.send(&request).unwrap();
                kept.answer().unwrap().ok();
                answers.fetch_add(1, Ordering::Relaxed);
            }
        });
        // Each sends half a request. Those over the limit get an error and stay open on this side.
        let half = |_| {
            let mut line = api.line();
            let _ = line.send(&request[..request.len() / 2]);
            line
        };
        let held: Vec<_> = (0..rounds(500, 5_000)).map(half).collect();
        let (before, begun) = (answers.load(Ordering::Relaxed), Instant::now());
        let answered = || answers.load(Ordering::Relaxed) - before;
        while begun.elapsed() < storm || (answered() == 0 && begun.elapsed() < patience()) {
            drop(api.try_line());
        }
        let during = answered();
        drop(held);
        over.store(true, Ordering::Relaxed);
        println!("{during} answers");
        assert!(during > 0, "no status was answered during the storm");
    });
    drop(kept);
    let by = Instant::now() + patience();
    while house.sockets() > sockets {
        assert!(Instant::now() < by, "{} connections are still open", house.sockets() - sockets);
        std::thread::yield_now();
    }
    let session = api.open("all");
    assert_well(&house, &api, &session);
}

#[test]
fn t_s7_unknown_paths_methods_versions_and_fields_are_refused() {
    let (house, api) = house();
    let session = api.open("all");
    let before = api.look(&session);
    let ask = |method: &str, path: &str, headers: &str| {
        let mut line = api.line();
        line.send(&api.request(method, path, headers, b"{}")).unwrap();
        line.answer().unwrap()
    };
    assert_eq!(ask("GET", "nothing", "").error(404).code, "unknownPath");
    assert_eq!(ask("GET", "../status", "").error(404).code, "unknownPath");
    assert_eq!(ask("PATCH", "sessions", "").error(405).code, "unknownMethod");
    assert_eq!(
        ask("PROMPT", &format!("sessions/{session}/prompts"), "").error(405).code,
        "unknownMethod"
    );
    let (older, newer) = ((API_VERSION - 1).to_string(), (API_VERSION + 1).to_string());
    let fraction = format!("{API_VERSION}.0");
    for wrong in [&*older, &newer, &fraction, "1", "0", "-1", "one", ""] {
        let version = format!("holdpoint-api: {wrong}\r\n");
        assert_eq!(
            ask("POST", &format!("sessions/{session}/hold"), &version).error(426).code,
            "otherVersion"
        );
        // These requests are the same in all versions.
        ask("GET", "status", &version).ok();
        ask("GET", "sessions", &version).ok();
    }
    ask("GET", "asks", &format!("holdpoint-api: {API_VERSION}\r\n")).ok();
    for (path, status) in
        [("sessions//prompts", 404), ("sessions/UPPER/prompts", 404), ("asks/1/answer", 400)]
    {
        let answer = api.post(path, &json!({ "text": "x", "type": "resume" }));
        assert_eq!(answer.status, status, "{path}: {}", answer.text());
    }
    for (query, named) in
        [("limit=0", "`limit=0`"), ("limit=9&after=x", "`after=x`"), ("page=2", "`page=2`")]
    {
        let refused = api.get(&format!("sessions?{query}")).error(400).message;
        assert!(refused.contains(named) && refused.contains("`limit`"), "{refused}");
    }
    let twice = ask("POST", &format!("sessions/{session}/hold"), "content-length: 3\r\n");
    assert_eq!(twice.status, 400);
    let relative = api.post("sessions", &json!({ "workspace": "here" })).error(422);
    assert_eq!(relative.code, "workspace");
    // An unknown field is most likely a misspelt one, and its value would be ignored.
    let folder = std::env::temp_dir();
    let open = |more: serde_json::Value| {
        let mut body = json!({ "workspace": folder, "model": "rehearsal", "policy": "all" });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        api.post("sessions", &body)
    };
    for (more, field) in [
        (json!({ "polcy": "readonly" }), "`polcy`"),
        (json!({ "rules": { "denny": ["shell(echo)"] } }), "`rules.denny`"),
    ] {
        let refused = open(more).error(400);
        assert!(refused.code == "malformed" && refused.message.contains(field), "{refused:?}");
    }
    let behind = api
        .post(&format!("sessions/{session}/prompts"), &json!({ "text": "say x", "txt": "" }))
        .error(400);
    assert!(behind.message.contains("`txt`"), "{behind:?}");
    for (answer, field) in [
        (json!({ "type": "approve", "alway": true }), "`alway`"),
        (json!({ "type": "deny", "reson": "it is late" }), "`reson`"),
        (
            json!({ "type": "reply", "answers": [{ "id": "a", "answer": "b", "note": "c" }] }),
            "`note`",
        ),
    ] {
        let refused = api.post(&format!("asks/{session}.1/answer"), &answer).error(400);
        assert!(refused.code == "malformed" && refused.message.contains(field), "{refused:?}");
    }
    for part in ["after=x", "limit=-1", "limt=5", "snapshots=yes"] {
        let refused =
            ask("GET", &format!("sessions/{session}/events?after=1&{part}"), "").error(400);
        assert!(
            refused.code == "malformed" && refused.message.contains(&format!("`{part}`")),
            "{refused:?}"
        );
    }
    // Pipelined requests are answered in order. The server may close the connection after any
    // response (RFC 9112, section 9.3.2), and actix-http does if only a part of the next request
    // has arrived; the client sends the others again.
    let many = rounds(1_000, 1_000_000);
    let mut answered = 0;
    while answered < many {
        let before = answered;
        let (mut sends, mut reads) = api.line().split();
        std::thread::scope(|scope| {
            let api = &api;
            scope.spawn(move || {
                let mut requests =
                    (before..many).map(|n| api.request("GET", &format!("nothing/{n}"), "", b""));
                requests.try_for_each(|request| sends.send(&request))
            });
            while answered < many && !reads.is_at_end() {
                let refused = reads.answer().unwrap().error(404);
                assert!(refused.message.ends_with(&format!("/nothing/{answered}")), "{refused:?}");
                answered += 1;
            }
        });
        assert!(answered > before, "a connection was closed before any response");
    }
    assert_eq!(api.look(&session), before);
    assert_well(&house, &api, &session);
}
