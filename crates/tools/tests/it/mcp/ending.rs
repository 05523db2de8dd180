//! The end of servers: by themselves, with a call that is cut or takes too long, and with their
//! session.

use std::time::{Duration, Instant};

use holdpoint_common::McpServer;
use holdpoint_tools::ToolError;
use holdpoint_tools::testing::{Bench, rounds};
use serde_json::json;

use super::session::{GRACE, Session, bad};

#[test]
fn m_h2_a_server_that_dies_is_started_once_more() {
    let mut session = Session::of(bad("die"));
    session.names();
    assert!(session.error("work").contains("it exited with code 7"));
    // The second call starts it again.
    assert!(session.error("work").contains("it exited with code 7"));
    let error = session.error("work");
    assert!(
        error.contains("it has ended 2 times; the last time, it exited with code 7"),
        "{error}"
    );
    let notices = session.step();
    assert!(notices[0].starts_with("MCP server `s`: it has ended 2 times"), "{notices:?}");
    assert_eq!(session.names(), Vec::<String>::new());
    session.end();
}

#[test]
fn m_h2_a_server_that_died_works_after_its_restart() {
    let mut server = bad("die-once");
    let count = tempfile::NamedTempFile::new().unwrap();
    server.args.push(count.path().to_str().unwrap().to_owned());
    let mut session = Session::of(server);
    session.names();
    assert!(session.error("work").contains("it ended during the call"));
    assert_eq!(session.names(), ["mcp__s__work"], "a step starts it again");
    assert_eq!(session.output("work", json!({})), "worked {} \n");
    session.end();
}

#[test]
fn m_h2_a_cut_cancels_the_call_and_keeps_a_server_that_ends_it() {
    let mut session = Session::of(bad("obeys"));
    session.names();
    let living = session.census.living();
    for _ in 0..rounds(20, 1_000) {
        let calling = session.start("mcp__s__work", json!({}));
        calling.cut();
        let called = calling.wait();
        assert!(matches!(called.result, Err(ToolError::Interrupted)), "{called:?}");
        assert_eq!(called.processes.total(), 0);
    }
    assert_eq!(session.census.living(), living, "it was not started again");
    session.end();
}

#[test]
fn m_h2_a_cut_ends_a_server_that_answers_other_requests_only() {
    let mut session = Session::of(bad("marks"));
    session.names();
    let calling = session.start("mcp__s__work", json!({}));
    calling.wait_for("at work");
    calling.cut();
    let called = calling.wait();
    assert!(matches!(called.result, Err(ToolError::Interrupted)), "{called:?}");
    assert_eq!(called.processes.total(), 1, "{:?}", called.processes);
    assert_eq!(session.census.living(), []);
    session.end();
}

#[test]
fn m_h2_a_cut_during_a_question_of_a_server_cancels_its_call() {
    let mut session = Session::of(bad("asks-and-works"));
    session.names();
    let calling = session.start("mcp__s__work", json!({}));
    let _ = calling.wait_asked();
    calling.cut();
    let called = calling.wait();
    assert!(matches!(called.result, Err(ToolError::Interrupted)), "{called:?}");
    assert_eq!(called.processes.total(), 1, "it has not ended its call");
    assert_eq!(session.census.living(), []);
    session.end();
}

#[test]
fn m_h2_a_cut_ends_a_server_that_does_not_answer() {
    let mut session = Session::of(bad("stuck"));
    session.names();
    for _ in 0..3 {
        let calling = session.start("mcp__s__work", json!({}));
        calling.wait_for("stuck now");
        let cut = Instant::now();
        calling.cut();
        let called = calling.wait();
        assert!(matches!(called.result, Err(ToolError::Interrupted)), "{called:?}");
        assert!(cut.elapsed() >= GRACE / 2);
        assert_eq!(session.census.living(), []);
        // It ignores TERM.
        assert_eq!(called.processes.killed, 1, "{:?}", called.processes);
        // Ending it does not count as its own end, however often.
        assert_eq!(session.names(), ["mcp__s__work"]);
    }
    session.end();
}

#[test]
fn m_h2_a_call_without_progress_ends_at_its_time_limit() {
    let mut session = Session::of(McpServer { timeout_s: 1, ..bad("obeys") });
    session.names();
    let error = session.error("work");
    assert_eq!(error, "MCP server `s`: no answer in 1 s without progress");
    let mut session = Session::of(McpServer { timeout_s: 1, ..bad("stuck") });
    session.names();
    let called = session.call("mcp__s__work", json!({}));
    let error = called.result.unwrap_err().to_string();
    assert!(error.ends_with("it did not react to the cancel either, and was ended"), "{error}");
    assert_eq!(session.census.living(), []);
}

#[test]
fn m_h2_progress_extends_the_time_limit_of_a_call() {
    let mut session = Session::of(McpServer { timeout_s: 5, ..bad("steady") });
    session.names();
    // It reports ten times a second, and works for longer than its time limit.
    let output = session.output("work", json!({"reports": 70}));
    assert!(output.starts_with("[0]\n[1]\n") && output.contains("worked"), "{output}");
    session.end();
}

#[test]
fn m_h2_progress_does_not_extend_the_hard_limit_of_a_call() {
    let mut session = Session::with_source(Bench::new(), None, [("s", bad("steady"))], |source| {
        source.with_call_limit(Duration::from_secs(1))
    });
    session.names();
    let called = session.call("mcp__s__work", json!({"reports": 1_000_000_000}));
    let error = called.result.unwrap_err().to_string();
    let expected = "MCP server `s`: no answer in 1 s; it did not react to the cancel either";
    assert!(error.starts_with(expected), "{error}");
    assert_eq!(session.census.living(), []);
    session.end();
}

#[test]
fn m_h2_progress_without_end_hides_neither_the_answer_nor_the_hard_limit() {
    let mut session =
        Session::with_source(Bench::new(), None, [("s", bad("floods-forever"))], |source| {
            source.with_call_limit(Duration::from_secs(2))
        });
    session.names();
    let output = session.output("work", json!({"answer": true}));
    assert!(output.contains("worked"), "{}", output.len());
    let called = session.call("mcp__s__work", json!({}));
    let error = called.result.unwrap_err().to_string();
    assert!(error.starts_with("MCP server `s`: no answer in 2 s"), "{error}");
    session.end();
}

#[test]
fn m_h2_t_h3_the_error_output_of_a_server_shows_no_part_of_a_key() {
    let mut server = bad("prints-key");
    server.env.insert("KEY".to_owned(), "open".repeat(10));
    let mut session = Session::of(server);
    session.names();
    let error = session.error("work");
    assert!(error.contains("; it wrote: ") && !error.contains("openopen"), "{error}");
}

#[test]
fn m_h2_t_h3_an_error_of_a_server_shows_no_key() {
    let mut server = bad("error-key");
    server.env.insert("KEY".to_owned(), "open sesame".to_owned());
    let mut session = Session::of(server);
    session.names();
    let errors = [
        session.error("work"),
        session.named("/s:review").unwrap_err(),
        session.named("@s:page://1").unwrap().notices.remove(0),
    ];
    for error in errors {
        assert!(error.ends_with("no luck with ***"), "{error}");
    }
}

#[test]
fn m_h2_nothing_of_a_server_is_left_after_its_session() {
    for kind in ["none", "ignores-eof", "stuck", "silent"] {
        let mut session = Session::with(
            Bench::new(),
            None,
            [("a", bad(kind)), ("b", bad(kind)), ("c", bad("never-answers"))],
        );
        session.begin_step();
        // With the supervisors. The session ends while one server is still starting.
        session.census.wait_living(6);
        session.end();
    }
}
