//! Servers over HTTP that misbehave: each costs its own calls.

use std::fs;

use holdpoint_common::McpServer;
use holdpoint_tools::ToolError;
use holdpoint_tools::mcp::MAX_SESSION_TOOLS;
use holdpoint_tools::testing::Bench;
use serde_json::json;
use tempfile::NamedTempFile;

use super::http_server::HttpServer;
use super::session::{GRACE, Session, bad};

/// A session with a server over HTTP, `s`, and a program, `good`.
fn beside_a_good_one(settings: McpServer) -> Session {
    Session::with(Bench::new(), None, [("s", settings), ("good", bad("none"))])
}

/// Checks that the other server still works.
fn good_still_works(session: &mut Session) {
    assert_eq!(session.call("mcp__good__work", json!({})).output, "worked {} \n");
}

/// A file to which a server writes its log.
fn log() -> (NamedTempFile, String) {
    let file = NamedTempFile::new().unwrap();
    let path = file.path().to_str().unwrap().to_owned();
    (file, path)
}

/// Waits until the log of a server has a line that begins like this.
fn wait_logged(path: &str, begin: &str) -> String {
    loop {
        let text = fs::read_to_string(path).unwrap();
        if let Some(line) = text.lines().find(|line| line.starts_with(begin)) {
            return line.to_owned();
        }
        std::thread::yield_now();
    }
}

#[test]
fn m_h2_an_address_that_does_not_answer_is_reported_once_with_a_hint() {
    for (kind, why) in [
        ("start-500", "it answered with HTTP 500"),
        ("start-html", "its answer is of the type `text/html`, not JSON or a stream of events"),
        ("start-silent", "it did not answer within 1 s"),
        ("needs-key", "it requires authorization (HTTP 401); set a key in `headers`"),
        ("huge-list", "it sent a message of more than 16777216 bytes"),
    ] {
        let server = HttpServer::bad(kind, &[]);
        let startup_s = if kind == "start-silent" { 1 } else { 60 };
        let mut session = beside_a_good_one(McpServer { startup_s, ..server.settings() });
        let notices = session.step();
        assert_eq!(notices.len(), 1, "{kind}: {notices:?}");
        assert!(notices[0].starts_with("MCP server `s`: "), "{kind}: {notices:?}");
        assert!(notices[0].contains(why), "{kind}: {notices:?}");
        assert_eq!(session.names(), ["mcp__good__work"], "{kind}");
        good_still_works(&mut session);
        session.end();
    }
}

#[test]
fn m_h2_an_address_that_can_not_be_reached_is_reported_with_a_hint() {
    let server = HttpServer::bad("none", &[]);
    let settings = server.settings();
    drop(server);
    let notices = beside_a_good_one(settings.clone()).step();
    let why = "it can't be reached: Connection refused";
    assert!(notices[0].contains(why) && notices[0].contains("check its address"), "{notices:?}");
    let settings = McpServer { problem: Some("no key".to_owned()), ..settings };
    let notices = Session::of(settings).step();
    assert_eq!(notices, ["MCP server `s`: no key"]);
}

#[test]
fn m_h2_an_answer_over_http_without_a_message_costs_its_own_call() {
    for (kind, why) in [
        ("endless-header", "the connection broke off: "),
        ("endless-line", "it closed the connection before the result came"),
        ("endless-json", "it sent a message of more than 16777216 bytes"),
        ("garbage-json", "its answer is not a message: "),
        ("garbage-events", "it closed the connection before the result came"),
        ("error-500", "it answered with HTTP 500"),
        ("error-400", "it answered with HTTP 400 Bad Request: no luck with ***"),
        ("redirect-loop", "it redirects to another address"),
        ("closes-mid-event", "it closed the connection before the result came"),
        // It is not unpacked.
        ("gzip", "its answer is not a message: "),
    ] {
        let server = HttpServer::bad(kind, &[]);
        let headers = [("Authorization".to_owned(), "Bearer right-key".to_owned())].into();
        let settings = McpServer { headers, timeout_s: 20, ..server.settings() };
        let mut session = beside_a_good_one(settings);
        assert_eq!(session.names(), ["mcp__good__work", "mcp__s__work"], "{kind}");
        for _ in 0..2 {
            let error = session.error("work");
            assert!(error.starts_with("MCP server `s`: "), "{kind}: {error}");
            assert!(error.contains(why), "{kind}: {error}");
            assert!(!error.contains("right-key"), "{kind}: {error}");
        }
        good_still_works(&mut session);
        session.end();
    }
}

#[test]
fn m_h2_requests_of_a_server_over_http_are_bounded() {
    let server = HttpServer::bad("requests", &[]);
    let mut session = beside_a_good_one(McpServer { timeout_s: 10, ..server.settings() });
    session.names();
    // Answers are sent one after the other, and the server does not wait for them.
    let error = session.error("work");
    assert!(error.contains("it sent more than 64 requests without waiting"), "{error}");
    good_still_works(&mut session);
    session.end();
}

#[test]
fn m_h2_a_list_of_tools_over_http_is_bounded() {
    let server = HttpServer::bad("many-tools", &[]);
    let mut session = Session::of(server.settings());
    assert!(session.step()[0].contains("tools are left out, such as `tool256`"));
    assert_eq!(session.names().len(), MAX_SESSION_TOOLS);
}

