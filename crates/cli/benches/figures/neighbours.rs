//! Sessions that fail, and sessions beside others in trouble: one that is flooded with prompts,
//! many that wait.

use std::panic;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use holdpoint_common::{AskFact, Delta, Fact, Outcome, PauseKind, TurnFact};
use holdpoint_session::{Attachment, SessionHandle};
use holdpoint_tests::model_server::Reply;

use crate::floors::Floor;
use crate::support::{EngineWorld, MODEL, until};
use crate::table::{Amount, Samples, Table};

/// Panics of each kind.
const PANICS: usize = 50;
/// The flooding tasks, and the concurrent requests of each.
const FLOODING: usize = 8;
const AT_ONCE: usize = 1_000;
/// Sessions with a tool that waits for a person.
const WAITING: usize = 90;
/// The sessions that answer meanwhile, and the turns of each.
const NEIGHBOURS: usize = 10;
const TURNS: usize = 50;

pub(crate) fn measure(table: &Table) {
    if table.wants("panics", &["tool panic to next turn ended", "actor panic to next turn ended"]) {
        // Each panic would print its message between the rows.
        let hook = panic::take_hook();
        panic::set_hook(Box::new(|_| ()));
        let world = EngineWorld::new();
        world.probe.does(|_| panic!("the probe panics"));
        let tool = Samples::of(PANICS, || after_tool_panic(&world));
        let actor = Samples::of(PANICS, || after_actor_panic(&world));
        panic::set_hook(hook);
        table.figure_beside(
            Floor::Hop,
            "tool panic to next turn ended, slowest (t-T1)",
            tool.slowest(),
            Amount::ms(1_000),
        );
        table.figure_beside(
            Floor::Hop,
            "actor panic to next turn ended, slowest (t-T1)",
            actor.slowest(),
            Amount::ms(1_000),
        );
    }
    if table.wants(
        "neighbours",
        &["turn beside a flooded session", "turn beside 90 sessions that wait"],
    ) {
        let flooded = beside_flood(&EngineWorld::new());
        table.figure_beside(
            Floor::Hop,
            "turn beside a flooded session, p99 (t-T2)",
            flooded.p99(),
            Amount::ms(100),
        );
        let waiting = beside_waiting(&EngineWorld::new());
        table.figure_beside(
            Floor::Hop,
            "turn beside 90 sessions that wait, p99 (t-T3)",
            waiting.p99(),
            Amount::ms(100),
        );
    }
}

fn after_tool_panic(world: &EngineWorld) -> Duration {
    world.runtime.block_on(async {
        let (session, mut client) = world.watched(MODEL).await;
        world.server.reply(Reply::calls([("probe", "{}")])).reply(Reply::text(["done"]));
        session.prompt("go").await.unwrap();
        ended_as(&mut client, Outcome::Panicked).await;
        let since = Instant::now();
        session.prompt("again").await.unwrap();
        ended_as(&mut client, Outcome::Done).await;
        let took = since.elapsed();
        session.close().await.unwrap();
        took
    })
}

/// The actor panics while its turn waits for the model.
fn after_actor_panic(world: &EngineWorld) -> Duration {
    world.runtime.block_on(async {
        let (session, mut client) = world.watched(MODEL).await;
        world.server.reply(Reply::stream().say("I begin.").hang()).reply(Reply::text(["done"]));
        session.prompt("go").await.unwrap();
        until(&mut client, |event| matches!(event.delta(), Some(Delta::Text { .. })).then_some(()))
            .await;
        let since = Instant::now();
        session.panic_now().await;
        session.prompt("again").await.unwrap();
        let settled = session.settled().await.unwrap();
        let took = since.elapsed();
        assert_eq!(settled.last_turn.as_ref().unwrap().outcome, Outcome::Done);
        session.close().await.unwrap();
        took
    })
}

async fn ended_as(client: &mut Attachment, wanted: Outcome) {
    let ended = until(client, |event| match event.fact() {
        Some(Fact::Turn(TurnFact::Finished { outcome, .. })) => Some(*outcome),
        _ => None,
    });
    assert_eq!(ended.await, wanted);
}

/// Times turns while clients on other threads send prompts to a session with a full queue.
fn beside_flood(world: &EngineWorld) -> Samples {
    let flooded = world.runtime.block_on(world.open("rehearsal"));
    world.runtime.block_on(flooded.prompt("hang")).unwrap();
    let over = AtomicBool::new(false);
    let (took, refused) = std::thread::scope(|scope| {
        let flood = scope.spawn(|| {
            let runtime =
                tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
            runtime.block_on(join_all((0..FLOODING).map(|_| flood(&flooded, &over))))
        });
        let took = turns(world);
        over.store(true, Ordering::Relaxed);
        (took, flood.join().unwrap().into_iter().sum::<usize>())
    });
    println!("   (prompts refused meanwhile: {refused})");
    took
}

/// Sends prompts until `over` is set. Returns how many were refused.
async fn flood(session: &SessionHandle, over: &AtomicBool) -> usize {
    let mut refused = 0;
    while !over.load(Ordering::Relaxed) {
        let answers = join_all((0..AT_ONCE).map(|_| session.prompt("hang"))).await;
        refused += answers.into_iter().filter(Result::is_err).count();
    }
    refused
}

/// Times turns while the tools of other sessions wait for answers.
fn beside_waiting(world: &EngineWorld) -> Samples {
    world.probe.does(|context| drop(context.pause(PauseKind::Continue, "Go on?", None)));
    let waiting: Vec<_> = (0..WAITING)
        .map(|_| {
            world.server.reply(Reply::calls([("probe", "{}")]));
            world.runtime.block_on(async {
                let (session, mut client) = world.watched(MODEL).await;
                session.prompt("go").await.unwrap();
                until(&mut client, |event| {
                    matches!(event.fact(), Some(Fact::Ask(AskFact::Raised { .. }))).then_some(())
                })
                .await;
                (session, client)
            })
        })
        .collect();
    let took = turns(world);
    drop(waiting);
    took
}

/// Prompts the sessions in turn, and times each from the prompt to the settled session.
fn turns(world: &EngineWorld) -> Samples {
    world.runtime.block_on(async {
        let mut sessions = Vec::new();
        for _ in 0..NEIGHBOURS {
            sessions.push(world.open(MODEL).await);
        }
        let mut took = Vec::new();
        for _ in 0..TURNS {
            for session in &sessions {
                world.server.reply(Reply::text(["done"]));
                let since = Instant::now();
                session.prompt("are you there?").await.unwrap();
                let settled = session.settled().await.unwrap();
                took.push(since.elapsed());
                assert_eq!(settled.last_turn.as_ref().unwrap().outcome, Outcome::Done);
            }
        }
        Samples::new(took)
    })
}
