//! Sessions that open from their saved state, and read their conversation when a request needs it.

mod newest;

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::FutureExt;
use holdpoint_common::{
    Answer, Event, Fact, Gaps, Outcome, PolicyMode, SessionId, Snapshot, TurnFact,
};
use holdpoint_session::model::{Message, ModelRequest};
use holdpoint_session::store::{
    NewLog, Page, SessionLog, SessionPast, SessionStore, Sqlite, StoreError,
};
use holdpoint_session::testing::{Harness, LogLayer, Recorder, StoreLayer, Stored, reply};
use holdpoint_session::{AttachFrom, SessionHandle};
use rusqlite::Connection;
use serde_json::json;
use tempfile::TempDir;
use tokio::sync::watch;

/// Enough turns of six facts or more for a saved state.
const TURNS: usize = 100;

/// A SQLite store whose facts before the saved state can be read only while `open` is true, and not
/// at all while `broken` is set.
#[derive(Clone)]
struct GatedReads {
    store: Sqlite,
    open: watch::Sender<bool>,
    broken: Arc<AtomicBool>,
    /// How many pages of such facts were read.
    read: watch::Sender<u64>,
}

struct GatedLog {
    log: Arc<dyn SessionLog>,
    gate: GatedReads,
}

impl GatedReads {
    fn new(folder: &Path) -> Self {
        let store = Sqlite::open(folder).unwrap();
        let (open, read) = (watch::Sender::new(true), watch::Sender::new(0));
        Self { store, open, broken: Arc::default(), read }
    }

    fn gate(&self, log: Stored<Arc<dyn SessionLog>>) -> Stored<Arc<GatedLog>> {
        let gate = self.clone();
        async move { Ok(Arc::new(GatedLog { log: log.await?, gate })) }.boxed()
    }
}

impl StoreLayer for GatedReads {
    fn inner(&self) -> &dyn SessionStore {
        &self.store
    }

    fn create(&self, session: &SessionId, contents: NewLog) -> Stored<Arc<dyn SessionLog>> {
        let log = self.gate(self.store.create(session, contents));
        async move { Ok(log.await? as Arc<dyn SessionLog>) }.boxed()
    }

    fn open(&self, session: &SessionId) -> Stored<Arc<dyn SessionPast>> {
        let log = self.gate(self.store.own(session));
        async move { Ok(log.await? as Arc<dyn SessionPast>) }.boxed()
    }

    fn own(&self, session: &SessionId) -> Stored<Arc<dyn SessionLog>> {
        let log = self.gate(self.store.own(session));
        async move { Ok(log.await? as Arc<dyn SessionLog>) }.boxed()
    }
}

impl LogLayer for GatedLog {
    fn inner(&self) -> &dyn SessionLog {
        &*self.log
    }

    fn page(&self, range: Range<u64>, most: usize) -> Stored<Page> {
        let (log, gate) = (Arc::clone(&self.log), self.gate.clone());
        let is_broken = gate.broken.load(Ordering::SeqCst);
        async move {
            // The facts after the saved state are always readable.
            if range.end == u64::MAX {
                return log.page(range, most).await;
            }
            let _ = gate.open.subscribe().wait_for(|open| *open).await;
            if is_broken {
                return Err(StoreError::Io { message: "input/output error".into() });
            }
            let page = log.page(range, most).await;
            gate.read.send_modify(|read| *read += 1);
            page
        }
        .boxed()
    }
}

/// Prompts once, and waits for the end of the turn.
async fn turn(harness: &Harness, session: &SessionHandle, number: usize) {
    turn_with(harness, session, number, &format!("Answer {number}.")).await;
}

/// A turn with this answer.
async fn turn_with(harness: &Harness, session: &SessionHandle, number: usize, answer: &str) {
    harness.model.then(reply().text(answer));
    session.prompt(format!("Prompt {number}.")).await.unwrap();
    let settled = session.settled().await.unwrap();
    assert_eq!(settled.last_turn.as_ref().unwrap().outcome, Outcome::Done);
}

/// The first turn: the user denies a call of the tool `probe` with *always*.
async fn deny_always(harness: &Harness, session: &SessionHandle) {
    session.change_policy(PolicyMode::Ask).await.unwrap();
    let mut events = harness.watch(session).await;
    harness.model.then(reply().call("probe", json!({"n": 1})));
    session.prompt("Prompt 0.").await.unwrap();
    events.asked().await;
    events.answer(Answer::Deny { reason: None, always: true }).await.unwrap();
    assert_eq!(events.turn_finished().await.outcome, Outcome::Done);
}

/// Fills the store with a session of many turns, and ends its engine.
async fn filled(folder: &TempDir) -> Arc<Snapshot> {
    filled_with(folder, |number| format!("Answer {number}.")).await
}

/// Like [`filled`], with these answers.
async fn filled_with(folder: &TempDir, answer: impl Fn(usize) -> String) -> Arc<Snapshot> {
    let store = Sqlite::open(folder.path()).unwrap();
    let harness = Harness::with(|engine| engine.store(store.clone()));
    let session = harness.open().await;
    deny_always(&harness, &session).await;
    fill(harness, session, store, answer).await
}

/// Takes many turns in a session, and ends its engine.
async fn fill(
    harness: Harness,
    session: SessionHandle,
    store: Sqlite,
    answer: impl Fn(usize) -> String,
) -> Arc<Snapshot> {
    for number in 1..TURNS {
        turn_with(&harness, &session, number, &answer(number)).await;
    }
    let mut events = harness.watch(&session).await;
    let shown = session.snapshot();
    drop((harness, session));
    while events.next().await.is_some() {}
    drop(events);
    store.close().await;
    shown
}

