//! The daemon killed at random moments: everything that a client saw or that was acknowledged
//! exists afterwards, once, and no process is left.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use holdpoint_common::{
    Answer, AskCloseCause, AskFact, Event, Fact, PolicyMode, PromptFact, PromptId, TurnFact,
};
use holdpoint_session::{AttachFrom, SessionHandle};
use rustix::process::Signal;

use super::harness::DaemonWorld;
use crate::world::rounds;

/// Work for the sessions: a streaming answer, a flood, tools that leave processes behind, and a
/// tool that asks first.
const BUSY: [&str; 4] = [
    "say@500 one two three four five six seven eight nine ten eleven twelve\nshell: echo a; sleep 100",
    "flood 3000 20\nshell: echo b\n---\nflood 3000 20",
    "shell: setsid sleep 100 & sleep 100 & echo c; wait",
    "shell: touch made",
];

/// The facts that a session's client has seen, and its acknowledged prompts.
#[derive(Default)]
struct Seen {
    facts: Vec<Arc<Event>>,
    prompts: Vec<PromptId>,
    /// The client's denial was acknowledged as saved.
    denied: bool,
}

/// A session, the task of its client until the daemon is gone, and the facts seen by then.
struct Busy {
    session: SessionHandle,
    seen: Arc<Mutex<Seen>>,
    client: tokio::task::JoinHandle<()>,
}

/// Opens a session, prompts it, and attaches to it.
async fn busy(house: &DaemonWorld, script: &'static str, answers: bool) -> Busy {
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
            if answers && matches!(fact, Fact::Ask(AskFact::Raised { .. })) {
                let denied = events.answer(Answer::Deny { reason: None, always: false }).await;
                sees.lock().unwrap().denied = denied.is_ok_and(|answered| answered.saved);
            }
        }
    });
    Busy { session, seen, client }
}

/// Checks that the session has everything its client saw, as a restarted daemon reports it.
async fn has_all(house: &DaemonWorld, busy: Busy, round: usize) {
    // The connection broke with the daemon.
    busy.client.await.unwrap();
    let session = house.sessions().get(busy.session.id().as_str()).await.unwrap();
    let mut events = session.attach(AttachFrom::start()).await.unwrap();
    let mut log = Vec::new();
    while events.next_past(&mut log, 1000).await > 0 {}
    assert!(log.is_sorted_by(|left, right| left.seq < right.seq), "round {round}: numbers rise");
    let facts: BTreeMap<u64, &Event> = log
        .iter()
        .filter(|event| event.fact().is_some())
        .map(|event| (event.seq, &**event))
        .collect();
    let seen = busy.seen.lock().unwrap();
    for event in &seen.facts {
        assert_eq!(facts.get(&event.seq), Some(&&**event), "round {round}");
    }
    let count = |wanted: &dyn Fn(&Fact) -> bool| {
        facts.values().filter_map(|event| event.fact()).filter(|fact| wanted(fact)).count()
    };
    for prompt in &seen.prompts {
        let accepted = count(
            &|fact| matches!(fact, Fact::Prompt(PromptFact::Accepted { prompt: of, .. }) if of == prompt),
        );
        assert_eq!(accepted, 1, "round {round}: prompt {prompt}");
        // The prompt became a turn, was returned, or still waits under the hold of the restart.
        let ended = count(
            &|fact| matches!(fact, Fact::Turn(TurnFact::Started { prompt: of, .. }) if of == prompt),
        ) + count(
            &|fact| matches!(fact, Fact::Prompt(PromptFact::Returned { prompt: of, .. }) if of == prompt),
        );
        let waits = session.snapshot().queue.iter().any(|queued| queued.prompt == *prompt);
        assert_eq!(ended + usize::from(waits), 1, "round {round}: prompt {prompt}");
    }
    let raised = count(&|fact| matches!(fact, Fact::Ask(AskFact::Raised { .. })));
    let denied = count(&|fact| {
        matches!(fact, Fact::Ask(AskFact::Answered { answer: Answer::Deny { .. }, .. }))
    });
    let closed = count(&|fact| {
        matches!(fact, Fact::Ask(AskFact::Closed { cause: AskCloseCause::Restart, .. }))
    });
    let open = session.snapshot().asks.len();
    assert_eq!(
        raised,
        denied + closed + open,
        "round {round}: every ask was answered or closed, or is open"
    );
    assert!(!seen.denied || denied == 1, "round {round}: no saved answer is lost");
    let turns = count(&|fact| matches!(fact, Fact::Turn(TurnFact::Started { .. })));
    let over = count(&|fact| matches!(fact, Fact::Turn(TurnFact::Finished { .. })));
    assert_eq!(
        turns,
        over + open,
        "round {round}: every cut turn has ended, except those that wait for an answer"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t_u1_m_b7_a_kill_at_any_moment_loses_no_acknowledged_fact() {
    let house = DaemonWorld::new();
    house.0.config("[limits]\ngrace_ms = 100\n");
    let mut moments = fastrand::Rng::with_seed(11);
    house.start();
    let mut sessions = Vec::new();
    for round in 0..rounds(20, 1000) {
        let mut all = Vec::new();
        for script in BUSY {
            all.push(busy(&house, script, round % 2 == 0).await);
        }
        // A random moment is the point: from the first prompt to well after everything runs.
        tokio::time::sleep(Duration::from_micros(moments.u64(0..60_000))).await;
        house.signal(Signal::KILL);
        house.wait_gone();
        house.0.census.wait_none();
        house.start();
        for busy in all {
            sessions.push(busy.session.id().clone());
            has_all(&house, busy, round).await;
        }
        assert!(
            !house.0.work("made").exists(),
            "round {round}: nothing was allowed without an answer"
        );
    }
    // Every session of every round is listed and can be opened.
    let listed = house.sessions().list().await.unwrap();
    assert_eq!(listed.len(), sessions.len());
    for id in sessions.iter().rev().step_by(7) {
        house.sessions().get(id.as_str()).await.unwrap().close().await.unwrap();
    }
}
