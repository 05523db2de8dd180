//! Servers that send too much, or no sense: each costs its own calls.

use holdpoint_common::McpServer;
use holdpoint_tools::mcp::{MAX_SCHEMA, MAX_SESSION_TOOLS};
use holdpoint_tools::testing::Bench;
use serde_json::json;

use super::session::{Session, bad};

/// A session with a server that misbehaves, `s`, and one that does not, `good`.
fn beside_a_good_one(kind: &str) -> Session {
    Session::with(Bench::new(), None, [("s", bad(kind)), ("good", bad("none"))])
}

/// Checks that the other server still works.
fn good_still_works(session: &mut Session) {
    let called = session.call("mcp__good__work", json!({"n": 1}));
    assert_eq!(called.output, "worked {\"n\": 1} \n");
}

#[test]
fn m_h2_a_server_that_does_not_start_is_reported_once() {
    for (kind, why) in [
        (
            "no-start",
            "it ended before it was ready: it exited with code 3; it wrote: cannot start: no configuration",
        ),
        ("never-answers", "it did not answer within 1 s"),
    ] {
        let bad = McpServer { startup_s: 1, ..bad(kind) };
        let good = super::session::bad("none");
        let good = McpServer { startup_s: 60, ..good };
        let mut session = Session::with(Bench::new(), None, [("s", bad), ("good", good)]);
        assert_eq!(session.step(), [format!("MCP server `s`: {why}")], "{kind}");
        assert_eq!(session.names(), ["mcp__good__work"], "{kind}");
        good_still_works(&mut session);
        session.end();
    }
    let mut session = Session::of(McpServer::program("/no/such/program", [""; 0]));
    let notices = session.step();
    assert!(notices[0].contains("the program `/no/such/program` is not found"), "{notices:?}");
}

#[test]
fn m_h2_the_reason_of_a_failure_is_bounded() {
    for kind in ["large-start-error", "large-list-error"] {
        let notices = Session::of(bad(kind)).step();
        let [notice] = &notices[..] else { panic!("{kind}: {notices:?}") };
        assert!(notice.contains("no luck") && notice.len() < 3_000, "{kind}: {}", notice.len());
    }
    let mut session = beside_a_good_one("large-error");
    session.names();
    let error = session.error("work");
    assert!(error.contains("no luck") && error.len() < 3_000, "{}", error.len());
    good_still_works(&mut session);
    session.end();
}

#[test]
fn m_h2_words_before_the_first_message_are_ignored() {
    let mut session = Session::of(bad("prints-first"));
    assert_eq!(session.names(), ["mcp__s__work"]);
    assert_eq!(session.output("work", json!({"a": "b"})), "worked {\"a\": \"b\"} \n");
}

#[test]
fn m_h2_tools_beyond_the_bounds_are_left_out() {
    let mut session = Session::of(bad("huge-schema"));
    let notices = session.step();
    assert!(notices[0].contains("1 tool is left out: `huge`: its schema has "), "{notices:?}");
    assert!(notices[0].ends_with(&format!("the limit is {MAX_SCHEMA}")), "{notices:?}");
    assert_eq!(session.names(), ["mcp__s__small"]);

    let mut session = Session::of(bad("odd-schemas"));
    let notices = session.step();
    assert!(notices[0].contains("6 tools are left out, such as `text`"), "{notices:?}");
    assert_eq!(session.names(), ["mcp__s__small", "mcp__s__good"]);

    let mut session = Session::of(bad("many-tools"));
    let notices = session.step();
    assert!(notices[0].contains("tools are left out, such as `tool256`"), "{notices:?}");
    assert_eq!(session.names().len(), MAX_SESSION_TOOLS);

    let mut session = Session::of(bad("long-description"));
    session.names();
    assert_eq!(session.description("mcp__s__small").len(), 8 * 1024);
}

#[test]
fn m_h2_the_tools_of_all_servers_have_one_bound() {
    let servers = ["a", "b", "c"].map(|name| (name, bad("large-schemas")));
    let mut session = Session::with(Bench::new(), None, servers);
    let notices = session.step();
    let start = "tools of MCP servers are left out, 4 of `b`, 5 of `c`: ";
    assert!(notices[0].starts_with(start), "{notices:?}");
    assert!(notices[0].ends_with("`tools = [\"…\"]` in `[mcp.NAME]`"), "{notices:?}");
    assert_eq!((notices.len(), session.names().len()), (1, 6));
    let tools = Some(vec!["t1".to_owned()]);
    let servers = ["a", "b", "c"]
        .map(|name| (name, McpServer { tools: tools.clone(), ..bad("large-schemas") }));
    let mut session = Session::with(Bench::new(), None, servers);
    assert_eq!(session.names(), ["mcp__a__t1", "mcp__b__t1", "mcp__c__t1"]);
}

