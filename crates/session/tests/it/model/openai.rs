//! `openai/NAME` against a real server: every deviation of the wire is read correctly or is an
//! error that names the fault.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use holdpoint_common::{
    AssistantMessage, Block, BlockKind, CallId, ItemId, ModelSettings, ToolCall, ToolResult,
    ToolStatus, Usage,
};
use holdpoint_session::model::{
    Access, Message, Model, ModelError, ModelEvent, ModelRequest, ModelStream, Provider,
};
use holdpoint_tests::model_answer::{self, AnswerItem, call, signature, text, thought, usage};
use holdpoint_tests::model_server::{ModelServer, Reply, Wire, openai};
use holdpoint_tests::world::KEY;
use holdpoint_tools::ToolSpec;
use serde_json::json;

fn model(server: &ModelServer) -> Arc<dyn Model> {
    model_at(KEY, &server.base_url())
}

fn model_at(key: &str, base_url: &str) -> Arc<dyn Model> {
    let access = Access { key: key.into(), base_url: base_url.into(), ..Access::default() };
    Provider::OpenAi.model("scripted", &access, &ModelSettings::default()).unwrap()
}

fn request() -> ModelRequest {
    ModelRequest {
        system: "Be brief.".into(),
        messages: vec![Message::User("hello".into())],
        tools: Arc::new([]),
    }
}

fn ask(server: &ModelServer) -> ModelStream {
    model(server).stream(&request())
}

/// The events of one reply.
async fn play(reply: Reply) -> Vec<AnswerItem> {
    model_answer::play(Wire::OpenAi, reply).await
}

fn is_estimate(event: &AnswerItem) -> bool {
    matches!(event, Ok(ModelEvent::Usage(Usage { estimated: true, .. })))
}

