//! Deviations that one provider is known for, on every other that can show them. Each is read
//! correctly or is an error that names the fault; no call is lost, doubled or merged with another.

use holdpoint_common::Usage;
use holdpoint_session::model::{ModelError, ModelEvent};
use holdpoint_tests::model_answer::{AnswerItem, call, play, text, thought, usage};
use holdpoint_tests::model_server::{Reply, Wire, anthropic, gemini, ollama};
use serde_json::{Value, json};

const LS: &str = r#"{"command":"ls"}"#;
const PWD: &str = r#"{"command":"pwd"}"#;

fn two() -> [AnswerItem; 3] {
    [call("shell", LS), call("shell", PWD), usage()]
}

/// Checks that the events are `expected` and a usage of our own estimate.
#[track_caller]
fn estimated(events: &[AnswerItem], expected: &[AnswerItem], why: &str) {
    let (last, before) = events.split_last().unwrap();
    assert_eq!(before, expected, "{why}");
    assert!(
        matches!(last, Ok(ModelEvent::Usage(Usage { estimated: true, .. }))),
        "{why}: {events:?}"
    );
}

#[track_caller]
fn broken(events: &[AnswerItem], words: &str) {
    let Some(Err(error)) = events.last() else { panic!("{events:?}") };
    assert!(error.to_string().contains(words), "{words}: {error}");
    assert!(!events.iter().any(|event| matches!(event, Ok(ModelEvent::Call { .. }))), "{events:?}");
}

/// Anthropic's blocks and their ends, with indices chosen by the test.
struct Blocks(Reply);

impl Blocks {
    fn begin() -> Self {
        Self(Reply::stream().event(&anthropic::start().to_string()))
    }

    fn event(self, event: &Value) -> Self {
        Self(self.0.event(&event.to_string()))
    }

    fn open(self, index: u64) -> Self {
        let block = json!({"type": "tool_use", "id": "x", "name": "shell", "input": {}});
        self.event(&json!({"type": "content_block_start", "index": index, "content_block": block}))
    }

    fn write(self, index: u64, piece: &str) -> Self {
        let delta = json!({"type": "input_json_delta", "partial_json": piece});
        self.event(&json!({"type": "content_block_delta", "index": index, "delta": delta}))
    }

    fn stop(self, index: u64) -> Self {
        self.event(&json!({"type": "content_block_stop", "index": index}))
    }

    fn ends(self, reason: &Value, usage: &Value) -> Self {
        let delta = json!({"stop_reason": reason, "stop_sequence": null});
        self.event(&json!({"type": "message_delta", "delta": delta, "usage": usage}))
    }
}

#[tokio::test]
async fn m_e6_anthropic_calls_with_odd_indices_and_ends_are_read() {
    let play = async |blocks: Blocks| play(Wire::Anthropic, blocks.0).await;
    let tool_use = |blocks: Blocks| Blocks(blocks.0.finish("tool_calls"));

    let same = Blocks::begin().open(0).write(0, LS).stop(0).open(0).write(0, PWD).stop(0);
    assert_eq!(play(tool_use(same)).await, two(), "two calls under one index");
    let unended = Blocks::begin().open(0).write(0, LS).open(1).write(1, PWD);
    assert_eq!(play(tool_use(unended)).await, two(), "blocks without an end");
    let mixed = Blocks::begin()
        .open(0)
        .open(1)
        .write(0, &LS[..5])
        .write(1, PWD)
        .write(0, &LS[5..])
        .stop(1)
        .stop(0);
    let mut events = play(tool_use(mixed)).await;
    events[..2].sort_by_key(|event| format!("{event:?}"));
    assert_eq!(events, two(), "blocks that are written side by side");
    let unnamed = Blocks::begin()
        .event(&json!({"type": "content_block_start", "content_block": {"type": "tool_use"}}));
    broken(&play(tool_use(unnamed)).await, "index");
    let elsewhere = Blocks::begin().open(0).write(1, LS).stop(0);
    broken(&play(tool_use(elsewhere)).await, "block 1");
}

