//! The latencies of pauses and holds.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use holdpoint_common::{Answer, AskFact, Fact, Hold, PauseKind, PauseResponse, ToolFact};
use holdpoint_tests::model_server::Reply;

use crate::floors::Floor;
use crate::support::{EngineWorld, MODEL, hold_is, turn_finished, until};
use crate::table::{Amount, Samples, Table};

const PAUSES: usize = 2_000;
const HOLDS: usize = 500;
const HOLDS_EACH: usize = 25;

pub(crate) fn measure(table: &Table) {
    if table.wants("asks", &["pause asked, answered, tool awake"]) {
        let pauses = pauses();
        table.figure_beside(
            Floor::Hop,
            "pause asked, answered, tool awake, p50",
            pauses.median(),
            Amount::us(60),
        );
        table.figure_beside(
            Floor::Hop,
            "pause asked, answered, tool awake, p99",
            pauses.p99(),
            Amount::us(150),
        );
    }
    if table.wants("holds", &["hold to label", "release to next model request"]) {
        let (label, request) = holds();
        table.figure_beside(Floor::Hop, "hold to label", label.median(), Amount::ms(1));
        table.figure_beside(
            Floor::Hop,
            "release to next model request",
            request.median(),
            Amount::ms(1),
        );
    }
}

/// A client answers each pause as soon as it sees it.
fn pauses() -> Samples {
    let world = EngineWorld::new();
    let (took, rounds) = mpsc::channel();
    world.probe.does(move |context| {
        for _ in 0..=PAUSES {
            let since = Instant::now();
            let response = context.pause(PauseKind::Continue, "Go on?", None);
            let awake = since.elapsed();
            assert_eq!(response, PauseResponse::Resumed);
            took.send(awake).unwrap();
        }
    });
    world.server.reply(Reply::calls([("probe", "{}")])).reply(Reply::text(["done"]));
    world.runtime.block_on(async {
        let (session, mut client) = world.watched(MODEL).await;
        session.prompt("go").await.unwrap();
        for _ in 0..=PAUSES {
            until(&mut client, |event| {
                matches!(event.fact(), Some(Fact::Ask(AskFact::Raised { .. }))).then_some(())
            })
            .await;
            client.answer(Answer::Resume).await.unwrap();
        }
        turn_finished(&mut client).await;
    });
    Samples::new(rounds.try_iter().skip(1).collect())
}

/// A hold is requested while a tool runs, takes effect when the tool has ended, and is released.
fn holds() -> (Samples, Samples) {
    let world = EngineWorld::new();
    let (done, finish) = mpsc::channel();
    let finish = std::sync::Mutex::new(finish);
    world.probe.does(move |_| finish.lock().unwrap().recv().unwrap());
    let (mut labels, mut requests): (Vec<Duration>, Vec<Duration>) = (Vec::new(), Vec::new());
    let mut asked = 0;
    // Conversations stay short, because the size of a request is not measured here.
    for _ in 0..HOLDS / HOLDS_EACH {
        let (session, mut client) = world.runtime.block_on(world.watched(MODEL));
        for round in 0..=HOLDS_EACH {
            world.server.reply(Reply::calls([("probe", "{}")])).reply(Reply::text(["done"]));
            let (label, released) = world.runtime.block_on(async {
                session.prompt("go").await.unwrap();
                until(&mut client, |event| {
                    matches!(event.fact(), Some(Fact::Tool(ToolFact::Started { .. }))).then_some(())
                })
                .await;
                let since = Instant::now();
                let labelled = async {
                    hold_is(&mut client, |hold| matches!(hold, Hold::Requested { .. })).await;
                    since.elapsed()
                };
                let (held, label) = tokio::join!(session.hold(), labelled);
                held.unwrap();
                done.send(()).unwrap();
                hold_is(&mut client, |hold| matches!(hold, Hold::Standing { .. })).await;
                let since = Instant::now();
                session.release().await.unwrap();
                (label, since)
            });
            let request = world.server.request(asked + 1).at - released;
            asked += 2;
            if round > 0 {
                labels.push(label);
                requests.push(request);
            }
            world.runtime.block_on(turn_finished(&mut client));
        }
        world.runtime.block_on(session.close()).unwrap();
    }
    (Samples::new(labels), Samples::new(requests))
}
