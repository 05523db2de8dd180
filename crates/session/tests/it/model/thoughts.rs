//! Thoughts are sent back to the model that wrote them, with their signatures unchanged.

use holdpoint_common::Outcome;
use holdpoint_tests::model_server::{Reply, Wire, anthropic, gemini};
use holdpoint_tests::world::TestEngine;
use serde_json::{Value, json};

const CALL: &str = r#"{"command":"true"}"#;

/// Plays `answer` followed by a call of `shell`. Returns the parts that the next request has before
/// that call.
async fn sent_back(wire: Wire, answer: Reply) -> Vec<Value> {
    let world = TestEngine::start(wire);
    let mut talk = world.open().await;
    world
        .server
        .reply(answer.call(0, "shell", CALL).finish("tool_calls"))
        .reply(Reply::text(["done"]));
    talk.session.prompt("go").await.unwrap();
    let end = talk.events.turn_finished().await;
    assert_eq!(end.outcome, Outcome::Done, "{wire:?}: {:?}", end.error);
    world.server.assert_no_violations();
    let body = world.server.request(1).body;
    let parts = match wire {
        Wire::Gemini => &body["contents"][1]["parts"],
        _ => &body["messages"][1]["content"],
    };
    let (_call, before) = parts.as_array().unwrap().split_last().unwrap();
    before.to_vec()
}

#[tokio::test]
async fn m_e6_every_signature_is_sent_back_to_anthropic() {
    let thinking = |text: &str, signature: &str| json!({"type": "thinking", "thinking": text, "signature": signature});
    let redacted = json!({"type": "redacted_thinking", "data": "d4ta"});
    let withheld = |reply: Reply, index: u64| {
        let open =
            json!({"type": "content_block_start", "index": index, "content_block": redacted});
        reply
            .event(&open.to_string())
            .event(&json!({"type": "content_block_stop", "index": index}).to_string())
    };
    let begin = || Reply::stream().event(&anthropic::start().to_string());
    let block = |reply: Reply, index: u64, text: &str, signature: &str| {
        let open = json!({"type": "content_block_start", "index": index, "content_block": thinking("", "")});
        let delta = |delta: Value| {
            json!({"type": "content_block_delta", "index": index, "delta": delta}).to_string()
        };
        let reply = reply.event(&open.to_string());
        let reply = match text {
            "" => reply,
            text => reply.event(&delta(json!({"type": "thinking_delta", "thinking": text}))),
        };
        let reply = reply.event(&delta(json!({"type": "signature_delta", "signature": signature})));
        reply.event(&json!({"type": "content_block_stop", "index": index}).to_string())
    };
    // These indices stay clear of those that the server gives to later blocks.
    let mixed = withheld(block(begin(), 100, "hm", "s1"), 101);
    assert_eq!(sent_back(Wire::Anthropic, mixed).await, [thinking("hm", "s1"), redacted.clone()]);
    let two = block(block(begin(), 100, "", "s1"), 101, "", "s2");
    assert_eq!(sent_back(Wire::Anthropic, two).await, [thinking("", "s1"), thinking("", "s2")]);
    let four = withheld(block(block(withheld(begin(), 100), 101, "a", "s1"), 102, "b", "s2"), 103);
    let expected = [redacted.clone(), thinking("a", "s1"), thinking("b", "s2"), redacted.clone()];
    assert_eq!(sent_back(Wire::Anthropic, four).await, expected);
}

#[tokio::test]
async fn m_e6_every_signature_is_sent_back_to_gemini() {
    let signed = |text: &str, signature: &str| json!({"text": text, "thought": true, "thoughtSignature": signature});
    let signs = |reply: Reply, text: &str, signature: &str| {
        reply.event(&gemini::chunk(&signed(text, signature)).to_string())
    };
    let apart = signs(signs(Reply::stream().think("a"), "", "t1").think("b"), "", "t2");
    assert_eq!(sent_back(Wire::Gemini, apart).await, [signed("a", "t1"), signed("b", "t2")]);
    let whole = signs(signs(Reply::stream().think("a"), "b", "t1"), "c", "t2");
    assert_eq!(sent_back(Wire::Gemini, whole).await, [signed("ab", "t1"), signed("c", "t2")]);
}

