//! Sessions with a provider that fails in every way: received text is kept, each call runs once or
//! not at all, and the strictest server accepts the next request.

use std::sync::Arc;
use std::time::{Duration, Instant};

use holdpoint_common::{
    AssistantMessage, Delta, Fact, Limits, Outcome, ToolFact, ToolResult, ToolStatus, TurnFact,
    Usage,
};
use holdpoint_session::history::CONTINUE;
use holdpoint_session::testing::{Finished, Recorder};
use holdpoint_tests::model_server::{Reply, Request, Wire};
use holdpoint_tests::world::{KEY, TestEngine, TestSession};
use holdpoint_tools::testing::rounds;
use serde_json::{Value, json};

/// A call that appends a line to a file each time it runs.
const CALL: &str = r#"{"command":"echo ran >> ran"}"#;

async fn turn(talk: &mut TestSession, prompt: &str) -> Finished {
    talk.session.prompt(prompt).await.unwrap();
    talk.events.turn_finished().await
}

fn retries(events: &Recorder) -> Vec<(u32, String)> {
    let reported = events.events().iter().filter_map(|event| match event.delta()? {
        Delta::Retrying { next, reason, .. } => Some((*next, reason.clone())),
        _ => None,
    });
    reported.collect()
}

fn answers(events: &Recorder) -> Vec<Arc<AssistantMessage>> {
    let answers = events.facts().filter_map(|fact| match fact {
        Fact::Turn(TurnFact::AssistantMessage(message)) => Some(message.clone()),
        _ => None,
    });
    answers.collect()
}

fn results(events: &Recorder) -> Vec<Arc<ToolResult>> {
    let results = events.facts().filter_map(|fact| match fact {
        Fact::Tool(ToolFact::Finished(result)) => Some(result.clone()),
        _ => None,
    });
    results.collect()
}

#[tokio::test]
async fn t_l2_transient_faults_are_retried_and_reported() {
    for wire in Wire::ALL {
        let world = TestEngine::start(wire);
        let mut talk = world.open().await;
        for status in [429, 500, 502, 529] {
            world.server.reply(Reply::status(
                status,
                &[("retry-after", "0")],
                r#"{"error":{"message":"busy"}}"#,
            ));
        }
        world.server.reply(Reply::text(["done"]));
        let end = turn(&mut talk, "go").await;
        assert_eq!(end.outcome, Outcome::Done, "{wire:?}: {:?}", end.error);
        let retried = retries(&talk.events);
        assert_eq!(retried.iter().map(|(next, _)| *next).collect::<Vec<_>>(), [2, 3, 4, 5]);
        assert!(retried.iter().all(|(_, reason)| reason.contains("busy")), "{retried:?}");
        let requests = world.server.requests();
        assert!(
            requests.iter().all(|request| request.body == requests[0].body),
            "every retry sends the same request"
        );

        // The connection breaks before any data arrived: closed, or reset.
        world.server.reply(Reply::refuse()).reply(Reply::stream().cut());
        world
            .server
            .reply(Reply::default().reset())
            .reply(Reply::stream().reset())
            .reply(Reply::text(["done"]));
        assert_eq!(turn(&mut talk, "go").await.outcome, Outcome::Done, "{wire:?}");
        let retried = retries(&talk.events).split_off(4);
        assert_eq!(
            retried.iter().map(|(next, _)| *next).collect::<Vec<_>>(),
            [2, 3, 4, 5],
            "{wire:?}"
        );
        assert!(
            retried[2..].iter().all(|(_, reason)| reason.contains("reset")),
            "{wire:?}: {retried:?}"
        );
        world.server.assert_no_violations();
    }
}

