//! Holds of a session with a hosted agent, which continues by itself until it reports a call.

use std::fs;
use std::time::Instant;

use super::calls::open_asks;
use super::restarting::starts;
use super::{log_of, scripted};
use crate::world::{World, patience};

/// Opens the session `one` with this prompt, which waits for the file `go`, and requests a hold while
/// the agent works.
fn hold(world: &World, script: &str) {
    let agent = scripted(world, "");
    world.run(&["new", "--agent", &agent, "--name", "one", script]).code(0);
    let by = Instant::now() + patience();
    while starts(world).is_empty() {
        assert!(Instant::now() < by, "the agent starts");
    }
    world.run(&["hold", "one"]).code(0);
}

/// How often the agent says this in a transcript.
fn says(log: &str, text: &str) -> usize {
    log.lines().filter(|line| *line == text).count()
}

#[test]
fn m_h3_a_hold_stops_a_session_after_the_next_call_of_its_agent() {
    let world = World::new();
    hold(&world, "until go\nrun touch made\nsay Done.");
    fs::write(world.work("go"), "").unwrap();
    // Its request is asked, and the call ends the step.
    world.run(&["wait", "one", "--for", "ask"]).code(0);
    world.run(&["approve", &open_asks(&world)[0]]).code(0);
    world.run(&["wait", "one", "--for", "hold"]).code(0);
    let log = log_of(&world);
    assert!(world.work("made").exists() && says(&log, "Done.") == 0, "{log}");
    world.run(&["release", "one"]).code(0);
    world.run(&["wait", "one", "--for", "idle"]).code(0);
    let log = log_of(&world);
    assert_eq!(says(&log, "Done."), 1, "{log}");
    world.run(&["close", "one"]).code(0);
}

#[test]
fn m_h3_a_hold_stops_a_session_at_the_end_of_the_turn_of_its_agent() {
    let world = World::new();
    hold(&world, "until go\nsay One.");
    world.run(&["prompt", "one", "say Two."]).code(0);
    fs::write(world.work("go"), "").unwrap();
    world.run(&["wait", "one", "--for", "hold"]).code(0);
    let log = log_of(&world);
    assert_eq!((says(&log, "One."), says(&log, "Two.")), (1, 0), "{log}");
    world.run(&["release", "one"]).code(0);
    world.run(&["wait", "one", "--for", "idle"]).code(0);
    let log = log_of(&world);
    assert_eq!(says(&log, "Two."), 1, "{log}");
    world.run(&["close", "one"]).code(0);
}
