//! t-P5: thousands of short commands leave no zombie and no descriptor.
#![cfg(target_os = "linux")]

use std::fs;
use std::time::{Duration, Instant};

use holdpoint_tools::testing::{Bench, in_own_process, patience, rounds};
use holdpoint_tools::{Exit, ProcessSpec, Processes, Supervisor};

#[test]
fn t_p5_many_short_commands_leave_no_resources() {
    if !in_own_process() {
        return;
    }
    let rounds = rounds(300, 10_000);
    let bench = Bench::new();
    let run = |supervisor: &Supervisor| {
        let processes = Processes::new(supervisor.clone(), Duration::from_millis(500));
        let spec = ProcessSpec {
            program: "bash".into(),
            args: vec!["-c".into(), "true".into()],
            cwd: bench.root().to_owned(),
            env: bench.workspace().env().to_vec(),
        };
        assert_eq!(processes.spawn(spec).unwrap().wait_by(None), Some(Exit::Code(0)));
        assert!(processes.finish().not_ended.is_empty());
    };
    for supervisor in [Supervisor::ThisProgram, Supervisor::None] {
        run(&supervisor);
        let (descriptors, children, threads) = settled();
        for _ in 0..rounds {
            run(&supervisor);
        }
        // Threads end just after they have reported.
        let by = Instant::now() + patience();
        let is_back = |now: (usize, usize, usize)| {
            now.0 <= descriptors && now.1 <= children && now.2 <= threads
        };
        while !is_back(now()) {
            assert!(
                Instant::now() < by,
                "{supervisor:?}: {:?}, not {:?}",
                now(),
                (descriptors, children, threads)
            );
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// The descriptors, children and threads of this process, once the last threads have ended: they do
/// so just after they have reported.
fn settled() -> (usize, usize, usize) {
    let mut least = now();
    for _ in 0..200 {
        let (descriptors, children, threads) = now();
        least = (least.0.min(descriptors), least.1.min(children), least.2.min(threads));
        std::thread::sleep(Duration::from_millis(1));
    }
    least
}

fn now() -> (usize, usize, usize) {
    let threads = || fs::read_dir("/proc/self/task").unwrap().flatten();
    let children = threads()
        .filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok())
        .map(|list| list.split_whitespace().count())
        .sum();
    (fs::read_dir("/proc/self/fd").unwrap().count(), children, threads().count())
}