#[tokio::test]
async fn m_e6_odd_ends_of_anthropic_answers_are_read() {
    let text_block = || Blocks(Reply::stream().say("a"));
    let counted = json!({"output_tokens": 7});
    let end = |blocks: Blocks| blocks.0.end();
    let play = async |reply: Reply| play(Wire::Anthropic, reply).await;

    assert_eq!(
        play(end(text_block().ends(&json!("end_turn"), &counted))).await,
        [text("a"), usage()],
        "no message_stop"
    );
    for reason in [json!(""), json!("because"), json!("pause_turn"), json!("stop_sequence")] {
        let stopped = text_block().ends(&reason, &counted).event(&json!({"type": "message_stop"}));
        let events = play(end(stopped)).await;
        assert_eq!(events, [text("a"), usage()], "{reason}");
    }
    estimated(
        &play(end(text_block().ends(&json!("end_turn"), &Value::Null))).await,
        &[text("a")],
        "no usage",
    );
    for unended in [end(text_block()), end(text_block().event(&json!({"type": "message_stop"})))] {
        let events = play(unended).await;
        assert!(
            matches!(events.last(), Some(Err(ModelError::Connection { .. }))),
            "no end: {events:?}"
        );
    }
}

#[tokio::test]
async fn m_e6_odd_parts_calls_and_ends_of_gemini_are_read() {
    let play = async |reply: Reply| play(Wire::Gemini, reply).await;
    let parts = |parts: Value| json!({"candidates": [{"content": {"parts": parts, "role": "model"}, "index": 0}]});
    let called = |id: Value, command: &str| json!({"functionCall": {"id": id, "name": "shell", "args": {"command": command}}});
    for id in [json!("x"), Value::Null] {
        let both = parts(json!([called(id.clone(), "ls"), called(id.clone(), "pwd")])).to_string();
        assert_eq!(
            play(Reply::stream().event(&both).finish("stop")).await,
            two(),
            "two calls in one chunk: {id}"
        );
        let each =
            ["ls", "pwd"].map(|command| parts(json!([called(id.clone(), command)])).to_string());
        let apart = Reply::stream().event(&each[0]).event(&each[1]);
        assert_eq!(play(apart.finish("stop")).await, two(), "the same id twice: {id}");
    }
    let bare = parts(json!([{"functionCall": {"name": "now"}}])).to_string();
    assert_eq!(
        play(Reply::stream().event(&bare).finish("stop")).await,
        [call("now", "{}"), usage()],
        "no arguments"
    );
    let mixed =
        parts(json!([{"text": "hm", "thought": true}, {"text": "a"}, {"text": "b"}])).to_string();
    assert_eq!(
        play(Reply::stream().event(&mixed).finish("stop")).await,
        [thought("hm"), text("ab"), usage()]
    );

    let mut late = gemini::finish("STOP");
    let counted = late["usageMetadata"].take();
    let reply = Reply::stream().say("a").event(&late.to_string());
    estimated(&play(reply.clone().end()).await, &[text("a")], "no usage");
    let reply = reply.event(&json!({"usageMetadata": counted}).to_string()).end();
    assert_eq!(play(reply).await, [text("a"), usage()], "usage in a last chunk without candidates");
    assert_eq!(
        play(Reply::stream().say("a").finish("")).await,
        [text("a"), usage()],
        "an empty reason"
    );
    broken(
        &play(Reply::stream().say("a").finish("FINISH_REASON_UNSPECIFIED")).await,
        "UNSPECIFIED",
    );
    let events = play(Reply::stream().say("a").end()).await;
    assert!(
        matches!(events.last(), Some(Err(ModelError::Connection { .. }))),
        "no end: {events:?}"
    );
}

