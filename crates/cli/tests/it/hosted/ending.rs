//! The end of a hosted agent: interrupts, closing, and agents that do not end by themselves.

use std::fs;
use std::io::{BufRead, BufReader};
use std::time::Instant;

use holdpoint_common::{Fact, Receipt, TurnFact};
use serde_json::{Value, json};

use super::calls::open_asks;
use super::{log_of, plain, scripted};
use crate::world::{World, patience, timeout};

/// Interrupts the session's turn, and returns its receipt.
pub(super) fn interrupt(world: &World) -> Receipt {
    world.run(&["interrupt", "one"]).code(0);
    let events = world.run(&["logs", "--json", "one"]).code(0).events();
    let receipt = events.iter().rev().find_map(|event| match event.fact() {
        Some(Fact::Turn(TurnFact::Finished { receipt, .. })) => receipt.clone(),
        _ => None,
    });
    receipt.expect("the turn was interrupted")
}

#[test]
fn m_h3_an_interrupt_ends_the_agent_and_everything_it_started() {
    for (args, script) in [
        // While its answer is read, while a call runs, and while an ask is open.
        ("", "say Begun\nspin"),
        ("", "spawn sleep 1000\nannounce echo begun; sleep 1000"),
        ("ignore-cancel ignore-end", "spawn setsid sleep 1000\nannounce echo begun; sleep 1000"),
        ("", "run touch made"),
        ("ignore-cancel", "say Begun\nhang"),
    ] {
        let world = World::new();
        let agent = scripted(&world, args);
        world.run(&["new", "--agent", &agent, "--name", "one", script]).code(0);
        let mut logs = world.command(&["logs", "-f", "--json", "one"]).spawn().unwrap();
        let mut lines = BufReader::new(logs.stdout.take().unwrap()).lines();
        let begun = ["Begun\\n", "\"type\":\"output\"", "\"type\":\"askRaised\""];
        assert!(lines.any(|line| {
            let line = line.unwrap();
            let is_prompt = line.contains("promptAccepted");
            !is_prompt && begun.iter().any(|begun| line.contains(begun))
        }));
        let receipt = interrupt(&world);
        assert!(
            receipt.processes.terminated + receipt.processes.killed > 0,
            "{script}: {receipt:?}"
        );
        assert!(receipt.processes.not_ended.is_empty(), "{script}: {receipt:?}");
        assert_eq!(world.agents(), 0, "{script}");
        assert!(!world.work("made").exists());
        // The next turn starts it again.
        world.run(&["prompt", "one", "say Again."]).code(0);
        world.run(&["wait", "one"]).code(0);
        let log = world.run(&["logs", "one"]).code(0);
        assert!(log.out.contains("Again."), "{log:#?}");
        assert_eq!(world.agents(), 1, "{script}");
        world.run(&["close", "one"]).code(0);
        assert_eq!(world.agents(), 0, "{script}");
        assert!(logs.wait().unwrap().success());
    }
}

/// The agent has sent its request before it reads the cancel.
#[test]
fn m_h3_a_request_that_crosses_the_cancel_is_replied_to() {
    let world = World::new();
    let agent = plain(&world);
    let option = json!({ "optionId": "yes", "name": "yes", "kind": "allow_once" });
    let permission = json!({
        "toolCall": { "toolCallId": "a", "title": "Late" }, "options": [option],
    });
    let path = world.work("a.txt");
    for (name, method, params, expected) in [
        (
            "permission",
            "session/request_permission",
            permission,
            json!({ "outcome": { "outcome": "cancelled" } }),
        ),
        ("unknown", "fs/delete", json!({}), json!(-32601)),
        ("file", "fs/write_text_file", json!({ "path": path, "content": "x" }), json!(-32800)),
    ] {
        let message = json!({ "method": method, "params": params });
        let script = format!("say Begun.\ncrossing {message}");
        world.run(&["new", "--name", name, "--agent", &agent, &script]).code(0);
        let by = Instant::now() + patience();
        while !world.run(&["logs", name]).code(0).out.contains("\nBegun.") {
            assert!(Instant::now() < by, "the turn begins");
        }
        world.run(&["interrupt", name]).code(0);
        let reply = fs::read_to_string(world.work("reply")).unwrap();
        let reply: Value = serde_json::from_str(&reply).unwrap();
        fs::remove_file(world.work("reply")).unwrap();
        let reply = reply.get("code").cloned().unwrap_or(reply);
        assert_eq!(reply, expected, "{name}");
    }
    assert!(!path.exists());
}

#[test]
fn m_h3_a_permission_request_that_outlives_its_turn_is_cancelled() {
    let world = World::new();
    let agent = plain(&world);
    let call = json!({ "toolCallId": "a", "title": "Look up", "kind": "other" });
    let script = format!("ask {call}\nsay End.");
    world.run(&["new", "--name", "one", "--agent", &agent, &script]).code(0);
    world.run(&["wait", "one", "--for", "idle"]).code(0);
    assert_eq!(open_asks(&world), [""; 0]);
    world.run(&["prompt", "one", "answered"]).code(0);
    world.run(&["wait", "one", "--for", "idle", "--timeout", &timeout()]).code(0);
    let log = log_of(&world);
    assert!(log.contains(r#"answered: {"outcome": {"outcome": "cancelled"}}"#), "{log}");
}

impl World {
    /// The number of living processes of the scripted agent, and of those that it started.
    pub(super) fn agents(&self) -> usize {
        let is_script = |script: &str| script.ends_with("agent.py");
        let is_agent = |line: &str| {
            line.starts_with("sleep 1000") || line.split(' ').nth(1).is_some_and(is_script)
        };
        self.census.living().iter().filter(|(_, line)| is_agent(line)).count()
    }
}
