//! The terminals of an agent, which are background jobs of the session.

use std::fs;
use std::io::{BufRead, BufReader};
use std::time::Instant;

use holdpoint_common::{Event, Fact, JobFact, Receipt, TurnFact};
use rustix::process::{Signal, kill_process};
use serde_json::{Value, json};

use super::calls::open_asks;
use super::files::{file, read, replies, request, root, run};
use super::served::update;
use super::{log_of, plain, prompt};
use crate::world::{World, patience};

fn create(params: &Value) -> String {
    request("terminal/create", params)
}

/// The step that uses the last terminal.
fn terminal(action: &str) -> String {
    request(&format!("terminal/{action}"), &json!({ "terminalId": "TERMINAL" }))
}

const ALL: [&str; 2] = ["--policy", "all"];

#[test]
fn m_h3_a_terminal_runs_a_command_to_its_end() {
    let world = World::new();
    fs::create_dir(world.work("folder")).unwrap();
    let folder = root(&world).join("folder");
    let variable = json!([{ "name": "A", "value": "b c" }]);
    let script = [
        create(&json!({ "command": "echo one; echo two >&2; exit 3" })),
        terminal("wait_for_exit"),
        terminal("output"),
        terminal("release"),
        terminal("output"),
        create(&json!({
            "command": "sh", "args": ["-c", "pwd; echo \"$A $1\"", "sh", "it's"],
            "env": variable, "cwd": folder,
        })),
        terminal("wait_for_exit"),
        terminal("output"),
        create(&json!({ "command": "printf 'abc\u{e4}\u{e4}'", "outputByteLimit": 3 })),
        terminal("wait_for_exit"),
        terminal("output"),
        create(&json!({ "command": "kill -TERM $$" })),
        terminal("wait_for_exit"),
    ];
    let ran = run(&world, &ALL, &script.concat()).code(0);
    let replies = replies(&ran.out);
    assert!(replies[0]["terminalId"].as_str().unwrap().starts_with("terminal-"), "{ran:#?}");
    assert_eq!(replies[1], json!({ "exitCode": 3 }));
    let output = |text: &str, truncated: bool, exit: Value| json!({ "output": text, "truncated": truncated, "exitStatus": exit });
    assert_eq!(replies[2], output("one\ntwo\n", false, json!({ "exitCode": 3 })));
    assert_eq!(replies[3], json!({}));
    assert!(replies[4]["message"].as_str().unwrap().contains("there is no terminal"));
    assert_eq!(replies[6], json!({ "exitCode": 0 }));
    let text = format!("{}\nb c it's\n", folder.display());
    assert_eq!(replies[7], output(&text, false, json!({ "exitCode": 0 })));
    assert_eq!(replies[10], output("\u{e4}", true, json!({ "exitCode": 0 })));
    assert_eq!(replies[12], json!({ "signal": "SIGTERM" }));
    // Each is a call of the tool, and a job.
    assert!(ran.err.contains("shell") && ran.err.contains("echo one"), "{}", ran.err);
}

#[test]
fn m_h3_a_terminal_is_asked_about_with_its_whole_command() {
    let world = World::new();
    let agent = plain(&world);
    let script = create(
        &json!({ "command": "touch", "args": ["made"], "env": [{ "name": "A", "value": "1" }] }),
    );
    let script = format!("{script}{}", terminal("wait_for_exit"));
    world.run(&["new", "--name", "one", "--agent", &agent, &script]).code(0);
    world.run(&["wait", "one", "--for", "ask"]).code(0);
    let inbox = world.run(&["inbox", "--json"]).code(0).out;
    assert!(inbox.contains("A=1 touch made") && inbox.contains("shell"), "{inbox}");
    world.run(&["approve", &open_asks(&world)[0]]).code(0);
    world.run(&["wait", "one"]).code(0);
    assert!(world.work("made").exists(), "{}", log_of(&world));
    prompt(&world, &create(&json!({ "command": "touch other" })));
    world.run(&["deny", &open_asks(&world)[0], "--reason", "not that"]).code(0);
    world.run(&["wait", "one"]).code(0);
    let log = log_of(&world);
    assert!(log.contains("not that") && !world.work("other").exists(), "{log}");
}

