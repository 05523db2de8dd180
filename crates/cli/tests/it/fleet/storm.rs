//! Machines that are killed, or stopped for longer than their lease, under sessions that work.

use std::time::Duration;

use holdpoint_tests::postgres_server::PostgresServer;
use holdpoint_tools::testing::full;
use rustix::process::Signal;

use super::load::Load;
use super::{database, end_lease, move_to, print_times, reachable, wait_until_taken};
use crate::daemon::harness::DaemonWorld;
use crate::world::rounds;

const MACHINES: [&str; 3] = ["m1", "m2", "m3"];

/// The longest time from one fault to the next one, in milliseconds.
const PAUSE_MS: u64 = 1_500;

#[derive(Debug, Clone, Copy)]
enum Fault {
    /// Its program is killed, and starts again at once.
    Restarted,
    /// Its program is killed, and starts again after others have taken its sessions.
    Killed,
    /// Its program is stopped, and continues after others have taken its sessions.
    Stopped,
}

/// Lets a machine fail. Returns how long it took until others had taken its sessions, if they did.
fn fail(
    fault: Fault,
    victim: (&str, &DaemonWorld),
    survivor: &DaemonWorld,
    server: &PostgresServer,
) -> Option<Duration> {
    let (name, machine) = victim;
    if let Fault::Stopped = fault {
        machine.signal(Signal::STOP);
    } else {
        machine.signal(Signal::KILL);
        machine.wait_gone();
        machine.0.census.wait_none();
    }
    if let Fault::Restarted = fault {
        machine.start();
        return None;
    }
    // A machine that continues has to notice the end of its lease, so it has to be real.
    if !full() && !matches!(fault, Fault::Stopped) {
        end_lease(server, name);
    }
    let time = wait_until_taken(server, name);
    let away = format!("SELECT id FROM holdpoint.sessions WHERE home = '{name}' LIMIT 1");
    let moved = server.query("fleet", &away);
    if !moved.is_empty() {
        move_to(&survivor.0, &moved);
    }
    match fault {
        Fault::Stopped => machine.signal(Signal::CONT),
        _ => drop(machine.start()),
    }
    Some(time)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn m_i2_killed_and_stopped_machines_lose_nothing_and_start_no_call_twice() {
    let seed = fastrand::u64(..);
    let mut dice = fastrand::Rng::with_seed(seed);
    let (server, url) = database();
    let machines = MACHINES.map(|name| DaemonWorld(reachable(&url, name)));
    for machine in &machines {
        machine.start();
    }
    let load = Load::start(&format!("seed {seed}"), &machines).await;
    let mut faults = vec![Fault::Restarted; rounds(1, 100)];
    faults.resize(faults.len() + rounds(1, 100), Fault::Killed);
    faults.resize(faults.len() + rounds(1, 60), Fault::Stopped);
    dice.shuffle(&mut faults);
    let mut times = Vec::new();
    for fault in faults {
        // A random moment is the point.
        tokio::time::sleep(Duration::from_millis(dice.u64(0..PAUSE_MS))).await;
        let victim = dice.usize(0..machines.len());
        let survivor = &machines[(victim + dice.usize(1..machines.len())) % machines.len()];
        times.extend(fail(fault, (MACHINES[victim], &machines[victim]), survivor, &server));
    }
    print_times("takeovers", times);
    load.finish(&machines).await;
}
