//! Every provider against a real server of its wire: answers and their deviations are read
//! correctly or are errors that name the fault, and conversations are sent as the strictest server
//! requires.

use std::sync::Arc;
use std::time::Duration;

use holdpoint_common::{
    AssistantMessage, Block, BlockKind, CallId, Image, ImageType, ItemId, ModelSettings, ToolCall,
    ToolResult, ToolStatus,
};
use holdpoint_session::model::{Message, ModelError, ModelEvent, ModelRequest};
use holdpoint_tests::model_answer::{
    AnswerItem, ask, call, hello, model, named, play, signature, text, thought, usage,
};
use holdpoint_tests::model_server::{ModelServer, Reply, Wire};
use holdpoint_tools::ToolSpec;
use holdpoint_tools::testing::rounds;
use serde_json::{Value, json};

fn is_call(event: &AnswerItem) -> bool {
    matches!(event, Ok(ModelEvent::Call { .. }))
}

fn named_tools(names: &[&str]) -> Arc<[Arc<ToolSpec>]> {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
    names
        .iter()
        .map(|name| ToolSpec {
            name: (*name).into(),
            description: "does it".into(),
            schema: schema.clone(),
        })
        .map(Arc::new)
        .collect()
}

/// A conversation with parts of every kind: thoughts with and without a signature, parallel calls,
/// a denial, an answer cut short, two prompts.
fn conversation(signature: Option<&str>) -> ModelRequest {
    let block = |kind, text: &str, signature: Option<&str>| Block {
        item: ItemId(1),
        kind,
        text: text.into(),
        signature: signature.map(str::to_owned),
        calls_before: 0,
    };
    let called = |id, name: &str| ToolCall {
        id: CallId(id),
        provider_id: None,
        name: name.into(),
        input: json!({"n": id}),
        signature: None,
    };
    let answer = AssistantMessage {
        blocks: vec![
            block(BlockKind::Thought, "hm", signature),
            block(BlockKind::Text, "let me look", None),
        ],
        calls: vec![called(4, "shell"), called(5, "read_file")],
        ..AssistantMessage::default()
    };
    let cut = AssistantMessage {
        blocks: vec![
            block(BlockKind::Thought, "unsigned", None),
            block(BlockKind::Text, "half an ans", None),
        ],
        calls: vec![],
        partial: true,
        ..AssistantMessage::default()
    };
    let only_thought = AssistantMessage {
        blocks: vec![block(BlockKind::Thought, "hm", None)],
        ..AssistantMessage::default()
    };
    let messages = vec![
        Message::User("first".into()),
        Message::Assistant(answer.into()),
        Message::Tool(ToolResult::not_run(CallId(4), ToolStatus::Denied, "no").into()),
        Message::Tool(ToolResult::not_run(CallId(5), ToolStatus::Ok, "").into()),
        Message::User("second".into()),
        Message::Assistant(cut.into()),
        Message::User("third".into()),
        Message::Assistant(only_thought.into()),
    ];
    let messages = messages.into_iter().chain([Message::User("fourth".into())]).collect();
    ModelRequest {
        system: "Be brief.".into(),
        messages,
        tools: named_tools(&["shell", "read_file"]),
    }
}

