//! `loop`: the manual's example, limits, interrupts, and what the other commands say of a run.

use std::io::{BufRead, BufReader};
use std::time::Instant;

use holdpoint_common::{Event, Fact, Hold, HoldCause, RunLimit, Snapshot};
use rustix::process::{Pid, Signal, kill_process};

use crate::world::{PATIENCE, World, wait};

fn example(file: &str) -> String {
    format!("{}/../../examples/loop/{file}", env!("CARGO_MANIFEST_DIR"))
}

/// The goal of a run whose iterations play this.
fn plays(script: &str) -> String {
    format!("Rehearse.\n\n```rehearsal\n{script}\n```\n")
}

/// Begins a run in the background; its session.
fn detached(world: &World, args: &[&str], script: &str) -> String {
    let goal = plays(script);
    let all = [&["loop", "--detach", "--policy", "all", "--goal", &goal], args].concat();
    world.run(&all).code(0).out.trim().to_owned()
}

/// The session, when it has come to that.
fn until(world: &World, session: &str, wanted: impl Fn(&Snapshot) -> bool) -> Snapshot {
    let by = Instant::now() + PATIENCE;
    loop {
        let shown = world.run(&["show", "--json", session]).code(0).out;
        let snapshot: Snapshot = serde_json::from_str(&shown).unwrap();
        if wanted(&snapshot) {
            return snapshot;
        }
        assert!(Instant::now() < by, "{snapshot:#?}");
    }
}

fn is_held(snapshot: &Snapshot) -> bool {
    matches!(snapshot.hold, Hold::Standing { .. })
}

#[test]
fn m_d5_the_example_of_the_manual_works_through_its_tasks() {
    let world = World::new();
    let (goal, tasks) = (example("goal.md"), example("tasks.md"));
    let args = ["loop", "--spec", &goal, "--tasks", &tasks, "--policy", "all", "--model", "rehearsal"];
    let ran = world.run(&args).code(0);
    let manual = include_str!("../../../../docs/loops.md");
    let told = manual.split("...\n#1").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    for line in format!("#1{told}").lines() {
        let start = line.trim_end_matches("...");
        assert!(ran.err.lines().any(|found| found.starts_with(start)), "{start}\n{}", ran.err);
    }
    assert_eq!(std::fs::read_to_string(world.work("words.txt")).unwrap(), "word\n".repeat(3));
    assert_eq!(ran.out, "", "an iteration is a line, not all it says");
    let listed = world.run(&["list"]).code(0).out;
    assert!(listed.contains("saved, idle (done)"), "it is closed at its end: {listed}");
}

#[test]
fn m_d5_a_limit_holds_the_run_and_every_command_says_so() {
    let world = World::new();
    let session =
        detached(&world, &["--max-iterations", "2"], "call tasks {\"action\": \"add\", \"titles\": [\"more\"]}");
    let held = until(&world, &session, is_held);
    let Hold::Standing { cause, .. } = &held.hold else { panic!("{held:#?}") };
    assert_eq!(*cause, HoldCause::Limit { reached: RunLimit::Iterations { count: 2 } });
    let listed = world.run(&["list"]).code(0).out;
    assert!(listed.contains("held (2 iterations), #2 ✓0 ●0 ○2, "), "{listed}");
    let shown = world.run(&["show", &session]).code(0).out;
    for line in ["⏸ PAUSED: 2 iterations", "iteration 2: 2 iterations, ", "task      1 todo: more"] {
        assert!(shown.contains(line), "{line}\n{shown}");
    }
    assert!(world.run(&["release", &session]).code(0).out.contains("goes on"));
    let held = until(&world, &session, |snapshot| is_held(snapshot) && snapshot.tasks.len() == 4);
    assert_eq!(held.run.unwrap().progress.iteration, 4, "as much again");
    assert!(world.run(&["interrupt", &session]).code(0).out.contains("the run is over"));
    let over = until(&world, &session, |snapshot| snapshot.run.is_none());
    assert_eq!(over.last_run.unwrap().end.to_string(), "interrupted");
}

#[test]
fn m_b10_an_interrupt_ends_the_run_and_is_130() {
    let world = World::new();
    let goal = plays("hang");
    let mut child = world.command(&["loop", "--json", "--goal", &goal]).spawn().unwrap();
    let mut events = BufReader::new(child.stdout.take().unwrap()).lines().map(|line| line.unwrap());
    let mut facts = || events.find_map(|line| serde_json::from_str::<Event>(&line).unwrap().fact().cloned());
    while !matches!(facts(), Some(Fact::StepStarted)) {}
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    while !matches!(facts(), Some(Fact::RunFinished { .. })) {}
    assert_eq!(wait(&mut child, PATIENCE).code(), Some(130));
}

#[test]
fn what_is_wrong_with_the_command_line_is_said() {
    let world = World::new();
    let ran = world.run(&["loop"]).code(2);
    assert!(ran.err.contains("--goal"), "{}", ran.err);
    let ran = world.run(&["loop", "--spec", "nowhere.md"]).code(2);
    assert!(ran.err.contains("nowhere.md can't be read"), "{}", ran.err);
    world.run(&["loop", "--goal", "x", "--max-tokens", "0"]).code(2);
    let ran = world.run(&["loop", "--goal", " "]).code(1);
    assert!(ran.err.contains("the goal is empty"), "{}", ran.err);
}
