//! A fuzzer for every path of the API: bodies, queries, headers and ids that follow the
//! description, with mistakes in them. Each request gets a proper answer, its connection stays
//! usable, and the daemon keeps working.

use std::cell::RefCell;

use holdpoint_common::SessionStatus;
use holdpoint_common::api::SessionList;
use holdpoint_tests::json::{Described, odd_texts, slip};
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::{Config, FileFailurePersistence, TestCaseError, TestRunner};
use serde_json::{Value, json};

use super::client::{Api, ErrorResponse, RawConnection};
use super::harness::DaemonWorld;
use crate::world::rounds;

/// Words for prompts, names, models and other texts: harmless to run, and never for long.
const WORDS: [&str; 14] = [
    "say hello",
    "shell: true",
    "shell: touch made",
    "ask: Which?",
    "hang",
    "flood 1000",
    "call nothing {\"a\": 1}",
    "fail on purpose",
    "rehearsal",
    "openai/gpt-5",
    "nobody/nothing",
    "shell(true)",
    "name",
    "WORK",
];

/// Failing cases are kept here and run first.
const KEPT: &str = "tests/it/daemon/every_path.proptest-regressions";

/// An operation on a path.
#[derive(Debug, Clone)]
struct Operation {
    method: String,
    path: String,
    query: Vec<(String, Value)>,
    headers: Vec<String>,
    /// The media type and the schema of the body.
    body: Option<(String, Value)>,
}

/// The value of an id in a path.
#[derive(Debug, Clone)]
enum Part {
    /// One of the existing sessions.
    Session(Index),
    /// One of the existing asks.
    Ask(Index),
    Text(String),
}

#[derive(Debug, Clone)]
struct Request {
    operation: Operation,
    part: Part,
    query: Vec<(String, String)>,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

fn description() -> Value {
    serde_json::from_str(include_str!("../../../../../docs/openapi.json")).unwrap()
}

/// All described operations except `/stop`.
fn operations(description: &Value) -> Vec<Operation> {
    let mut all = Vec::new();
    for (path, methods) in description["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap().iter().filter(|_| path != "/stop") {
            let parameters = operation["parameters"].as_array().cloned().unwrap_or_default();
            let named = |place: &str| {
                let of_it = parameters.iter().filter(|parameter| parameter["in"] == place);
                let named = of_it
                    .map(|one| (one["name"].as_str().unwrap().to_owned(), one["schema"].clone()));
                named.collect::<Vec<_>>()
            };
            let body = operation["requestBody"]["content"]
                .as_object()
                .and_then(|content| content.iter().next());
            all.push(Operation {
                method: method.to_uppercase(),
                path: path.trim_start_matches('/').to_owned(),
                query: named("query"),
                headers: named("header").into_iter().map(|(name, _)| name).collect(),
                body: body.map(|(media, content)| (media.clone(), content["schema"].clone())),
            });
        }
    }
    all
}

fn part() -> impl Strategy<Value = Part> {
    prop_oneof![
        6 => any::<Index>().prop_map(Part::Session),
        3 => any::<Index>().prop_map(Part::Ask),
        1 => odd_texts().prop_map(Part::Text),
    ]
}

/// A value for a query or a header, mostly of an expected kind.
fn plain() -> impl Strategy<Value = String> {
    let known = [
        "0",
        "1",
        "true",
        "false",
        "-1",
        "1.0",
        "18446744073709551615",
        "18446744073709551616",
        "x",
        "",
        "\t1",
    ];
    prop_oneof![3 => select(known.to_vec()).prop_map(str::to_owned), 1 => odd_texts()]
}

/// The export of a session, with some bytes changed or cut short.
fn lines(whole: &str) -> BoxedStrategy<Vec<u8>> {
    let whole = whole.as_bytes().to_vec();
    let spoilt = prop::collection::vec((any::<Index>(), any::<u8>()), 0..4);
    (spoilt, prop::option::of(any::<Index>()))
        .prop_map(move |(spoilt, cut)| {
            let mut text = whole.clone();
            for (at, byte) in spoilt {
                let at = at.index(text.len());
                text[at] = byte;
            }
            text.truncate(cut.map_or(text.len(), |cut| cut.index(whole.len())));
            text
        })
        .boxed()
}

