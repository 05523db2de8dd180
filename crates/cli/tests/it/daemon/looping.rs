//! A run after a kill of its daemon: it is held in its iteration and continues when it is released.

use std::time::Instant;

use holdpoint_common::{Event, Fact, Hold, HoldCause, RunFact, Snapshot, ToolFact, ToolStatus};
use rustix::process::Signal;

use super::harness::DaemonWorld;
use crate::world::patience;

/// Waits until a file in the work folder has at least `count` lines.
fn wait_for_lines(house: &DaemonWorld, file: &str, count: usize) {
    let by = Instant::now() + patience();
    while std::fs::read_to_string(house.0.work(file)).unwrap_or_default().lines().count() < count {
        assert!(Instant::now() < by, "{file} does not come to {count} lines");
        std::thread::yield_now();
    }
}

#[test]
fn m_b7_a_run_whose_daemon_is_killed_is_held_and_resumes_its_iteration() {
    let house = DaemonWorld::new();
    let goal = "Rehearse.\n\n```rehearsal\nshell: echo once >> made; sleep 1000\n```\n";
    let args = ["loop", "--detach", "--policy", "all", "--model", "rehearsal", "--goal", goal];
    let session = house.run(&args).code(0).out.trim().to_owned();
    wait_for_lines(&house, "made", 1);
    house.signal(Signal::KILL);
    house.wait_gone();

    let shown: Snapshot =
        serde_json::from_str(&house.run(&["show", "--json", &session]).code(0).out).unwrap();
    assert!(matches!(shown.hold, Hold::Standing { cause: HoldCause::Restored, .. }), "{shown:#?}");
    let run = shown.run.unwrap();
    assert_eq!((run.progress.iteration, run.cut, run.progress.working_since), (1, true, None));
    assert!(house.run(&["list"]).code(0).out.contains("held (restored), #1"));

    // After the release the iteration continues; here it plays the script again.
    house.run(&["release", &session]).code(0);
    wait_for_lines(&house, "made", 2);
    let events = house.run(&["logs", "--json", &session]).code(0).out;
    let events: Vec<Event> =
        events.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let facts = || events.iter().filter_map(|event| event.fact());
    let resumed = |fact: &Fact| {
        matches!(fact, Fact::Run(RunFact::IterationStarted { iteration: 1, resumed: true, .. }))
    };
    assert_eq!(facts().filter(|fact| resumed(fact)).count(), 1);
    let cut = facts().any(|fact| {
        matches!(fact, Fact::Tool(ToolFact::Finished(result))
            if result.status == ToolStatus::Interrupted && result.result.contains("restarted"))
    });
    assert!(cut, "the call that was cut says so");
    house.run(&["interrupt", &session]).code(0);
}
