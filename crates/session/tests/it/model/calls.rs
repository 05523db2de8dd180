//! Faulty calls of a model: slow, endless, under illegal names, or lost. The turn ends properly,
//! and the session continues.

use std::time::Duration;

use futures_util::future::join_all;
use holdpoint_common::{Fact, Limits, Outcome, ToolFact, ToolStatus};
use holdpoint_session::testing::Finished;
use holdpoint_tests::model_server::{Reply, Wire, gemini, ollama, openai};
use holdpoint_tests::world::{TestEngine, TestSession};
use serde_json::json;

async fn turn(talk: &mut TestSession, prompt: &str) -> Finished {
    talk.session.prompt(prompt).await.unwrap();
    talk.events.turn_finished().await
}

#[tokio::test]
async fn t_l5_a_model_that_writes_a_long_call_is_not_silent() {
    // In parallel, because each lasts longer than the model may be silent.
    join_all([Wire::OpenAi, Wire::Anthropic].map(async |wire| {
        let world = TestEngine::with(wire, "", |limits| Limits { model_silence_s: 3, ..limits });
        let mut talk = world.open().await;
        let pieces = [r#"{""#, "comm", r#"and":""#, "ec", "ho ", "ra", "n ", ">> ", "ra", r#"n"}"#];
        let slow = |reply: Reply, piece: &&str| {
            reply.pause(Duration::from_millis(350)).write_call(0, piece)
        };
        let reply = pieces.iter().fold(Reply::stream().begin_call(0, "shell"), slow);
        world.server.reply(reply.finish("tool_calls")).reply(Reply::text(["done"]));
        let end = turn(&mut talk, "go").await;
        assert_eq!(end.outcome, Outcome::Done, "{wire:?}: {:?}", end.error);
        assert_eq!(world.file("ran"), "ran\n", "{wire:?}");
    }))
    .await;
}

#[tokio::test]
async fn m_e6_a_call_without_an_end_is_a_bounded_error() {
    for wire in [Wire::OpenAi, Wire::Anthropic] {
        let world =
            TestEngine::with(wire, "", |limits| Limits { max_answer_bytes: 64 * 1024, ..limits });
        let mut talk = world.open().await;
        let piece = "x".repeat(1000);
        let endless = (0..100)
            .fold(Reply::stream().begin_call(0, "shell"), |reply, _| reply.write_call(0, &piece));
        world.server.reply(endless.hang());
        let error = turn(&mut talk, "go").await.error.unwrap();
        assert!(error.contains("over 65536 bytes"), "{wire:?}: {error}");

        // A call without a name never runs, so its bytes do not count.
        let piece = "x".repeat(64 * 1024);
        let nameless =
            (0..80).fold(Reply::stream().begin_call(0, ""), |reply, _| reply.write_call(0, &piece));
        world.server.reply(nameless.hang()).reply(Reply::text(["done"]));
        let error = turn(&mut talk, "go").await.error.unwrap();
        assert!(error.contains("without content"), "{wire:?}: {error}");
        assert_eq!(turn(&mut talk, "go").await.outcome, Outcome::Done, "{wire:?}");
    }
}

#[tokio::test]
async fn m_e6_the_arguments_of_a_call_count_once() {
    for wire in [Wire::OpenAi, Wire::Anthropic] {
        let world =
            TestEngine::with(wire, "", |limits| Limits { max_answer_bytes: 64 * 1024, ..limits });
        let mut talk = world.open().await;
        let arguments = json!({"command": format!("true {}", "x".repeat(40_000))}).to_string();
        world.server.reply(Reply::calls([("shell", arguments)])).reply(Reply::text(["done"]));
        let end = turn(&mut talk, "go").await;
        assert_eq!(end.outcome, Outcome::Done, "{wire:?}: {:?}", end.error);
    }
}

#[tokio::test]
async fn t_l7_a_call_with_an_illegal_tool_name_is_answered_and_later_requests_are_valid() {
    let long = "n".repeat(300);
    let names =
        ["multi_tool_use.parallel", "functions.shell", "a b", "é漢", "<|x|>", long.as_str()];
    for wire in Wire::ALL {
        let world = TestEngine::start(wire);
        let mut talk = world.open().await;
        world
            .server
            .reply(Reply::calls(names.map(|name| (name, "{}"))))
            .reply(Reply::text(["I see."]));
        let end = turn(&mut talk, "go").await;
        assert_eq!(end.outcome, Outcome::Done, "{wire:?}: {:?}", end.error);
        world.server.reply(Reply::text(["done"]));
        assert_eq!(turn(&mut talk, "and then?").await.outcome, Outcome::Done, "{wire:?}");
        world.server.assert_no_violations();
        let results = talk.events.facts().filter_map(|fact| match fact {
            Fact::Tool(ToolFact::Finished(result)) => Some((result.status, result.result.clone())),
            _ => None,
        });
        let results: Vec<_> = results.collect();
        for name in names {
            let is_reported = |(status, text): &(ToolStatus, String)| {
                *status == ToolStatus::Error && text.contains(&format!("unknown tool `{name}`"))
            };
            assert!(
                results.iter().any(is_reported),
                "{wire:?}: the name {name} is reported as the model wrote it: {results:?}"
            );
        }
    }
}

/// Answers that seem to end normally but have no usable content, each with a word of the error.
fn lost() -> Vec<(Wire, Reply, &'static str)> {
    let mut lost = Vec::new();
    for wire in Wire::ALL {
        lost.push((wire, Reply::stream().finish("stop"), "the answer was empty"));
        lost.push((wire, Reply::stream().say(" \n").finish("stop"), "the answer was empty"));
        lost.push((wire, Reply::stream().think("hm").finish("stop"), "thought"));
        lost.push((
            wire,
            Reply::stream().say("So I").call(0, "", "{}").finish("tool_calls"),
            "can't be read",
        ));
        let beside = Reply::stream().call(0, "", r#"{"x":1}"#).call(
            1,
            "shell",
            r#"{"command":"echo ran >> ran"}"#,
        );
        lost.push((wire, beside.finish("tool_calls"), "can't be read"));
    }
    for wire in [Wire::OpenAi, Wire::Anthropic] {
        lost.push((wire, Reply::stream().say("So I").finish("tool_calls"), "can't be read"));
    }
    let legacy = json!({"function_call": {"name": "shell", "arguments": "{}"}});
    lost.push((
        Wire::OpenAi,
        Reply::stream().delta(&legacy).finish("function_call"),
        "can't be read",
    ));
    lost.push((
        Wire::OpenAi,
        Reply::stream().say("So I").delta(&legacy).finish("function_call"),
        "can't be read",
    ));
    for reason in ["error", "abort"] {
        lost.push((Wire::OpenAi, Reply::stream().say("So I").finish(reason), reason));
    }
    for reason in ["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "RECITATION", "OTHER"] {
        lost.push((Wire::Gemini, Reply::stream().think("hm").finish(reason), reason));
        lost.push((Wire::Gemini, Reply::stream().say("So I").finish(reason), reason));
    }
    lost
}

#[tokio::test]
async fn m_e6_an_answer_without_usable_content_is_an_error() {
    for (n, (wire, reply, word)) in lost().into_iter().enumerate() {
        let world = TestEngine::start(wire);
        let mut talk = world.open().await;
        world.server.reply(reply).reply(Reply::text(["done"]));
        let end = turn(&mut talk, "go").await;
        assert_eq!(end.outcome, Outcome::Failed, "{n} {wire:?} {word}");
        let error = end.error.unwrap();
        assert!(error.contains(word), "{n} {wire:?} {word}: {error}");
        assert_eq!(world.file("ran"), "", "{n} {wire:?}: no call runs");
        assert_eq!(turn(&mut talk, "again").await.outcome, Outcome::Done, "{n} {wire:?}");
        world.server.assert_no_violations();
    }
}

/// An empty call after a good one.
fn with_an_empty_call(wire: Wire, good: Reply) -> Reply {
    let event = |event: serde_json::Value| good.clone().event(&event.to_string());
    match wire {
        Wire::OpenAi => event(openai::delta(
            &json!({"tool_calls": [{"index": 1, "id": "", "function": {"name": "", "arguments": ""}}]}),
        )),
        Wire::Anthropic => {
            let block = json!({"type": "tool_use", "id": "", "name": "", "input": {}});
            event(json!({"type": "content_block_start", "index": 100, "content_block": block}))
                .event(&json!({"type": "content_block_stop", "index": 100}).to_string())
        }
        Wire::Gemini => event(gemini::chunk(&json!({"functionCall": {}}))),
        Wire::Ollama => event(ollama::record(
            &json!({"tool_calls": [{"function": {"name": "", "arguments": {}}}]}),
        )),
    }
}

#[tokio::test]
async fn m_e6_an_empty_call_beside_another_is_ignored() {
    for wire in Wire::ALL {
        let world = TestEngine::start(wire);
        let mut talk = world.open().await;
        let good = Reply::stream().call(0, "shell", r#"{"command":"echo ran >> ran"}"#);
        world
            .server
            .reply(with_an_empty_call(wire, good).finish("tool_calls"))
            .reply(Reply::text(["done"]));
        let end = turn(&mut talk, "go").await;
        assert_eq!(end.outcome, Outcome::Done, "{wire:?}: {:?}", end.error);
        assert_eq!(world.file("ran"), "ran\n", "{wire:?}");
        world.server.assert_no_violations();

        // Without another call, an empty one is a lost call.
        let end = Reply::stream().say("So I");
        world
            .server
            .reply(with_an_empty_call(wire, end).finish("tool_calls"))
            .reply(Reply::text(["done"]));
        let error = turn(&mut talk, "go").await.error.unwrap();
        assert!(error.contains("can't be read"), "{wire:?}: {error}");
    }
}
