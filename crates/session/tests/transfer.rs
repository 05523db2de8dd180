//! Sessions written out as text, and taken in again: the same, or not at all.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, reason = "a test")]

use std::sync::Arc;

use holdpoint_common::{Answer, CutCause, Event, Fact, Outcome, PolicyMode, SessionId};
use holdpoint_session::store::{Memory, SessionStore, Sqlite, StoreError};
use holdpoint_session::testing::{Harness, reply};
use holdpoint_session::transfer::{ExportError, ImportError, export, import};
use serde_json::json;
use tempfile::TempDir;

async fn text(store: &dyn SessionStore, session: &SessionId) -> Vec<u8> {
    let mut text = Vec::new();
    export(store, session, &mut text).await.unwrap();
    text
}

async fn facts(store: &dyn SessionStore, session: &SessionId) -> Vec<Arc<Event>> {
    store.open(session).await.unwrap().read(0..u64::MAX, None).await.unwrap()
}

/// A session with a bit of everything: asks, answers, a cut with its receipt, other names.
async fn session(store: Sqlite) -> SessionId {
    let harness = Harness::with(|engine| engine.store(store));
    let session = harness.sessions().open(harness.session().policy(PolicyMode::Ask)).await.unwrap();
    let mut events = harness.watch(&session).await;
    for (n, answer) in
        [Answer::Approve { always: true }, Answer::Deny { reason: Some("no \u{1f600}".into()) }].into_iter().enumerate()
    {
        harness.model.then(reply().thought("hm").text("I try.").call("probe", json!({ "n": n })));
        session.prompt(format!("go {n}\n\u{1f468}\u{200d}\u{1f469}")).await.unwrap();
        events.asked().await;
        events.answer(answer).await.unwrap();
        events.turn_finished().await;
    }
    harness.model.then(reply().call("probe", json!({ "last": true })));
    session.prompt("once more").await.unwrap();
    events.asked().await;
    session.interrupt_and_wait().await.unwrap();
    session.rename("another name").await.unwrap();
    session.id().clone()
}

