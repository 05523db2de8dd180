//! Streams that no provider sends, on every wire: valid ones with faults in them, cut and split
//! anywhere. The turn always ends, each call has one result, and the strictest server accepts the
//! next request.

use std::collections::BTreeMap;

use holdpoint_common::{CallId, Fact, Outcome, ToolFact, TurnFact};
use holdpoint_tests::model_server::{Reply, Wire};
use holdpoint_tests::world::{TestEngine, TestSession};
use holdpoint_tools::testing::rounds;
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::{Config, FileFailurePersistence, TestRunner};

/// A part of an answer. Its calls only read, whatever a fault makes of them.
#[derive(Debug, Clone)]
enum Said {
    Text(String),
    Thought(String),
    Call(&'static str, &'static str),
}

/// A fault of a stream in transit.
#[derive(Debug, Clone)]
enum Slip {
    /// A line is missing.
    Lost(Index),
    /// A line is repeated.
    Twice(Index),
    /// Two lines are swapped.
    Swapped(Index, Index),
    /// A byte is changed.
    Byte(Index, u8),
    /// Text is inserted between two bytes.
    Between(Index, &'static str),
}

/// An answer as it was meant, and its faults in transit.
#[derive(Debug, Clone)]
struct Stream {
    items: Vec<Said>,
    reason: &'static str,
    slips: Vec<Slip>,
    /// The position at which the connection breaks.
    cut: Option<Index>,
    /// How many bytes arrive at a time.
    piece: Option<usize>,
}

/// Texts that break readers of JSON, of Server-Sent Events, and of the providers' formats.
const BETWEEN: [&str; 16] = [
    "null",
    "{}",
    "[]",
    "\"\"",
    "-1",
    "1e999",
    "99999999999999999999",
    "\\ud800",
    "\u{0}",
    "\u{feff}",
    "\n\n",
    "\r",
    "data: ",
    "data: [DONE]\n\n",
    "event: error\n",
    "{\"error\":{\"message\":\"no\"}}\n",
];

fn item() -> impl Strategy<Value = Said> {
    let calls = [
        ("list_dir", "{}"),
        ("glob", r#"{"pattern":"*"}"#),
        ("glob", "{"),
        ("nothing", "{}"),
        ("", "[]"),
    ];
    prop_oneof![
        "\\PC{0,12}".prop_map(Said::Text),
        "\\PC{0,12}".prop_map(Said::Thought),
        prop::sample::select(calls.to_vec())
            .prop_map(|(tool, arguments)| Said::Call(tool, arguments)),
    ]
}

fn slip() -> impl Strategy<Value = Slip> {
    let at = any::<Index>;
    prop_oneof![
        at().prop_map(Slip::Lost),
        at().prop_map(Slip::Twice),
        (at(), at()).prop_map(|(one, other)| Slip::Swapped(one, other)),
        (at(), any::<u8>()).prop_map(|(at, byte)| Slip::Byte(at, byte)),
        (at(), prop::sample::select(BETWEEN.to_vec()))
            .prop_map(|(at, what)| Slip::Between(at, what)),
    ]
}

fn stream() -> impl Strategy<Value = Stream> {
    let reason = prop::sample::select(vec!["stop", "tool_calls", "length", "content_filter", "?"]);
    let (items, slips) = (prop::collection::vec(item(), 0..5), prop::collection::vec(slip(), 0..4));
    let (cut, piece) = (prop::option::weighted(0.3, any::<Index>()), prop::option::of(1..40usize));
    (items, reason, slips, cut, piece).prop_map(|(items, reason, slips, cut, piece)| Stream {
        items,
        reason,
        slips,
        cut,
        piece,
    })
}

impl Stream {
    fn reply(&self, wire: Wire) -> Reply {
        let part = |(reply, calls): (Reply, usize), item: &Said| match item {
            Said::Text(text) => (reply.say(text), calls),
            Said::Thought(text) => (reply.think(text), calls),
            // Not every wire can carry invalid JSON.
            Said::Call(tool, "{") if !wire.has_pieces() => {
                (reply.call(calls, tool, "{}"), calls + 1)
            }
            Said::Call(tool, arguments) => (reply.call(calls, tool, arguments), calls + 1),
        };
        let (meant, _) = self.items.iter().fold((Reply::stream(), 0), part);
        let mut body = meant.finish(self.reason).body(wire);
        for slip in &self.slips {
            body = slip.in_body(body);
        }
        let mut reply = Reply::stream().bytes(body.clone());
        if let Some(piece) = self.piece {
            reply = reply.in_pieces(piece);
        }
        match self.cut {
            Some(at) => reply.cut_after(at.index(body.len() + 1)).cut(),
            None => reply.end(),
        }
    }
}

impl Slip {
    fn in_body(&self, mut body: Vec<u8>) -> Vec<u8> {
        if body.is_empty() {
            return body;
        }
        let mut lines: Vec<_> =
            body.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
        let count = lines.len();
        match self {
            Self::Lost(at) => drop(lines.remove(at.index(count))),
            Self::Twice(at) => lines.insert(at.index(count), lines[at.index(count)].clone()),
            Self::Swapped(one, other) => lines.swap(one.index(count), other.index(count)),
            Self::Byte(at, byte) => {
                let at = at.index(body.len());
                body[at] = *byte;
                return body;
            }
            Self::Between(at, what) => {
                let at = at.index(body.len() + 1);
                body.splice(at..at, what.bytes());
                return body;
            }
        }
        lines.concat()
    }
}

/// How many results each recorded call of the model has.
fn results(talk: &TestSession) -> BTreeMap<CallId, usize> {
    let mut results = BTreeMap::new();
    for fact in talk.events.facts() {
        match fact {
            Fact::Turn(TurnFact::AssistantMessage(message)) => {
                results.extend(message.calls.iter().map(|call| (call.id, 0)))
            }
            Fact::Tool(ToolFact::Finished(result)) => *results.entry(result.call).or_default() += 1,
            _ => {}
        }
    }
    results
}

/// Plays the stream in a session of its own and checks the outcome.
async fn play(world: &TestEngine, wire: Wire, stream: &Stream) -> Result<(), TestCaseError> {
    // An earlier case may have failed before it checked these.
    drop(world.server.take_violations());
    let mut talk = world.open().await;
    world.server.reply(stream.reply(wire));
    talk.session.prompt("go").await.unwrap();
    let end = talk.events.turn_finished().await;
    prop_assert!(
        matches!(end.outcome, Outcome::Done | Outcome::Failed | Outcome::Limit),
        "{end:?}"
    );
    for (call, results) in results(&talk) {
        prop_assert_eq!(results, 1, "call {:?}", call);
    }
    talk.session.prompt("and then?").await.unwrap();
    let end = talk.events.turn_finished().await;
    prop_assert_eq!(end.outcome, Outcome::Done, "the session continues: {:?}", end.error);
    let violations = world.server.take_violations();
    prop_assert!(violations.is_empty(), "a strict provider would refuse: {violations:#?}");
    talk.session.close().await.unwrap();
    Ok(())
}

#[test]
fn t_l4_the_session_survives_any_faulty_stream() {
    let engine = tokio::runtime::Runtime::new().unwrap();
    let cases = rounds(30, 2_000);
    for wire in Wire::ALL {
        // Failing cases are kept and run first.
        let kept = FileFailurePersistence::Direct("tests/it/model/streams.proptest-regressions");
        let config =
            Config { cases, failure_persistence: Some(Box::new(kept)), ..Config::default() };
        let world = TestEngine::start(wire);
        world.server.answer(|_| Reply::text(["I see."]));
        let played = TestRunner::new(config)
            .run(&stream(), |stream| engine.block_on(play(&world, wire, &stream)));
        played.unwrap_or_else(|fault| panic!("{wire:?}: {fault}"));
    }
}