#[test]
fn m_h3_a_terminal_is_killed_and_its_output_stays_until_it_is_released() {
    let world = World::new();
    let script = [
        create(&json!({ "command": "echo begun; sleep 1000" })),
        terminal("kill"),
        terminal("wait_for_exit"),
        terminal("output"),
        terminal("release"),
        terminal("kill"),
    ];
    let ran = run(&world, &ALL, &script.concat()).code(0);
    let replies = replies(&ran.out);
    assert_eq!(replies[2], json!({ "signal": "SIGTERM" }), "{ran:#?}");
    assert_eq!(replies[3]["exitStatus"], json!({ "signal": "SIGTERM" }), "{ran:#?}");
    assert_eq!(replies[5]["code"], json!(-32602), "{ran:#?}");
    assert!(world.census.living().is_empty());
}

#[test]
fn m_h3_the_output_of_a_terminal_is_that_of_the_call_that_names_it() {
    let world = World::new();
    let content = json!([{ "type": "terminal", "terminalId": "TERMINAL" }]);
    let script = [
        update(
            "tool_call",
            &json!({ "title": "Test", "kind": "execute", "status": "in_progress" }),
        ),
        create(
            &json!({ "command": "echo first; until [ -e go ]; do sleep 0.02; done; echo second" }),
        ),
        update("tool_call_update", &json!({ "content": content })),
        terminal("wait_for_exit"),
        update("tool_call_update", &json!({ "status": "completed" })),
        "say End.".to_owned(),
    ]
    .concat();
    let agent = plain(&world);
    let open = ["new", "--name", "one", "--policy", "all", "--agent", &agent, &script];
    world.run(&open).code(0);
    let mut logs = world.command(&["logs", "-f", "--json", "one"]).spawn().unwrap();
    let mut lines = BufReader::new(logs.stdout.take().unwrap()).lines();
    // The output is shown while the command runs.
    let is_first = |line: &str| line.contains("\"type\":\"output\"") && line.contains("first");
    assert!(lines.any(|line| is_first(&line.unwrap())));
    fs::write(world.work("go"), "").unwrap();
    world.run(&["wait", "one"]).code(0);
    let log = log_of(&world);
    assert!(log.contains("  │ second") && log.contains("End."), "{log}");
    assert_eq!(log.matches("  │ first").count(), 1, "{log}");
    world.run(&["close", "one"]).code(0);
    logs.wait().unwrap();
}

/// Opens the session `one` with two terminals, of which one leaves its process group, and waits until
/// both run.
fn open_with_terminals(world: &World, last: &str) {
    let agent = plain(world);
    let script = [
        create(&json!({ "command": "sleep 1000" })),
        create(&json!({ "command": "setsid sleep 1000 & touch runs; wait" })),
        last.to_owned(),
    ]
    .concat();
    let open = ["new", "--name", "one", "--policy", "all", "--agent", &agent, &script];
    world.run(&open).code(0);
    let by = Instant::now() + patience();
    while !world.work("runs").exists() || sleeping(world) < 2 {
        assert!(Instant::now() < by, "the terminals run: {}", log_of(world));
    }
}

fn sleeping(world: &World) -> usize {
    world.census.living().iter().filter(|(_, line)| line.starts_with("sleep 1000")).count()
}

fn wait_for_end(world: &World) {
    let by = Instant::now() + patience();
    while sleeping(world) > 0 {
        assert!(Instant::now() < by, "{:?}", world.census.living());
    }
}

#[test]
fn m_h3_an_interrupt_ends_the_terminals_of_an_agent() {
    let world = World::new();
    open_with_terminals(&world, &terminal("wait_for_exit"));
    world.run(&["interrupt", "one"]).code(0);
    assert_eq!(sleeping(&world), 0);
    let events = world.run(&["logs", "--json", "one"]).code(0).events();
    let receipt: Receipt = events
        .iter()
        .find_map(|event| match event.fact() {
            Some(Fact::Turn(TurnFact::Finished { receipt, .. })) => receipt.clone(),
            _ => None,
        })
        .unwrap();
    // Both commands, and their shells.
    assert!(receipt.processes.terminated + receipt.processes.killed >= 3, "{receipt:?}");
    assert!(receipt.processes.not_ended.is_empty(), "{receipt:?}");
}

