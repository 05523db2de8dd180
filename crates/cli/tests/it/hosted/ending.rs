//! The end of a hosted agent: interrupts, closing, and agents that do not end by themselves.

use std::io::{BufRead, BufReader};

use holdpoint_common::{Fact, Receipt, TurnFact};

use super::scripted;
use crate::world::World;

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
