//! How often what a model says is told: at once; on a shared beat where many answers stream at the same time.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, reason = "a test")]

use std::time::{Duration, Instant};

use holdpoint_common::{Delta, Event, Fact};
use holdpoint_session::testing::{Harness, Recorder};
use holdpoint_session::{OpenSession, SessionHandle};

/// About the longest between two pieces of an answer that streams with others.
const BEAT: Duration = Duration::from_millis(33);

async fn open(harness: &Harness) -> (SessionHandle, Recorder) {
    let open = OpenSession::in_folder(harness.folder.path()).model("rehearsal");
    let session = harness.sessions().open(open).await.unwrap();
    let events = harness.watch(&session).await;
    (session, events)
}

fn is_text(event: &Event) -> bool {
    matches!(event.delta(), Some(Delta::Text { .. }))
}

#[tokio::test]
async fn many_answers_are_told_on_a_beat_and_whole() {
    let harness = Harness::start();
    let mut others = Vec::new();
    for _ in 0..3 {
        let (session, mut events) = open(&harness).await;
        session.prompt(format!("say@20 {}", "word ".repeat(10_000))).await.unwrap();
        events.until("its first piece", |event| is_text(event).then_some(())).await;
        others.push(session);
    }
    let (session, mut events) = open(&harness).await;
    let since = Instant::now();
    session.prompt(format!("say@1000 {}", "word ".repeat(500))).await.unwrap();
    events.turn_finished().await;
    let beats = since.elapsed().as_nanos() / BEAT.as_nanos() + 1;
    let pieces = events.events().iter().filter(|event| is_text(event)).count();
    // The first comes before a beat. That they add up to the answer, the recorder has seen.
    assert!(pieces as u128 <= beats + 1, "{pieces} pieces in {beats} beats");
    let words = |fact: &Fact| match fact {
        Fact::AssistantMessage(said) => Some(said.text().split_whitespace().count()),
        _ => None,
    };
    assert_eq!(events.facts().find_map(words), Some(500));
    for other in others {
        other.interrupt_and_wait().await.unwrap();
    }
}