#[tokio::test]
async fn m_e6_odd_calls_and_ends_of_ollama_are_read() {
    let play = async |reply: Reply| play(Wire::Ollama, reply).await;
    let record = |calls: Value| {
        ollama::record(&json!({"role": "assistant", "content": "", "tool_calls": calls}))
    };
    let function = |index: Value, command: &str| json!({"function": {"index": index, "name": "shell", "arguments": {"command": command}}});
    for index in [json!(0), Value::Null] {
        let both = record(json!([function(index.clone(), "ls"), function(index.clone(), "pwd")]))
            .to_string();
        assert_eq!(
            play(Reply::stream().event(&both).finish("stop")).await,
            two(),
            "in one record: {index}"
        );
        let each = ["ls", "pwd"]
            .map(|command| record(json!([function(index.clone(), command)])).to_string());
        let apart = Reply::stream().event(&each[0]).event(&each[1]);
        assert_eq!(play(apart.finish("stop")).await, two(), "in two records: {index}");
    }
    let mut last = ollama::finish("stop");
    last["message"]["tool_calls"] = json!([function(json!(0), "ls"), function(json!(1), "pwd")]);
    assert_eq!(
        play(Reply::stream().event(&last.to_string()).end()).await,
        two(),
        "in the last record"
    );
    for arguments in [
        json!({"name": "now"}),
        json!({"name": "now", "arguments": null}),
        json!({"name": "now", "arguments": ""}),
    ] {
        let bare = record(json!([{"function": arguments}])).to_string();
        assert_eq!(
            play(Reply::stream().event(&bare).finish("stop")).await,
            [call("now", "{}"), usage()],
            "{arguments}"
        );
    }
    for reason in ["", "because", "load"] {
        assert_eq!(
            play(Reply::stream().say("a").finish(reason)).await,
            [text("a"), usage()],
            "{reason}"
        );
    }
    let mut bare = ollama::record(&json!({"role": "assistant", "content": ""}));
    bare["done"] = json!(true);
    estimated(
        &play(Reply::stream().say("a").event(&bare.to_string()).end()).await,
        &[text("a")],
        "no reason, no counts",
    );
    let events = play(Reply::stream().say("a").end()).await;
    assert!(
        matches!(events.last(), Some(Err(ModelError::Connection { .. }))),
        "no end: {events:?}"
    );
}

