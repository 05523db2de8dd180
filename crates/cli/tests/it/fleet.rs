//! Several machines that keep their sessions in one database. Each machine is a world of its own.

mod attached;
mod away;
mod cut_off;
mod database_killed;
mod example;
mod forwarding;
mod keys;
mod load;
mod lost_reply;
mod moving;
mod places;
mod resumed;
mod storm;

use std::io::Write;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use holdpoint_tests::postgres_server::PostgresServer;
use serde_json::Value;

use crate::world::{Ran, Running, World, patience};

fn database() -> (PostgresServer, String) {
    let server = PostgresServer::start(Path::new(env!("CARGO_TARGET_TMPDIR")));
    let url = server.database("fleet");
    (server, url)
}

/// A machine that has joined the fleet under this name. The others can't reach it.
fn member(database: &str, name: &str) -> World {
    joined(database, name, &[])
}

/// A machine that has joined the fleet under this name, and that the others can reach.
fn reachable(database: &str, name: &str) -> World {
    joined(database, name, &["--listen", "127.0.0.1:0"])
}

fn joined(database: &str, name: &str, options: &[&str]) -> World {
    let world = World::new();
    world.run(&[&["fleet", "join", database, "--name", name], options].concat()).code(0);
    world
}

fn json(ran: &Ran) -> Value {
    serde_json::from_str(&ran.out).unwrap()
}

/// The summary of the session with this name in the list.
fn listed(world: &World, name: &str) -> Value {
    let list = json(&world.run(&["list", "--json"]));
    let sessions = list["sessions"].as_array().unwrap();
    sessions.iter().find(|session| session["name"] == name).cloned().unwrap_or_default()
}

/// Waits until no machine has a session. One that has just started may still be mending it.
fn wait_until_saved(world: &World, name: &str) {
    let by = Instant::now() + patience();
    while listed(world, name)["live"] != false {
        assert!(Instant::now() < by, "a machine still has {name}");
    }
}

/// Lets the lease of a machine end that can't renew it: its program is killed or stopped.
fn end_lease(server: &PostgresServer, name: &str) {
    let statement = format!("UPDATE holdpoint.machines SET until = now() WHERE name = '{name}'");
    server.query("fleet", &statement);
}

/// Waits until other machines have taken the sessions of a machine, and returns the time that took.
fn wait_until_taken(server: &PostgresServer, name: &str) -> Duration {
    let begun = Instant::now();
    let owned = format!("SELECT count(*) FROM holdpoint.sessions WHERE owner = '{name}'");
    while server.query("fleet", &owned) != "0" {
        assert!(begun.elapsed() < patience(), "{name} still has its sessions");
    }
    begun.elapsed()
}

/// Moves a session of a machine without a lease to a folder of this one, which learns within a second
/// that the lease has ended.
fn move_to(world: &World, session: &str) {
    let folder = world.path("work").canonicalize().unwrap();
    let by = Instant::now() + patience();
    loop {
        let ran = world.run(&["move", session, "--cwd", folder.to_str().unwrap()]);
        if ran.code == Some(0) {
            return;
        }
        assert!(Instant::now() < by, "{ran:?}");
    }
}

/// Prints the distribution of times.
fn print_times(of: &str, mut times: Vec<Duration>) {
    times.sort();
    if let Some(longest) = times.last() {
        let at = |percent: usize| times[(times.len() - 1) * percent / 100];
        println!(
            "{of}: {} times, {:?} p50, {:?} p99, {longest:?} at most",
            times.len(),
            at(50),
            at(99)
        );
    }
}

/// Waits for the end of a stream of events, in which the numbers rise.
fn end_in_order(attached: Running) {
    let (status, seen, err) = attached.end();
    assert!(status.success(), "{err}");
    let numbers: Vec<_> = seen.iter().map(|event| event.seq).collect();
    assert!(numbers.is_sorted_by(|left, right| left < right), "{numbers:?}");
}

/// The state of a machine in the list of the fleet.
fn machine(world: &World, name: &str) -> Value {
    let list = json(&world.run(&["fleet", "list", "--json"]));
    let machines = list["machines"].as_array().unwrap();
    machines.iter().find(|machine| machine["name"] == name).cloned().unwrap_or_default()
}

/// Waits until a machine has given back its lease. A daemon that stops does not wait for a slow
/// database for long; then the lease ends by itself.
fn wait_until_gone(world: &World, name: &str) {
    wait_until(world, name, false);
}

/// Waits until a machine has a lease, or has none.
fn wait_until(world: &World, name: &str, has_lease: bool) {
    let by = Instant::now() + patience();
    while machine(world, name)["hasLease"] != has_lease {
        assert!(Instant::now() < by, "{name} has a lease: {}", !has_lease);
    }
}

