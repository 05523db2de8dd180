//! The daemon killed at any moment: whatever anybody saw or was told is there afterwards, once, and nothing runs on.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use holdpoint_common::{Answer, AskCloseCause, Event, Fact, PolicyMode, PromptId};
use holdpoint_session::{AttachFrom, SessionHandle};
use rustix::process::Signal;

use super::house::House;
use crate::world::rounds;

/// What sessions are busy with: an answer that streams, one that floods, tools that leave processes behind, and one that
/// asks first.
const BUSY: [&str; 4] = [
    "say@500 one two three four five six seven eight nine ten eleven twelve\nshell: echo a; sleep 100",
    "flood 3000 20\nshell: echo b\n---\nflood 3000 20",
    "shell: setsid sleep 100 & sleep 100 & echo c; wait",
    "shell: touch made",
];

/// What a client of one session has seen and was told.
#[derive(Default)]
struct Seen {
    facts: Vec<Arc<Event>>,
    prompts: Vec<PromptId>,
    /// It has answered the ask, and was told that this is saved.
    denied: bool,
}

/// A session, what a client of it does until the daemon is gone, and what it has seen by then.
struct Busy {
    session: SessionHandle,
    seen: Arc<Mutex<Seen>>,
    client: tokio::task::JoinHandle<()>,
}

/// Opens a session, gives it something to do, and attaches to it.
async fn busy(house: &House, script: &'static str, answers: bool) -> Busy {
    let policy = if script.contains("made") { PolicyMode::Ask } else { PolicyMode::All };
    let session = house.sessions().open(house.session().policy(policy)).await.unwrap();
    let seen = Arc::new(Mutex::new(Seen::default()));
    let (of, sees) = (session.clone(), Arc::clone(&seen));
    let client = tokio::spawn(async move {
        let Ok(mut events) = of.attach(AttachFrom::start()).await else { return };
        for text in [script, "say more"] {
            let Ok(prompted) = of.prompt(text).await else { return };
            assert!(prompted.saved);
            sees.lock().unwrap().prompts.push(prompted.prompt);
        }
        while let Some(event) = events.next().await {
            let Some(fact) = event.fact() else { continue };
            sees.lock().unwrap().facts.push(Arc::clone(&event));
            if answers && matches!(fact, Fact::AskRaised { .. }) {
                let denied = events.answer(Answer::Deny { reason: None }).await;
                sees.lock().unwrap().denied = denied.is_ok_and(|answered| answered.saved);
            }
        }
    });
    Busy { session, seen, client }
}

/// That the session has all of it, as a daemon that was started anew tells it.
async fn has_all(house: &House, busy: Busy, round: usize) {
    // The connection broke with the daemon.
    busy.client.await.unwrap();
    let session = house.sessions().get(busy.session.id().as_str()).await.unwrap();
    let mut events = session.attach(AttachFrom::start()).await.unwrap();
    let mut log = Vec::new();
    while events.next_past(&mut log, 1000).await > 0 {}
    assert!(log.is_sorted_by(|left, right| left.seq < right.seq), "round {round}: numbers rise");
    let facts: BTreeMap<u64, &Event> =
        log.iter().filter(|event| event.fact().is_some()).map(|event| (event.seq, &**event)).collect();
    let seen = busy.seen.lock().unwrap();
    for event in &seen.facts {
        assert_eq!(facts.get(&event.seq), Some(&&**event), "round {round}");
    }
    let count = |wanted: &dyn Fn(&Fact) -> bool| {
        facts.values().filter_map(|event| event.fact()).filter(|fact| wanted(fact)).count()
    };
    for prompt in &seen.prompts {
        let accepted = count(&|fact| matches!(fact, Fact::PromptAccepted { prompt: of, .. } if of == prompt));
        assert_eq!(accepted, 1, "round {round}: prompt {prompt}");
        // It ends once, or is still waiting under the hold that the restart has put up.
        let ended = count(&|fact| matches!(fact, Fact::TurnStarted { prompt: of, .. } if of == prompt))
            + count(&|fact| matches!(fact, Fact::PromptReturned { prompt: of, .. } if of == prompt));
        let waits = session.snapshot().queue.iter().any(|queued| queued.prompt == *prompt);
        assert_eq!(ended + usize::from(waits), 1, "round {round}: prompt {prompt}");
    }
    let raised = count(&|fact| matches!(fact, Fact::AskRaised { .. }));
    let denied = count(&|fact| matches!(fact, Fact::AskAnswered { answer: Answer::Deny { .. }, .. }));
    let closed = count(&|fact| matches!(fact, Fact::AskClosed { cause: AskCloseCause::Restart, .. }));
    let open = session.snapshot().asks.len();
    assert_eq!(raised, denied + closed + open, "round {round}: every ask was answered, closed, or stands");
    assert!(!seen.denied || denied == 1, "round {round}: an answer that was saved is there");
    let turns = count(&|fact| matches!(fact, Fact::TurnStarted { .. }));
    let over = count(&|fact| matches!(fact, Fact::TurnFinished { .. }));
    assert_eq!(turns, over + open, "round {round}: what was cut has ended, but for what waits for its answer");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t_u1_m_b7_killed_at_any_moment_it_has_what_it_had_acknowledged() {
    let house = House::new();
    house.0.config("[limits]\ngrace_ms = 100\n");
    let mut moments = fastrand::Rng::with_seed(11);
    house.start();
    let mut sessions = Vec::new();
    for round in 0..rounds(20, 1000) {
        let mut all = Vec::new();
        for script in BUSY {
            all.push(busy(&house, script, round % 2 == 0).await);
        }
        // A random moment is the point: from the first prompt to well after all of it runs.
        tokio::time::sleep(Duration::from_micros(moments.u64(0..60_000))).await;
        house.signal(Signal::KILL);
        house.wait_gone();
        house.0.census.wait_none();
        house.start();
        for busy in all {
            sessions.push(busy.session.id().clone());
            has_all(&house, busy, round).await;
        }
        assert!(!house.0.work("made").exists(), "round {round}: nothing is allowed by itself");
    }
    // Every session of every round is there, and opens.
    let listed = house.sessions().list().await.unwrap();
    assert_eq!(listed.len(), sessions.len());
    for id in sessions.iter().rev().step_by(7) {
        house.sessions().get(id.as_str()).await.unwrap().close().await.unwrap();
    }
}