#[tokio::test]
async fn m_e6_thoughts_between_calls_are_sent_back_in_place() {
    for wire in [Wire::Anthropic, Wire::Gemini] {
        let world = TestEngine::start(wire);
        let mut talk = world.open().await;
        // Gemini signs its calls, and the server's script signs thoughts. For us, both are the
        // same.
        let answer =
            Reply::stream().think("one").sign("s1").call(0, "shell", CALL).think("two").sign("s2");
        let answer = answer.call(1, "shell", r#"{"command":"false"}"#).say("So.");
        world.server.reply(answer.finish("tool_calls")).reply(Reply::text(["done"]));
        talk.session.prompt("go").await.unwrap();
        let end = talk.events.turn_finished().await;
        assert_eq!(end.outcome, Outcome::Done, "{wire:?}: {:?}", end.error);
        world.server.assert_no_violations();
        let body = world.server.request(1).body;
        let call = |command: &str| json!({"command": command});
        match wire {
            Wire::Gemini => {
                let parts = &body["contents"][1]["parts"];
                let signatures: Vec<_> = parts
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|part| &part["thoughtSignature"])
                    .collect();
                assert_eq!(
                    (signatures[0], &parts[1]["functionCall"]["args"]),
                    (&json!("s1"), &call("true")),
                    "{parts}"
                );
                assert_eq!(
                    (signatures[2], &parts[3]["functionCall"]["args"]),
                    (&json!("s2"), &call("false")),
                    "{parts}"
                );
                assert_eq!(parts[4], json!({"text": "So."}), "{parts}");
            }
            _ => {
                let content = &body["messages"][1]["content"];
                let kinds: Vec<_> =
                    content.as_array().unwrap().iter().map(|block| &block["type"]).collect();
                assert_eq!(
                    kinds,
                    ["thinking", "tool_use", "thinking", "tool_use", "text"],
                    "{content}"
                );
                assert_eq!(
                    (&content[0]["signature"], &content[1]["input"]),
                    (&json!("s1"), &call("true"))
                );
                assert_eq!(
                    (&content[2]["signature"], &content[3]["input"]),
                    (&json!("s2"), &call("false"))
                );
            }
        }
    }
}

/// With a thinking budget, Anthropic refuses a message with thoughts that does not begin with one.
#[tokio::test]
async fn t_l4_without_its_first_thought_a_message_has_none() {
    let world = TestEngine::start(Wire::Anthropic);
    let mut talk = world.open().await;
    // The first thought has no signature.
    let answer = Reply::stream().think("one").say("So.").think("two").sign("s2");
    world.server.reply(answer.call(0, "shell", CALL).finish("tool_calls"));
    world.server.reply(Reply::text(["done"]));
    talk.session.prompt("go").await.unwrap();
    let end = talk.events.turn_finished().await;
    assert_eq!(end.outcome, Outcome::Done, "{:?}", end.error);
    world.server.assert_no_violations();
    let content = &world.server.request(1).body["messages"][1]["content"];
    let kinds: Vec<_> = content.as_array().unwrap().iter().map(|block| &block["type"]).collect();
    assert_eq!(kinds, ["text", "tool_use"], "{content}");
}

/// The answers in a request to a compatible server.
fn answers(world: &TestEngine, request: usize) -> Vec<Value> {
    let messages =
        world.server.request(request).body["messages"].as_array().cloned().unwrap_or_default();
    messages.into_iter().filter(|message| message["role"] == "assistant").collect()
}

#[tokio::test]
async fn m_e6_after_its_turn_a_thought_goes_back_only_with_a_call() {
    for field in ["reasoning_content", "reasoning"] {
        let world = TestEngine::start(Wire::OpenAi);
        let mut talk = world.open().await;
        let thinks = |text: &str| json!({ field: text });
        let begun = Reply::stream().delta(&thinks("Let me ")).delta(&thinks("see.\n"));
        world.server.reply(begun.say("Well.").call(0, "shell", CALL).finish("tool_calls"));
        let again =
            Reply::stream().delta(&thinks("Again?")).call(0, "shell", CALL).finish("tool_calls");
        let done = Reply::stream().delta(&thinks("Done?")).say("done").finish("stop");
        world.server.reply(again).reply(done).reply(Reply::text(["done"]));
        for prompt in ["go", "go on"] {
            talk.session.prompt(prompt).await.unwrap();
            assert_eq!(talk.events.turn_finished().await.outcome, Outcome::Done, "{field}");
        }
        let first = answers(&world, 1);
        assert_eq!(
            (&first[0][field], &first[0]["content"]),
            (&json!("Let me see.\n"), &json!("Well.")),
            "{field}"
        );
        let second = answers(&world, 2);
        assert_eq!(
            (&second[0][field], &second[1][field]),
            (&json!("Let me see.\n"), &json!("Again?")),
            "{field}"
        );
        // After the turn has finished, only thoughts before a call are sent: DeepSeek and Kimi
        // refuse calls without them.
        let sent: Vec<_> =
            answers(&world, 3).iter().map(|answer| !answer[field].is_null()).collect();
        assert_eq!(sent, [true, true, false], "{field}");
        world.server.assert_no_violations();
    }
}