#[tokio::test]
async fn a_session_comes_back_from_its_text_as_it_was() {
    let folder = TempDir::new().unwrap();
    let store = Sqlite::open(folder.path()).unwrap();
    let id = session(store.clone()).await;
    let written = text(&store, &id).await;
    assert_eq!(written, text(&store, &id).await, "the same facts make the same text");
    let first = String::from_utf8(written.clone()).unwrap().lines().next().unwrap().to_owned();
    assert_eq!(first, format!(r#"{{"format":"holdpoint-session","version":1,"id":"{id}"}}"#));

    let elsewhere = Memory::default();
    assert_eq!(import(&elsewhere, &mut &written[..]).await.unwrap(), id);
    assert_eq!(facts(&elsewhere, &id).await, facts(&store, &id).await);
    assert_eq!(text(&elsewhere, &id).await, written);
    let listed = |saved: Vec<holdpoint_session::store::SavedSession>| saved[0].summary.clone();
    assert_eq!(listed(elsewhere.list().await.unwrap()), listed(store.list().await.unwrap()));

    // Where its id is taken it gets another, in every place that names it.
    let other = import(&store, &mut &written[..]).await.unwrap();
    assert_ne!(other, id);
    let renamed = String::from_utf8(text(&store, &other).await).unwrap();
    assert!(!renamed.contains(id.as_str()), "{renamed}");
    let (moved, own) = (facts(&store, &other).await, facts(&store, &id).await);
    assert_eq!(moved.len(), own.len());
    assert!(moved.iter().zip(&own).all(|(moved, own)| (moved.seq, moved.at) == (own.seq, own.at)));

    let harness = Harness::with(|engine| engine.store(store));
    let session = harness.sessions().get(other.as_str()).await.unwrap();
    session.prompt("and now?").await.unwrap();
    assert_eq!(session.settled().await.unwrap().last_turn.as_ref().unwrap().outcome, Outcome::Done);
    assert!(harness.model.requests()[0].messages.len() > 5, "with all that was said");
}

#[tokio::test]
async fn what_was_open_when_it_was_written_out_is_ended_as_after_a_restart() {
    let store = Arc::new(Memory::default());
    let written = {
        let folder = TempDir::new().unwrap();
        let store = Sqlite::open(folder.path()).unwrap();
        let harness = Harness::with(|engine| engine.store(store.clone()));
        let _answer = harness.model.then_live();
        let session = harness.open().await;
        session.prompt("go").await.unwrap();
        text(&store, session.id()).await
    };
    let id = import(&*store, &mut &written[..]).await.unwrap();
    let facts = facts(&*store, &id).await;
    let Some(Fact::TurnFinished { cause, .. }) = facts.last().unwrap().fact() else { panic!("{facts:?}") };
    assert_eq!(*cause, Some(CutCause::Restart));
    let unknown: SessionId = "nobody".parse().unwrap();
    let error = export(&*store, &unknown, &mut Vec::new()).await.unwrap_err();
    assert!(matches!(error, ExportError::Store(StoreError::Unknown { .. })), "{error}");
}

/// Takes a text in that is none, and says what was said of it.
async fn refused(text: &[u8], how: &str) -> (u64, String) {
    let store = Memory::default();
    let error = match import(&store, &mut &*text).await {
        Err(error) => error,
        Ok(_) => panic!("{how}: it was taken for whole"),
    };
    assert!(store.list().await.unwrap().is_empty(), "{how}: something changed");
    let ImportError::Line { line, what } = error else { panic!("{how}: {error}") };
    let lines = text.iter().filter(|byte| **byte == b'\n').count() as u64;
    assert!((1..=lines + 1).contains(&line), "{how}: line {line} of {lines}");
    (line, what)
}

#[tokio::test]
async fn a_text_that_is_not_as_it_was_written_is_refused_with_its_line_and_changes_nothing() {
    let full = std::env::var_os("HOLDPOINT_FULL").is_some();
    let folder = TempDir::new().unwrap();
    let store = Sqlite::open(folder.path()).unwrap();
    let id = session(store.clone()).await;
    let whole = text(&store, &id).await;
    let lines: Vec<_> = whole.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
    let mut random = fastrand::Rng::with_seed(9);
    for cut in (0..whole.len()).step_by(if full { 1 } else { 37 }) {
        refused(&whole[..cut], &format!("cut to {cut}")).await;
    }
    for round in 0..if full { 20_000 } else { 500 } {
        let mut text = whole.clone();
        for _ in 0..random.usize(1..4) {
            let at = random.usize(..text.len());
            text[at] = text[at].wrapping_add(random.u8(1..));
        }
        refused(&text, &format!("garbled, round {round}")).await;
    }
    for n in 0..lines.len() {
        let mut without = lines.clone();
        without.remove(n);
        refused(&without.concat(), &format!("without line {}", n + 1)).await;
        let mut twice = lines.clone();
        twice.insert(n, lines[n].clone());
        refused(&twice.concat(), &format!("line {} twice", n + 1)).await;
        if n > 0 {
            let mut swapped = lines.clone();
            swapped.swap(n - 1, n);
            refused(&swapped.concat(), &format!("line {} before its time", n + 1)).await;
        }
    }
    let (line, what) = refused(
        br#"{"format":"holdpoint-session","version":2,"id":"x"}
"#,
        "newer",
    )
    .await;
    assert_eq!((line, what.contains("version 2")), (1, true), "{what}");
    let (line, _) = refused(b"not even JSON\n", "something else").await;
    assert_eq!(line, 1);
    let mut text = lines[..3].concat();
    text.extend(b"{\"seq\":\n");
    assert_eq!(refused(&text, "a line of garbage").await.0, 4);
}
