//! The daemon is killed at any moment of an agent's turn.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::time::Instant;

use rustix::process::{Signal, kill_process};

use super::{log_of, prompt, scripted};
use crate::world::{World, patience, rounds};

/// Begins a turn in which the agent does everything it can.
const SCRIPT: &str = "session\nspawn setsid sleep 1000\nthink Hm.\nannounce echo first; echo second\n\
                      run touch made\nsay One.\nwrite file text\nsay Two.\nspin";

#[test]
fn m_h3_nothing_of_an_agent_outlives_a_killed_daemon_and_its_session_continues() {
    for round in 0..rounds(8, 50) {
        let world = World::new();
        let agent = scripted(&world, "");
        let open = ["new", "--name", "one", "--policy", "all", "--agent", &agent, SCRIPT];
        world.run(&open).code(0);
        // The start of the agent is a moment, too: before its first event.
        let moment = fastrand::usize(0..30);
        let mut logs = world.command(&["logs", "-f", "--json", "one"]).spawn().unwrap();
        let lines = BufReader::new(logs.stdout.take().unwrap()).lines();
        assert_eq!(lines.take(moment).count(), moment, "the turn does not end by itself");
        kill_process(world.daemon().unwrap(), Signal::KILL).unwrap();
        logs.wait().unwrap();
        let by = Instant::now() + patience();
        while world.agents() > 0 {
            let living = world.census.living();
            assert!(Instant::now() < by, "round {round}, moment {moment}: {living:?}");
        }

        world.run(&["wait", "one", "--for", "idle"]).code(0);
        // An agent that was killed before its start gets both prompts.
        fs::write(world.work("quiet"), "").unwrap();
        let log = prompt(&world, "session\nsay Continued.");
        assert!(log.contains("Continued."), "round {round}, moment {moment}: {log}");
        // It continues its session, or it had none, or the transcript says that it has another one.
        let sessions = log.lines().filter(|line| line.starts_with("session=own-"));
        let sessions: BTreeSet<_> = sessions.collect();
        let is_shown = log.contains("it got the conversation so far as text");
        assert!(sessions.len() == 1 || is_shown, "round {round}, moment {moment}: {log}");
        world.run(&["close", "one"]).code(0);
        assert_eq!(world.agents(), 0, "round {round}, moment {moment}: {}", log_of(&world));
    }
}