fn body(description: &Value, schema: &Value) -> BoxedStrategy<Vec<u8>> {
    let described = Described { root: description, words: &WORDS };
    let slips = prop_oneof![2 => Just(Vec::new()), 3 => prop::collection::vec(slip(), 1..4)];
    let between = prop::option::weighted(
        0.1,
        (any::<Index>(), select(vec!["\u{0}", "\\ud800", "1e999", "{", "\"", ","])),
    );
    (described.values(schema), slips, between)
        .prop_map(|(mut value, slips, between)| {
            slips.iter().for_each(|slip| slip.spoil(&mut value));
            let mut text = value.to_string();
            if let Some((at, what)) = between {
                let ends: Vec<_> = text.char_indices().map(|(at, _)| at).collect();
                text.insert_str(ends[at.index(ends.len())], what);
            }
            text.into_bytes()
        })
        .boxed()
}

fn request(description: &Value, whole: &str) -> impl Strategy<Value = Request> {
    let (description, whole) = (description.clone(), whole.to_owned());
    select(operations(&description)).prop_flat_map(move |operation| {
        let query: Vec<_> = operation
            .query
            .iter()
            .map(|(name, _)| name.clone())
            .chain(["other".to_owned()])
            .collect();
        let query = prop::collection::vec((select(query), plain()), 0..3);
        let others = [
            "content-type",
            "accept",
            "last-event-id",
            "holdpoint-api",
            "origin",
            "x-forwarded-for",
        ];
        let headers =
            operation.headers.iter().cloned().chain(others.map(str::to_owned)).collect::<Vec<_>>();
        let headers = prop::collection::vec((select(headers), plain()), 0..2);
        let body = match &operation.body {
            None => {
                prop_oneof![4 => Just(Vec::new()), 1 => odd_texts().prop_map(String::into_bytes)]
                    .boxed()
            }
            Some((media, _)) if media == "application/x-ndjson" => lines(&whole),
            Some((_, schema)) => body(&description, schema),
        };
        (part(), query, headers, body).prop_map(move |(part, query, headers, body)| Request {
            operation: operation.clone(),
            part,
            query,
            headers,
            body,
        })
    })
}

/// Percent-encodes text for a path or a query.
fn encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    text.bytes()
        .map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

/// A daemon with busy sessions, and one session (`kept`) that no request uses.
struct Fuzzer {
    house: DaemonWorld,
    api: Api,
    kept: String,
    idle: Vec<String>,
    asks: Vec<String>,
    answered: u32,
    done: u32,
}

impl Fuzzer {
    fn new() -> Self {
        let house = DaemonWorld::new();
        house.start();
        let api = Api::new(&house).named("fuzz");
        let kept = api.open("all");
        api.prompt(&kept, "say hello\nshell: echo 1\nthink hm");
        api.settled(&kept);
        api.wait_detached(&kept);
        Self { house, api, kept, idle: Vec::new(), asks: Vec::new(), answered: 0, done: 0 }
    }

    /// The sessions except the kept one. Opens more when too few are live, and ends or deletes some
    /// when there are too many.
    fn sessions(&mut self) -> Vec<String> {
        let list: SessionList = serde_json::from_value(self.api.get("sessions").ok()).unwrap();
        let others: Vec<_> =
            list.sessions.into_iter().filter(|session| session.id.as_str() != self.kept).collect();
        let live = others.iter().filter(|session| session.live).count();
        let busy: Vec<_> =
            others.iter().filter(|session| session.status != SessionStatus::Idle).collect();
        for old in others.iter().filter(|session| !session.live).skip(20) {
            self.api.delete(&format!("sessions/{}", old.id)).ok();
        }
        self.asks = others
            .iter()
            .filter_map(|session| Some(session.waits_for.as_ref()?.id.to_string()))
            .collect();
        let idle = others.iter().filter(|session| session.status == SessionStatus::Idle);
        self.idle = idle.map(|session| session.id.to_string()).collect();
        let mut ids: Vec<_> = others.iter().map(|session| session.id.to_string()).collect();
        if live < 2 {
            ids.push(self.api.open("ask"));
            self.api.prompt(ids.last().unwrap(), "shell: touch made\n---\nask: Which?");
            ids.push(self.api.open("all"));
            self.api.prompt(ids.last().unwrap(), "say hello\nhang");
        } else if busy.len() > 6 {
            let id = &busy[0].id;
            self.api.post(&format!("sessions/{id}/interrupt"), &json!({})).ok();
            self.api.post(&format!("sessions/{id}/close"), &json!({})).ok();
        }
        ids
    }

