//! The time that a supervisor adds to a command, and the time that a call takes when a process keeps
//! the call's output open.

use std::process::Command;
use std::time::{Duration, Instant};

use holdpoint_common::SandboxLevel;
use holdpoint_tools::testing::Bench;
use holdpoint_tools::{
    Exit, ProcessSpec, Processes, SandboxProfile, SandboxSupport, Shell, Supervisor, environment,
};
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

/// The time of `bash -c true` in each way of starting it, in turn, so that all ways see the same
/// noise. The bound is on the time that the sandbox adds to a supervised call (t-E10).
fn bash_true(table: &Table) {
    let folder = tempfile::tempdir().unwrap();
    let base = folder.path().canonicalize().unwrap();
    let [work, temporary, caches, trial] =
        ["work", "tmp", "caches", "trial"].map(|path| base.join(path));
    std::fs::create_dir(&work).unwrap();
    let env = environment::allowed(std::env::vars());
    let home = std::env::var("HOME").unwrap();
    let profile = SandboxProfile::new(&work, home, temporary, caches);
    let small = Supervisor::Program(env!("CARGO_BIN_EXE_holdpoint-supervisor").into());
    let support = SandboxSupport::probe(&small, &trial);
    let supervised = Processes::new(small, GRACE);
    let by_this_program = Processes::new(Supervisor::ThisProgram, GRACE);
    let sandboxed = |level| supervised.sandboxed(support.sandbox(level, profile.clone()));
    let start = |processes: &Processes| {
        let spec = ProcessSpec {
            program: "bash".into(),
            args: vec!["-c".into(), "true".into()],
            cwd: work.clone(),
            env: env.clone(),
        };
        let processes = processes.with_same_settings();
        assert!(processes.spawn(spec).unwrap().wait_by(None).is_some_and(Exit::is_success));
        let _ = processes.finish();
    };
    let bwrap = sandboxed(SandboxLevel::Bwrap);
    let landlock = sandboxed(SandboxLevel::Landlock);
    let unsupervised = Processes::new(Supervisor::None, GRACE);
    let bare = |program: &str, args: &[&str]| {
        assert!(Command::new(program).args(args).output().unwrap().status.success());
    };
    let bare_bwrap = ["--ro-bind", "/", "/", "--unshare-all", "--dev", "/dev", "--proc", "/proc"];
    let ways: [(&str, &dyn Fn()); 7] = [
        ("bash -c true, supervised: start to nothing left", &|| start(&supervised)),
        ("   … and sandboxed by bwrap", &|| start(&bwrap)),
        ("   … and sandboxed by landlock", &|| start(&landlock)),
        ("   … by the whole program instead of the small one", &|| start(&by_this_program)),
        ("   … unsupervised", &|| start(&unsupervised)),
        ("   … bare", &|| bare("bash", &["-c", "true"])),
        ("   … bare, by bwrap alone", &|| {
            bare("bwrap", &[&bare_bwrap[..], &["bash", "-c", "true"]].concat());
        }),
    ];
    let mut took: [Vec<Duration>; 7] = Default::default();
    for round in 0..=ROUNDS {
        for ((_, run), took) in ways.iter().zip(&mut took) {
            let since = Instant::now();
            run();
            if round > 0 {
                took.push(since.elapsed());
            }
        }
    }
    let medians = took.map(|took| Samples::new(took).middle());
    for ((what, _), median) in ways.iter().zip(medians) {
        table.note_beside(Floor::Spawn, what, Amount::Time(median));
    }
    for (level, median) in [("bwrap", medians[1]), ("landlock", medians[2])] {
        let added = Amount::Time(median.saturating_sub(medians[0]));
        let what = format!("sandbox {level}: added to a supervised call (t-E10)");
        table.figure_beside(Floor::Spawn, &what, added, Amount::ms(4));
    }
}
