//! Many sessions in a daemon, and the memory of one turn.

use std::fs;
use std::process::{Command, Stdio};
use std::time::Instant;

use holdpoint_common::PolicyMode;
use holdpoint_tests::model_server::Reply;

use crate::api::DaemonWorld;
use crate::daemon::{StateDir, unshared};
use crate::floors::Floor;
use crate::program::USAGE_OF;
use crate::support::{MODEL, succeed, turn_finished};
use crate::table::{Amount, Samples, Table};

const OPENED: usize = 1_000;
/// The sessions whose memory is measured after a turn, and those before them.
const TURNS: usize = 100;
const WARM_UP: usize = 20;
const ROUNDS: usize = 5;

pub(crate) fn measure(table: &Table) {
    if table.wants("opened", &["1,000 sessions opened over the API"]) {
        let opened = Samples::of(ROUNDS, || {
            let world = roomy();
            let since = Instant::now();
            world.runtime.block_on(async {
                for _ in 0..OPENED {
                    world.open(MODEL, PolicyMode::Ask).await;
                }
            });
            since.elapsed()
        });
        table.figure_beside(
            Floor::Sync,
            "1,000 sessions opened over the API, one after the other",
            opened.median(),
            Amount::ms(350),
        );
        let floors = table.floors();
        let each = floors.of(Floor::RoundTrip) + floors.of(Floor::Sync);
        let all = Amount::Time(each * u32::try_from(OPENED).unwrap());
        table.note("   … a round trip over a socket and a sync for each", all);
        table.note("   … a request that only reads for each", requests());
    }
    if table.wants("first turns", &["session after its first turn"]) {
        let each = Amount::Bytes(after_a_turn());
        table.figure("memory of a session after its first turn", each, Amount::kib(50));
    }
    if table.wants("turn in a daemon", &["text turn in a daemon"]) {
        let mut both: Vec<_> = (0..ROUNDS).map(|_| text_turn()).collect();
        both.sort_unstable();
        let what = "text turn in a daemon, memory of client and daemon (peaks)";
        table.figure(what, Amount::Bytes(both[ROUNDS / 2]), Amount::mib(36));
    }
}

/// A daemon with room for all of these sessions.
fn roomy() -> DaemonWorld {
    let place = StateDir::new();
    place.configure("[limits]\nmax_sessions = 2000\n");
    DaemonWorld::on(place)
}

/// As many requests to a daemon as sessions are opened. Each finds an open session.
fn requests() -> Amount {
    let world = DaemonWorld::new();
    world.runtime.block_on(async {
        let session = world.open(MODEL, PolicyMode::Ask).await;
        let since = Instant::now();
        for _ in 0..OPENED {
            world.sessions.get(session.id().as_str()).await.unwrap();
        }
        Amount::Time(since.elapsed())
    })
}

/// The bytes that each session adds to a daemon.
fn after_a_turn() -> u64 {
    let world = roomy();
    let turns = |count: usize| {
        world.runtime.block_on(async {
            for _ in 0..count {
                world.server.reply(Reply::text(["Hello, ", "world."]));
                let (session, mut client) = world.watched(MODEL).await;
                session.prompt("go").await.unwrap();
                turn_finished(&mut client).await;
            }
        });
        unshared(world.place.pid()).0
    };
    let before = turns(WARM_UP);
    (turns(TURNS) - before) / TURNS as u64
}

/// The peak memory of a daemon and of a client that runs one turn in it, together.
fn text_turn() -> u64 {
    let world = DaemonWorld::new();
    world.server.reply(Reply::text(["Hello, ", "world."]));
    let report = world.place.folder().join("usage");
    let program = world.place.command(&["run", "--policy", "all", "--model", MODEL, "go"]);
    // A spawned process inherits its parent's peak, so the parent must be small.
    let mut parent = Command::new(std::env::current_exe().unwrap());
    parent.arg(USAGE_OF).arg(&report).arg(program.get_program()).args(program.get_args());
    parent.env("OPENAI_BASE_URL", world.server.base_url()).current_dir(world.place.folder());
    parent.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    succeed(parent.spawn().unwrap());
    let report = fs::read_to_string(report).unwrap();
    let client: u64 = report.split(' ').nth(1).unwrap().parse().unwrap();
    client + world.place.peak()
}