#[tokio::test]
async fn m_e6_text_thoughts_calls_and_usage_of_every_provider_are_read() {
    for wire in Wire::ALL {
        let reply =
            Reply::stream().think("I ").think("see.").sign("s1g").say("Well, ").say("é漢").call(
                0,
                "shell",
                r#"{"command":"ls"}"#,
            );
        let reply = reply.call(1, "read_file", r#"{"path":"a"}"#).finish("tool_calls");
        let calls =
            [call("shell", r#"{"command":"ls"}"#), call("read_file", r#"{"path":"a"}"#), usage()];
        let content = match wire {
            Wire::OpenAi => {
                vec![thought("I see."), signature("openai:reasoning_content"), text("Well, é漢")]
            }
            Wire::Ollama => vec![thought("I see."), text("Well, é漢")],
            Wire::Anthropic => {
                vec![thought("I see."), signature("anthropic:s1g"), text("Well, é漢")]
            }
            // Gemini signs the part that follows its thoughts.
            Wire::Gemini => vec![thought("I see."), text("Well, é漢"), signature("gemini:s1g")],
        };
        let content = content.into_iter().chain(calls);
        let expected: Vec<_> = content.collect();
        assert_eq!(play(wire, reply.clone()).await, expected, "{wire:?}");
        for bytes in [1, 7, 100] {
            assert_eq!(
                play(wire, reply.clone().in_pieces(bytes)).await,
                expected,
                "{wire:?} in {bytes} bytes"
            );
        }
    }
}

#[tokio::test]
async fn t_l4_cut_anywhere_no_call_is_half_and_none_is_doubled() {
    let step = rounds(17, 1);
    for wire in Wire::ALL {
        let reply =
            Reply::stream().say("some text").call(0, "shell", r#"{"command":"rm -rf build"}"#);
        let unfinished = reply.body_len(wire);
        let reply = reply.finish("tool_calls");
        for at in (0..unfinished).step_by(step) {
            let events = play(wire, reply.clone().cut_after(at)).await;
            let last = events.last();
            assert!(
                matches!(last, Some(Err(ModelError::Connection { .. }))),
                "{wire:?} cut after {at}: {events:?}"
            );
            for event in events.iter().filter(|event| is_call(event)) {
                // A whole call may be reported before its answer breaks. The runner does not run
                // it.
                assert_eq!(
                    *event,
                    call("shell", r#"{"command":"rm -rf build"}"#),
                    "{wire:?} cut after {at}"
                );
            }
            assert!(
                events.iter().filter(|event| is_call(event)).count() <= 1,
                "{wire:?} cut after {at}: {events:?}"
            );
        }
    }
}

#[tokio::test]
async fn m_e6_two_hundred_calls_come_out_once_each_and_in_order() {
    for wire in Wire::ALL {
        let reply = (0..200)
            .fold(Reply::stream(), |reply, n| reply.call(n, "probe", &format!(r#"{{"n":{n}}}"#)));
        let events = play(wire, reply.finish("tool_calls")).await;
        let expected: Vec<_> =
            (0..200).map(|n| call("probe", &format!(r#"{{"n":{n}}}"#))).chain([usage()]).collect();
        assert_eq!(events, expected, "{wire:?}");
    }
}

#[tokio::test]
async fn m_e6_an_answer_cut_by_the_output_limit_is_reported() {
    for wire in Wire::ALL {
        let events = play(wire, Reply::stream().say("a").say("b").finish("length")).await;
        assert_eq!(events, [text("ab"), usage(), Ok(ModelEvent::OutputLimit)], "{wire:?}");
    }
}

/// The results of two calls, the first with two images.
fn results_with_images() -> ModelRequest {
    let image = |media_type, data: &str| Image { media_type, data: data.into() };
    let images = vec![image(ImageType::Png, "iVBO"), image(ImageType::Jpeg, "/9j/")];
    let mut request = conversation(None);
    request.messages.truncate(4);
    if let Message::Tool(result) = &mut request.messages[2] {
        Arc::make_mut(result).images = images;
    }
    request
}

#[tokio::test]
async fn m_h2_images_are_sent_as_each_provider_wants_them() {
    let title = "[The images of the tool results above, in order:]";
    let url = |url: &str| json!({"type": "image_url", "image_url": {"url": url}});
    let source = |media_type: &str, data: &str| {
        let source = json!({"type": "base64", "media_type": media_type, "data": data});
        json!({"type": "image", "source": source})
    };
    let inline =
        |mime_type: &str, data: &str| json!({"inlineData": {"mimeType": mime_type, "data": data}});
    for (wire, name, path, expected) in [
        (
            Wire::OpenAi,
            "gpt-5",
            "/messages/5",
            json!({"role": "user", "content": [
                {"type": "text", "text": title},
                url("data:image/png;base64,iVBO"),
                url("data:image/jpeg;base64,/9j/"),
            ]}),
        ),
        (
            Wire::Anthropic,
            "claude",
            "/messages/2/content/0/content",
            json!([
                {"type": "text", "text": "no"},
                source("image/png", "iVBO"),
                source("image/jpeg", "/9j/"),
            ]),
        ),
        (
            Wire::Gemini,
            "gemini-3-pro",
            "/contents/2/parts/0/functionResponse/parts",
            json!([inline("image/png", "iVBO"), inline("image/jpeg", "/9j/"),]),
        ),
        (
            Wire::Gemini,
            "gemini-2.5-pro",
            "/contents/3/parts",
            json!([
                {"text": title},
                inline("image/png", "iVBO"),
                inline("image/jpeg", "/9j/"),
            ]),
        ),
        (Wire::Ollama, "llava", "/messages/3/images", json!(["iVBO", "/9j/"])),
    ] {
        let server = ModelServer::start();
        server.reply(Reply::text(["ok"]));
        let model = named(name, wire, &server, &ModelSettings::default());
        ask(&*model, results_with_images()).await;
        server.assert_no_violations();
        let body = server.request(0).body;
        assert_eq!(body.pointer(path), Some(&expected), "{wire:?} {name}: {body}");
    }
}

#[tokio::test]
async fn m_e6_a_conversation_is_sent_as_the_strictest_server_wants_it() {
    for wire in Wire::ALL {
        for signature in [
            None,
            Some("anthropic:s1g"),
            Some("anthropic-redacted:d4ta"),
            Some("gemini:s1g"),
            Some("?"),
        ] {
            let server = ModelServer::start();
            server.reply(Reply::text(["ok"]));
            let events = ask(&*model(wire, &server), conversation(signature)).await;
            server.assert_no_violations();
            assert_eq!(events, [text("ok"), usage()], "{wire:?} {signature:?}");
        }
    }
}

#[tokio::test]
async fn m_e6_signed_thoughts_are_sent_back_unchanged_and_only_to_their_model() {
    let server = ModelServer::start();
    server.answer(|_| Reply::text(["ok"]));
    let thoughts = |body: &Value| body["messages"][1]["content"][0].clone();
    let anthropic = model(Wire::Anthropic, &server);
    for (signature, sent) in [
        ("anthropic:s1g", json!({"type": "thinking", "thinking": "hm", "signature": "s1g"})),
        ("anthropic-redacted:d4ta", json!({"type": "redacted_thinking", "data": "d4ta"})),
        ("gemini:s1g", json!({"type": "text", "text": "let me look"})),
    ] {
        let n = server.requests().len();
        ask(&*anthropic, conversation(Some(signature))).await;
        assert_eq!(thoughts(&server.request(n).body), sent);
    }

    // Gemini signs calls, too.
    let call = json!({"functionCall": {"name": "shell", "args": {}}, "thoughtSignature": "c4ll"});
    server.reply(
        Reply::stream()
            .event(&holdpoint_tests::model_server::gemini::chunk(&call).to_string())
            .finish("stop"),
    );
    let gemini = named("gemini-3-pro", Wire::Gemini, &server, &ModelSettings::default());
    let events = ask(&*gemini, hello()).await;
    let signature = Some("gemini:c4ll".to_owned());
    assert_eq!(
        events[0],
        Ok(ModelEvent::Call {
            id: None,
            name: "shell".into(),
            arguments: "{}".into(),
            signature: signature.clone()
        })
    );
    let called = ToolCall {
        id: CallId(1),
        provider_id: None,
        name: "shell".into(),
        input: json!({}),
        signature,
    };
    let mut request = hello();
    request.messages.extend([
        Message::Assistant(
            AssistantMessage { calls: vec![called], ..AssistantMessage::default() }.into(),
        ),
        Message::Tool(ToolResult::not_run(CallId(1), ToolStatus::Ok, "done").into()),
    ]);
    let n = server.requests().len();
    ask(&*gemini, request).await;
    let contents = server.request(n).body["contents"].clone();
    assert_eq!(
        contents[1]["parts"][0],
        json!({"functionCall": {"id": "c00000001", "name": "shell", "args": {}}, "thoughtSignature": "c4ll"})
    );
    assert_eq!(
        contents[2]["parts"][0],
        json!({"functionResponse": {"id": "c00000001", "name": "shell", "response": {"output": "done"}}})
    );
    server.assert_no_violations();
}

#[tokio::test]
async fn m_e6_anthropic_requests_mark_the_last_two_turns_for_the_cache() {
    let server = ModelServer::start();
    server.reply(Reply::text(["ok"]));
    ask(&*model(Wire::Anthropic, &server), conversation(None)).await;
    let body = server.request(0).body;
    let marker = json!({"type": "ephemeral"});
    assert_eq!(body["system"][0]["cache_control"], marker);
    let messages = body["messages"].as_array().unwrap();
    let marked = |content: &Value| content["cache_control"] == marker;
    let marked: Vec<_> = messages
        .iter()
        .map(|message| message["content"].as_array().unwrap().iter().any(marked))
        .collect();
    // The user's last two turns: one to write to the cache, and one to find in it.
    assert_eq!(marked, [false, false, true, false, true]);
}

#[tokio::test]
async fn t_l3_a_refusal_has_the_providers_message_without_the_key() {
    for wire in Wire::ALL {
        let server = ModelServer::start();
        let body = r#"{"type":"error","error":{"type":"invalid_request_error","message":"too long, sk-very-secret"}}"#;
        server.reply(Reply::status(413, &[], body));
        let events = ask(&*model(wire, &server), hello()).await;
        let refused =
            ModelError::Refused { status: 413, message: "too long, ***".into(), retry_after: None };
        assert_eq!(events, [Err(refused)], "{wire:?}");
        assert_eq!(server.requests().len(), 1, "{wire:?}");
    }
}

#[tokio::test]
async fn t_l1_retry_after_is_read_in_all_its_forms() {
    for (headers, expected) in [
        (vec![("retry-after", "0")], Some(Duration::ZERO)),
        (vec![("retry-after", "7")], Some(Duration::from_secs(7))),
        (vec![("retry-after", " 3600 ")], Some(Duration::from_secs(3600))),
        (vec![("retry-after", "-1")], None),
        (vec![("retry-after", "soon")], None),
        (vec![("retry-after", "NaN")], None),
        (vec![("retry-after-ms", "1500"), ("retry-after", "9")], Some(Duration::from_millis(1500))),
        (
            vec![
                ("date", "Fri, 20 Nov 2026 10:00:00 GMT"),
                ("retry-after", "Fri, 20 Nov 2026 10:01:30 GMT"),
            ],
            Some(Duration::from_secs(90)),
        ),
        (
            vec![
                ("date", "Fri, 20 Nov 2026 10:00:00 GMT"),
                ("retry-after", "Fri, 20 Nov 2026 09:00:00 GMT"),
            ],
            Some(Duration::ZERO),
        ),
    ] {
        let server = ModelServer::start();
        server.reply(Reply::status(429, &headers, "{}"));
        let events = ask(&*model(Wire::Anthropic, &server), hello()).await;
        let Err(ModelError::Refused { status: 429, retry_after, .. }) = &events[0] else {
            panic!("{events:?}")
        };
        assert_eq!(*retry_after, expected, "{headers:?}");
    }
}

#[tokio::test]
async fn t_l2_an_error_in_the_middle_says_whether_it_passes() {
    let overloaded = json!({"type": "error", "error": {"type": "overloaded_error", "message": "busy, sk-very-secret"}});
    let broken =
        json!({"type": "error", "error": {"type": "invalid_request_error", "message": "no"}});
    let events =
        play(Wire::Anthropic, Reply::stream().say("a").event(&overloaded.to_string()).end()).await;
    assert_eq!(events, [text("a"), Err(ModelError::Unavailable { message: "busy, ***".into() })]);
    let events =
        play(Wire::Anthropic, Reply::stream().say("a").event(&broken.to_string()).end()).await;
    assert_eq!(events, [text("a"), Err(ModelError::Failed { message: "no".into() })]);

    let gemini = json!({"error": {"code": 503, "status": "UNAVAILABLE", "message": "busy"}});
    let events =
        play(Wire::Gemini, Reply::stream().say("a").event(&gemini.to_string()).end()).await;
    assert!(matches!(&events[1], Err(ModelError::Refused { status: 503, .. })), "{events:?}");
    let ollama = json!({"error": "the model ran out of memory"});
    let events =
        play(Wire::Ollama, Reply::stream().say("a").event(&ollama.to_string()).end()).await;
    assert_eq!(
        events[1],
        Err(ModelError::Failed { message: "the model ran out of memory".into() })
    );
}

#[tokio::test]
async fn m_e6_an_endless_event_is_a_bounded_error() {
    for wire in Wire::ALL {
        // One endless event: at 100 MiB the server would have written all of it.
        let line = vec![b'x'; 1024 * 1024];
        let begun = Reply::stream().bytes("data: ");
        let endless = (0..100).fold(begun, |reply, _| reply.bytes(line.clone()));
        let events = play(wire, endless.end()).await;
        let Some(Err(ModelError::Malformed { message })) = events.last() else {
            panic!("{wire:?}: {events:?}")
        };
        assert!(message.contains("larger than 4194304 bytes"), "{wire:?}: {message}");
    }
}

#[tokio::test]
async fn m_e6_deviations_of_anthropic_are_read_or_are_errors() {
    let server = holdpoint_tests::model_server::anthropic::start().to_string();
    let start = || Reply::stream().event(&server);
    let delta = |index: u64, delta: Value| {
        json!({"type": "content_block_delta", "index": index, "delta": delta}).to_string()
    };
    let open = |index: u64, block: Value| {
        json!({"type": "content_block_start", "index": index, "content_block": block}).to_string()
    };
    let stop = |index: u64| json!({"type": "content_block_stop", "index": index}).to_string();
    let tool = || json!({"type": "tool_use", "id": "x", "name": "shell", "input": {}});

    let skipped =
        start().event(&delta(0, json!({"type": "text_delta", "text": "a"}))).finish("stop");
    assert_eq!(
        play(Wire::Anthropic, skipped).await,
        [text("a"), usage()],
        "no content_block_start"
    );

    let pings = Reply::stream()
        .say("a")
        .bytes(": keep-alive\n\n")
        .event(r#"{"type":"ping"}"#)
        .say("b")
        .finish("stop");
    assert_eq!(play(Wire::Anthropic, pings).await, [text("ab"), usage()], "pings");

    let whole = json!({"type": "tool_use", "id": "x", "name": "shell", "input": {"command": "ls"}});
    let whole = start().event(&open(0, whole)).event(&stop(0)).finish("tool_calls");
    assert_eq!(
        play(Wire::Anthropic, whole).await,
        [call("shell", r#"{"command":"ls"}"#), usage()],
        "input at the start"
    );

    let none = start().event(&open(0, tool())).event(&stop(0)).finish("tool_calls");
    assert_eq!(play(Wire::Anthropic, none).await, [call("shell", "{}"), usage()], "no input");

    let broken = start()
        .event(&open(0, tool()))
        .event(&delta(0, json!({"type": "input_json_delta", "partial_json": "{\"command\": ls"})))
        .event(&stop(0))
        .finish("tool_calls");
    assert_eq!(
        play(Wire::Anthropic, broken).await,
        [call("shell", "{\"command\": ls"), usage()],
        "no JSON"
    );

    let redacted = json!({"type": "redacted_thinking", "data": "d4ta"});
    let redacted = start()
        .event(&open(0, redacted))
        .event(&stop(0))
        .event(&open(1, json!({"type": "text", "text": ""})))
        .event(&delta(1, json!({"type": "text_delta", "text": "b"})))
        .event(&stop(1))
        .finish("stop");
    let events = play(Wire::Anthropic, redacted).await;
    assert_eq!(
        events,
        [signature("anthropic-redacted:d4ta"), text("b"), usage()],
        "withheld thoughts"
    );

    let events = play(Wire::Anthropic, Reply::stream().say("a").finish("refusal")).await;
    assert!(
        matches!(&events[2], Err(ModelError::Failed { message }) if message.contains("filter")),
        "{events:?}"
    );
}

#[tokio::test]
async fn m_e6_deviations_of_gemini_and_ollama_are_read_or_are_errors() {
    let events = play(Wire::Gemini, Reply::stream().finish("MALFORMED_FUNCTION_CALL")).await;
    assert!(
        matches!(events.last(), Some(Err(ModelError::Failed { message })) if message.contains("MALFORMED_FUNCTION_CALL")),
        "{events:?}"
    );
    let events = play(Wire::Gemini, Reply::stream().say("a").finish("SAFETY")).await;
    assert!(
        matches!(events.last(), Some(Err(ModelError::Failed { message })) if message.contains("filter"))
    );
    let blocked = json!({"promptFeedback": {"blockReason": "SAFETY"}}).to_string();
    let events = play(Wire::Gemini, Reply::stream().event(&blocked).end()).await;
    assert!(matches!(events.last(), Some(Err(ModelError::Failed { .. }))), "{events:?}");

    let inline =
        Reply::stream().say("<thi").say("nk>I ").say("see</thi").say("nk>\n\nWell").finish("stop");
    assert_eq!(
        play(Wire::Ollama, inline).await,
        [thought("I see"), text("Well"), usage()],
        "thoughts between tags"
    );
    let unended = Reply::stream()
        .say("a")
        .bytes(holdpoint_tests::model_server::ollama::finish("stop").to_string())
        .end();
    assert_eq!(
        play(Wire::Ollama, unended).await,
        [text("a"), usage()],
        "a last line without an end"
    );
    let record = json!({"role": "assistant", "tool_calls": [{"function": {"name": "shell", "arguments": "{\"n\":1}"}}]});
    let textual = Reply::stream()
        .event(&holdpoint_tests::model_server::ollama::record(&record).to_string())
        .finish("stop");
    assert_eq!(
        play(Wire::Ollama, textual).await,
        [call("shell", r#"{"n":1}"#), usage()],
        "arguments as text"
    );
}