#[tokio::test]
async fn text_thoughts_calls_and_usage_are_read() {
    let reply = Reply::stream().think("I ").think("see.").say("Well, ").say("é漢").call(
        0,
        "shell",
        r#"{"command":"ls"}"#,
    );
    let reply = reply.call(1, "read_file", r#"{"path":"a"}"#).finish("tool_calls");
    let expected = [
        thought("I see."),
        signature("openai:reasoning_content"),
        text("Well, é漢"),
        call("shell", r#"{"command":"ls"}"#),
        call("read_file", r#"{"path":"a"}"#),
        usage(),
    ];
    assert_eq!(play(reply.clone()).await, expected);
    for bytes in [1, 7, 100] {
        assert_eq!(
            play(reply.clone().in_pieces(bytes)).await,
            expected,
            "in pieces of {bytes} bytes"
        );
    }
}

#[tokio::test]
async fn odd_calls_are_read_or_are_errors() {
    let one = [call("shell", r#"{"command":"ls"}"#), usage()];
    let calls = |calls: serde_json::Value| Reply::stream().delta(&json!({ "tool_calls": calls }));
    let arguments = r#"{"command":"ls"}"#;

    let whole = calls(
        json!([{"index": 0, "id": "x", "type": "function", "function": {"name": "shell", "arguments": arguments}}]),
    );
    assert_eq!(play(whole.finish("tool_calls")).await, one, "a whole call in one delta");

    let whole = calls(
        json!([{"id": "x", "type": "function", "function": {"name": "shell", "arguments": arguments}}]),
    );
    assert_eq!(play(whole.clone().finish("tool_calls")).await, one, "no index");
    assert_eq!(play(whole.finish("stop")).await, one, "no index, and the wrong finish reason");

    let object = calls(
        json!([{"index": 0, "id": "x", "function": {"name": "shell", "arguments": {"command": "ls"}}}]),
    );
    assert_eq!(play(object.finish("tool_calls")).await, one, "arguments as an object");

    let no_id = calls(json!([{"index": 0, "function": {"name": "shell", "arguments": arguments}}]));
    assert_eq!(play(no_id.finish("tool_calls")).await, one, "no id at all");

    let repeated = calls(json!([{"index": 0, "id": "x", "function": {"name": "shell", "arguments": r#"{"comm"#}}]))
        .delta(&json!({"tool_calls": [{"index": 0, "id": "x", "function": {"name": "shell", "arguments": r#"and":"ls"}"#}}]}));
    let events = play(repeated.finish("tool_calls")).await;
    assert_eq!(events, one, "id and name in every fragment");

    let unindexed =
        calls(json!([{"id": "x", "function": {"name": "shell", "arguments": r#"{"comm"#}}]))
            .delta(&json!({"tool_calls": [{"function": {"arguments": r#"and":"ls"}"#}}]}));
    assert_eq!(play(unindexed.finish("tool_calls")).await, one, "id only once and no index");

    let same_index = calls(json!([{"index": 0, "id": "x", "function": {"name": "shell", "arguments": arguments}}]))
        .delta(&json!({"tool_calls": [{"index": 0, "id": "y", "function": {"name": "shell", "arguments": "{\"command\":\"pwd\"}"}}]}));
    let two = [one[0].clone(), call("shell", r#"{"command":"pwd"}"#), usage()];
    assert_eq!(play(same_index.finish("tool_calls")).await, two, "two calls under one index");

    let empty =
        calls(json!([{"index": 0, "id": "x", "function": {"name": "now", "arguments": ""}}]));
    assert_eq!(
        play(empty.finish("tool_calls")).await,
        [call("now", "{}"), usage()],
        "no arguments"
    );

    let broken = calls(
        json!([{"index": 0, "id": "x", "function": {"name": "shell", "arguments": "{\"command\": ls"}}]),
    );
    assert_eq!(
        play(broken.finish("tool_calls")).await,
        [call("shell", "{\"command\": ls"), usage()],
        "arguments that are no JSON come as they were written"
    );
}

#[tokio::test]
async fn odd_ends_are_read_or_are_errors() {
    let two_pieces = || Reply::stream().say("a").say("b");
    let finish = openai::finish("stop").to_string();

    let events = play(two_pieces().event(&finish).end()).await;
    assert!(
        events[0] == text("ab") && is_estimate(&events[1]) && events.len() == 2,
        "no [DONE], no usage: {events:?}"
    );

    let events =
        play(two_pieces().event(&finish).event(&openai::usage(11, 7).to_string()).end()).await;
    assert_eq!(events, [text("ab"), usage()], "no [DONE]");

    let events =
        play(two_pieces().event(&openai::finish("").to_string()).event("[DONE]").end()).await;
    assert!(
        events[0] == text("ab") && is_estimate(&events[1]),
        "an empty finish reason: {events:?}"
    );

    let events = play(two_pieces().event("[DONE]").end()).await;
    assert!(events[0] == text("ab") && is_estimate(&events[1]), "no finish reason: {events:?}");

    let events =
        play(two_pieces().event(&openai::finish("because").to_string()).event("[DONE]").end())
            .await;
    assert!(
        events[0] == text("ab") && is_estimate(&events[1]),
        "an unknown finish reason: {events:?}"
    );

    let events = play(
        two_pieces().event(&openai::finish("content_filter").to_string()).event("[DONE]").end(),
    )
    .await;
    assert!(
        matches!(&events[2], Err(ModelError::Failed { message }) if message.contains("filter")),
        "{events:?}"
    );

    let comments = Reply::stream()
        .bytes(": keep-alive\n\n")
        .say("a")
        .bytes(": ping\r\n\r\n")
        .say("b")
        .finish("stop");
    assert_eq!(play(comments).await, [text("ab"), usage()], "comments");

    let fields = Reply::stream()
        .delta(&json!({"role": "assistant", "content": ""}))
        .delta(&json!({"role": "assistant", "content": null, "reasoning": "r"}))
        .delta(&json!({"content": "t", "tool_calls": [], "some_field_of_theirs": {"x": 1}}))
        .finish("stop");
    assert_eq!(
        play(fields).await,
        [thought("r"), signature("openai:reasoning"), text("t"), usage()],
        "other fields"
    );
}

#[tokio::test]
async fn a_stream_cut_anywhere_is_an_error_and_no_call_is_half() {
    let reply = Reply::stream()
        .say("some text")
        .call(0, "shell", r#"{"command":"rm -rf build"}"#)
        .finish("tool_calls");
    // Up to the chunk with the finish reason; later chunks only report usage.
    let finished = reply.body_len(Wire::OpenAi)
        - openai::usage(11, 7).to_string().len()
        - "data: \n\ndata: [DONE]\n\n".len();
    for at in (0..finished).step_by(13) {
        let events = play(reply.clone().cut_after(at)).await;
        assert!(
            matches!(events.last(), Some(Err(ModelError::Connection { .. }))),
            "cut after {at}: {events:?}"
        );
        let calls =
            events.iter().filter(|event| matches!(event, Ok(ModelEvent::Call { .. }))).count();
        assert_eq!(calls, 0, "cut after {at}: {events:?}");
    }
}

#[tokio::test]
async fn an_error_in_the_middle_is_reported_without_the_key() {
    let body = json!({"error": {"message": format!("overloaded, {KEY}"), "type": "server_error"}})
        .to_string();
    let events = play(Reply::stream().say("a").say("b").event(&body).end()).await;
    assert_eq!(
        events,
        [text("ab"), Err(ModelError::Unavailable { message: "overloaded, ***".into() })]
    );

    let events = play(Reply::stream().say("a").event("{no json").say("b").finish("stop")).await;
    assert!(matches!(events.last(), Some(Err(ModelError::Malformed { .. }))), "{events:?}");

    let events = play(Reply::status(200, &[("content-type", "text/html")], "<html>")).await;
    assert_eq!(
        events,
        [Err(ModelError::Malformed {
            message: "it is not an event stream but `text/html`".into()
        })]
    );
    for body in [r#"{"odd":1}"#, "[]", r#"{"detail":"no"}"#] {
        let events = play(Reply::status(200, &[], body)).await;
        assert!(matches!(events[..], [Err(ModelError::Failed { .. })]), "{body}: {events:?}");
    }
}

#[tokio::test]
async fn refusals_are_reported_once_and_not_retried() {
    let server = ModelServer::start();
    let body = r#"{"error":{"message":"slow down sk-very-secret"}}"#;
    for (status, headers, retry_after) in [
        (429, vec![("retry-after", "7")], Some(Duration::from_secs(7))),
        (503, vec![("retry-after-ms", "1500")], Some(Duration::from_millis(1500))),
        (401, vec![], None),
        (307, vec![("location", "http://127.0.0.1:1/v1")], None),
    ] {
        server.reply(Reply::status(status, &headers, body));
        let events: Vec<_> = ask(&server).collect().await;
        let message = "slow down ***".to_owned();
        assert_eq!(events, [Err(ModelError::Refused { status, message, retry_after })]);
    }
    server.reply(Reply::refuse());
    let events: Vec<_> = ask(&server).collect().await;
    assert!(matches!(&events[..], [Err(ModelError::Connection { .. })]), "{events:?}");
    assert_eq!(server.requests().len(), 5, "each was sent once");

    let nobody = model_at(KEY, "http://127.0.0.1:1/v1");
    let events: Vec<_> = nobody.stream(&request()).collect().await;
    let Err(ModelError::Connection { message }) = &events[0] else { panic!("{events:?}") };
    assert!(message.contains("refused") && message.ends_with(" (http://127.0.0.1:1)"), "{message}");
}

#[tokio::test]
async fn dropping_the_stream_ends_the_connection() {
    for reply in [
        Reply::no_headers(),
        Reply::silence(),
        Reply::stream().say("a").hang(),
        Reply::flood(50_000_000),
    ] {
        let server = ModelServer::start();
        server.reply(reply);
        let mut stream = ask(&server);
        // Wait for the request or for the first event.
        let mut pending = Box::pin(async { stream.next().await });
        tokio::select! {
            _ = &mut pending => {}
            () = async { while server.requests().is_empty() { tokio::task::yield_now().await } } => {}
        }
        drop(pending);
        drop(stream);
        // The answer never ends by itself.
        tokio::task::spawn_blocking(move || server.dropped(0)).await.unwrap();
    }
}

#[tokio::test]
async fn a_held_stream_continues_when_the_gate_opens() {
    let server = ModelServer::start();
    let gate = server.gate();
    server.reply(Reply::stream().say("a").say("b").gate(&gate).say("c").finish("stop"));
    let mut stream = ask(&server);
    let mut received = String::new();
    while received != "ab" {
        let Some(Ok(ModelEvent::Text(piece))) = stream.next().await else {
            panic!("the text ended at {received:?}")
        };
        received.push_str(&piece);
    }
    gate.open();
    assert_eq!(stream.next().await, Some(text("c")));
}

#[tokio::test]
async fn a_conversation_is_sent_as_a_strict_server_wants_it() {
    let server = ModelServer::start();
    server.reply(Reply::text(["ok"]));
    let block = |kind, text: &str| Block {
        item: ItemId(1),
        kind,
        text: text.into(),
        signature: None,
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
        blocks: vec![block(BlockKind::Thought, "hm"), block(BlockKind::Text, "let me look")],
        calls: vec![called(4, "shell"), called(5, "read_file")],
        ..AssistantMessage::default()
    };
    let only_thought = AssistantMessage {
        blocks: vec![block(BlockKind::Thought, "hm")],
        ..AssistantMessage::default()
    };
    let messages = vec![
        Message::User("first".into()),
        Message::Assistant(answer.into()),
        Message::Tool(ToolResult::not_run(CallId(4), ToolStatus::Denied, "no").into()),
        Message::Tool(ToolResult::not_run(CallId(5), ToolStatus::Ok, "").into()),
        Message::Assistant(only_thought.into()),
        Message::User("second".into()),
    ];
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
    let spec = |name: &str| ToolSpec {
        name: name.into(),
        description: "does it".into(),
        schema: schema.clone(),
    };
    let tools = [spec("shell"), spec("read_file")].map(Arc::new).into();
    let events: Vec<_> = model(&server)
        .stream(&ModelRequest { system: "Be brief.".into(), messages, tools })
        .collect()
        .await;
    server.assert_no_violations();
    assert_eq!(events.last(), Some(&usage()));

    let request = server.request(0);
    assert_eq!(request.header("authorization"), Some("Bearer sk-very-secret"));
    let function = |id: u32, name: &str| {
        json!({"id": format!("c0000000{id}"), "type": "function",
               "function": {"name": name, "arguments": format!("{{\"n\":{id}}}")}})
    };
    assert_eq!(
        request.body["messages"],
        json!([
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "first"},
            {"role": "assistant", "content": "let me look", "tool_calls": [function(4, "shell"), function(5, "read_file")]},
            {"role": "tool", "tool_call_id": "c00000004", "content": "no"},
            {"role": "tool", "tool_call_id": "c00000005", "content": "(no output)"},
            {"role": "user", "content": "second"},
        ])
    );
    assert_eq!(request.body["tools"][1]["function"]["parameters"], schema);
    assert_eq!(request.body["stream_options"], json!({"include_usage": true}));
}

#[tokio::test]
async fn without_a_key_none_is_sent() {
    let server = ModelServer::start();
    server.reply(Reply::text(["ok"]));
    let model = model_at("", &server.base_url());
    assert_eq!(model.stream(&request()).next().await, Some(text("ok")));
    assert_eq!(server.request(0).header("authorization"), None);
}
