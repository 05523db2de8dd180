//! Turns of a hosted agent: text, calls, permissions.

use std::fs;

use holdpoint_common::api::Inbox;
use holdpoint_common::{Event, Fact, ToolFact, ToolStatus};
use serde_json::{Value, json};

use super::{plain, scripted};
use crate::world::{Ran, World};

/// Plays a script with the scripted agent.
fn play(world: &World, args: &[&str], script: &str) -> Ran {
    let agent = scripted(world, "");
    world.run(&[&["run", "--agent", &agent], args, &[script]].concat())
}

/// The ids of the open asks, the oldest first.
pub(super) fn open_asks(world: &World) -> Vec<String> {
    let inbox = world.run(&["inbox", "--json"]).code(0);
    let inbox: Inbox = serde_json::from_str(&inbox.out).unwrap();
    inbox.asks.iter().map(|asked| asked.ask.id.to_string()).collect()
}

/// The results of the calls, with their output.
fn results(events: &[Event]) -> Vec<(ToolStatus, String)> {
    let results = events.iter().filter_map(|event| match event.fact() {
        Some(Fact::Tool(ToolFact::Finished(result))) => {
            let output = format!("{}{}", result.output.to_text(), result.result);
            Some((result.status, output))
        }
        _ => None,
    });
    results.collect()
}

#[test]
fn m_h3_text_thoughts_and_calls_of_an_agent_are_those_of_the_session() {
    let world = World::new();
    fs::write(world.work("read"), "the content\n").unwrap();
    let script =
        "think Hm.\nsay One.\nannounce echo first; echo second\nsay Two.\nread read\nsay Three.";
    let ran = play(&world, &[], script).code(0);
    assert_eq!(ran.out.lines().last(), Some("Three."), "{ran:#?}");
    for line in ["agent: echo first; echo second", "first", "second", "the content"] {
        assert!(ran.err.contains(line), "{line}: {}", ran.err);
    }
    assert!(ran.err.contains("model: agent/python"), "{}", ran.err);
    assert!(world.census.living().is_empty());
    let ran = play(&world, &["--json"], script).code(0);
    let expected = [
        (ToolStatus::Ok, "first\nsecond\n".to_owned()),
        (ToolStatus::Ok, "the content\n".to_owned()),
    ];
    assert_eq!(results(&ran.events()), expected);
    // What the agent reports of its usage.
    assert!(ran.out.contains("\"input\":7") && ran.out.contains("\"output\":5"), "{}", ran.out);
}

/// Codex reports the output of commands only so.
#[test]
fn m_h3_output_that_an_agent_reports_beside_the_protocol_is_shown() {
    let world = World::new();
    let agent = plain(&world);
    let raw = |kind: &str, mut update: Value| {
        update["sessionUpdate"] = kind.into();
        update["toolCallId"] = "build".into();
        let params = json!({ "sessionId": "SESSION", "update": update });
        format!("raw {}", json!({ "method": "session/update", "params": params }))
    };
    let more = |text: &str| json!({ "terminal_output_delta": { "data": text } });
    let terminal = json!([{ "type": "terminal", "terminalId": "its own" }]);
    let call = json!({ "title": "build", "status": "in_progress", "content": terminal });
    let script = [
        raw("tool_call", call),
        raw("tool_call_update", json!({ "_meta": more("one\nt") })),
        raw("tool_call_update", json!({ "_meta": more("wo\n") })),
        raw("tool_call_update", json!({ "_meta": more("three\n"), "status": "failed" })),
    ];
    let args = ["run", "--json", "--agent", &agent, &script.join("\n")];
    let ran = world.run(&args).code(0);
    let expected = [(ToolStatus::Error, "one\ntwo\nthree\n".to_owned())];
    assert_eq!(results(&ran.events()), expected);
}

