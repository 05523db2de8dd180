//! All sessions at once: watched as they change, looked at without being opened, and their asks in one inbox.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, reason = "a test")]

use holdpoint_common::api::SessionNews;
use holdpoint_common::{Answer, PolicyMode, SessionStatus, SessionSummary};
use holdpoint_session::testing::{Harness, reply, soon};
use holdpoint_session::{SessionError, SessionHandle, Watch};
use serde_json::json;

/// Reads news of a session until `wanted`.
async fn until(watch: &mut Watch, session: &SessionHandle, wanted: impl Fn(&SessionSummary) -> bool) -> SessionSummary {
    soon("news of the session", async {
        loop {
            match watch.next().await.expect("the watch goes on") {
                SessionNews::Session(summary) if summary.id == *session.id() && wanted(&summary) => return *summary,
                _ => {}
            }
        }
    })
    .await
}

#[tokio::test]
async fn m_b9_a_watch_tells_of_every_session_and_then_of_what_changes() {
    let harness = Harness::start();
    let first = harness.open().await;
    let mut watch = harness.sessions().watch().await.unwrap();
    let told = until(&mut watch, &first, |_| true).await;
    assert!(told.live && told.status == SessionStatus::Idle, "{told:?}");
    // One that is opened later is told of too, and each change of it.
    let second = harness.sessions().open(harness.session().policy(PolicyMode::Ask)).await.unwrap();
    until(&mut watch, &second, |told| told.live).await;
    harness.model.then(reply().call("shell", json!({"command": "touch a"}))).then(reply().text("done"));
    second.prompt("go").await.unwrap();
    let asking = until(&mut watch, &second, |told| told.waits_for.is_some()).await;
    assert_eq!(asking.status, SessionStatus::Paused);
    second.answer(&asking.waits_for.unwrap().id, Answer::Approve { always: false }).await.unwrap();
    until(&mut watch, &second, |told| told.status == SessionStatus::Idle && told.last_turn.is_some()).await;
    second.close().await.unwrap();
    until(&mut watch, &second, |told| !told.live).await;
}

#[tokio::test]
async fn m_b9_the_inbox_has_every_open_ask_the_oldest_first() {
    let harness = Harness::start();
    let mut asks = Vec::new();
    for name in ["one", "two"] {
        let open = harness.session().policy(PolicyMode::Ask).name(name);
        let session = harness.sessions().open(open).await.unwrap();
        let mut events = harness.watch(&session).await;
        let both = reply().call("shell", json!({"command": "touch a"})).call("shell", json!({"command": "touch b"}));
        harness.model.then(both);
        session.prompt("go").await.unwrap();
        asks.push(events.asked().await.id);
        asks.push(events.asked().await.id);
    }
    let inbox = harness.sessions().inbox().await.unwrap();
    assert_eq!(inbox.iter().map(|entry| entry.ask.id.clone()).collect::<Vec<_>>(), asks);
    assert_eq!(inbox.iter().map(|entry| entry.name.as_str()).collect::<Vec<_>>(), ["one", "one", "two", "two"]);
}

#[tokio::test]
async fn m_b9_looking_at_a_saved_session_does_not_open_it() {
    let harness = Harness::start();
    harness.model.then(reply().text("done"));
    let session = harness.open().await;
    session.prompt("go").await.unwrap();
    session.settled().await.unwrap();
    session.close().await.unwrap();
    let seen = harness.sessions().look(session.id().as_str()).await.unwrap();
    assert_eq!(seen.title, "go");
    assert!(!harness.sessions().list().await.unwrap()[0].live);
    let unknown = harness.sessions().look("nobody").await.unwrap_err();
    assert_eq!(unknown, SessionError::Unknown { what: "nobody".into() });
}