    fn play(&mut self, request: &Request) -> Result<(), TestCaseError> {
        let mut sessions = self.sessions();
        // A move waits for the end of a step, which a turn that hangs does not reach.
        let waits = ["/move", "/handover"].iter().any(|end| request.operation.path.ends_with(end));
        if waits && !self.idle.is_empty() {
            sessions.clone_from(&self.idle);
        } else if waits {
            return Ok(());
        }
        let part = match &request.part {
            Part::Ask(at) if !self.asks.is_empty() => at.get(&self.asks).clone(),
            Part::Session(at) | Part::Ask(at) => at.get(&sessions).clone(),
            Part::Text(text) => encoded(text),
        };
        let Operation { method, path, .. } = &request.operation;
        let mut path =
            path.replace("{id}", &part).replace("{session}", &part).replace("{ask}", &part);
        for (n, (name, value)) in request.query.iter().enumerate() {
            path.push_str(&format!("{}{name}={}", if n == 0 { '?' } else { '&' }, encoded(value)));
        }
        // A control character would end the header; no client can send one.
        let sent = |value: &str| value.replace(|c: char| c.is_control() && c != '\t', "");
        let headers: String = request
            .headers
            .iter()
            .map(|(name, value)| format!("{name}: {}\r\n", sent(value)))
            .collect();
        // Paths that begin with `.` or contain a `/` are sent as they are.
        let body = String::from_utf8_lossy(&request.body)
            .replace("\"WORK\"", &json!(self.house.0.path("work")).to_string());
        let mut line = self.api.line();
        line.send(&self.api.request(method, &path, &headers, body.as_bytes())).unwrap();
        let answered = self.answered(&mut line);
        answered
            .map_err(|why| TestCaseError::fail(format!("{method} {path}\n{headers}{body}\n{why}")))
    }

    /// Checks that a proper answer arrives and the connection stays usable.
    fn answered(&mut self, line: &mut RawConnection) -> Result<(), String> {
        let (status, headers) = line.head().map_err(|error| format!("no answer: {error}"))?;
        let header = |wanted: &str| {
            headers.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.as_str())
        };
        self.answered += 1;
        if header("content-type") == Some("text/event-stream") {
            return (status == 200).then_some(()).ok_or_else(|| format!("a stream with {status}"));
        }
        let body = line.rest(&headers).map_err(|error| format!("{status}, cut: {error}"))?;
        let text = String::from_utf8_lossy(&body);
        match status {
            200 | 204 => self.done += 1,
            400..500 => {
                ErrorResponse::read(&body).map_err(|problem| format!("{status} {problem}"))?;
            }
            _ => return Err(format!("{status}: {text}")),
        }
        line.send(&self.api.request("GET", "status", "", b""))
            .map_err(|error| format!("{status}, closed: {error}"))?;
        let after = line.answer().map_err(|error| format!("{status}, then nothing: {error}"))?;
        (after.status == 200)
            .then_some(())
            .ok_or_else(|| format!("{status}, then {}", after.text()))
    }
}

#[test]
fn t_s4_t_s7_whatever_is_sent_to_any_path_is_answered_and_changes_nothing_else() {
    let description = description();
    let stage = RefCell::new(Fuzzer::new());
    let (kept, whole) = {
        let stage = stage.borrow();
        (stage.api.look(&stage.kept), String::from_utf8(stage.api.export(&stage.kept)).unwrap())
    };
    let mut runner = TestRunner::new(Config {
        cases: u32::try_from(rounds(600, 50_000)).unwrap(),
        failure_persistence: Some(Box::new(FileFailurePersistence::Direct(KEPT))),
        max_shrink_iters: 500,
        ..Config::default()
    });
    let result =
        runner.run(&request(&description, &whole), |request| stage.borrow_mut().play(&request));
    let mut stage = stage.into_inner();
    let log = stage.house.log();
    assert!(result.is_ok(), "{}\n{log}", result.unwrap_err());
    assert!(!log.contains("panic"), "{log}");
    println!("{} answered, {} of them done", stage.answered, stage.done);
    assert!(stage.done * 10 > stage.answered, "most of it is not refused for the same reason");
    // The daemon still works: the untouched session is unchanged, and every session can be
    // exported.
    assert_eq!(stage.api.look(&stage.kept), kept);
    for session in stage.sessions() {
        assert_eq!(stage.api.look(&session).settings.id.as_str(), session);
        stage.api.export(&session);
    }
    stage.api.prompt(&stage.kept, "say well");
    stage.api.settled(&stage.kept);
    // The last request stops the daemon, with malformed additions.
    let mut line = stage.api.line();
    line.send(&stage.api.request("POST", "stop?x=%ff", "holdpoint-api: 99\r\n", b"\xff\0{"))
        .unwrap();
    line.answer().unwrap().ok();
    stage.house.wait_gone();
}