#[tokio::test]
async fn m_e6_thoughts_before_a_call_go_back_in_their_field_even_if_empty() {
    for (deltas, sent) in [
        (vec![json!({"reasoning_content": ""})], Some(json!({"reasoning_content": ""}))),
        (vec![json!({"reasoning_content": null, "reasoning": ""})], Some(json!({"reasoning": ""}))),
        (
            vec![
                json!({"reasoning_content": "", "content": ""}),
                json!({"reasoning_content": "hm"}),
            ],
            Some(json!({"reasoning_content": "hm"})),
        ),
        (
            vec![json!({"reasoning_content": "", "reasoning": "hm"})],
            Some(json!({"reasoning": "hm"})),
        ),
        (vec![json!({"reasoning_content": null})], None),
    ] {
        let world = TestEngine::start(Wire::OpenAi);
        let mut talk = world.open().await;
        let called = deltas
            .iter()
            .fold(Reply::stream(), Reply::delta)
            .call(0, "shell", CALL)
            .finish("tool_calls");
        let answered = Reply::stream().delta(&deltas[0]).say("done").finish("stop");
        world.server.reply(called).reply(answered).reply(Reply::text(["done"]));
        for prompt in ["go", "go on"] {
            talk.session.prompt(prompt).await.unwrap();
            let end = talk.events.turn_finished().await;
            assert_eq!(end.outcome, Outcome::Done, "{deltas:?}: {:?}", end.error);
        }
        for request in [1, 2] {
            let answer = answers(&world, request)[0].clone();
            let fields = ["reasoning_content", "reasoning"].iter();
            let back: Value = fields
                .filter_map(|field| Some((field.to_string(), answer.get(field)?.clone())))
                .collect();
            assert_eq!(back, sent.clone().unwrap_or(json!({})), "{deltas:?}: {answer}");
        }
        world.server.assert_no_violations();
    }
}

/// OpenRouter sends thoughts in two forms. Only the complete form goes back.
#[tokio::test]
async fn m_e6_reasoning_details_go_back_to_openrouter_unchanged() {
    let world = TestEngine::start(Wire::OpenAi);
    let mut talk = world.open().await;
    let detail = |text: &str| json!({"type": "reasoning.text", "text": text, "index": 0, "format": "anthropic-claude-v1"});
    let thinks = |text: &str| json!({"reasoning": text, "reasoning_details": [detail(text)]});
    let encrypted = json!({"type": "reasoning.encrypted", "data": "d4ta", "id": "rs_1"});
    let answer = Reply::stream().delta(&thinks("Let me ")).delta(&thinks("see."));
    let answer = answer
        .delta(&json!({"reasoning_details": [encrypted]}))
        .call(0, "shell", CALL)
        .finish("tool_calls");
    world.server.reply(answer).reply(Reply::text(["done"]));
    talk.session.prompt("go").await.unwrap();
    assert_eq!(talk.events.turn_finished().await.outcome, Outcome::Done);
    let sent = &answers(&world, 1)[0];
    assert_eq!(sent["reasoning_details"], json!([detail("Let me see."), encrypted]), "{sent}");
    assert_eq!(sent.get("reasoning"), None, "{sent}");
    world.server.assert_no_violations();
}

#[tokio::test]
async fn m_e6_thoughts_of_another_model_are_not_sent() {
    let world = TestEngine::start(Wire::OpenAi);
    let mut talk = world.open().await;
    let thinks = json!({"reasoning_content": "secret of the first"});
    world.server.reply(Reply::stream().delta(&thinks).call(0, "shell", CALL).finish("tool_calls"));
    world.server.reply(Reply::text(["done"])).reply(Reply::text(["done"]));
    world.server.reply(Reply::text(["done"]));
    for prompt in ["go", "again"] {
        talk.session.prompt(prompt).await.unwrap();
        assert_eq!(talk.events.turn_finished().await.outcome, Outcome::Done);
    }
    let has_thought = |sent: &Value| sent.to_string().contains("secret of the first");
    let own = world.server.requests().pop().unwrap();
    assert!(has_thought(&own.body), "{}", own.body);
    talk.session.change_model("openai/other").await.unwrap();
    talk.session.prompt("go on").await.unwrap();
    assert_eq!(talk.events.turn_finished().await.outcome, Outcome::Done);
    let other = world.server.requests().pop().unwrap();
    assert_eq!(other.body["model"], "other");
    assert!(other.body["messages"].to_string().contains("shell"), "{}", other.body);
    assert!(!has_thought(&other.body), "{}", other.body);
}

#[tokio::test]
async fn m_e6_gemini_signatures_from_a_compatible_server_go_back_unchanged() {
    let extra = json!({"google": {"thought_signature": "s1g+/=="}});
    let world = TestEngine::start(Wire::OpenAi);
    let mut talk = world.open().await;
    let function = json!({"name": "shell", "arguments": CALL});
    let call = |id: &str, extra: &Value| json!({"id": id, "type": "function", "function": function, "extra_content": extra});
    let calls = json!({"tool_calls": [call("a", &extra), call("b", &Value::Null)]});
    world.server.reply(Reply::stream().delta(&calls).finish("tool_calls"));
    let signed = json!({"content": "done", "extra_content": extra});
    world.server.reply(Reply::stream().delta(&signed).finish("stop")).reply(Reply::text(["done"]));
    for prompt in ["go", "go on"] {
        talk.session.prompt(prompt).await.unwrap();
        assert_eq!(talk.events.turn_finished().await.outcome, Outcome::Done);
    }
    for request in [1, 2] {
        let calls = &answers(&world, request)[0]["tool_calls"];
        assert_eq!(
            (&calls[0]["extra_content"], calls[1].get("extra_content")),
            (&extra, None),
            "{calls}"
        );
    }
    assert_eq!(answers(&world, 2)[1]["extra_content"], extra);
    world.server.assert_no_violations();
}
