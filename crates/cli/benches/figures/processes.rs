//! What a supervisor adds to a command: the same one supervised, in a group of its own, and bare.

use std::process::Command;
use std::time::{Duration, Instant};

use holdpoint_tools::{Exit, ProcessSpec, Processes, Supervisor, environment};

use crate::floors::Floor;
use crate::table::{Samples, Table};

const GRACE: Duration = Duration::from_millis(500);
const ROUNDS: usize = 300;

pub(crate) fn measure(table: &Table) {
    if !table.wants("processes", &["bash -c true"]) {
        return;
    }
    for (what, supervisor) in [
        ("bash -c true, supervised: start to nothing left", Supervisor::ThisProgram),
        ("   … in a group of its own", Supervisor::None),
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
