//! The memory and the time that an idle session costs.

use std::fs;
use std::process::Command;
use std::time::Instant;

use holdpoint_common::{Limits, Who};
use holdpoint_session::model::Catalog;
use holdpoint_session::{Engine, OpenSession, Sessions};
use tempfile::TempDir;

use crate::floors::Floor;
use crate::table::{Amount, Table};

/// Opens sessions in a fresh process and prints their cost.
pub(crate) const SESSIONS: &str = "--sessions";

const COUNT: u64 = 1_000;
const ROUNDS: usize = 5;

pub(crate) fn measure(table: &Table) {
    if !table.wants("many", &["idle session", "opening 1,000 sessions"]) {
        return;
    }
    let rounds: Vec<[u64; 3]> = (0..ROUNDS).map(|_| fresh()).collect();
    let median = |which: usize| {
        let mut values: Vec<u64> = rounds.iter().map(|round| round[which]).collect();
        values.sort_unstable();
        values[values.len() / 2]
    };
    table.figure(
        "idle session (memory grown over 1,000)",
        Amount::Bytes(median(0)),
        Amount::kib(20),
    );
    table.figure_beside(
        Floor::Hop,
        "opening 1,000 sessions, one after the other",
        Amount::us(median(1)),
        Amount::ms(50),
    );
    table.note("   … all in one folder and unnamed", Amount::us(median(2)));
}

fn fresh() -> [u64; 3] {
    let output = Command::new(std::env::current_exe().unwrap()).arg(SESSIONS).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let numbers = String::from_utf8(output.stdout).unwrap();
    let numbers: Vec<u64> =
        numbers.split_whitespace().map(|number| number.parse().unwrap()).collect();
    numbers.try_into().unwrap()
}

/// Prints the bytes of each session, and the microseconds to open all, named and then unnamed.
pub(crate) fn sessions() {
    let folder = TempDir::new().unwrap();
    let engine = || {
        let limits = Limits { max_sessions: 2_000, ..Limits::default() };
        Engine::builder(Catalog::default()).limits(limits).start().unwrap()
    };
    let open = |sessions: &Sessions, count: u64, named: bool| {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let since = Instant::now();
            for n in 0..count {
                let open = OpenSession::in_folder(folder.path()).model("rehearsal");
                let open = if named { open.name(format!("{count}-{n}")) } else { open };
                sessions.open(open).await.unwrap();
            }
            since.elapsed()
        })
    };
    let named = engine();
    let sessions = named.sessions(Who::named("figures"));
    // The first sessions pay for the parts that an engine needs once.
    open(&sessions, 10, true);
    let before = resident();
    let took = open(&sessions, COUNT, true);
    let each = resident().saturating_sub(before) / COUNT;
    drop((sessions, named));
    let unnamed = engine();
    let sessions = unnamed.sessions(Who::named("figures"));
    let crowded = open(&sessions, COUNT, false);
    println!("{each} {} {}", took.as_micros(), crowded.as_micros());
}

fn resident() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}
