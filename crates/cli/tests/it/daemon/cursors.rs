//! Resuming a stream: from any number, with any limit, by query or header, from memory or from the
//! log.

use holdpoint_common::{Event, Fact, SessionFact};
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config, FileFailurePersistence, TestCaseError, TestRunner};
use serde_json::json;

use super::client::Api;
use super::harness::DaemonWorld;
use crate::world::rounds;

/// Failing cases are kept here and run first.
const KEPT: &str = "tests/it/daemon/cursors.proptest-regressions";

/// The parameters with which a client resumes a stream.
#[derive(Debug, Clone)]
struct Cursor {
    after: Option<String>,
    limit: Option<String>,
    header: Option<String>,
    snapshots: bool,
}

/// A number up to a little over `most`, an edge case, or a text that is not such a number.
fn number(most: u64) -> impl Strategy<Value = String> {
    let edges = [0, 1, 1 << 32, (1 << 53) + 1, u64::MAX - 1, u64::MAX];
    let wrong = [
        "",
        "-1",
        "1.0",
        "1e3",
        "0x10",
        "18446744073709551616",
        "x",
        "null",
        "\u{661}",
        "1 2",
        "NaN",
    ];
    prop_oneof![
        8 => (0..=most + 5).prop_map(|number| number.to_string()),
        1 => select(edges.to_vec()).prop_map(|number| number.to_string()),
        1 => select(wrong.to_vec()).prop_map(str::to_owned),
    ]
}

fn cursor(last: u64) -> impl Strategy<Value = Cursor> {
    let some = |strategy| prop::option::of(strategy);
    (
        some(number(last).boxed()),
        some(number(40).boxed()),
        prop::option::weighted(0.3, number(last)),
        any::<bool>(),
    )
        .prop_map(|(after, limit, header, snapshots)| Cursor {
            after,
            limit,
            header,
            snapshots,
        })
}

impl Cursor {
    /// The number and the count of facts that the parameters ask for, or `None` if they are
    /// invalid.
    fn meant(&self) -> Option<(u64, usize)> {
        let read = |text: &Option<String>, without: u64| match text {
            None => Some(without),
            Some(text) => text.parse::<u64>().ok(),
        };
        let (after, limit, header) =
            (read(&self.after, 0)?, read(&self.limit, u64::MAX)?, read(&self.header, 0)?);
        let after = if self.header.is_some() { header } else { after };
        Some((after, usize::try_from(limit).unwrap_or(usize::MAX)))
    }

    fn path(&self, session: &str) -> String {
        let mut path = format!("sessions/{session}/events?snapshots={}", self.snapshots);
        for (name, value) in [("after", &self.after), ("limit", &self.limit)] {
            if let Some(value) = value {
                let value: String = value.bytes().map(|byte| format!("%{byte:02X}")).collect();
                path.push_str(&format!("&{name}={value}"));
            }
        }
        path
    }

    fn headers(&self) -> String {
        self.header.as_ref().map(|value| format!("last-event-id: {value}\r\n")).unwrap_or_default()
    }
}

/// All events of a session up to now.
fn past(api: &Api, session: &str) -> Vec<Event> {
    let mut stream = api.attach(session, "");
    let mut events = Vec::new();
    loop {
        let frame = stream.next().unwrap();
        match frame.event() {
            Some(event) => events.push(event),
            None if frame.kind == "live" => return events,
            None => {}
        }
    }
}

/// Attaches with `cursor` and checks that the stream has these facts, or that a number after
/// `newest` is refused.
fn play(
    api: &Api,
    session: &str,
    facts: &[Event],
    newest: u64,
    cursor: &Cursor,
) -> Result<(), TestCaseError> {
    let refused = |status| {
        let mut line = api.line();
        line.send(&api.request("GET", &cursor.path(session), &cursor.headers(), b"")).unwrap();
        line.answer().unwrap().error(status).code
    };
    let (after, limit) = match cursor.meant() {
        None => {
            prop_assert_eq!(refused(400), "malformed");
            return Ok(());
        }
        Some((after, _)) if after > newest => {
            prop_assert_eq!(refused(404), "unknownEvent");
            return Ok(());
        }
        Some(meant) => meant,
    };
    let mut stream = api.stream(&cursor.path(session), &cursor.headers());
    let (mut got, mut last) = (Vec::new(), after);
    prop_assert_eq!(&stream.next().unwrap().kind, "snapshot");
    loop {
        let frame = stream.next().unwrap();
        let Some(event) = frame.event() else {
            prop_assert_eq!(&frame.kind, "live");
            break;
        };
        prop_assert_eq!(frame.id, Some(event.seq));
        prop_assert!(event.seq > last, "{} after {}", event.seq, last);
        last = event.seq;
        got.extend(event.fact().is_some().then_some(event));
    }
    let due: Vec<_> = facts.iter().filter(|fact| fact.seq > after).cloned().collect();
    prop_assert_eq!(&got[..], &due[due.len().saturating_sub(limit)..]);
    Ok(())
}

#[test]
fn t_s8_a_stream_resumes_from_any_number() {
    let house = DaemonWorld::new();
    house.start();
    let api = Api::new(&house);
    let session = api.open("all");
    for _ in 0..3 {
        api.prompt(&session, "think@5000 a b c\nsay hello\nshell: seq 300\n---\nflood 50 10");
        api.settled(&session);
    }
    // First from memory, then from the log, which has no deltas.
    for is_live in [true, false] {
        let all = past(&api, &session);
        let facts: Vec<_> = all.iter().filter(|event| event.fact().is_some()).cloned().collect();
        assert!(
            facts.len() >= 20 && (all.len() > facts.len()) == is_live,
            "{} of {}",
            facts.len(),
            all.len()
        );
        let config = Config {
            cases: u32::try_from(rounds(250, 20_000)).unwrap(),
            failure_persistence: Some(Box::new(FileFailurePersistence::Direct(KEPT))),
            ..Config::default()
        };
        let newest = all.last().unwrap().seq;
        let played = TestRunner::new(config)
            .run(&cursor(newest), |cursor| play(&api, &session, &facts, newest, &cursor));
        played.unwrap_or_else(|fault| panic!("live: {is_live}: {fault}"));
        if is_live {
            house.run(&["daemon", "restart"]).code(0);
            api.post(&format!("sessions/{session}/open"), &json!(api.supplies())).ok();
            let restored = |event: &Event| {
                matches!(event.fact(), Some(Fact::Session(SessionFact::Restored { .. })))
            };
            api.attach(&session, "").until_event(restored);
        }
    }
    assert!(!house.last_words().contains("panic"));
}