#[test]
fn m_h3_terminals_of_an_earlier_turn_end_with_the_agent_and_are_counted() {
    let world = World::new();
    open_with_terminals(&world, "say Begun.");
    world.run(&["wait", "one"]).code(0);
    assert_eq!(sleeping(&world), 2, "a terminal outlives its turn");
    prompt(&world, "say Two.");
    world.run(&["prompt", "one", &terminal("wait_for_exit")]).code(0);
    world.run(&["interrupt", "one"]).code(0);
    assert_eq!(sleeping(&world), 0, "{:?}", world.census.living());
    open_with_terminals_again(&world);
    world.run(&["prompt", "one", "die"]).code(0);
    world.run(&["wait", "one"]).code(0);
    wait_for_end(&world);
}

fn open_with_terminals_again(world: &World) {
    let script = create(&json!({ "command": "sleep 1000" }));
    let log = prompt(world, &script);
    assert_eq!(sleeping(world), 1, "{log}");
}

#[test]
fn m_h3_nothing_of_a_terminal_outlives_a_killed_daemon() {
    let world = World::new();
    open_with_terminals(&world, &terminal("wait_for_exit"));
    kill_process(world.daemon().unwrap(), Signal::KILL).unwrap();
    wait_for_end(&world);
    let log = prompt(&world, "say Continued.");
    assert!(log.contains("Continued."), "{log}");
}

#[test]
fn m_h3_the_terminals_of_an_agent_are_bounded() {
    let world = World::new();
    let script = create(&json!({ "command": "sleep 1000" })).repeat(9);
    let ran = run(&world, &[&ALL[..], &["--json"]].concat(), &script).code(0);
    let is_start = |event: &Event| matches!(event.fact(), Some(Fact::Job(JobFact::Started { .. })));
    let started = ran.events().into_iter().filter(is_start);
    assert_eq!(started.count(), 8, "{ran:#?}");
    assert!(ran.out.contains("8 background jobs are already running"), "{ran:#?}");
    assert_eq!(sleeping(&world), 0, "the session has ended");
}

#[test]
fn m_h3_terminals_that_are_requested_at_once_count_before_they_exist() {
    let world = World::new();
    fs::write(world.work("a.txt"), "text").unwrap();
    let new = json!({ "command": "true" });
    let params = json!({ "sessionId": "SESSION", "command": "true" });
    let at_once = (0..63).map(|id| {
        let request = json!({ "id": id + 1000, "method": "terminal/create", "params": params });
        format!("raw {request}\n")
    });
    let call = json!({ "toolCallId": "a", "title": "Other", "kind": "other" });
    let script = [
        create(&new),
        terminal("wait_for_exit"),
        create(&new),
        terminal("wait_for_exit"),
        // While this ask is open, the requests wait.
        format!("ask {call}\n"),
        at_once.collect(),
        terminal("output").replacen("request", "note", 1),
        "answered\n".to_owned(),
        // Is served after the others.
        read(&file(&world, "a.txt")),
    ];
    let agent = plain(&world);
    let script = script.concat();
    let open = ["new", "--name", "one", "--allow", "shell(true)", "--agent", &agent, &script];
    world.run(&open).code(0);
    world.run(&["wait", "one", "--for", "ask"]).code(0);
    let by = Instant::now() + patience();
    while !world.work("reply").exists() {
        assert!(Instant::now() < by, "all requests are read: {}", log_of(&world));
    }
    world.run(&["approve", &open_asks(&world)[0]]).code(0);
    world.run(&["wait", "one"]).code(0);
    let events = world.run(&["logs", "--json", "one"]).code(0).events();
    let calls = events.iter().filter_map(|event| match event.fact() {
        Some(Fact::Turn(TurnFact::AssistantMessage(message))) => Some(&message.calls),
        _ => None,
    });
    let terminals = calls.flatten().filter(|call| call.name == "shell").count();
    assert_eq!(terminals, 64, "one of 65 is refused");
}
