//! The time that a supervisor adds to a command, and the time that a call takes when a process keeps
//! the call's output open.

use std::process::Command;
use std::time::{Duration, Instant};

use holdpoint_tools::testing::Bench;
use holdpoint_tools::{Exit, ProcessSpec, Processes, Shell, Supervisor, environment};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::floors::Floor;
use crate::table::{Amount, Samples, Table};

const GRACE: Duration = Duration::from_millis(500);
const ROUNDS: usize = 300;
const HELD_ROUNDS: usize = 5;

pub(crate) fn measure(table: &Table) {
    if table.wants("processes", &["bash -c true"]) {
        bash_true(table);
    }
    if table.wants("held output", &["output held open"]) {
        let writer = "setsid bash -c 'trap \"\" PIPE; while sleep 0.01; do echo more; done' & echo $!; sleep 0.1";
        for (what, supervisor, command) in [
            ("supervised", Supervisor::ThisProgram, "setsid sleep 1000 & echo $!"),
            (
                "ignoring TERM",
                Supervisor::ThisProgram,
                "(trap '' TERM; exec setsid sleep 1000) & echo $!",
            ),
            ("unsupervised", Supervisor::None, "setsid sleep 1000 & echo $!; sleep 0.1"),
            ("unsupervised, writing", Supervisor::None, writer),
        ] {
            let took = Samples::of(HELD_ROUNDS, || time_with_output_held(&supervisor, command));
            let name = format!("output held open to call ended, {what} (t-P4)");
            table.figure_beside(Floor::Spawn, &name, took.slowest(), Amount::ms(2_000));
        }
    }
}

/// The time of a whole call. The first line of the command's output is the id of the process that
/// holds the output open.
fn time_with_output_held(supervisor: &Supervisor, command: &str) -> Duration {
    let bench = Bench::new().supervisor(supervisor.clone());
    let since = Instant::now();
    let called = bench.call(Shell::new(), json!({ "command": command }));
    let took = since.elapsed();
    // A supervisor has already ended the process.
    if matches!(supervisor, Supervisor::None) {
        let pid = called.output.lines().next().unwrap().parse().unwrap();
        kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
    }
    took
}

fn bash_true(table: &Table) {
    for (what, supervisor) in [
        ("bash -c true, supervised: start to nothing left", Supervisor::ThisProgram),
        ("   … unsupervised", Supervisor::None),
    ] {
        let took = Samples::of(ROUNDS, || {
            let since = Instant::now();
            let processes = Processes::new(supervisor.clone(), GRACE);
            let spec = ProcessSpec {
                program: "bash".into(),
                args: vec!["-c".into(), "true".into()],
                cwd: "/".into(),
                env: environment::allowed(std::env::vars()),
            };
            assert!(processes.spawn(spec).unwrap().wait_by(None).is_some_and(Exit::is_success));
            let _ = processes.finish();
            since.elapsed()
        });
        table.note_beside(Floor::Spawn, what, took.median());
    }
    let bare = Samples::of(ROUNDS, || {
        let since = Instant::now();
        Command::new("bash").args(["-c", "true"]).output().unwrap();
        since.elapsed()
    });
    table.note_beside(Floor::Spawn, "   … bare", bare.median());
}
