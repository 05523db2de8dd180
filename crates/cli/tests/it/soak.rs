//! The soak: people who do everything at once to a real daemon, round after round, while it is stopped and killed under
//! them; after each round every session's log is held against the invariants and against what anybody saw or was told.
//!
//! `HOLDPOINT_SOAK_SECONDS` says for how long (20 if not said, 60 in the long version), `HOLDPOINT_SOAK_SEED` who does what when: the same seed
//! makes the same choices. The first half is one daemon that is never stopped, whose memory, threads and descriptors
//! are measured between rounds; in the second half each round ends with a stop or a kill.
#![cfg(target_os = "linux")]

mod client;
mod gauge;
mod ledger;
mod log;
mod person;

use std::sync::Arc;
use std::time::{Duration, Instant};

use holdpoint_session::Sessions;
use rustix::process::Signal;
use tokio::task::JoinSet;

use crate::daemon::house::House;
use crate::world::rounds;
use gauge::Gauge;
use ledger::Ledger;
use person::Person;

/// Who does something at the same time.
const PEOPLE: u64 = 8;

/// How long a round is, in ms: long enough for turns to end, short enough for many ends.
const ROUND_MS: std::ops::Range<u64> = 1_500..5_000;

/// How a round ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// Everybody leaves; the daemon goes on.
    Calm,
    /// It is told to stop while everybody is at it.
    Stopped,
    /// It is killed while everybody is at it.
    Killed,
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name} is a whole number")))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_invariants_hold_under_load_and_fault() {
    let seconds = number("HOLDPOINT_SOAK_SECONDS", rounds(20, 60) as u64);
    let seed = number("HOLDPOINT_SOAK_SEED", fastrand::u64(..));
    println!("HOLDPOINT_SOAK_SECONDS={seconds} HOLDPOINT_SOAK_SEED={seed}");
    let mut dice = fastrand::Rng::with_seed(seed);
    let house = House::new();
    house.0.config("[limits]\ngrace_ms = 100\n");
    house.start();

    let begun = Instant::now();
    let mut gauge = Gauge::new(&house);
    let (mut done, mut kills, mut stops, mut acts, mut unsaved) = (0_u64, 0, 0, 0, 0);
    while begun.elapsed() < Duration::from_secs(seconds) {
        done += 1;
        let faults = begun.elapsed() > Duration::from_secs(seconds) / 2;
        let end = match dice.u8(0..10) {
            0..6 if faults => End::Killed,
            6..8 if faults => End::Stopped,
            _ => End::Calm,
        };
        let length = Duration::from_millis(dice.u64(ROUND_MS));
        let ledger = Arc::new(Ledger::new(format!("seed {seed}, round {done}, {end:?}")));

        let mut people = JoinSet::new();
        for number in 0..PEOPLE {
            let person = Person::new(&house, number, seed.wrapping_mul(31) ^ (done << 8) ^ number, &ledger);
            people.spawn(person.busy(Instant::now() + length));
        }
        if end != End::Calm {
            tokio::time::sleep(length.mul_f64(0.8)).await;
            ledger.falls();
            match end {
                End::Killed => house.signal(Signal::KILL),
                _ => drop(house.run(&["daemon", "stop"]).code(0)),
            }
            house.wait_gone();
        }
        while let Some(person) = people.join_next().await {
            acts += person.unwrap_or_else(|error| panic!("{}: {error}", ledger.round));
        }
        if end != End::Calm {
            house.0.census.wait_none();
            house.start();
        }
        kills += u64::from(end == End::Killed);
        stops += u64::from(end == End::Stopped);
        unsaved += ledger.unsaved();

        let sessions = house.sessions();
        ledger.check(&sessions, house.0.census.mark()).await;
        all_gone(&sessions, &ledger.round).await;
        let log = house.log();
        let panic = log.lines().find(|line| line.contains("panicked"));
        assert_eq!(panic, None, "{}", ledger.round);
        if !faults {
            gauge.read(&house);
        }
    }
    println!("{done} rounds, {acts} acts ({unsaved} not saved in time), {kills} kills, {stops} stops; {gauge}");
    // How many were not saved in time is the disk's affair; that some were is not.
    assert!(unsaved < acts, "seed {seed}: of {acts} acts, {unsaved} were not saved in time");
    gauge.check();
}

/// Closes and deletes every session, so that the next round begins with none.
async fn all_gone(sessions: &Sessions, round: &str) {
    for session in sessions.list().await.unwrap() {
        if session.live {
            sessions.get(session.id.as_str()).await.unwrap().close().await.unwrap();
        }
        sessions.delete(session.id.as_str()).await.unwrap();
    }
    assert!(sessions.list().await.unwrap().is_empty(), "{round}: nothing is left");
}
