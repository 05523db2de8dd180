//! Requests of an agent for files: their order, their limits, and the end of the turn.

use std::fs;
use std::time::Instant;

use holdpoint_common::{Event, Fact, ToolFact, ToolStatus, TurnFact};
use serde_json::{Value, json};

use super::calls::open_asks;
use super::files::{file, read, replies, request, run, write};
use super::{log_of, plain, prompt};
use crate::world::{World, patience};

/// The calls, with the status and the text of their results.
fn calls(events: &[Event]) -> Vec<(String, ToolStatus, String)> {
    let mut names = Vec::new();
    let mut calls = Vec::new();
    for event in events {
        match event.fact() {
            Some(Fact::Turn(TurnFact::AssistantMessage(message))) => {
                names.extend(message.calls.iter().map(|call| (call.id, call.name.clone())));
            }
            Some(Fact::Tool(ToolFact::Finished(result))) => {
                let (_, name) = names.iter().find(|(id, _)| *id == result.call).unwrap();
                let text = format!("{}{}", result.output.to_text(), result.result);
                calls.push((name.clone(), result.status, text));
            }
            _ => {}
        }
    }
    calls
}

/// The step that reports a change of the call `a`.
pub(super) fn update(kind: &str, fields: &Value) -> String {
    let mut update = json!({ "sessionUpdate": kind, "toolCallId": "a" });
    update.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    let params = json!({ "sessionId": "SESSION", "update": update });
    format!("raw {}\n", json!({ "method": "session/update", "params": params }))
}

fn text(text: &str) -> Value {
    json!([{ "type": "content", "content": { "type": "text", "text": text } }])
}

#[test]
fn m_h3_a_call_of_an_agent_pauses_for_its_requests() {
    let world = World::new();
    let running = json!({ "title": "Edit", "kind": "edit", "status": "in_progress" });
    let script = |last: Value| {
        [
            update("tool_call", &running),
            write(&file(&world, "a.txt"), "new"),
            "say Between.\n".to_owned(),
            update("tool_call_update", &last),
            "say After.".to_owned(),
        ]
        .concat()
    };
    let with = |last: Value| {
        let ran = run(&world, &["--json", "--policy", "edits"], &script(last)).code(0);
        calls(&ran.events())
    };
    let paused = "[paused: the agent waits for the next calls]";
    // A call that ends without further output is not shown again.
    let shown = with(json!({ "status": "completed" }));
    let [(first, _, result), (second, _, wrote)] = &shown[..] else { panic!("{shown:?}") };
    assert_eq!((&**first, &**result, &**second), ("agent", paused, "write_file"));
    assert!(wrote.contains("wrote a.txt"), "{wrote}");
    for (last, status, output) in [
        (json!({ "status": "completed", "content": text("done") }), ToolStatus::Ok, "done"),
        (json!({ "status": "failed" }), ToolStatus::Error, ""),
        (json!({ "status": "completed", "rawOutput": "raw" }), ToolStatus::Ok, "raw"),
    ] {
        let shown = with(last);
        let (name, ended, text) = shown.last().unwrap();
        assert_eq!((&**name, *ended, text.trim()), ("agent", status, output), "{shown:?}");
        assert_eq!(shown.len(), 3, "{shown:?}");
    }
}

#[test]
fn m_h3_requests_that_are_made_at_once_are_all_answered() {
    let world = World::new();
    let paths = (0..40).map(|n| file(&world, &format!("{n}.txt")));
    let requests = paths.enumerate().map(|(n, path)| {
        fs::write(&path, format!("text {n}")).unwrap();
        json!({ "method": "fs/read_text_file", "params": { "path": path } })
    });
    let script = format!("requests {}", json!(requests.collect::<Vec<_>>()));
    let ran = run(&world, &[], &script).code(0);
    let expected: Vec<_> = (0..40).map(|n| json!({ "content": format!("text {n}") })).collect();
    assert_eq!(replies(&ran.out), expected, "{ran:#?}");
}

#[test]
fn m_h3_more_requests_than_may_wait_are_refused() {
    let world = World::new();
    let agent = plain(&world);
    let path = file(&world, "a.txt");
    fs::write(&path, "text").unwrap();
    // While the ask of a call is open, requests wait.
    let call = json!({ "toolCallId": "a", "title": "Other", "kind": "other" });
    let read = json!({ "method": "fs/read_text_file", "params": { "path": path } });
    let script = format!("ask {call}\nrequests {}\nanswered", json!(vec![read; 70]));
    world.run(&["new", "--name", "one", "--agent", &agent, &script]).code(0);
    world.run(&["wait", "one", "--for", "ask"]).code(0);
    world.run(&["approve", &open_asks(&world)[0]]).code(0);
    // The end of the call lets the requests become calls.
    world.run(&["wait", "one"]).code(0);
    let log = log_of(&world);
    let replies = replies(&log);
    assert_eq!(replies.len(), 70, "{log}");
    let is_refused =
        |reply: &&Value| reply["message"].as_str().is_some_and(|why| why.contains("too many"));
    let (refused, read): (Vec<_>, Vec<_>) = replies.iter().partition(is_refused);
    assert!(read.iter().all(|reply| **reply == json!({ "content": "text" })), "{log}");
    assert!(
        !refused.is_empty() && read.len() >= 64,
        "{} read, {} refused",
        read.len(),
        refused.len()
    );
}

