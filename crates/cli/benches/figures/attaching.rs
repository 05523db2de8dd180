//! Attaching to a session with a long answer that is still open.

use std::time::{Duration, Instant};

use holdpoint_common::{Delta, Event, Hold};
use holdpoint_session::{AttachFrom, Attachment, SessionHandle};

use crate::support::{EngineWorld, hold_is, until};
use crate::table::{Amount, Samples, Table};

const ROUNDS: usize = 30;
/// The pieces of the open answer, and the bytes of each: more than a session keeps in memory.
const PIECES: usize = 170;
const PIECE: usize = 64 * 1024;

pub(crate) fn measure(table: &Table) {
    if !table
        .wants("attaching", &["attach to an open answer", "hold answered during such an attach"])
    {
        return;
    }
    let floor = Samples::of(ROUNDS, copied);
    let (attached, held) = attaches();
    table.note("floor: as many bytes copied", floor.median());
    table.figure(
        "attach to an open answer of 11 MiB: all of it read, p50",
        attached.median(),
        times(&floor, 8),
    );
    table.figure("hold answered during such an attach, slowest", held.slowest(), times(&floor, 4));
}

/// A multiple of the floor.
fn times(floor: &Samples, factor: u32) -> Amount {
    Amount::Time(floor.middle() * factor)
}

/// Copies the bytes of the answer once, piece by piece.
fn copied() -> Duration {
    let answer = vec![String::from("x").repeat(PIECE); PIECES];
    let since = Instant::now();
    let copy = std::hint::black_box(answer.clone());
    let took = since.elapsed();
    drop(copy);
    took
}

/// The time until an attach has received everything, and the time of a hold that is requested at
/// the same moment.
fn attaches() -> (Samples, Samples) {
    let world = EngineWorld::new();
    world.runtime.block_on(async {
        let (session, mut client) = world.watched("rehearsal").await;
        session.prompt(format!("flood {PIECES} {PIECE}\nhang")).await.unwrap();
        read(&mut client, PIECES * PIECE).await;
        let (mut attached, mut held) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            let from = AttachFrom { limit: Some(0), ..AttachFrom::start() };
            let since = Instant::now();
            let attaching = async {
                let mut other = session.attach(from).await.unwrap();
                read(&mut other, PIECES * PIECE).await;
                since.elapsed()
            };
            let (all, hold) = tokio::join!(attaching, hold(&session));
            attached.push(all);
            held.push(hold);
            session.release().await.unwrap();
            hold_is(&mut client, |hold| *hold == Hold::Off).await;
        }
        session.interrupt(None).await.unwrap();
        (Samples::new(attached), Samples::new(held))
    })
}

async fn hold(session: &SessionHandle) -> Duration {
    let since = Instant::now();
    session.hold().await.unwrap();
    since.elapsed()
}

/// Reads until this many bytes of the answer have arrived.
async fn read(client: &mut Attachment, bytes: usize) {
    let mut seen = 0;
    let whole = |event: &Event| {
        seen += match event.delta() {
            Some(Delta::Text { text, .. }) => text.len(),
            Some(Delta::ItemSoFar { so_far, .. }) => so_far.head.len(),
            _ => 0,
        };
        (seen >= bytes).then_some(())
    };
    until(client, whole).await;
}