#[test]
fn m_h3_a_permission_request_is_an_ask_that_shows_the_command() {
    let world = World::new();
    let agent = scripted(&world, "");
    let script = "run touch made\nsay Done.";
    world.run(&["new", "--name", "one", "--agent", &agent, script]).code(0);
    world.run(&["wait", "one", "--for", "ask"]).code(0);
    let inbox = world.run(&["inbox"]).code(0);
    assert!(inbox.out.contains("python") && inbox.out.contains("run this command?"), "{inbox:#?}");
    let inbox = world.run(&["inbox", "--json"]).code(0);
    assert!(inbox.out.contains("touch made"), "{inbox:#?}");
    assert!(!world.work("made").exists());
    world.run(&["approve", &open_asks(&world)[0]]).code(0);
    world.run(&["wait", "one"]).code(0);
    assert!(world.work("made").exists());
    let log = world.run(&["logs", "one"]).code(0);
    assert!(log.out.contains("Done."), "{log:#?}");
    world.run(&["prompt", "one", "run touch other\nsay After."]).code(0);
    world.run(&["wait", "one", "--for", "ask"]).code(0);
    world.run(&["deny", &open_asks(&world)[0], "--reason", "not now"]).code(0);
    world.run(&["wait", "one"]).code(0);
    assert!(!world.work("other").exists());
    let log = world.run(&["logs", "one"]).code(0);
    assert!(log.out.contains("rejected: no not now"), "{log:#?}");
}

#[test]
fn m_h3_the_policy_judges_permission_requests_by_their_effects() {
    let world = World::new();
    let allowed = ["--allow", "shell(touch made)", "--asks", "deny"];
    let ran = play(&world, &allowed, "run touch made\nrun touch other\nsay Done.").code(3);
    assert!(world.work("made").exists() && !world.work("other").exists(), "{ran:#?}");
    assert!(ran.err.contains("allowed: python: run this command?"), "{}", ran.err);
    // A deny rule counts in every mode, and only a person can approve a call that it may match.
    let denied = ["--policy", "all", "--deny", "shell(touch *)"];
    let ran = play(&world, &denied, "run touch more\nrun mkdir folder").code(0);
    assert!(!world.work("more").exists() && world.work("folder").exists(), "{ran:#?}");
    assert!(ran.out.contains("rejected: no denied by the rule `shell(touch *)`"), "{ran:#?}");
    let may = ["--asks", "approve", "--deny", "shell(touch *)"];
    let ran = play(&world, &may, "run $X more\nrun mkdir second").code(3);
    assert!(ran.out.contains("rejected: no") && world.work("second").exists(), "{ran:#?}");
    let edits = ["--policy", "edits", "--asks", "deny"];
    let ran = play(&world, &edits, "write new.txt text\nwrite /tmp/outside text").code(3);
    assert_eq!(fs::read_to_string(world.work("new.txt")).unwrap(), "text", "{ran:#?}");
    assert!(ran.out.contains("rejected: no"), "{ran:#?}");
    assert!(ran.err.contains("+text"), "the diff is shown: {}", ran.err);
    for request in ["ask fetch X", "ask other Y"] {
        let ran = play(&world, &edits, request).code(3);
        assert!(ran.out.contains(": no"), "{ran:#?}");
    }
}

#[test]
fn m_h3_asks_of_several_calls_are_open_at_once() {
    let world = World::new();
    let agent = scripted(&world, "");
    world.run(&["new", "--name", "one", "--agent", &agent, "ask2 first second"]).code(0);
    world.run(&["wait", "one", "--for", "ask"]).code(0);
    let by = std::time::Instant::now() + crate::world::patience();
    while open_asks(&world).len() < 2 {
        assert!(std::time::Instant::now() < by, "both are asked");
    }
    let asks = open_asks(&world);
    // The newer one first.
    world.run(&["deny", &asks[1]]).code(0);
    world.run(&["approve", &asks[0]]).code(0);
    world.run(&["wait", "one"]).code(0);
    let log = world.run(&["logs", "one"]).code(0);
    assert!(log.out.contains("first: yes") && log.out.contains("second: no"), "{log:#?}");
}

/// Codex does so.
#[test]
fn m_h3_a_turn_that_an_agent_cancels_after_a_denial_does_not_fail() {
    let world = World::new();
    let (script, why) = ("run touch made\nstop cancelled", "it cancelled its turn");
    let ran = play(&world, &["--asks", "deny"], script).code(3);
    assert!(!world.work("made").exists() && !ran.err.contains(why), "{ran:#?}");
    let ran = play(&world, &["--policy", "all"], script).code(1);
    assert!(ran.err.contains(why), "{ran:#?}");
}