#[test]
fn m_h3_an_interrupt_cancels_a_request_that_is_asked_about() {
    let world = World::new();
    let agent = plain(&world);
    let note = write(&file(&world, "a.txt"), "x").replacen("request", "note", 1);
    world.run(&["new", "--name", "one", "--agent", &agent, &note]).code(0);
    world.run(&["wait", "one", "--for", "ask"]).code(0);
    world.run(&["interrupt", "one"]).code(0);
    assert_eq!(open_asks(&world), Vec::<String>::new());
    let reply = fs::read_to_string(world.work("reply")).unwrap();
    let reply: Value = serde_json::from_str(&reply).unwrap();
    assert_eq!(reply["code"], json!(-32800), "{reply}");
    assert!(!world.work("a.txt").exists());
    let log = prompt(&world, "say Again.");
    assert!(log.contains("Again."), "{log}");
}

#[test]
fn m_h3_a_request_after_the_end_of_a_turn_is_refused() {
    let world = World::new();
    let agent = plain(&world);
    let late = write(&file(&world, "a.txt"), "x").replacen("request", "late", 1);
    let open = ["new", "--name", "one", "--policy", "edits", "--agent", &agent, &late];
    world.run(&open).code(0);
    world.run(&["wait", "one"]).code(0);
    let log = prompt(&world, "later\nsay End.");
    assert!(log.contains("late: {") && log.contains("no turn is open"), "{log}");
    assert!(log.contains("End.") && !world.work("a.txt").exists(), "{log}");
}

#[test]
fn m_h3_a_permission_request_after_the_end_of_a_turn_is_cancelled() {
    let world = World::new();
    let agent = plain(&world);
    let call = json!({ "toolCallId": "a", "title": "Edit", "kind": "edit" });
    let options = json!([{ "optionId": "yes", "name": "yes", "kind": "allow_once" }]);
    let params = json!({ "toolCall": call, "options": options });
    let message = json!({ "method": "session/request_permission", "params": params });
    let late = format!("late {message}");
    let open = ["new", "--name", "one", "--policy", "all", "--agent", &agent, &late];
    world.run(&open).code(0);
    world.run(&["wait", "one"]).code(0);
    let log = prompt(&world, "later\nsay End.");
    assert!(log.contains("late: {\"outcome\": {\"outcome\": \"cancelled\"}}"), "{log}");
    assert!(log.contains("End."), "{log}");
}

#[test]
fn m_h3_an_ask_of_a_request_survives_a_crash_without_an_effect() {
    let world = World::new();
    let agent = plain(&world);
    let script = write(&file(&world, "a.txt"), "x");
    world.run(&["new", "--name", "one", "--agent", &agent, &script]).code(0);
    world.run(&["wait", "one", "--for", "ask"]).code(0);
    let daemon = world.daemon().unwrap();
    rustix::process::kill_process(daemon, rustix::process::Signal::KILL).unwrap();
    let by = Instant::now() + patience();
    while open_asks(&world).is_empty() {
        assert!(Instant::now() < by, "the ask is open again");
    }
    // The agent that has asked is gone.
    world.run(&["approve", &open_asks(&world)[0]]).code(0);
    world.run(&["wait", "one"]).code(0);
    let log = log_of(&world);
    assert!(log.contains("the agent no longer waits for the request"), "{log}");
    assert!(!world.work("a.txt").exists(), "{log}");
}

#[test]
fn m_h3_wrong_requests_are_refused_with_the_reason() {
    let world = World::new();
    let path = file(&world, "a.txt");
    let other = json!({ "sessionId": "other", "path": path });
    let too_large = "x".repeat(5 * 1024 * 1024);
    let script = [
        request("fs/read_text_file", &other),
        request("fs/write_text_file", &json!({ "path": path })),
        request("fs/delete", &json!({ "path": path })),
        request("terminal/output", &json!({ "terminalId": "terminal-1" })),
        request("terminal/create", &json!({ "command": "" })),
        request("terminal/create", &json!({ "command": "ls", "cwd": "here" })),
        request(
            "terminal/create",
            &json!({ "command": "ls", "env": [{ "name": "A=", "value": "" }] }),
        ),
        write(&path, &too_large),
        read("~/a.txt"),
    ];
    let world_script = world.work("script");
    fs::write(&world_script, script.concat()).unwrap();
    let ran = run(&world, &["--policy", "all"], "play script").code(0);
    let codes: Vec<_> = replies(&ran.out).iter().map(|reply| reply["code"].as_i64()).collect();
    let invalid = Some(-32602);
    let mut expected = vec![invalid; script.len()];
    expected[2] = Some(-32601);
    assert_eq!(codes, expected, "{}", ran.out);
    assert!(!world.work("a.txt").exists());
}
