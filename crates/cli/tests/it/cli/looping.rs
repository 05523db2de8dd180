//! `loop`: the manual's example, the options, and how other commands show a run.

use std::io::Write;
use std::process::Stdio;
use std::time::Instant;

use holdpoint_common::{Hold, HoldCause, RunLimit, Snapshot};

use crate::world::{World, patience, wait};

fn example(file: &str) -> String {
    format!("{}/../../examples/loop/{file}", env!("CARGO_MANIFEST_DIR"))
}

/// A goal that makes each iteration play `script`.
pub(crate) fn plays(script: &str) -> String {
    format!("Rehearse.\n\n```rehearsal\n{script}\n```\n")
}

/// Starts a run in the background and returns its session.
fn detached(world: &World, args: &[&str], script: &str) -> String {
    let goal = plays(script);
    let all = [&["loop", "--detach", "--policy", "all", "--goal", &goal], args].concat();
    world.run(&all).code(0).out.trim().to_owned()
}

/// Waits until the session's snapshot matches `wanted`.
fn wait_for_snapshot(world: &World, session: &str, wanted: impl Fn(&Snapshot) -> bool) -> Snapshot {
    let by = Instant::now() + patience();
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

/// The limit that holds the session, if one does.
fn limit(snapshot: &Snapshot) -> Option<RunLimit> {
    match snapshot.hold {
        Hold::Standing { cause: HoldCause::Limit { reached }, .. } => Some(reached),
        _ => None,
    }
}

#[test]
fn m_d5_the_example_of_the_manual_works_through_its_tasks() {
    let world = World::new();
    let (goal, tasks) = (example("goal.md"), example("tasks.md"));
    let args =
        ["loop", "--spec", &goal, "--tasks", &tasks, "--policy", "all", "--model", "rehearsal"];
    let ran = world.run(&args).code(0);
    let manual = include_str!("../../../../../docs/loops.md");
    let documented =
        manual.split("...\n#1").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    for line in format!("#1{documented}").lines() {
        let start = line.trim_end_matches("...");
        assert!(ran.err.lines().any(|found| found.starts_with(start)), "{start}\n{}", ran.err);
    }
    assert_eq!(std::fs::read_to_string(world.work("words.txt")).unwrap(), "word\n".repeat(3));
    assert_eq!(ran.out, "", "an iteration is one line");
    let listed = world.run(&["list"]).code(0).out;
    assert!(listed.contains("saved, idle (done)"), "the session is closed at the end: {listed}");
}

#[test]
fn m_d5_a_limit_holds_the_run_and_every_command_says_so() {
    let world = World::new();
    let session = detached(
        &world,
        &["--max-iterations", "2"],
        "call tasks {\"action\": \"add\", \"titles\": [\"more\"]}",
    );
    let held = wait_for_snapshot(&world, &session, is_held);
    assert_eq!(limit(&held), Some(RunLimit::Iterations { count: 2 }));
    for what in [&["wait", &session][..], &["wait", &session, "--for", "hold"]] {
        assert!(world.run(what).code(0).out.ends_with(": held (2 iterations)\n"));
    }
    let listed = world.run(&["list"]).code(0).out;
    assert!(listed.contains("held (2 iterations), #2 ✓0 ●0 ○2, "), "{listed}");
    let shown = world.run(&["show", &session]).code(0).out;
    let goal = "goal      Rehearse.\n\n          ```rehearsal\n          call tasks ";
    for line in
        ["⏸ PAUSED: 2 iterations", "run       iteration 2, ", "task      1 todo: more", goal]
    {
        assert!(shown.contains(line), "{line}\n{shown}");
    }
    assert!(world.run(&["release", &session]).code(0).out.contains("released"));
    let held = wait_for_snapshot(&world, &session, |snapshot| {
        is_held(snapshot) && snapshot.tasks.len() == 4
    });
    assert_eq!(held.run.unwrap().progress.iteration, 4, "the same amount again");
    assert!(
        world
            .run(&["interrupt", &session])
            .code(0)
            .out
            .contains("Agent interrupted; the run is over")
    );
    let log = world.run(&["logs", &session]).code(0).out;
    assert!(
        log.contains("Agent interrupted from the command line (pid ")
            && log.contains("; run interrupted: 4 iter"),
        "{log}"
    );
    let over = wait_for_snapshot(&world, &session, |snapshot| snapshot.run.is_none());
    assert_eq!(over.last_run.unwrap().end.to_string(), "interrupted");
}

#[test]
fn t_l13_m_d5_tokens_and_time_hold_the_run_in_the_middle_of_an_iteration() {
    for (option, reached) in [
        (["--max-tokens", "1"], RunLimit::Tokens { count: 1 }),
        (["--max-time", "1ms"], RunLimit::Time { ms: 1 }),
    ] {
        let world = World::new();
        let session = detached(
            &world,
            &option,
            "wait 5ms\nshell: echo once >> ran\n---\nshell: echo never >> ran",
        );
        let held = wait_for_snapshot(&world, &session, is_held);
        assert_eq!(
            (limit(&held), held.turn.map(|turn| turn.0)),
            (Some(reached), Some(1)),
            "{held:#?}"
        );
        assert!(!std::fs::read_to_string(world.work("ran")).unwrap_or_default().contains("never"));
        world.run(&["interrupt", &session]).code(0);
    }
}

#[test]
fn m_d2_the_configuration_sets_where_a_run_is_held() {
    for (hold_at, turn) in [("iteration", None), ("step", Some(1))] {
        let world = World::new();
        world.config(&format!("hold_at = '{hold_at}'\n"));
        std::fs::write(world.work("tasks.md"), "1. the only one\n").unwrap();
        let script = "shell: touch begun; until [ -e go ]; do sleep 0.01; done\n---\nsay Well.";
        let session = detached(&world, &["--tasks", "tasks.md"], script);
        wait_for_snapshot(&world, &session, |_| world.work("begun").exists());
        world.run(&["hold", &session]).code(0);
        std::fs::write(world.work("go"), "").unwrap();
        let held = wait_for_snapshot(&world, &session, is_held);
        assert_eq!(held.turn.map(|turn| turn.0), turn, "{hold_at}");
        world.run(&["interrupt", &session]).code(0);
    }
}

#[test]
fn m_d1_m_d3_m_d4_a_run_is_held_released_and_closed_with_all_others() {
    let world = World::new();
    std::fs::write(world.work("tasks.md"), "- the only one\n").unwrap();
    let script = "shell: touch begun; until [ -e go ]; do sleep 0.01; done";
    let session = detached(&world, &["--tasks", "tasks.md", "--max-iterations", "0"], script);
    wait_for_snapshot(&world, &session, |_| world.work("begun").exists());
    assert!(world.run(&["hold", "--all"]).code(0).out.contains("PAUSING..."));
    assert!(
        world.run(&["release", "--all"]).code(0).out.contains("released"),
        "the request is withdrawn"
    );
    std::fs::write(world.work("go"), "").unwrap();
    let iteration = |snapshot: &Snapshot| snapshot.run.as_ref().unwrap().progress.iteration;
    wait_for_snapshot(&world, &session, |snapshot| iteration(snapshot) > 1);
    world.run(&["hold", "--all"]).code(0);
    let held = wait_for_snapshot(&world, &session, is_held);
    assert_eq!(held.turn, None, "at the end of an iteration");
    assert_eq!(iteration(&wait_for_snapshot(&world, &session, |_| true)), iteration(&held));
    world.run(&["release", "--all"]).code(0);
    wait_for_snapshot(&world, &session, |snapshot| iteration(snapshot) > iteration(&held));
    world.run(&["hold", &session]).code(0);
    wait_for_snapshot(&world, &session, is_held);
    world.run(&["close", &session]).code(0);
    let closed = wait_for_snapshot(&world, &session, |snapshot| snapshot.run.is_none());
    assert_eq!(
        (closed.hold, closed.last_run.unwrap().end.to_string().as_str()),
        (Hold::Off, "closed")
    );
}

#[test]
fn m_d5_the_goal_is_read_from_standard_input() {
    let world = World::new();
    let mut child = world
        .command(&["loop", "--policy", "all", "--spec", "-"])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(plays("shell: touch made").as_bytes()).unwrap();
    assert_eq!(wait(&mut child).code(), Some(0));
    assert!(world.work("made").exists());
}

#[test]
fn a_wrong_command_line_is_explained() {
    let world = World::new();
    let ran = world.run(&["loop"]).code(2);
    assert!(ran.err.contains("--goal"), "{}", ran.err);
    let ran = world.run(&["loop", "--spec", "nowhere.md"]).code(2);
    assert!(ran.err.contains("nowhere.md can't be read"), "{}", ran.err);
    let ran = world.run(&["loop", "--goal", " "]).code(2);
    assert!(
        ran.err.contains("the goal is empty") && ran.err.contains("--spec FILE"),
        "{}",
        ran.err
    );
    let plan = world.work("plan.md");
    std::fs::write(&plan, format!("- short\n- {}\n", "x".repeat(501))).unwrap();
    let ran = world.run(&["loop", "--goal", "x", "--tasks", "plan.md"]).code(2);
    assert!(
        ran.err.contains("plan.md: the title has 501 bytes; at most 500 are allowed: xxx"),
        "{}",
        ran.err
    );
    std::fs::write(&plan, "task\n".repeat(501)).unwrap();
    let ran = world.run(&["loop", "--goal", "x", "--tasks", "plan.md"]).code(2);
    assert!(ran.err.contains("plan.md: a session can have at most 500 tasks"), "{}", ran.err);
    assert!(world.run(&["list"]).code(0).out.starts_with("No sessions."), "no session was opened");
}