#[test]
fn m_h2_a_cut_sends_the_cancel_and_closes_the_connection() {
    for kind in ["never-answers", "streams-and-waits"] {
        let (_file, path) = log();
        let server = HttpServer::bad(kind, &[&path]);
        let mut session = beside_a_good_one(server.settings());
        session.names();
        let calling = session.start("mcp__s__work", json!({}));
        match kind {
            "never-answers" => drop(wait_logged(&path, "called")),
            _ => calling.wait_for("at work"),
        }
        calling.cut();
        let called = calling.wait();
        assert!(matches!(called.result, Err(ToolError::Interrupted)), "{called:?}");
        assert!(called.output.contains("may still work on it"), "{called:?}");
        assert_eq!(called.processes.total(), 0);
        wait_logged(&path, "closed");
        let cancel = wait_logged(&path, "message notifications/cancelled");
        assert!(cancel.contains("the user has interrupted the turn"), "{cancel}");
        good_still_works(&mut session);
        session.end();
        wait_logged(&path, "deleted");
    }
}

#[test]
fn m_h2_a_call_over_http_ends_at_its_time_limit() {
    let (_file, path) = log();
    let server = HttpServer::bad("never-answers", &[&path]);
    let mut session = beside_a_good_one(McpServer { timeout_s: 1, ..server.settings() });
    session.names();
    let called = session.call("mcp__s__work", json!({}));
    let error = called.result.unwrap_err().to_string();
    assert_eq!(error, "MCP server `s`: no answer in 1 s without progress");
    assert!(called.output.contains("may still work on it"), "{}", called.output);
    wait_logged(&path, "closed");
    session.end();
}

#[test]
fn m_h2_a_stream_that_breaks_off_is_continued() {
    let (_file, path) = log();
    let server = HttpServer::bad("resumes", &[&path]);
    let mut session = Session::of(server.settings());
    session.names();
    assert_eq!(session.output("work", json!({})), "resumed\n");
    assert_eq!(wait_logged(&path, "stream after"), "stream after 1");
}

#[test]
fn m_h2_a_stream_that_always_breaks_off_is_continued_at_a_bounded_rate() {
    let (_file, path) = log();
    let server = HttpServer::bad("closes-always", &[&path]);
    let mut session = beside_a_good_one(McpServer { timeout_s: 2, ..server.settings() });
    session.names();
    let error = session.error("work");
    assert!(error.contains("no answer in 2 s without progress"), "{error}");
    let streams = fs::read_to_string(&path).unwrap();
    let streams = streams.lines().filter(|line| line.starts_with("stream after")).count();
    // At 0, 0.25, 0.75 and 1.75 seconds.
    assert!((1..=4).contains(&streams), "{streams}");
    good_still_works(&mut session);
    session.end();
}

#[test]
fn m_h2_a_session_that_a_server_has_forgotten_is_begun_again() {
    let server = HttpServer::bad("forgets", &[]);
    let mut session = Session::of(server.settings());
    session.names();
    assert_eq!(session.output("work", json!({})), "worked\n");
}

#[test]
fn m_h2_headers_are_sent_with_each_request() {
    let server = HttpServer::bad("needs-key", &[]);
    let headers = [("authorization".to_owned(), "Bearer right-key".to_owned())].into();
    let mut session = Session::of(McpServer { headers, ..server.settings() });
    assert_eq!(session.names(), ["mcp__s__work"]);
    assert_eq!(session.output("work", json!({})), "worked\n");
    session.end();
    let server = HttpServer::bad("echo-headers", &[]);
    let mut session = Session::of(server.settings());
    session.names();
    let sent = session.output("work", json!({}));
    assert!(!sent.to_lowercase().contains("accept-encoding"), "{sent}");
}

#[test]
fn m_h2_nothing_waits_for_a_server_over_http_that_does_not_answer() {
    let server = HttpServer::bad("start-silent", &[]);
    let mut session = Session::of(server.settings());
    session.begin_step();
    let begin = std::time::Instant::now();
    session.end();
    assert!(begin.elapsed() < GRACE * 20, "{:?}", begin.elapsed());
}

#[test]
fn m_h2_a_server_with_sse_that_misbehaves_costs_its_own_calls() {
    for (kind, why) in [
        ("sse-endless-line", "it sent a message of more than 16777216 bytes"),
        ("sse-comments", "it sent more than 1048576 bytes that are not messages"),
        ("sse-closes", "it closed the connection"),
        ("sse-requests", "it sent more than 64 requests without waiting"),
        ("sse-refuses", "it answered with HTTP 500 Internal Server Error: no ***"),
    ] {
        let server = HttpServer::bad(kind, &[]);
        let headers = [("Authorization".to_owned(), "Bearer right-key".to_owned())].into();
        let mut session = beside_a_good_one(McpServer { headers, ..server.sse_settings() });
        assert_eq!(session.names(), ["mcp__good__work", "mcp__s__work"], "{kind}");
        for _ in 0..2 {
            let error = session.error("work");
            assert!(error.contains(why), "{kind}: {error}");
        }
        good_still_works(&mut session);
        session.end();
    }
}

#[test]
fn m_h2_messages_for_a_server_with_sse_go_to_its_own_origin_only() {
    let canary = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    canary.set_nonblocking(true).unwrap();
    let away = format!("http://{}/messages", canary.local_addr().unwrap());
    let server = HttpServer::bad("sse-away", &["/dev/null", &away]);
    let notices = Session::of(server.sse_settings()).step();
    assert!(
        notices[0].contains("it wants messages at an address of another origin"),
        "{notices:?}"
    );
    assert!(canary.accept().is_err());
}

#[test]
fn m_h2_a_cut_sends_the_cancel_to_a_server_with_sse() {
    let (_file, path) = log();
    let server = HttpServer::bad("sse-silent", &[&path]);
    let mut session = Session::of(server.sse_settings());
    session.names();
    let calling = session.start("mcp__s__work", json!({}));
    wait_logged(&path, "message tools/call");
    calling.cut();
    assert!(matches!(calling.wait().result, Err(ToolError::Interrupted)));
    wait_logged(&path, "message notifications/cancelled");
    session.end();
    wait_logged(&path, "closed");
}
