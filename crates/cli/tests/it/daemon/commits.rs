//! How often the daemon waits for the disk.

use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use super::client::Api;
use super::harness::DaemonWorld;
use crate::world::{patience, wait};

/// How many writes to the disk the daemon has waited for, by the report of `strace`.
fn syncs(report: &Path) -> usize {
    let text = std::fs::read_to_string(report).unwrap();
    text.lines().filter(|line| line.contains("sync(")).count()
}

/// Facts that follow each other at once share a commit, so a turn waits for few of them. A machine
/// that stalls splits them: the least of several turns counts.
#[test]
fn m_b8_a_turn_waits_for_few_commits() {
    let house = DaemonWorld::new();
    let report = house.0.path("syncs");
    let daemon = house.0.command(&["daemon"]);
    let mut strace = Command::new("strace");
    strace.args(["-f", "-e", "trace=fsync,fdatasync", "-o"]).arg(&report).arg(daemon.get_program());
    strace.args(daemon.get_args()).current_dir(house.0.path("work")).env_clear();
    let mut daemon = strace.env("PATH", "/usr/bin:/bin").envs(house.0.env()).spawn().unwrap();
    let by = Instant::now() + patience();
    while UnixStream::connect(house.socket()).is_err() {
        assert!(Instant::now() < by, "the daemon does not listen");
        std::thread::yield_now();
    }
    let api = Api::new(&house);

    let least = |act: &dyn Fn()| {
        let one = || {
            let before = syncs(&report);
            act();
            syncs(&report) - before
        };
        (0..10).map(|_| one()).min().unwrap()
    };
    assert_eq!(least(&|| drop(api.open("all"))), 1, "a new session");
    let session = api.open("all");
    let turn = |script: &str| {
        least(&|| {
            api.prompt(&session, script);
            api.settled(&session);
        })
    };
    // The prompt, the step, and the answer with the end.
    assert_eq!(turn("say Hello."), 3, "a turn of text");
    // The same, and the answer with the call's start, and its end with the next step.
    assert_eq!(turn("shell: true\n---\nsay Done."), 5, "a turn with a call");

    house.run(&["daemon", "stop"]).code(0);
    wait(&mut daemon);
}
