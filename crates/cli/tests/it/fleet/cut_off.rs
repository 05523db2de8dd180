//! A machine that can't reach the database for longer than its lease, while another one can.

use std::fs;
use std::process::Command;
use std::time::Instant;

use holdpoint_tests::postgres_server::PostgresServer;

use super::resumed::wait_until_ended;
use super::{database, listed, move_to, reachable, wait_until, wait_until_gone};
use crate::world::{World, patience, rounds};

/// The database as this machine logs in, so that the machine can be cut off alone: no network lies
/// between a Unix socket and its server.
fn login(server: &PostgresServer, url: &str, machine: &str) -> String {
    server.query("postgres", &format!("CREATE ROLE {machine} SUPERUSER LOGIN"));
    url.replace("user=holdpoint", &format!("user={machine}"))
}

/// Ends the connections of a machine to the database, and refuses new ones.
fn cut_off(server: &PostgresServer, machine: &str) {
    server.query("postgres", &format!("ALTER ROLE {machine} NOLOGIN"));
    let end = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE usename = ";
    server.query("postgres", &format!("{end} '{machine}'"));
}

/// A session with a tool call that waits for a file, and a command that would begin after it.
fn waiting(world: &World, name: &str, file: &str, next: &str) {
    assert!(Command::new("mkfifo").arg(world.work(file)).status().unwrap().success());
    world.run(&["new", "--name", name, "--policy", "all"]).code(0);
    let mut attached = world.follow(name);
    let script = format!("shell: echo begun; cat '{file}'\n---\nshell: echo {next} >> starts");
    world.run(&["prompt", name, &script]).code(0);
    attached.wait_output("begun");
    attached.signal("INT");
    attached.end();
}

/// Its lease of 10 s has to end.
#[test]
fn m_i7_a_machine_without_the_database_starts_nothing_and_ends_its_work() {
    let (server, url) = database();
    let (one, two) = (reachable(&login(&server, &url, "m1"), "m1"), reachable(&url, "m2"));
    two.run(&["daemon", "start"]).code(0);
    for round in 0..rounds(1, 100) {
        let [waits, runs, idle] = ["waits", "runs", "idle"].map(|kind| format!("{kind} {round}"));
        waiting(&one, &waits, &format!("go {round}"), "waited");
        one.run(&["new", "--name", &runs, "--policy", "all"]).code(0);
        one.run(&["new", "--name", &idle, "--policy", "all"]).code(0);
        let mut attached = one.follow(&runs);
        one.run(&["prompt", &runs, "shell: echo begun; sleep 1000 & sleep 1000"]).code(0);
        attached.wait_output("begun");

        cut_off(&server, "m1");
        // The call ends, and the next one can't begin.
        fs::write(one.work(&format!("go {round}")), "").unwrap();
        let prompted = one.run(&["prompt", &idle, "shell: echo prompted >> starts", "--json"]);
        assert!(prompted.out.contains("\"saved\":false"), "{prompted:?}");
        wait_until_ended(&one);
        wait_until_gone(&two, "m1");
        for session in [&waits, &runs, &idle] {
            move_to(&two, session);
            two.run(&["prompt", session, "shell: echo moved >> starts"]).code(0);
            two.run(&["wait", session]).code(0);
        }
        server.query("postgres", "ALTER ROLE m1 LOGIN");
        wait_until(&two, "m1", true);
        for session in [&waits, &runs, &idle] {
            // The sessions end here once the machine has a lease again.
            let by = Instant::now() + patience();
            while listed(&one, session)["machine"] != "m2" {
                assert!(Instant::now() < by, "{session} is still here");
            }
            one.run(&["prompt", session, "say Hello from m1."]).code(0);
            one.run(&["wait", session]).code(0);
            assert!(two.run(&["logs", session]).code(0).out.contains("Hello from m1."));
            two.run(&["close", session]).code(0);
        }
        assert!(!one.work("starts").exists());
        let starts = fs::read_to_string(two.work("starts")).unwrap();
        assert_eq!(starts, "moved\n".repeat(3 * (round + 1)));
    }
}