#[tokio::test]
async fn t_l2_the_number_of_tries_is_limited() {
    let world = TestEngine::start(Wire::Anthropic);
    let mut talk = world.open().await;
    world.server.answer(|_| Reply::status(503, &[], r#"{"error":{"message":"busy"}}"#));
    let end = turn(&mut talk, "go").await;
    let error = end.error.unwrap();
    assert_eq!(end.outcome, Outcome::Failed);
    assert!(
        error.contains("HTTP 503") && error.contains("busy") && error.contains("tried 5 times"),
        "{error}"
    );
    assert_eq!(world.server.requests().len(), 5);
    assert_eq!(end.usage, Usage::default(), "no usage");
    world.server.answer(|_| Reply::text(["done"]));
    assert_eq!(turn(&mut talk, "again").await.outcome, Outcome::Done);
    world.server.assert_no_violations();
}

#[tokio::test]
async fn t_l1_a_long_retry_after_ends_the_turn() {
    let world = TestEngine::start(Wire::OpenAi);
    let mut talk = world.open().await;
    world.server.reply(Reply::status(
        429,
        &[("retry-after", "3600")],
        r#"{"error":{"message":"quota"}}"#,
    ));
    let error = turn(&mut talk, "go").await.error.unwrap();
    assert!(error.contains("quota") && error.contains("3600 s"), "{error}");
    assert_eq!(world.server.requests().len(), 1);
}

#[tokio::test]
async fn t_l1_a_retry_respects_retry_after() {
    let world = TestEngine::start(Wire::Anthropic);
    let mut talk = world.open().await;
    for wait in ["0", "1"] {
        world.server.reply(Reply::status(
            429,
            &[("retry-after", wait)],
            r#"{"error":{"message":"busy"}}"#,
        ));
    }
    world.server.reply(Reply::text(["done"]));
    assert_eq!(turn(&mut talk, "go").await.outcome, Outcome::Done);
    let tries: Vec<_> = world.server.requests().iter().map(|request| request.at).collect();
    let waited: Vec<_> = tries.windows(2).map(|tries| tries[1] - tries[0]).collect();
    println!("tried again after {waited:?}");
    // Without the header, it would wait a few milliseconds.
    assert!(waited.len() == 2 && waited[1] >= Duration::from_secs(1), "{waited:?}");
}

#[tokio::test]
async fn t_l1_a_wait_can_be_interrupted() {
    let world = TestEngine::start(Wire::OpenAi);
    let mut talk = world.open().await;
    world.server.reply(Reply::status(429, &[("retry-after", "300")], "{}"));
    talk.session.prompt("go").await.unwrap();
    talk.events
        .until("the wait", |event| matches!(event.delta()?, Delta::Retrying { .. }).then_some(()))
        .await;
    talk.session.interrupt(None).await.unwrap();
    assert_eq!(talk.events.turn_finished().await.outcome, Outcome::Interrupted);
    assert_eq!(world.server.requests().len(), 1);
}

#[tokio::test]
async fn t_l3_permanent_faults_are_never_retried() {
    for wire in Wire::ALL {
        let world = TestEngine::start(wire);
        let mut talk = world.open().await;
        for (n, status) in [400, 401, 403, 404, 413].into_iter().enumerate() {
            let body = r#"{"error":{"message":"maximum context length exceeded"}}"#;
            world.server.reply(Reply::status(status, &[], body));
            let end = turn(&mut talk, "go").await;
            assert!(end.error.unwrap().contains("maximum context length"), "{wire:?} {status}");
            assert_eq!(world.server.requests().len(), n + 1, "{wire:?} {status}");
        }
        assert!(retries(&talk.events).is_empty());
    }
}

#[tokio::test]
async fn t_l4_a_broken_answer_is_kept_and_continued_once() {
    for wire in Wire::ALL {
        let broken = Reply::stream().say("The first half, ").call(0, "shell", CALL);
        let whole = broken.body_len(wire);
        let rounds = rounds(13, 125);
        for _ in 0..rounds {
            let at = fastrand::usize(..=whole);
            let world = TestEngine::start(wire);
            let mut talk = world.open().await;
            world
                .server
                .reply(broken.clone().cut_after(at).cut())
                .reply(Reply::text(["the second."]));
            let end = turn(&mut talk, "go").await;
            assert_eq!(end.outcome, Outcome::Done, "{wire:?} cut after {at}: {:?}", end.error);
            world.server.assert_no_violations();
            assert_eq!(world.server.requests().len(), 2, "{wire:?} cut after {at}");
            let answers = answers(&talk.events);
            let (last, before) = answers.split_last().unwrap();
            assert_eq!((last.text().as_str(), last.partial), ("the second.", false));
            assert_eq!(world.file("ran"), "", "{wire:?} cut after {at}: no call runs");
            let asked = world.server.request(1).prompt().unwrap();
            match before {
                // The answer broke before any text and was tried again.
                [] => assert_eq!(asked, "go"),
                [half] => {
                    assert!(half.partial && half.calls.is_empty(), "{half:?}");
                    assert!("The first half, ".starts_with(&half.text()), "{half:?}");
                    assert_eq!(asked, CONTINUE);
                }
                more => panic!("{wire:?} cut after {at}: {more:?}"),
            }
        }
    }
}

#[tokio::test]
async fn t_l4_an_answer_that_breaks_again_ends_the_turn() {
    let world = TestEngine::start(Wire::OpenAi);
    let mut talk = world.open().await;
    let broken = || Reply::stream().say("half").cut();
    world.server.reply(broken()).reply(broken()).reply(Reply::text(["whole"]));
    let end = turn(&mut talk, "go").await;
    assert_eq!(end.outcome, Outcome::Failed);
    assert_eq!(world.server.requests().len(), 2);
    let retry = talk.events.events().iter().find_map(|event| match event.delta()? {
        Delta::Retrying { next, tries, .. } => Some((*next, *tries)),
        _ => None,
    });
    assert_eq!(retry, Some((2, 2)), "there is no third try");
    assert_eq!(turn(&mut talk, "go on").await.outcome, Outcome::Done);
    world.server.assert_no_violations();
}

/// Every kind of silence, on every wire.
fn silences() -> impl Iterator<Item = (Wire, Reply)> {
    let silences = || [Reply::no_headers(), Reply::silence(), Reply::stream().keep_alive()];
    Wire::ALL.into_iter().flat_map(move |wire| silences().map(|silent| (wire, silent)))
}

#[tokio::test]
async fn t_l5_silence_ends_at_its_limit() {
    let ends = |(wire, silent)| async move {
        let world = TestEngine::with(wire, "", |limits| Limits { model_silence_s: 1, ..limits });
        let mut talk = world.open().await;
        world.server.reply(silent);
        let since = Instant::now();
        let end = turn(&mut talk, "go").await;
        let took = since.elapsed();
        assert!(took >= Duration::from_secs(1), "{wire:?}: {took:?}");
        assert_eq!(end.outcome, Outcome::Failed);
        assert!(end.error.unwrap().contains("silent for 1 s"), "{wire:?}");
    };
    // In parallel, because each lasts a second.
    futures_util::future::join_all(silences().map(ends)).await;
}

#[tokio::test]
async fn t_l5_silence_is_interrupted_without_waiting_for_its_limit() {
    for (wire, silent) in silences() {
        // The limit is beyond all patience, so only the interrupt can end the turn.
        let world =
            TestEngine::with(wire, "", |limits| Limits { model_silence_s: 86_400, ..limits });
        let mut talk = world.open().await;
        world.server.reply(silent).reply(Reply::text(["done"]));
        talk.session.prompt("go").await.unwrap();
        let asked = world.server.request(0);
        assert_eq!(asked.prompt().as_deref(), Some("go"));
        let before = Instant::now();
        talk.session.interrupt(None).await.unwrap();
        let end = talk.events.turn_finished().await;
        assert_eq!((end.outcome, end.error), (Outcome::Interrupted, None), "{wire:?}");
        assert!(world.server.dropped(0) >= before, "{wire:?}: the connection ends with the turn");
        assert_eq!(turn(&mut talk, "and now?").await.outcome, Outcome::Done, "{wire:?}");
        world.server.assert_no_violations();
    }
}

/// Arguments with which no call may run.
fn bad_arguments() -> Vec<String> {
    let mut bad: Vec<String> = [
        r#"{"comm"#,
        r#"{"command": "l"#,
        r#"{"command": ls}"#,
        r#"["echo ran >> ran"]"#,
        r#""echo ran >> ran""#,
        "null",
        "42",
        r#"{"command": 42}"#,
        r#"{"command": null}"#,
        r#"{"command": ["echo ran >> ran"]}"#,
        r#"{"cmd": "echo ran >> ran"}"#,
        r#"{"command": "echo ran >> ran", "command": "true"}"#,
        r#"{"command": "echo ran >> ran"} {"#,
        r#"{"command": "\ud800 echo ran >> ran"}"#,
        r#"{"command": "echo ran >> ran", "timeout_ms": "soon"}"#,
    ]
    .map(str::to_owned)
    .into();
    bad.push(format!(r#"{{"command": {}1{}}}"#, "[".repeat(2000), "]".repeat(2000)));
    // Complete arguments, truncated at every position.
    let whole = r#"{"command": "echo ran >> ran", "timeout_ms": 1000}"#;
    bad.extend((1..whole.len()).map(|at| whole[..at].to_owned()));
    bad
}

/// Whether a wire can carry these arguments: where calls are sent whole, they are values with each
/// key once.
fn can_say(wire: Wire, arguments: &str) -> bool {
    let keys = |json: &str| json.matches("\":").count();
    let value = serde_json::from_str::<Value>(arguments);
    wire.has_pieces() || value.is_ok_and(|value| keys(&value.to_string()) == keys(arguments))
}

#[tokio::test]
async fn t_l7_bad_arguments_are_answered_to_the_model_and_never_run() {
    for wire in Wire::ALL {
        let world = TestEngine::start(wire);
        let mut talk = world.open().await;
        world.server.answer(|_| Reply::text(["I see."]));
        let bad = bad_arguments();
        let step = rounds(4, 1);
        let mut rounds = 0;
        let bad = bad.iter().enumerate().filter(|(_, arguments)| can_say(wire, arguments));
        for (n, arguments) in bad.filter(|(n, _)| *n < 16 || n % step == 0) {
            world.server.reply(Reply::calls([("shell", arguments)]));
            let end = turn(&mut talk, "go").await;
            rounds += 1;
            assert_eq!(end.outcome, Outcome::Done, "{wire:?} {n} {arguments}: {:?}", end.error);
            let results = results(&talk.events);
            assert_eq!(results.len(), rounds, "{wire:?} {arguments}: answered once");
            let result = results.last().unwrap();
            assert_eq!(result.status, ToolStatus::Error, "{wire:?} {arguments}: {result:?}");
            assert!(result.result.contains("not run"), "{wire:?} {arguments}: {result:?}");
        }
        assert!(rounds >= 8, "{wire:?}: {rounds}");
        assert_eq!(world.file("ran"), "", "{wire:?}");
        assert_eq!(world.server.requests().len(), 2 * rounds);
        world.server.assert_no_violations();
    }
}

#[tokio::test]
async fn t_l7_a_megabyte_of_arguments_is_whole_or_refused() {
    for wire in Wire::ALL {
        let long = |limits| Limits {
            max_history_tokens: 10_000_000,
            max_history_lines: 1_000_000,
            ..limits
        };
        let world = TestEngine::with(wire, "", long);
        let mut talk = world.open().await;
        let content = format!("{}\n", "x".repeat(1023)).repeat(1024);
        let whole = json!({"path": "large", "content": content});
        let mut wrong = whole.clone();
        wrong["path"] = json!(7);
        let calls = [("write_file", whole.to_string()), ("write_file", wrong.to_string())];
        world
            .server
            .reply(Reply::calls(calls))
            .reply(Reply::text(["done"]))
            .reply(Reply::text(["done"]));
        let end = turn(&mut talk, "go").await;
        assert_eq!(end.outcome, Outcome::Done, "{wire:?}: {:?}", end.error);
        assert!(world.file("large") == content, "{wire:?}: the file is written whole");
        let refused = results(&talk.events)
            .into_iter()
            .find(|result| result.status == ToolStatus::Error)
            .unwrap();
        assert!(
            refused.result.contains("`path` is not of type \"string\""),
            "{wire:?}: {}",
            refused.result
        );
        assert_eq!(turn(&mut talk, "and then?").await.outcome, Outcome::Done, "{wire:?}");
        world.server.assert_no_violations();
    }
}

#[tokio::test]
async fn t_l7_unknown_tools_and_doubled_ids_are_answered_once_each() {
    for wire in Wire::ALL {
        let world = TestEngine::start(wire);
        let mut talk = world.open().await;
        // All three have the same id from the provider.
        let reply = Reply::stream().call(0, "shell", CALL).call(0, "sheel", "{}").call(
            0,
            "shell",
            r#"{"command":1}"#,
        );
        let reply = if wire == Wire::OpenAi {
            let call = |id: &str, name: &str, arguments: &str| json!({"index": 0, "id": id, "function": {"name": name, "arguments": arguments}});
            let calls = json!({"tool_calls": [call("x", "shell", CALL)]});
            let more = json!({"tool_calls": [call("y", "sheel", "{}")]});
            let last = json!({"tool_calls": [call("z", "shell", r#"{"command":1}"#)]});
            Reply::stream().delta(&calls).delta(&more).delta(&last)
        } else {
            reply
        };
        world.server.reply(reply.finish("tool_calls")).reply(Reply::text(["done"]));
        assert_eq!(turn(&mut talk, "go").await.outcome, Outcome::Done, "{wire:?}");
        let mut results = results(&talk.events);
        results.sort_by_key(|result| result.call);
        let outcomes: Vec<_> =
            results.iter().map(|result| (result.status, result.result.as_str())).collect();
        assert_eq!(outcomes.len(), 3, "{wire:?}: {outcomes:?}");
        assert_eq!(outcomes[0].0, ToolStatus::Ok, "{wire:?}: {outcomes:?}");
        assert!(outcomes[1].1.contains("unknown tool `sheel`"), "{wire:?}: {outcomes:?}");
        assert!(
            outcomes[2].1.contains("`command` is not of type \"string\""),
            "{wire:?}: {outcomes:?}"
        );
        // Clients and the model see the calls that were not run.
        let called = talk.events.facts().find_map(|fact| match fact {
            Fact::Turn(TurnFact::AssistantMessage(message)) => Some(message.calls.clone()),
            _ => None,
        });
        assert_eq!(called.unwrap()[2].input, json!({ "command": 1 }), "{wire:?}");
        assert_eq!(world.file("ran"), "ran\n", "{wire:?}");
        world.server.assert_no_violations();
    }
}

#[tokio::test]
async fn t_l9_interrupted_in_any_phase_the_next_request_is_valid() {
    for wire in Wire::ALL {
        let world = TestEngine::start(wire);
        let mut talk = world.open().await;
        let mut phases = vec![
            ("no headers", Reply::no_headers()),
            ("headers", Reply::silence()),
            ("thinking", Reply::stream().think("hm").hang()),
            ("signed", Reply::stream().think("hm").sign("s1g").hang()),
            ("speaking", Reply::stream().think("hm").sign("s1g").say("half").hang()),
            ("called", Reply::stream().say("half").call(0, "shell", CALL).hang()),
        ];
        // In the middle of a call, on the wires that send calls in pieces.
        if wire.has_pieces() {
            let half =
                Reply::stream().say("half").begin_call(0, "shell").write_call(0, r#"{"comm"#);
            phases.push(("calling", half.hang()));
        }
        let running = Reply::calls([
            ("shell", r#"{"command":"echo begun; sleep 60"}"#),
            ("read_file", r#"{"path":"none"}"#),
        ]);
        phases.push(("running", running));
        for (phase, reply) in phases {
            let n = world.server.requests().len();
            world.server.reply(reply);
            talk.session.prompt(format!("go: {phase}")).await.unwrap();
            match phase {
                "thinking" | "signed" => {
                    let thought = |event: &holdpoint_common::Event| {
                        matches!(event.delta()?, Delta::Thought { .. }).then_some(())
                    };
                    talk.events.until_new("a thought", thought).await;
                }
                "speaking" | "called" | "calling" => {
                    let text = |event: &holdpoint_common::Event| {
                        matches!(event.delta()?, Delta::Text { .. }).then_some(())
                    };
                    talk.events.until_new("text", text).await;
                }
                "running" => {
                    let begun = |event: &holdpoint_common::Event| {
                        matches!(event.delta()?, Delta::Output { .. }).then_some(())
                    };
                    talk.events.until_new("output", begun).await;
                }
                _ => drop(request(&world, n).await),
            }
            talk.session.interrupt(None).await.unwrap();
            assert_eq!(
                talk.events.turn_finished().await.outcome,
                Outcome::Interrupted,
                "{wire:?} {phase}"
            );
            world.server.reply(Reply::text(["done"]));
            let end = turn(&mut talk, "next").await;
            assert_eq!(end.outcome, Outcome::Done, "{wire:?} after {phase}: {:?}", end.error);
            assert_eq!(world.server.violations(), [""; 0], "{wire:?} after {phase}");
        }
        assert_eq!(world.file("ran"), "", "{wire:?}");
    }
}

/// Waits for the `n`th request without blocking the runtime.
async fn request(world: &TestEngine, n: usize) -> Request {
    loop {
        match world.server.requests().get(n) {
            Some(request) => return request.clone(),
            None => tokio::task::yield_now().await,
        }
    }
}

#[tokio::test]
async fn t_l10_a_call_runs_once_although_its_result_meets_faults() {
    for wire in Wire::ALL {
        let world = TestEngine::start(wire);
        let mut talk = world.open().await;
        world.server.reply(Reply::calls([("shell", CALL)]));
        // The request with its result meets one fault after the other.
        world.server.reply(Reply::refuse()).reply(Reply::status(500, &[], "{}"));
        world.server.reply(Reply::stream().say("half").cut()).reply(Reply::text(["done"]));
        assert_eq!(turn(&mut talk, "go").await.outcome, Outcome::Done, "{wire:?}");
        assert_eq!(world.file("ran"), "ran\n", "{wire:?}");
        assert_eq!(results(&talk.events).len(), 1);
        world.server.assert_no_violations();
    }
}

#[tokio::test]
async fn m_e6_an_answer_at_its_most_tokens_is_partial_and_calls_nothing() {
    for wire in Wire::ALL {
        let world = TestEngine::start(wire);
        let mut talk = world.open().await;
        world.server.reply(Reply::stream().say("So I").call(0, "shell", CALL).finish("length"));
        let end = turn(&mut talk, "go").await;
        assert_eq!(end.outcome, Outcome::Limit, "{wire:?}");
        assert!(end.error.unwrap().contains("token limit"));
        assert_eq!(end.usage.output, 7, "{wire:?}: the provider's count is used");
        let answer = answers(&talk.events).pop().unwrap();
        assert!(answer.partial && answer.calls.is_empty() && answer.text() == "So I", "{answer:?}");
        world.server.reply(Reply::text(["done"]));
        assert_eq!(turn(&mut talk, "go on").await.outcome, Outcome::Done);
        assert_eq!(world.file("ran"), "");
        world.server.assert_no_violations();
    }
}

#[tokio::test]
async fn m_e6_two_hundred_calls_at_once_get_results_in_order() {
    for wire in Wire::ALL {
        let world = TestEngine::start(wire);
        let mut talk = world.open().await;
        let names: Vec<_> = (0..200).map(|n| format!(r#"{{"path":"none-{n}"}}"#)).collect();
        world
            .server
            .reply(Reply::calls(names.iter().map(|input| ("read_file", input))))
            .reply(Reply::text(["done"]));
        assert_eq!(turn(&mut talk, "go").await.outcome, Outcome::Done, "{wire:?}");
        assert_eq!(results(&talk.events).len(), 200);
        world.server.assert_no_violations();
        let answered = result_ids(&world.server.request(1).body);
        assert_eq!(answered.len(), 200, "{wire:?}");
        assert!(
            answered.is_sorted(),
            "{wire:?}: results are in the order of the calls: {answered:?}"
        );
    }
}

/// The ids of the calls that a request has results for, in the order of the results, on any wire.
fn result_ids(body: &Value) -> Vec<u64> {
    // Ollama's calls have no ids in the script and get ours.
    let id = |value: &Value| {
        let (theirs, ours) =
            (value.as_str()?.strip_prefix("provider_"), value.as_str()?.strip_prefix('c'));
        theirs.map_or_else(|| u64::from_str_radix(ours?, 36).ok(), |number| number.parse().ok())
    };
    match body {
        Value::Array(values) => values.iter().flat_map(result_ids).collect(),
        Value::Object(map) => {
            let response = map.get("functionResponse").map(|response| &response["id"]);
            let own = [map.get("tool_call_id"), map.get("tool_use_id"), response]
                .into_iter()
                .flatten()
                .filter_map(id);
            own.chain(map.values().flat_map(result_ids)).collect()
        }
        _ => vec![],
    }
}

#[tokio::test]
async fn m_e6_the_cost_of_a_turn_is_reported() {
    let config =
        "[models.'anthropic/scripted']\nprice = { input = 3.0, cached = 0.3, output = 15.0 }";
    let world = TestEngine::with(Wire::Anthropic, config, |limits| limits);
    let mut talk = world.open().await;
    world.server.answer(|_| Reply::text(["done"]));
    assert_eq!(
        turn(&mut talk, "go").await.usage.cost,
        Some(8 * 3 + 1 + 7 * 15),
        "3 cached tokens cost 0.9"
    );
    turn(&mut talk, "again").await;
    assert_eq!(talk.session.snapshot().usage.cost, Some(2 * (8 * 3 + 1 + 7 * 15)));
}

#[tokio::test]
async fn t_l2_a_refusal_with_a_stalled_body_is_still_a_refusal() {
    let world = TestEngine::start(Wire::OpenAi);
    let mut talk = world.open().await;
    let stalled = Reply::status(
        429,
        &[("content-length", "1000"), ("content-type", "text/plain")],
        "slow down",
    );
    world.server.reply(stalled.hang()).reply(Reply::text(["done"]));
    let end = turn(&mut talk, "go").await;
    assert_eq!(end.outcome, Outcome::Done, "{:?}", end.error);
    let retried = retries(&talk.events);
    assert!(
        matches!(&retried[..], [(2, reason)] if reason.contains("429") && reason.contains("slow down")),
        "{retried:?}"
    );
}

#[tokio::test]
async fn t_h1_not_even_a_part_of_a_key_is_reported() {
    for wire in Wire::ALL {
        let world = TestEngine::start(wire);
        let mut talk = world.open().await;
        let body = format!("{}{KEY}", "x".repeat(490));
        world.server.reply(Reply::status(401, &[("content-type", "text/plain")], &body));
        let error = turn(&mut talk, "go").await.error.unwrap();
        assert!(error.contains("xxx***") && !error.contains(&KEY[..4]), "{wire:?}: {error}");
    }
}

#[tokio::test]
async fn m_e3_a_request_and_the_answer_it_allows_fit_into_the_window() {
    for (settings, most) in
        [("window = 40000\nthinking = 16000", 20_000), ("window = 40000\nthinking = 30000", 31_024)]
    {
        let config = format!("[models.'anthropic/scripted']\n{settings}");
        let world = TestEngine::with(Wire::Anthropic, &config, |limits| limits);
        let mut talk = world.open().await;
        world.server.reply(Reply::text(["done"]));
        assert_eq!(turn(&mut talk, "go").await.outcome, Outcome::Done);
        assert_eq!(world.server.request(0).body["max_tokens"], most);
        assert_eq!(
            talk.session.snapshot().context.unwrap().limit,
            40_000 - most,
            "the rest of the window is for the request"
        );
    }
}
