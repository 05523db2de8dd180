//! No process of a sandbox outlives its owner.

use std::io::{BufRead, Write};
use std::process::{Child, Stdio};
use std::time::Duration;

use holdpoint_common::SandboxLevel;
use holdpoint_tools::testing::{Census, again, part, rounds};
use serde_json::{Value, json};

use super::{World, read_all};

/// A command that leaves processes in many ways, and continues to start others.
const TREE: &str = "
    sleep 1000 & setsid sleep 1000 & setsid --fork sleep 1000
    ( ( sleep 1000 & ) & )
    nohup sleep 1000 > /dev/null 2>&1 &
    set -m; sleep 1000 & disown -a; set +m
    (setsid bash -c 'cd /; exec <&- >/dev/null 2>&1; (setsid sleep 1000 &) & exit' &)
    (trap '' TERM HUP INT; sleep 1000) & (trap '' TERM; setsid sleep 1000) &
    sleep 1000 & kill -STOP $!
    deep() { if [ $1 = 0 ]; then sleep 1000; else (deep $(($1 - 1))) & sleep 1000; fi; }; deep 8 &
    (trap 'setsid sleep 1000 & setsid sleep 1000 & wait' TERM; while :; do sleep 0.01; done) &
    while :; do /bin/true; done &
    sleep 1000";

/// The least number of processes of the tree, besides the supervisor and bubblewrap.
const COUNT: usize = 25;

#[test]
fn m_g2_nothing_is_left_of_a_sandbox_when_its_owner_is_killed() {
    if part().is_some() {
        return owned();
    }
    let world = World::new();
    for level in world.levels() {
        let census = Census::new();
        let mut owner = owner(&world, &census, level);
        census.wait_living(COUNT);
        owner.kill().unwrap();
        owner.wait().unwrap();
        census.wait_none();
    }
}

#[test]
fn m_g2_nothing_is_left_of_a_sandbox_when_its_owner_is_killed_at_any_moment() {
    if part().is_some() {
        return owned();
    }
    let world = World::new();
    for level in world.levels() {
        let mut most = 0;
        for round in 0..rounds(10, 100) {
            let census = Census::new();
            let mut owner = owner(&world, &census, level);
            // Not a wait for an event: the moments are spread over the time that the sandbox and
            // all processes take to start.
            std::thread::sleep(Duration::from_micros((round * 79_193) % 300_000));
            most = most.max(census.living().len());
            owner.kill().unwrap();
            owner.wait().unwrap();
            census.wait_none();
        }
        println!("{level}: up to {most} processes");
    }
}

/// Starts another process that runs the tree in a sandbox until it is killed.
fn owner(world: &World, census: &Census, level: SandboxLevel) -> Child {
    let mut owner = again("owner").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    // The mark is not in its environment, because the owner itself must not be counted.
    let order = json!({ "mark": census.mark(), "level": level, "world": world.base });
    writeln!(owner.stdin.as_mut().unwrap(), "{order}").unwrap();
    owner
}

/// The owner process: runs the tree.
fn owned() {
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line).unwrap();
    let order: Value = serde_json::from_str(&line).unwrap();
    let level = serde_json::from_value(order["level"].clone()).unwrap();
    let world = World::within(None, order["world"].as_str().unwrap().into());
    let mut spec = world.spec(TREE);
    spec.env.push(("HOLDPOINT_TEST".into(), order["mark"].as_str().unwrap().into()));
    let processes = world.processes(level, world.profile());
    let mut process = processes.spawn(spec).unwrap();
    let output = read_all(&mut process);
    panic!("the tree has ended by itself: {output}");
}