#[test]
fn a_fleet_machine_brings_its_sessions_and_gets_its_own_back_when_it_leaves() {
    let (_server, url) = database();
    let world = World::new();
    world.run(&["new", "--name", "old"]).code(0);
    world.run(&["prompt", "old", "say Hello."]).code(0);
    world.run(&["wait", "old"]).code(0);
    world.run(&["daemon", "stop"]).code(0);
    let joined = world.run(&["fleet", "join", &url, "--name", "m1"]).code(0);
    assert_eq!(joined.out, "this machine is `m1` in the fleet\n");
    assert!(joined.err.contains("1 session copied"), "{}", joined.err);
    let old = listed(&world, "old");
    assert_eq!((&old["machine"], &old["live"]), (&Value::Null, &false.into()));
    // It continues.
    world.run(&["prompt", "old", "say Again."]).code(0);
    world.run(&["wait", "old"]).code(0);
    let export = world.run(&["export", "old"]);
    assert!(export.out.contains("Hello.") && export.out.contains("Again."), "{}", export.out);
    assert_eq!(json(&world.run(&["status", "--json"]))["machine"], "m1");
    let status = world.run(&["status"]).out;
    assert!(status.contains("this machine is `m1`"), "{status}");

    let busy = world.run(&["fleet", "leave"]).code(1);
    assert!(busy.err.contains("`holdpoint daemon stop`"), "{}", busy.err);
    world.run(&["daemon", "stop"]).code(0);
    world.run(&["fleet", "leave"]).code(0);
    // The file has the session as it was.
    let export = world.run(&["export", "old"]);
    assert!(export.out.contains("Hello.") && !export.out.contains("Again."), "{}", export.out);
    world.run(&["daemon", "stop"]).code(0);
    // The fleet has a continuation of the session, which the file lacks: it stays as it is.
    let joined = world.run(&["fleet", "join", &url, "--name", "m1"]).code(0);
    assert!(!joined.err.contains("copied"), "{}", joined.err);
    assert!(world.run(&["export", "old"]).out.contains("Again."));
}

