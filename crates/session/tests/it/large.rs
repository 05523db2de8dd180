//! A session far larger than the part of it that is kept in memory.

use std::sync::Arc;

use holdpoint_common::{
    AssistantMessage, Block, BlockKind, Body, Event, Fact, ItemId, Outcome, PromptFact, PromptId,
    SessionFact, SessionSettings, SessionSummary, Timestamp, TurnFact, TurnId, Usage, Who,
};
use holdpoint_session::AttachFrom;
use holdpoint_session::state::State;
use holdpoint_session::store::{NewLog, SessionLog, SessionStore, Sqlite};
use holdpoint_session::testing::{Harness, reply};
use holdpoint_tools::testing::{in_own_process, rounds};
use tempfile::TempDir;

/// The size of an answer in bytes.
const ANSWER: usize = 5 * 1024;
/// How many facts are written at once.
const BATCH: usize = 1_000;

/// The peak memory of this process in bytes.
fn peak() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() * 1024
}

/// Writes turns of one answer each to a log, until it has this many facts.
async fn fill(log: &dyn SessionLog, settings: SessionSettings, count: u64) {
    let opened = Event {
        seq: 1,
        at: Timestamp(1),
        turn: None,
        step: None,
        body: Body::Fact(Fact::Session(SessionFact::Opened { settings })),
    };
    let opened = Arc::new(opened);
    let state = State::open(&opened).unwrap();
    let summary =
        SessionSummary { live: false, ..SessionSummary::from(&state.snapshot(1, 0, None)) };
    let (mut last, mut batch, mut turn) = (0, vec![opened], 0);
    log.reserve(count + 10).await.unwrap();
    let mut seq = 1;
    while seq < count {
        turn += 1;
        let block = Block {
            item: ItemId(turn),
            kind: BlockKind::Text,
            text: "word ".repeat(ANSWER / 5),
            signature: None,
            calls_before: 0,
        };
        let facts = [
            Fact::Prompt(PromptFact::Accepted {
                prompt: PromptId(turn),
                text: format!("prompt {turn}").into(),
                by: Who::named("test"),
                typed_bytes: None,
                idempotency_key: None,
            }),
            Fact::Turn(TurnFact::Started { turn: TurnId(turn), prompt: PromptId(turn) }),
            Fact::Turn(TurnFact::StepStarted),
            Fact::Turn(TurnFact::AssistantMessage(
                AssistantMessage { blocks: vec![block], ..AssistantMessage::default() }.into(),
            )),
            Fact::Turn(TurnFact::StepFinished {
                usage: Usage::default(),
                context: None,
                refused: false,
                omitted: None,
            }),
            Fact::Turn(TurnFact::Finished {
                outcome: Outcome::Done,
                error: None,
                cause: None,
                receipt: None,
                usage: Usage::default(),
            }),
        ];
        for fact in facts {
            seq += 1;
            let of = (!matches!(fact, Fact::Prompt(PromptFact::Accepted { .. })))
                .then_some(TurnId(turn));
            batch.push(Arc::new(Event {
                seq,
                at: Timestamp(seq),
                turn: of,
                step: None,
                body: Body::Fact(fact),
            }));
        }
        if batch.len() >= BATCH || seq >= count {
            log.append(last, std::mem::take(&mut batch), summary.clone()).await.unwrap();
            last = seq;
        }
    }
}

#[tokio::test]
async fn t_u12_a_session_larger_than_memory_may_be_opens_whole() {
    if !in_own_process() {
        return;
    }
    // One fact in six is an answer, which makes as many bytes as 100,000 facts of the size in the
    // row.
    let (facts, most) = rounds((60_000, 256), (600_000, 512));
    let folder = TempDir::new().unwrap();
    let store = Sqlite::open(folder.path()).unwrap();
    let harness = Harness::with(|engine| engine.store(store.clone()));
    // The settings are those of a session opened here.
    let settings = harness.open().await.snapshot().settings.clone();
    let settings = SessionSettings {
        id: "large".parse().unwrap(),
        name: "large".into(),
        ..(*settings).clone()
    };
    fill(&*store.create(&settings.id, NewLog::default()).await.unwrap(), settings.clone(), facts)
        .await;

    let listing = harness.sessions().list().await.unwrap();
    assert!(listing.iter().any(|session| session.name == "large"));
    let session = harness.sessions().get("large").await.unwrap();
    harness.model.then(reply().text("still here"));
    let mut events = session.attach(AttachFrom::start()).await.unwrap();
    let (mut page, mut seen) = (Vec::new(), 0);
    while events.next_past(&mut page, BATCH).await > 0 {
        seen += page.drain(..).filter(|event| event.fact().is_some()).count() as u64;
    }
    assert!(seen >= facts, "nothing was cut: {seen} of {facts}");
    // The session continues, with as much of it as a request has room for.
    session.prompt("go on").await.unwrap();
    let settled = session.settled().await.unwrap();
    assert_eq!(settled.last_turn.as_ref().unwrap().outcome, Outcome::Done);
    let request = &harness.model.requests()[0];
    let sent: usize = request.messages.iter().map(|message| format!("{message:?}").len()).sum();
    assert!(sent > ANSWER && sent < 4 * 1024 * 1024, "{sent}");
    let peak = peak() / (1024 * 1024);
    println!("{facts} facts: at most {peak} MiB of memory");
    assert!(peak <= most, "{peak} MiB");
}
