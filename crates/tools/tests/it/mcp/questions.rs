//! Questions of servers for the user.

use std::fs;
use std::time::Duration;

use holdpoint_common::{AskRequest, McpServer, QuestionReply, QuestionRequest, QuestionResponse};
use holdpoint_tools::AskReply;
use holdpoint_tools::testing::{Bench, Calling};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use super::session::{Session, bad};

fn question(calling: &Calling) -> QuestionRequest {
    match calling.wait_asked() {
        AskRequest::Question(request) => request,
        AskRequest::Pause(pause) => panic!("not a question: {pause:?}"),
    }
}

fn reply(id: &str, answer: &str) -> AskReply {
    let reply = QuestionReply { id: id.to_owned(), answer: Some(answer.to_owned()) };
    AskReply::Question(QuestionResponse::Replied { replies: vec![reply] })
}

#[test]
fn m_h2_a_form_that_asks_for_a_secret_is_declined() {
    let mut session = Session::of(bad("ask-secret"));
    session.names();
    let called = session.call("mcp__s__work", json!({}));
    assert!(called.asked.is_empty(), "{:?}", called.asked);
    assert!(called.output.contains("answered {\"action\": \"decline\"}"), "{}", called.output);
    assert!(called.output.contains("asks for a secret (password)"), "{}", called.output);
}

#[test]
fn m_h2_a_question_beyond_the_bounds_is_declined() {
    let mut session = Session::of(bad("asks-large"));
    session.names();
    let called = session.call("mcp__s__work", json!({}));
    assert!(called.asked.is_empty(), "{:?}", called.asked.len());
    for why in [
        "its message has 5000 bytes; the limit is 4096",
        "bytes; the limit is 65536",
        "its address has 3020 bytes; the limit is 2048",
        "all declined",
    ] {
        assert!(called.output.contains(why), "{why}: {}", called.output);
    }
}

#[test]
fn m_h2_a_call_asks_a_bounded_number_of_questions() {
    let mut session = Session::of(bad("asks-often"));
    session.names();
    let bench = (0..20).fold(Bench::new(), |bench, _| bench.answer(reply("x", "yes")));
    let called = bench.call(session.tool("mcp__s__work"), json!({}));
    assert_eq!(called.asked.len(), 16);
    assert_eq!(called.output.matches("accept").count(), 16, "{}", called.output);
    assert_eq!(called.output.matches("decline ").count(), 3, "{}", called.output);
    let notice = "[further questions of the server are declined: a call may ask 16 times]";
    assert_eq!(called.output.matches(notice).count(), 1, "{}", called.output);
}

#[test]
fn m_h2_an_address_is_a_question_that_a_person_answers() {
    let mut session = Session::of(bad("asks-url"));
    session.names();
    let calling = session.start("mcp__s__work", json!({}));
    let asked = question(&calling);
    assert!(asked.questions[0].question.contains("\nhttps://example.com/?a=b\n"), "{asked:?}");
    calling.answer(reply(&asked.questions[0].id, &asked.questions[0].options[0].label));
    assert_eq!(calling.wait().output, "answered accept\n");
    for answer in [reply("address", "no"), AskReply::Question(QuestionResponse::Unanswerable)] {
        let called = Bench::new().answer(answer).call(session.tool("mcp__s__work"), json!({}));
        assert_eq!(called.output, "answered decline\n");
    }
}

#[test]
fn m_h2_a_question_that_its_server_withdraws_is_taken_back() {
    let folder = tempfile::tempdir().unwrap();
    let seen = folder.path().join("seen");
    let mut server = bad("withdraws");
    server.args.push(seen.to_str().unwrap().to_owned());
    let mut session = Session::of(server);
    session.names();
    let calling = session.start("mcp__s__work", json!({}));
    question(&calling);
    fs::write(&seen, "").unwrap();
    let called = calling.wait();
    let expected = "[the server has withdrawn its question]\nwithout an answer\n";
    assert_eq!(called.output, expected, "{called:?}");
}

#[test]
fn m_h2_a_server_may_withdraw_any_number_of_questions() {
    let mut session = Session::of(bad("withdraws-often"));
    session.names();
    let calling = session.start("mcp__s__work", json!({}));
    // Some of the questions are seen before they are withdrawn, and nobody answers them.
    calling.wait_for("worked");
    calling.wait().result.unwrap();
}

/// Which of its calls a server works on when it asks is unknown: the question is shown under the
/// oldest one, and the time of the user counts for none.
#[test]
fn m_h2_a_question_takes_no_time_of_other_calls() {
    let limit = Duration::from_secs(1);
    let server = McpServer { timeout_s: 1, ..bad("asks-beside") };
    let mut session = Session::of(server);
    session.names();
    let older = session.start("mcp__s__work", json!({}));
    older.wait_for("held");
    let other = session.start("mcp__s__other", json!({}));
    let asked = question(&older);
    // The subject of the test is the limit, so it has to pass.
    std::thread::sleep(limit + limit / 2);
    older.answer(reply(&asked.questions[0].id, "yes"));
    let held = "[1] held\ndone\n";
    assert_eq!([older.wait().output, other.wait().output], [held, held]);
}

#[test]
fn m_h2_a_question_of_a_server_that_dies_is_taken_back() {
    for kind in ["asks-and-works", "requires"] {
        let mut session = Session::of(bad(kind));
        session.names();
        let calling = session.start("mcp__s__work", json!({}));
        question(&calling);
        let living = session.census.living();
        let &(pid, _) = living.iter().find(|(_, args)| args.contains("bad.py")).unwrap();
        kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), Signal::KILL).unwrap();
        let error = calling.wait().result.unwrap_err().to_string();
        assert!(error.contains("it was ended by signal 9"), "{kind}: {error}");
        session.end();
    }
}
