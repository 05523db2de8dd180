//! How soon the processes of a tool are gone after an interrupt, and after the program itself is
//! killed.

use std::os::fd::OwnedFd;
use std::process::Stdio;
use std::time::{Duration, Instant};

use holdpoint_common::{Delta, Fact, TurnFact};
use holdpoint_session::Attachment;
use holdpoint_tests::model_server::Reply;
use serde_json::json;
use tempfile::TempDir;

use crate::floors::Floor;
use crate::support::{EngineWorld, MODEL, holdpoint, line_of, pidfds, pids_in, until, wait_all};
use crate::table::{Amount, Samples, Table};

// Each command prints the ids of its four processes and waits. The shell assembles the mark, so
// that only the output contains it.
pub(crate) const PLAIN: &str =
    "sleep 1000 & a=$!; sleep 1000 & b=$!; sleep 1000 & echo PI'DS' $$ $a $b $!; wait";
const SETSID: &str = "setsid sleep 1000 & a=$!; setsid sleep 1000 & b=$!; setsid sleep 1000 & c=$!; sleep 0.02; \
                      echo PI'DS' $$ $a $b $c; wait";
pub(crate) const IGNORING: &str = "trap '' TERM; sleep 1000 & a=$!; setsid sleep 1000 & b=$!; sleep 1000 & \
                        echo PI'DS' $$ $a $b $!; wait; wait; wait";
const MARK: &str = "PIDS ";
/// The default of `grace_ms`.
const GRACE: Duration = Duration::from_millis(500);

pub(crate) fn measure(table: &Table) {
    if table
        .wants("trees, interrupted", &["interrupt to plain tree gone", "setsid", "TERM-ignoring"])
    {
        let world = EngineWorld::new();
        let (plain, notified) = interrupted(&world, PLAIN, 100, Duration::ZERO);
        table.figure_beside(
            Floor::Kill,
            "interrupt to plain tree gone",
            plain.median(),
            Amount::ms(3),
        );
        table.note("   … and the client has the receipt", notified.median());
        let (setsid, notified) = interrupted(&world, SETSID, 100, Duration::ZERO);
        table.figure_beside(
            Floor::Kill,
            "interrupt to setsid tree gone",
            setsid.median(),
            Amount::ms(6),
        );
        table.note("   … and the client has the receipt", notified.median());
        let (ignoring, notified) = interrupted(&world, IGNORING, 10, GRACE);
        table.figure_beside(
            Floor::Kill,
            "interrupt to TERM-ignoring tree gone, beyond the grace",
            ignoring.median(),
            Amount::ms(10),
        );
        table.note("   … and the client has the receipt", notified.median());
    }
    if table.wants("trees, owner SIGKILLed", &["owner SIGKILLed to all gone"]) {
        for (name, command, rounds, most) in [
            ("plain", PLAIN, 50, GRACE + Duration::from_millis(100)),
            ("setsid", SETSID, 50, GRACE + Duration::from_millis(100)),
            ("TERM-ignoring", IGNORING, 10, GRACE + Duration::from_millis(100)),
        ] {
            let gone = orphaned(command, rounds);
            table.figure_beside(
                Floor::Kill,
                &format!("owner SIGKILLed to all gone, {name}"),
                gone.median(),
                Amount::Time(most),
            );
            table.note("   … p99", gone.p99());
        }
    }
}

/// The times from an interrupt until the four processes are gone, and until the turn's receipt
/// arrives.
fn interrupted(
    world: &EngineWorld,
    command: &str,
    rounds: usize,
    less: Duration,
) -> (Samples, Samples) {
    let mut notified = Vec::new();
    let gone = Samples::of(rounds, || {
        let (session, mut client) = world.runtime.block_on(world.watched(MODEL));
        world.server.reply(Reply::calls([("shell", json!({"command": command}).to_string())]));
        let watched: Vec<OwnedFd> = world.runtime.block_on(async {
            session.prompt("go").await.unwrap();
            pidfds(&tree_pids(&mut client).await)
        });
        let since = Instant::now();
        world.runtime.block_on(session.interrupt(None)).unwrap();
        wait_all(&watched);
        let gone = since.elapsed();
        world.runtime.block_on(until(&mut client, |event| {
            matches!(event.fact(), Some(Fact::Turn(TurnFact::Finished { .. }))).then_some(())
        }));
        notified.push(since.elapsed().saturating_sub(less));
        world.runtime.block_on(session.close()).unwrap();
        gone.saturating_sub(less)
    });
    (gone, Samples::new(notified.split_off(1)))
}

/// Reads until one of the commands above has printed its four process ids, and returns them.
pub(crate) async fn tree_pids(client: &mut Attachment) -> String {
    let mut output = String::new();
    until(client, |event| match event.delta() {
        Some(Delta::Output { text, .. }) => {
            output.push_str(text);
            output.ends_with('\n').then(|| pids_in(&output, MARK))?
        }
        _ => None,
    })
    .await
}

/// The time from the SIGKILL of the real program, while its tool runs, until the tool's four
/// processes are gone.
fn orphaned(command: &str, rounds: usize) -> Samples {
    Samples::of(rounds, || {
        let folder = TempDir::new().unwrap();
        let mut owner = holdpoint(&folder, "rehearsal", &format!("shell: {command}"))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let watched = pidfds(&line_of(owner.stdout.take().unwrap(), MARK));
        let since = Instant::now();
        owner.kill().unwrap();
        wait_all(&watched);
        let gone = since.elapsed();
        owner.wait().unwrap();
        gone
    })
}