#[test]
fn m_h2_odd_names_of_tools_become_plain_ones() {
    let mut session = Session::of(bad("odd-names"));
    let notices = session.step();
    assert!(notices[0].contains("2 tools are left out, such as `same`"), "{notices:?}");
    let names = session.names();
    assert_eq!(names.len(), 4);
    assert!(names[0].starts_with("mcp__s__a_b_") && names[1].starts_with("mcp__s__a_b_"));
    assert!(names[0] != names[1] && names[3] == "mcp__s__same", "{names:?}");
    assert!(names.iter().all(|name| name.len() <= 64), "{names:?}");
    assert!(session.call(&names[0], json!({})).output.starts_with("worked"));
}

#[test]
fn m_h2_only_listed_tools_are_used() {
    let tools = Some(vec!["tool7".to_owned(), "missing".to_owned()]);
    let mut session = Session::of(McpServer { tools, ..bad("many-tools") });
    assert_eq!(session.names(), ["mcp__s__tool7"]);
}

#[test]
fn m_h2_a_flood_of_progress_is_bounded_and_followed_by_the_result() {
    let mut session = Session::of(bad("flood"));
    session.names();
    let called = session.call("mcp__s__work", json!({}));
    assert!(called.result.is_ok(), "{called:?}");
    assert!(called.output.ends_with("worked {} \n"), "{}", called.output.len());
}

#[test]
fn m_h2_a_server_that_breaks_the_protocol_costs_its_own_call() {
    for (kind, why) in [
        ("requests", "it sent more than 64 requests without waiting for answers"),
        ("unread", "it sent more than 64 requests without waiting for answers"),
        ("unread-invalid", "it sent more than 64 requests without waiting for answers"),
        ("unread-cancels", "it sent more than 64 requests without waiting for answers"),
        ("long-line", "it sent a message of more than 16777216 bytes"),
        ("garbage", "it wrote more than 1048576 bytes to its standard output that are not"),
        ("invalid-error", "its answer is not valid"),
        ("wrong-result", "its answer is not the result of a tool"),
        ("error", "no \u{202e} luck"),
        ("closes-stdin", "it ended during the call: it was ended by signal 15"),
        (
            "die",
            "it ended during the call: it exited with code 7; it wrote: Traceback: out of luck",
        ),
    ] {
        let mut session = beside_a_good_one(kind);
        session.names();
        let error = session.error("work");
        assert!(error.starts_with("MCP server `s`: ") && error.contains(why), "{kind}: {error}");
        good_still_works(&mut session);
        session.end();
    }
}

#[test]
fn m_h2_an_invalid_request_is_answered_with_an_error_and_an_invalid_answer_is_not() {
    let mut session = Session::of(bad("invalid-request"));
    session.names();
    let answers = session.output("work", json!({}));
    assert_eq!(answers, "7:-32600 a:-32600 end:None\n");
}

#[test]
fn m_h2_a_large_result_is_bounded_as_all_output() {
    let mut session = Session::of(bad("large-result"));
    session.names();
    let called = session.call("mcp__s__work", json!({}));
    assert_eq!(called.streamed, 5_000_000);
    assert_eq!(called.result.unwrap().output, "", "all of it is output");
}

#[test]
fn m_h2_the_workspace_is_a_root_and_the_model_is_not_lent() {
    let mut session = Session::of(bad("roots"));
    session.names();
    let root = session.bench.root().to_str().unwrap().to_owned();
    let roots = session.output("work", json!({}));
    assert!(roots.contains(&format!("file://{root}")), "{roots}");
    let mut session = Session::of(bad("sampling"));
    session.names();
    // The standard error for a method that a client does not have.
    let refused = "{\"code\": -32601, \"message\": \"sampling/createMessage\"}\n";
    assert_eq!(session.output("work", json!({})), refused);
}

#[test]
fn m_h2_changed_tools_are_used_from_the_next_step_on() {
    let mut session = Session::of(bad("change"));
    assert_eq!(session.names(), ["mcp__s__work"]);
    assert_eq!(session.output("work", json!({})), "changed\n");
    let deadline = std::time::Instant::now() + holdpoint_tools::testing::patience();
    while session.names() != ["mcp__s__work", "mcp__s__another"] {
        assert!(std::time::Instant::now() < deadline, "the list does not change");
        std::thread::yield_now();
    }
    assert_eq!(session.output("another", json!({})), "changed\n");
}

#[test]
fn m_h2_tools_that_are_left_out_of_each_list_are_reported_once() {
    let mut session = Session::of(bad("change-huge"));
    let notices = session.step();
    assert!(notices[0].contains("1 tool is left out: `huge`"), "{notices:?}");
    session.call("mcp__s__small", json!({})).result.unwrap();
    let deadline = std::time::Instant::now() + holdpoint_tools::testing::patience();
    // Each step has no notice.
    while session.names() != ["mcp__s__small", "mcp__s__another"] {
        assert!(std::time::Instant::now() < deadline, "the list does not change");
        std::thread::yield_now();
    }
}

#[test]
fn m_h2_variables_reach_only_their_server() {
    let mut server = bad("none");
    server.env.insert("MARK".to_owned(), "of-this-server".to_owned());
    let mut session = Session::with(Bench::new(), None, [("s", server), ("good", bad("none"))]);
    session.names();
    assert_eq!(session.output("work", json!({})), "worked {} of-this-server\n");
    assert_eq!(session.call("mcp__good__work", json!({})).output, "worked {} \n");
}
