//! What the machine itself takes.

use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process_group};

use crate::support::{line_of, pidfds, wait_all};
use crate::table::{Samples, Table};

pub(crate) fn measure(table: &Table) {
    if !table.wants("floors", &[]) {
        return;
    }
    let hop = hop();
    table.note("thread to thread, p50", hop.median());
    table.note("thread to thread, p99", hop.p99());
    let spawned = Samples::of(200, || {
        let since = Instant::now();
        Command::new("/bin/true").status().unwrap();
        since.elapsed()
    });
    table.note("spawn and reap /bin/true", spawned.median());
    table.note("kill a group of four", group().median());
}

/// Half of the way there and back between two threads that block.
fn hop() -> Samples {
    let (there, hears) = mpsc::channel::<()>();
    let (answers, back) = mpsc::channel();
    let echo = std::thread::spawn(move || hears.into_iter().for_each(|()| answers.send(()).unwrap()));
    let hop = Samples::of(5_000, || {
        let since = Instant::now();
        there.send(()).unwrap();
        back.recv().unwrap();
        since.elapsed() / 2
    });
    drop(there);
    echo.join().unwrap();
    hop
}

fn group() -> Samples {
    Samples::of(100, || {
        let mut leader = Command::new("bash")
            .args(["-c", crate::trees::PLAIN])
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .unwrap();
        let watched = pidfds(&line_of(leader.stdout.take().unwrap(), "PIDS "));
        let since = Instant::now();
        kill_process_group(Pid::from_child(&leader), Signal::KILL).unwrap();
        wait_all(&watched);
        let gone = since.elapsed();
        leader.wait().unwrap();
        gone
    })
}
