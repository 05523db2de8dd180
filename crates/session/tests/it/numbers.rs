//! The numbers of events, asks and calls, across stops and crashes.

use std::fs;
use std::path::Path;

use holdpoint_common::{Event, Fact, ToolFact};
use holdpoint_session::store::Sqlite;
use holdpoint_session::testing::{Harness, reply};
use serde_json::json;
use tempfile::TempDir;

fn on(folder: &Path) -> (Harness, Sqlite) {
    let store = Sqlite::open(folder).unwrap();
    let harness = Harness::with(|engine| engine.store(store.clone()));
    (harness, store)
}

/// Stops an engine and waits until everything is written.
async fn stop(harness: Harness, store: Sqlite) {
    drop(harness);
    store.close().await;
}

/// Plays one turn with one call. Returns the numbers of the call and of the newest event.
async fn turn(harness: &Harness, id: &str) -> (u64, u64) {
    harness.model.then(reply().text("I look.").call("probe", json!({})));
    harness.model.then(reply().text("Done."));
    let session = harness.sessions().get(id).await.unwrap();
    let mut events = harness.watch(&session).await;
    let before = session.snapshot().seq;
    session.prompt("go").await.unwrap();
    let call = |event: &Event| match event.fact() {
        Some(Fact::Tool(ToolFact::Started { call })) if event.seq > before => Some(call.0),
        _ => None,
    };
    let call = events.until("the call", call).await;
    session.settled().await.unwrap();
    (call, session.snapshot().seq)
}

#[tokio::test]
async fn numbers_continue_after_the_last_one_after_a_stop() {
    let folder = TempDir::new().unwrap();
    let (harness, store) = on(folder.path());
    let id = harness.open().await.id().to_string();
    let mut before = turn(&harness, &id).await;
    stop(harness, store).await;
    for stopped in 1..=3 {
        let (harness, store) = on(folder.path());
        let now = turn(&harness, &id).await;
        assert_numbers_continue(before, now);
        before = now;
        if stopped == 2 {
            // A second close is refused, and a look changes no number.
            harness.sessions().close(&id.parse().unwrap()).await.unwrap();
            harness.sessions().close(&id.parse().unwrap()).await.unwrap_err();
            harness.sessions().look(&id).await.unwrap();
        }
        stop(harness, store).await;
    }
}

#[tokio::test]
async fn a_reopened_session_continues_after_its_last_number() {
    let folder = TempDir::new().unwrap();
    let (harness, _store) = on(folder.path());
    let session = harness.open().await;
    let id = session.id().to_string();
    let before = turn(&harness, &id).await;
    session.close().await.unwrap();
    assert_numbers_continue(before, turn(&harness, &id).await);
}

/// Checks that both numbers have risen, and by no more than a turn needs.
#[track_caller]
fn assert_numbers_continue(before: (u64, u64), now: (u64, u64)) {
    assert!(now.0 > before.0 && now.1 > before.1, "{before:?}, then {now:?}");
    assert!(now.0 < before.0 + 20 && now.1 < before.1 + 100, "{before:?}, then {now:?}");
}

#[tokio::test]
async fn no_number_is_used_again_after_a_crash() {
    let folder = TempDir::new().unwrap();
    let (harness, _store) = on(folder.path());
    let id = harness.open().await.id().to_string();
    turn(&harness, &id).await;
    // A SIGKILL now would leave the files as they are.
    let copy = TempDir::new().unwrap();
    for entry in fs::read_dir(folder.path()).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), copy.path().join(entry.file_name())).unwrap();
    }
    // Numbers that clients have seen and the copy does not have.
    let unseen = turn(&harness, &id).await;
    let (again, _store) = on(copy.path());
    let now = turn(&again, &id).await;
    assert!(now.0 > unseen.0 && now.1 > unseen.1, "{unseen:?}, then {now:?}");
}
