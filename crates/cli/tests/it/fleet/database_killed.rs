//! A database that is killed under sessions that work.

use std::time::Duration;

use super::load::Load;
use super::{database, reachable};
use crate::daemon::harness::DaemonWorld;
use crate::world::rounds;

/// The longest time from one kill to the next one, in milliseconds.
const PAUSE_MS: u64 = 1_500;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn m_i4_sessions_continue_after_kills_of_the_database_and_lose_nothing() {
    let (mut server, url) = database();
    let machines = ["m1", "m2"].map(|name| DaemonWorld(reachable(&url, name)));
    for machine in &machines {
        machine.start();
    }
    let load = Load::start("database", &machines).await;
    for _ in 0..rounds(2, 20) {
        // A random moment is the point.
        tokio::time::sleep(Duration::from_millis(fastrand::u64(0..PAUSE_MS))).await;
        server.kill();
        server.restart();
    }
    load.finish(&machines).await;
}