#[tokio::test]
async fn m_e6_a_surrogate_pair_split_over_two_events_is_joined() {
    let halves = |field: &dyn Fn(&str) -> String| {
        let (first, second) = (field("x\\ud83d"), field("\\ude00y"));
        Reply::stream().event(&first).event(&second)
    };
    let delta = |delta: String| format!(r#"{{"choices":[{{"index":0,"delta":{delta}}}]}}"#);
    let reply = halves(&|half| delta(format!(r#"{{"content":"{half}"}}"#))).finish("stop");
    assert_eq!(play(Wire::OpenAi, reply).await, [text("x😀y"), usage()]);
    let written = halves(&|half| {
        let escaped =
            if half.starts_with('x') { r#"{\"command\":\"x\ud83d"# } else { r#"\ude00y\"}"# };
        delta(format!(
            r#"{{"tool_calls":[{{"index":0,"function":{{"name":"shell","arguments":"{escaped}"}}}}]}}"#
        ))
    });
    let expected = [call("shell", r#"{"command":"x😀y"}"#), usage()];
    assert_eq!(play(Wire::OpenAi, written.finish("tool_calls")).await, expected);

    let block = |half: &str| {
        format!(
            r#"{{"type":"content_block_delta","index":0,"delta":{{"type":"text_delta","text":"{half}"}}}}"#
        )
    };
    let reply = Reply::stream().event(&anthropic::start().to_string());
    let reply = reply.event(&block("x\\ud83d")).event(&block("\\ude00y")).finish("stop");
    assert_eq!(play(Wire::Anthropic, reply).await, [text("x😀y"), usage()]);
    let reply = halves(&|half| {
        format!(r#"{{"candidates":[{{"content":{{"parts":[{{"text":"{half}"}}]}}}}]}}"#)
    });
    assert_eq!(play(Wire::Gemini, reply.finish("stop")).await, [text("x😀y"), usage()]);
    let reply = halves(&|half| format!(r#"{{"message":{{"content":"{half}"}},"done":false}}"#));
    assert_eq!(play(Wire::Ollama, reply.finish("stop")).await, [text("x😀y"), usage()]);
}

/// Half a character becomes a replacement character without its other half, and joins only a half
/// of the same text.
#[tokio::test]
async fn m_e6_half_a_surrogate_pair_joins_only_its_own_text() {
    let delta = |delta: &str| format!(r#"{{"choices":[{{"index":0,"delta":{delta}}}]}}"#);
    let thinks = |half: &str| delta(&format!(r#"{{"reasoning_content":"{half}"}}"#));
    let says = |half: &str| delta(&format!(r#"{{"content":"{half}"}}"#));
    let reply =
        |events: &[String]| events.iter().fold(Reply::stream(), |reply, event| reply.event(event));
    for (halves, expected) in [
        (vec!["x\\ud83dy"], "x\u{fffd}y"),
        (vec!["x\\ud83d"], "x\u{fffd}"),
        (vec!["x\\ud83d", "y"], "x\u{fffd}y"),
        (vec!["x\\ude00"], "x\u{fffd}"),
        (vec!["x\\ud83d", "", "\\ude00y"], "x😀y"),
    ] {
        let events: Vec<_> = halves.iter().map(|half| says(half)).collect();
        assert_eq!(
            play(Wire::OpenAi, reply(&events).finish("stop")).await,
            [text(expected), usage()],
            "{halves:?}"
        );
        let part = |half: &&str| {
            format!(r#"{{"candidates":[{{"content":{{"parts":[{{"text":"{half}"}}]}}}}]}}"#)
        };
        let events: Vec<_> = halves.iter().map(part).collect();
        assert_eq!(
            play(Wire::Gemini, reply(&events).finish("stop")).await,
            [text(expected), usage()],
            "{halves:?}"
        );
        let record = |half: &&str| format!(r#"{{"message":{{"content":"{half}"}},"done":false}}"#);
        let events: Vec<_> = halves.iter().map(record).collect();
        assert_eq!(
            play(Wire::Ollama, reply(&events).finish("stop")).await,
            [text(expected), usage()],
            "{halves:?}"
        );
    }
    let mixed = [thinks("t\\ud83d"), says("a\\ud83d"), thinks("\\ude01u"), says("\\ude00b")];
    let signed = || holdpoint_tests::model_answer::signature("openai:reasoning_content");
    let expected = [
        thought("t\u{fffd}"),
        signed(),
        text("a"),
        thought("\u{fffd}u"),
        signed(),
        text("😀b"),
        usage(),
    ];
    assert_eq!(play(Wire::OpenAi, reply(&mixed).finish("stop")).await, expected);
    let part = |thought: bool, half: &str| {
        let part = format!(r#"{{"text":"{half}","thought":{thought}}}"#);
        format!(r#"{{"candidates":[{{"content":{{"parts":[{part}]}}}}]}}"#)
    };
    let mixed = [
        part(true, "t\\ud83d"),
        part(false, "a\\ud83d"),
        part(true, "\\ude01u"),
        part(false, "\\ude00b"),
    ];
    let expected = [thought("t"), text("a"), thought("😁u"), text("😀b"), usage()];
    assert_eq!(play(Wire::Gemini, reply(&mixed).finish("stop")).await, expected);

    // Two calls that are written in parallel, and text before them.
    let call = |index: u64, arguments: &str| {
        let function = format!(r#"{{"name":"shell","arguments":"{arguments}"}}"#);
        delta(&format!(
            r#"{{"tool_calls":[{{"index":{index},"id":"c{index}","function":{function}}}]}}"#
        ))
    };
    let begin = r#"{\"command\":\"\ud83d"#;
    let events = [
        says("a\\ud83d"),
        call(0, begin),
        call(1, begin),
        call(0, r#"\ude00\"}"#),
        call(1, r#"\ude01\"}"#),
        call(2, &format!(r#"{begin}\"}}"#)),
    ];
    let expected = [text("a\u{fffd}"), call_of("😀"), call_of("😁"), call_of("\u{fffd}"), usage()];
    assert_eq!(play(Wire::OpenAi, reply(&events).finish("tool_calls")).await, expected);
    // In an error message, too.
    let events =
        play(Wire::OpenAi, Reply::stream().event(r#"{"error":{"message":"x\ud83d"}}"#).end()).await;
    assert_eq!(events, [Err(ModelError::Failed { message: "x\u{fffd}".into() })]);
}

fn call_of(command: &str) -> AnswerItem {
    call("shell", &format!(r#"{{"command":"{command}"}}"#))
}

/// An answer that is sent whole, as by a server that does not stream.
fn whole(wire: Wire) -> String {
    let input = json!({"command": "ls"});
    let counted = json!({"prompt_tokens": 11, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 3}});
    let body = match wire {
        Wire::OpenAi => {
            let function = json!({"name": "shell", "arguments": LS});
            let message = json!({"role": "assistant", "content": "a", "tool_calls": [{"id": "x", "type": "function", "function": function}]});
            json!({"object": "chat.completion", "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}], "usage": counted})
        }
        Wire::Anthropic => {
            let content = json!([{"type": "text", "text": "a"}, {"type": "tool_use", "id": "x", "name": "shell", "input": input}]);
            let usage =
                json!({"input_tokens": 8, "cache_read_input_tokens": 3, "output_tokens": 7});
            json!({"type": "message", "role": "assistant", "content": content, "stop_reason": "tool_use", "usage": usage})
        }
        Wire::Gemini => {
            let parts = json!([{"text": "a"}, {"functionCall": {"name": "shell", "args": input}}]);
            let usage = json!({"promptTokenCount": 11, "cachedContentTokenCount": 3, "candidatesTokenCount": 7});
            json!({"candidates": [{"content": {"parts": parts}, "finishReason": "STOP"}], "usageMetadata": usage})
        }
        Wire::Ollama => {
            let message = json!({"role": "assistant", "content": "a", "tool_calls": [{"function": {"name": "shell", "arguments": input}}]});
            json!({"message": message, "done": true, "done_reason": "stop", "prompt_eval_count": 11, "eval_count": 7})
        }
    };
    body.to_string()
}

#[tokio::test]
async fn m_e6_an_answer_sent_whole_is_read() {
    for wire in Wire::ALL {
        let body = whole(wire);
        let types = [
            "application/json",
            "application/json; charset=utf-8",
            "text/event-stream",
            "text/plain",
        ];
        for kind in types {
            let events = play(wire, Reply::status(200, &[("content-type", kind)], &body)).await;
            assert_eq!(events[..2], [text("a"), call("shell", LS)], "{wire:?} {kind}");
            assert!(
                matches!(events[2], Ok(ModelEvent::Usage(Usage { input: 11, output: 7, .. }))),
                "{wire:?}: {events:?}"
            );
        }
        // Over several lines, and truncated.
        let value: Value = serde_json::from_str(&body).unwrap();
        let pretty = format!("\n{value:#}\n");
        let events = play(wire, Reply::status(200, &[], &pretty)).await;
        let Ok(ModelEvent::Call { arguments, .. }) = &events[1] else {
            panic!("{wire:?}: {events:?}")
        };
        assert_eq!(
            serde_json::from_str::<Value>(arguments).unwrap(),
            json!({"command": "ls"}),
            "{wire:?}"
        );
        for cut in [&body[..body.len() - 1], &pretty[..pretty.len() - 2]] {
            let events = play(wire, Reply::status(200, &[], cut)).await;
            assert!(
                matches!(events[..], [Err(ModelError::Malformed { .. })]),
                "{wire:?}: {events:?}"
            );
        }
    }
    // A list of chunks, as Gemini sends it when no events are requested.
    let chunk = |part: Value| gemini::chunk(&part);
    let list =
        json!([chunk(json!({"text": "a"})), chunk(json!({"text": "b"})), gemini::finish("STOP")]);
    let events = play(Wire::Gemini, Reply::status(200, &[], &format!("{list:#}"))).await;
    assert_eq!(events, [text("ab"), usage()]);
}
