//! Servers over streamable HTTP that we did not write.

use std::fs;
use std::path::Path;

use holdpoint_common::{AskRequest, McpServer, QuestionReply, QuestionResponse};
use holdpoint_tools::testing::{Bench, Calling, rounds};
use holdpoint_tools::{AskReply, ToolError};
use serde_json::json;

use super::http_server::HttpServer;
use super::session::Session;

/// Answers the fields of a question.
fn reply(calling: &Calling, answer: impl Fn(&str) -> Option<&'static str>) {
    let AskRequest::Question(request) = calling.wait_asked() else { panic!("not a question") };
    assert_eq!(request.tool_name, "MCP server s");
    let replies = request.questions.iter().map(|question| {
        let id = question.id.clone();
        QuestionReply { answer: answer(&id).map(str::to_owned), id }
    });
    let replies = QuestionResponse::Replied { replies: replies.collect() };
    calling.answer(AskReply::Question(replies));
}

/// Calls tools of `server-everything`.
fn call_everything(settings: McpServer) {
    let mut session = Session::of(settings);
    let names = session.names();
    for tool in ["echo", "get-sum", "get-tiny-image", "get-structured-content"] {
        assert!(names.contains(&format!("mcp__s__{tool}")), "{tool}: {names:?}");
    }
    assert_eq!(session.output("echo", json!({"message": "hold"})), "Echo: hold\n");
    let long = session.output("trigger-long-running-operation", json!({"duration": 1, "steps": 4}));
    for step in 1..4 {
        assert!(long.contains(&format!("[{step}/4]\n")), "{long}");
    }
    assert!(long.trim_end().ends_with("Duration: 1 seconds, Steps: 4."), "{long}");
    let calling = session.start("mcp__s__trigger-elicitation-request", json!({}));
    reply(&calling, |id| match id {
        "name" => Some("Ada"),
        "check" => Some("true"),
        _ => None,
    });
    let called = calling.wait();
    assert!(called.output.contains("- Name: Ada"), "{}", called.output);
    session.end();
}

#[test]
fn m_h2_server_everything_is_called_over_http() {
    let server = HttpServer::everything("streamableHttp");
    call_everything(server.settings());
}

#[test]
fn m_h2_server_everything_is_called_over_http_with_sse() {
    let server = HttpServer::everything("sse");
    call_everything(server.sse_settings());
}

#[test]
fn m_h2_a_cut_cancels_a_call_over_http_and_later_calls_work() {
    let server = HttpServer::everything("streamableHttp");
    let mut session = Session::of(server.settings());
    session.names();
    for _ in 0..rounds(10, 300) {
        let long = json!({"duration": 600, "steps": 6000});
        let calling = session.start("mcp__s__trigger-long-running-operation", long);
        calling.wait_for("[1/6000]");
        calling.cut();
        let called = calling.wait();
        assert!(matches!(called.result, Err(ToolError::Interrupted)), "{called:?}");
        assert_eq!(called.processes.total(), 0);
        assert_eq!(session.output("echo", json!({"message": "on"})), "Echo: on\n");
    }
    session.end();
}

#[test]
fn m_h2_a_server_of_the_modern_era_is_called_over_http() {
    let server = HttpServer::modern();
    let mut session = Session::of(server.settings());
    assert_eq!(session.names(), ["mcp__s__add", "mcp__s__question", "mcp__s__slow"]);
    let sum = session.output("add", json!({"a": 40, "b": 2}));
    assert!(sum.starts_with("42\n"), "{sum}");
    let slow = session.output("slow", json!({"steps": 3}));
    assert!(slow.contains("[2/3] step 2\n") && slow.contains("finished"), "{slow}");
    session.end();
}

#[test]
fn m_h2_server_filesystem_is_called_over_http_through_a_bridge() {
    let (folder, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let server = HttpServer::filesystem(folder.path());
    let bench = Bench::within(folder.path().canonicalize().unwrap());
    let mut session = Session::with(bench, None, [("s", server.settings())]);
    let names = session.names();
    assert!(names.contains(&"mcp__s__read_text_file".to_owned()), "{names:?}");
    let root = session.bench.root().to_owned();
    let write = |session: &mut Session, folder: &Path| {
        let input = json!({"path": folder.join("new"), "content": "by a server"});
        session.call("mcp__s__write_file", input)
    };
    let called = write(&mut session, &root);
    assert!(!called.result.unwrap().failed, "{}", called.output);
    assert_eq!(fs::read_to_string(root.join("new")).unwrap(), "by a server");
    let read = session.output("read_text_file", json!({"path": root.join("new")}));
    assert!(read.contains("by a server"), "{read}");
    let called = write(&mut session, outside.path());
    assert!(called.result.unwrap().failed, "{}", called.output);
    assert!(!outside.path().join("new").exists());
    session.end();
}
