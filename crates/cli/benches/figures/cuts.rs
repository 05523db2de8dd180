//! Interrupts of a streaming model and of a silent one.

use std::time::{Duration, Instant};

use holdpoint_common::{Delta, Fact, Limits, SessionStatus, TurnFact};
use holdpoint_session::{Attachment, SessionHandle};
use holdpoint_tests::model_server::Reply;

use crate::floors::Floor;
use crate::support::{EngineWorld, MODEL, turn_finished, until};
use crate::table::{Amount, Samples, Table};

const ROUNDS: usize = 300;
const ROUNDS_EACH: usize = 25;
/// Interrupts of each kind of silence, and how often each kind lasts to its limit.
const SILENT_ROUNDS: usize = 20;
const LIMIT_ROUNDS: usize = 3;
/// The limit of a silence in these rounds.
const SILENCE: Duration = Duration::from_secs(1);
/// Other sessions that flood meanwhile, each with a client that reads.
const FLOODING: usize = 10;
/// More than there is time for.
const FLOOD: &str = "flood 60000000 1";

pub(crate) fn measure(table: &Table) {
    if table
        .wants("cuts", &["interrupt to model connection dropped", "interrupt to client notified"])
    {
        let (dropped, notified) = cuts(&EngineWorld::new());
        table.figure_beside(
            Floor::Hop,
            "interrupt to model connection dropped",
            dropped.median(),
            Amount::us(500),
        );
        table.figure_beside(
            Floor::Hop,
            "interrupt to client notified",
            notified.median(),
            Amount::ms(1),
        );
        table.note("interrupt to client notified, p99", notified.p99());
    }
    if table.wants("cuts in a flood", &["interrupt to client notified, ten sessions flooding, p99"])
    {
        let (dropped, notified) = flooded();
        table.figure_beside(
            Floor::Hop,
            "interrupt to client notified, ten sessions flooding, p99",
            notified.p99(),
            Amount::ms(20),
        );
        table.note("the same, median", notified.median());
        table.note("interrupt to connection dropped, ten flooding, p99", dropped.p99());
    }
    if table
        .wants("silence", &["interrupt to turn ended, silent model", "silence limit to turn ended"])
    {
        let interrupted = interrupted(&EngineWorld::new());
        table.figure_beside(
            Floor::Hop,
            "interrupt to turn ended, silent model, slowest (t-L5)",
            interrupted.slowest(),
            Amount::ms(500),
        );
        let limits = Limits { model_silence_s: SILENCE.as_secs(), ..Limits::default() };
        let ended = at_limit(&EngineWorld::with(limits));
        table.figure_beside(
            Floor::Hop,
            "silence limit to turn ended, beyond the limit (t-L5)",
            ended.slowest(),
            Amount::ms(5_000),
        );
    }
}

/// No headers, headers only, and keep-alives only.
fn silences() -> [Reply; 3] {
    [Reply::no_headers(), Reply::silence(), Reply::stream().keep_alive()]
}

fn interrupted(world: &EngineWorld) -> Samples {
    let mut took = Vec::new();
    for round in 0..SILENT_ROUNDS {
        for (n, silence) in silences().into_iter().enumerate() {
            let (session, mut client) = world.runtime.block_on(world.watched(MODEL));
            world.server.reply(silence);
            world.runtime.block_on(session.prompt("go")).unwrap();
            drop(world.server.request(round * silences().len() + n));
            world.runtime.block_on(async {
                let since = Instant::now();
                session.interrupt(None).await.unwrap();
                turn_finished(&mut client).await;
                took.push(since.elapsed());
                session.close().await.unwrap();
            });
        }
    }
    Samples::new(took)
}

/// The time from the prompt to the turn's end, less the limit. This includes the request itself.
fn at_limit(world: &EngineWorld) -> Samples {
    let mut took = Vec::new();
    for silence in (0..LIMIT_ROUNDS).flat_map(|_| silences()) {
        world.server.reply(silence);
        world.runtime.block_on(async {
            let (session, mut client) = world.watched(MODEL).await;
            let since = Instant::now();
            session.prompt("go").await.unwrap();
            turn_finished(&mut client).await;
            took.push(since.elapsed() - SILENCE);
            session.close().await.unwrap();
        });
    }
    Samples::new(took)
}

/// The times from an interrupt until the server sees the connection dropped, and until an attached
/// client receives the cut.
fn cuts(world: &EngineWorld) -> (Samples, Samples) {
    let (mut dropped, mut notified): (Vec<Duration>, Vec<Duration>) = (Vec::new(), Vec::new());
    let mut asked = 0;
    // Conversations stay short, because the size of a request is not measured here.
    for _ in 0..ROUNDS / ROUNDS_EACH {
        let (session, mut client) = world.runtime.block_on(world.watched(MODEL));
        for round in 0..=ROUNDS_EACH {
            world.server.reply(Reply::stream().say("I begin.").hang());
            let (since, seen) = world.runtime.block_on(async {
                session.prompt("go").await.unwrap();
                until(&mut client, |event| {
                    matches!(event.delta(), Some(Delta::Text { .. })).then_some(())
                })
                .await;
                let since = Instant::now();
                let cut = async {
                    until(&mut client, |event| {
                        matches!(event.fact(), Some(Fact::Turn(TurnFact::Cut { .. }))).then_some(())
                    })
                    .await;
                    since.elapsed()
                };
                let (interrupted, seen) = tokio::join!(session.interrupt(None), cut);
                interrupted.unwrap();
                (since, seen)
            });
            let ended = world.server.dropped(asked);
            asked += 1;
            if round > 0 {
                dropped.push(ended.saturating_duration_since(since));
                notified.push(seen);
            }
            world.runtime.block_on(turn_finished(&mut client));
        }
        world.runtime.block_on(session.close()).unwrap();
    }
    (Samples::new(dropped), Samples::new(notified))
}

fn flooded() -> (Samples, Samples) {
    let world = EngineWorld::new();
    let (flooding, clients): (Vec<SessionHandle>, Vec<Attachment>) =
        world.runtime.block_on(async {
            let mut flooding = Vec::new();
            for _ in 0..FLOODING {
                let (session, client) = world.watched("rehearsal").await;
                session.prompt(FLOOD).await.unwrap();
                flooding.push((session, client));
            }
            flooding.into_iter().unzip()
        });
    // The clients read on a thread of their own, like clients in other processes.
    let (stop, stopped) = tokio::sync::watch::channel(false);
    let reading = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let read = |mut client: Attachment, mut stopped: tokio::sync::watch::Receiver<bool>| async move {
                let mut batch = Vec::new();
                let mut read = 0;
                loop {
                    tokio::select! {
                        biased;
                        _ = stopped.changed() => return read,
                        more = client.next_batch(&mut batch, 1_000) => {
                            read += more;
                            batch.clear();
                            if more == 0 {
                                return read;
                            }
                        }
                    }
                }
            };
            let local = tokio::task::LocalSet::new();
            let tasks: Vec<_> =
                clients.into_iter().map(|client| local.spawn_local(read(client, stopped.clone()))).collect();
            local
                .run_until(async {
                    let mut read = Vec::new();
                    for task in tasks {
                        read.push(task.await.unwrap());
                    }
                    read
                })
                .await
        })
    });
    let measured = cuts(&world);
    let still = flooding
        .iter()
        .filter(|session| session.snapshot().status == SessionStatus::Running)
        .count();
    assert_eq!(still, FLOODING, "they flooded to the end");
    stop.send(true).unwrap();
    let read: Vec<usize> = reading.join().unwrap();
    println!("   (events the flooded clients read meanwhile: {read:?})");
    measured
}