#[test]
fn m_i13_a_session_is_read_on_every_machine_and_runs_on_its_own() {
    let (_server, url) = database();
    let (one, two) = (member(&url, "m1"), member(&url, "m2"));
    one.run(&["new", "--name", "shared"]).code(0);
    one.run(&["prompt", "shared", "say Hello."]).code(0);
    one.run(&["wait", "shared"]).code(0);
    let shared = listed(&two, "shared");
    assert_eq!((&shared["machine"], &shared["live"]), (&"m1".into(), &true.into()));
    two.run(&["new", "--name", "own"]).code(0);
    let names = |options: &[&str]| {
        let list = json(&two.run(&[&["list", "--json"], options].concat()).code(0));
        let sessions = list["sessions"].as_array().unwrap().iter();
        sessions.map(|session| session["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(&["--machine", "m1"]), ["shared"]);
    assert_eq!(names(&["--machine", "m2"]), ["own"]);
    // The same path on another machine is another folder.
    let folder = shared["workspace"].as_str().unwrap();
    assert_eq!(names(&["--cwd", folder]), Vec::<String>::new());
    let list = two.run(&["list"]).code(0).out;
    assert!(list.contains(&format!(" m1:{folder} ")) && !list.contains("m2:"), "{list}");
    assert!(two.run(&["export", "shared"]).out.contains("Hello."));
    let refused = two.run(&["prompt", "shared", "say No."]).code(1);
    assert!(refused.err.contains("the machine `m1` can't be reached"), "{}", refused.err);
    assert!(refused.err.contains("it joined the fleet without `--listen`"), "{}", refused.err);
    assert!(refused.err.contains("hint: see docs/fleet.md"), "{}", refused.err);
    // Its state is in the database.
    assert!(two.run(&["show", "shared"]).code(0).out.contains("shared"));
    assert_eq!(machine(&two, "m1")["hasLease"], true);
    assert_eq!(machine(&two, "m1")["sessions"], 1);

    // A machine that is gone leaves its session, which does not run in another folder.
    one.run(&["daemon", "stop"]).code(0);
    wait_until_gone(&two, "m1");
    assert_eq!(listed(&two, "shared")["live"], false);
    let away = two.run(&["prompt", "shared", "say No."]).code(1);
    assert!(away.err.contains("works in a folder of `m1`"), "{}", away.err);
    two.run(&["rename", "shared", "renamed"]).code(0);
    assert_eq!(listed(&two, "renamed")["machine"], "m1");
    assert_eq!(listed(&one, "renamed")["machine"], Value::Null);
    one.run(&["prompt", "renamed", "say Again."]).code(0);
    one.run(&["wait", "renamed"]).code(0);
    let exported = two.run(&["export", "renamed"]).out;
    assert!(exported.contains("Again.") && exported.contains("@m2\""), "{exported}");
    one.run(&["daemon", "stop"]).code(0);
    wait_until_gone(&two, "m1");

    let table = two.run(&["fleet", "list"]).out;
    assert!(table.contains("m2 (this machine)") && table.contains("does not respond"), "{table}");
    let own = two.run(&["fleet", "remove", "m2"]).code(2);
    assert!(own.err.contains("`holdpoint fleet leave`"), "{}", own.err);
    two.run(&["fleet", "remove", "m1"]).code(0);
    assert_eq!(machine(&two, "m1"), Value::Null);
    two.run(&["fleet", "remove", "m1"]).code(1);
    // Its program is listed again when it starts.
    one.run(&["daemon", "start"]).code(0);
    let refused = two.run(&["fleet", "remove", "m1"]).code(1);
    assert!(refused.err.contains("lease"), "{}", refused.err);
}

#[test]
fn a_machine_that_can_not_join_is_left_as_it_was() {
    let (mut server, url) = database();
    let world = World::new();
    let fails = |args: &[&str], code: i32, words: &str| {
        let ran = world.run(&[&["fleet"], args].concat()).code(code);
        assert!(ran.err.contains(words) && ran.err.contains("hint: "), "{args:?}: {}", ran.err);
    };
    fails(&["list"], 1, "this machine is in no fleet");
    fails(&["leave"], 1, "this machine is in no fleet");
    fails(&["join", "no address", "--name", "m1"], 2, "the address of the database is not valid");
    fails(&["join", &url, "--name", "m 1"], 2, "can't be the name of a machine");
    let listen = |address| ["join", &url, "--name", "m1", "--listen", address];
    fails(&listen("10.0.0.5"), 2, "can't listen on 10.0.0.5: invalid socket address");
    fails(&listen("0.0.0.0:7443"), 2, "the other machines can't connect to it");
    let with_password = format!("{url} password=secret");
    fails(&["join", &with_password, "--name", "m1"], 2, "other users can see the password");
    fails(&["join", &url.replace("fleet", "none"), "--name", "m1"], 1, "does not exist");
    world.run(&["daemon", "start"]).code(0);
    fails(&["join", &url, "--name", "m1"], 1, "another process is using the sessions");
    world.run(&["daemon", "stop"]).code(0);
    let _first = member(&url, "m1");
    fails(&["join", &url, "--name", "m1"], 1, "belongs to another machine");
    assert!(!world.path("data/holdpoint/fleet.json").exists());

    // From standard input, an address may have a password.
    let mut join = world.command(&["fleet", "join", "-", "--name", "m2"]);
    let mut join = join.stdin(Stdio::piped()).spawn().unwrap();
    writeln!(join.stdin.take().unwrap(), "{with_password}").unwrap();
    assert!(join.wait().unwrap().success());
    fails(&["join", &url, "--name", "m3"], 1, "in a fleet already, as `m2`");

    server.kill();
    let ran = world.run(&["list"]).code(1);
    assert!(ran.err.contains("the database of the fleet can't be used"), "{}", ran.err);
    assert!(
        ran.err.contains("`holdpoint fleet leave`") && !ran.err.contains("secret"),
        "{}",
        ran.err
    );
    fails(&["list"], 1, "the machines of the fleet can't be read");
    // It can leave without the database.
    let left = world.run(&["fleet", "leave"]).code(0);
    assert!(left.err.contains("the fleet still lists it"), "{}", left.err);
    world.run(&["list"]).code(0);
    world.run(&["daemon", "stop"]).code(0);
    // The fleet recognizes it when it joins again.
    server.restart();
    world.run(&["fleet", "join", &url, "--name", "m2"]).code(0);
    // As does a try that is killed before the membership is recorded.
    std::fs::remove_file(world.path("data/holdpoint/fleet.json")).unwrap();
    world.run(&["fleet", "join", &url, "--name", "m2"]).code(0);
}

#[test]
fn m_i18_a_command_in_a_sandbox_reaches_neither_the_database_nor_its_address() {
    let (_server, url) = database();
    let world = member(&url, "m1");
    let folder = url.split_whitespace().find_map(|part| part.strip_prefix("host=")).unwrap();
    let connect = format!(
        "import socket; socket.socket(socket.AF_UNIX).connect(\"{folder}/.s.PGSQL.5432\"); \
         print(\"connec\" + \"ted\")"
    );
    let record = world.path("data/holdpoint/fleet.json");
    let command = format!("cat '{}'; python3 -c '{connect}'", record.display());
    for (level, reaches) in [("off", true), ("landlock", false), ("bwrap", false)] {
        let new = ["new", "--name", level, "--sandbox", level, "--policy", "all"];
        world.run(&new).code(0);
        world.run(&["prompt", level, &format!("shell: {command}")]).code(0);
        world.run(&["wait", level]).code(0);
        let log = world.run(&["logs", level]).code(0).out;
        let found = [log.contains("\"database\":"), log.contains("connected")];
        assert_eq!(found, [reaches, reaches], "{level}: {log}");
    }
}