fn database(folder: &TempDir) -> Connection {
    Connection::open(folder.path().join("sessions.db")).unwrap()
}

/// The number of the fact that the saved state ends with.
fn saved_upto(folder: &TempDir) -> i64 {
    database(folder).query_row("SELECT seq FROM states", [], |row| row.get(0)).unwrap()
}

/// What does not depend on whether the session is live.
fn lasting(snapshot: &Snapshot) -> Snapshot {
    Snapshot { seq: 0, clients: 0, ..snapshot.clone() }
}

async fn turn_started(events: &mut Recorder) {
    let started = |event: &Event| {
        matches!(event.fact(), Some(Fact::Turn(TurnFact::Started { .. }))).then_some(())
    };
    events.until_new("the start of a turn", started).await;
}

/// The texts of the prompts in a request.
fn prompts(request: &ModelRequest) -> Vec<&str> {
    let texts = request.messages.iter().filter_map(|message| match message {
        Message::User(text) => Some(text.as_str()),
        Message::Assistant(_) | Message::Tool(_) => None,
    });
    texts.collect()
}

#[tokio::test]
async fn m_b7_a_long_session_opens_from_its_saved_state_alone() {
    let folder = TempDir::new().unwrap();
    let before = filled(&folder).await;
    let upto = saved_upto(&folder);
    // The effects of these facts are in the saved state alone now.
    let deleted = "DELETE FROM facts WHERE seq > 1 AND seq < ?1";
    assert!(database(&folder).execute(deleted, [upto]).unwrap() > 500);
    let harness = Harness::with(|engine| engine.store(Sqlite::open(folder.path()).unwrap()));
    let id = &before.settings.id;
    let shown = harness.sessions().look(id.as_str()).await.unwrap();
    assert_eq!(lasting(&shown), Snapshot { gaps: shown.gaps.clone(), ..lasting(&before) });
    let session = harness.sessions().get(id.as_str()).await.unwrap();
    assert_eq!(session.snapshot().usage, before.usage);
    // The conversation has lost its beginning, and says so. The denial was in it.
    harness.model.then(reply().call("probe", json!({"n": 1})));
    turn(&harness, &session, TURNS).await;
    let Some(Message::Tool(result)) = harness.model.requests()[1].messages.last().cloned() else {
        panic!("{:#?}", harness.model.requests())
    };
    assert_eq!(result.result, "the user denied this for the whole session");
    assert_ne!(session.snapshot().gaps, Gaps::default());
    assert!(prompts(&harness.model.requests()[0]).len() < TURNS);
}

#[tokio::test]
async fn m_b7_a_damaged_or_foreign_saved_state_is_not_used() {
    let folder = TempDir::new().unwrap();
    let before = filled(&folder).await;
    for damage in [
        "UPDATE states SET state = replace(state, 'Prompt 0', 'Prompt 9')",
        "UPDATE states SET check_sum = check_sum + 1",
        "UPDATE states SET seq = seq + 1",
        "UPDATE states SET session = 'another'",
        "DELETE FROM states",
    ] {
        database(&folder).execute(damage, []).unwrap();
        let harness = Harness::with(|engine| engine.store(Sqlite::open(folder.path()).unwrap()));
        let shown = harness.sessions().look(before.settings.id.as_str()).await.unwrap();
        assert_eq!(lasting(&shown), lasting(&before), "{damage}");
    }
}

#[tokio::test]
async fn m_b7_the_first_turn_after_an_opening_has_the_whole_conversation() {
    let folder = TempDir::new().unwrap();
    let before = filled(&folder).await;
    let store = GatedReads::new(folder.path());
    let harness = Harness::with(|engine| engine.store(store.clone()));
    store.open.send_replace(false);
    let session = harness.sessions().get(before.settings.id.as_str()).await.unwrap();
    let mut events = Recorder::new(session.attach(AttachFrom::now()).await.unwrap());
    harness.model.then(reply().text("Answer."));
    session.prompt("More.").await.unwrap();
    turn_started(&mut events).await;
    // The turn waits for the conversation. An interrupt does not.
    let receipt = session.interrupt(None).await.unwrap();
    assert_eq!(events.turn_finished().await.outcome, Outcome::Interrupted, "{receipt:?}");
    assert_eq!(harness.model.requests().len(), 0);

    session.prompt("Still more.").await.unwrap();
    turn_started(&mut events).await;
    store.open.send_replace(true);
    assert_eq!(events.turn_finished().await.outcome, Outcome::Done);
    let requests = harness.model.requests();
    let sent = prompts(&requests[0]);
    let expected: Vec<_> = (0..TURNS).map(|number| format!("Prompt {number}.")).collect();
    assert_eq!(sent[..TURNS], expected);
    assert!(sent[TURNS..].concat().contains("Still more."), "{:?}", &sent[TURNS..]);
}

#[tokio::test]
async fn m_b7_a_turn_fails_if_the_conversation_can_not_be_read_and_the_next_one_tries_again() {
    let folder = TempDir::new().unwrap();
    let before = filled(&folder).await;
    let store = GatedReads::new(folder.path());
    let harness = Harness::with(|engine| engine.store(store.clone()));
    store.broken.store(true, Ordering::SeqCst);
    let session = harness.sessions().get(before.settings.id.as_str()).await.unwrap();
    session.prompt("More.").await.unwrap();
    let failed = session.settled().await.unwrap().last_turn.clone().unwrap();
    assert_eq!(failed.outcome, Outcome::Failed);
    assert!(failed.error.unwrap().contains("the conversation can't be read: input/output error"));
    store.broken.store(false, Ordering::SeqCst);
    turn(&harness, &session, TURNS).await;
    assert!(prompts(&harness.model.requests()[0]).len() > TURNS);
}
