//! Sessions that have lost facts: the rest is shown, and they continue.

use std::path::Path;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::ready;
use holdpoint_common::{
    Ask, AsksMode, Delta, Event, Fact, Limits, Outcome, PolicyMode, SessionId, TurnFact,
};
use holdpoint_session::store::{SessionPast, SessionStore, Sqlite, StoreError};
use holdpoint_session::testing::{Harness, Recorder, StoreLayer, Stored, reply};
use holdpoint_session::transfer::{export, import};
use holdpoint_session::{AttachFrom, SessionError};
use serde_json::json;
use tempfile::TempDir;

fn on(store: &Path) -> Harness {
    let store = Sqlite::open(store).unwrap();
    Harness::with(|engine| engine.store(store))
}

/// A session that has answered two prompts and was renamed between them, and the number of its last
/// fact.
async fn session_in(store: &Path) -> (SessionId, u64) {
    let harness = on(store);
    harness.model.then(reply().text("one")).then(reply().text("two"));
    let open = harness.session().name("before").policy(PolicyMode::All).asks(AsksMode::Approve);
    let session = harness.sessions().open(open).await.unwrap();
    session.prompt("first").await.unwrap();
    session.settled().await.unwrap();
    session.rename("after").await.unwrap();
    session.prompt("second").await.unwrap();
    session.settled().await.unwrap();
    let db = rusqlite::Connection::open(store.join("sessions.db")).unwrap();
    let last: i64 = db.query_row("SELECT last FROM sessions", [], |row| row.get(0)).unwrap();
    (session.id().clone(), last.cast_unsigned())
}

fn change(store: &Path, id: &SessionId, change: &str) {
    let db = rusqlite::Connection::open(store.join("sessions.db")).unwrap();
    assert_ne!(db.execute(change, [id.as_str()]).unwrap(), 0, "{change}");
}

/// The events of a log, up to the newest.
async fn events_of(harness: &Harness, id: &SessionId) -> Vec<Arc<Event>> {
    let session = harness.sessions().get(id.as_str()).await.unwrap();
    let attachment = session.attach(AttachFrom::start()).await.unwrap();
    let newest = attachment.snapshot().seq;
    let (mut events, mut received) = (Recorder::new(attachment), Vec::new());
    while received.last().is_none_or(|last: &Arc<Event>| last.seq < newest) {
        received.push(events.next().await.unwrap());
    }
    received
}

#[tokio::test]
async fn t_u5_a_session_without_its_first_fact_is_shown_and_continues() {
    for lost in [
        "UPDATE facts SET event = '{bad' WHERE session = ?1 AND seq = 1",
        "DELETE FROM facts WHERE session = ?1 AND seq = 1",
    ] {
        let folder = TempDir::new().unwrap();
        let (id, _) = session_in(folder.path()).await;
        change(folder.path(), &id, lost);

        let harness = on(folder.path());
        let listed = harness.sessions().list().await.unwrap();
        let shown = harness.sessions().look(id.as_str()).await.unwrap();
        assert_eq!(
            (shown.title.as_str(), shown.settings.name.as_str()),
            ("after", "after"),
            "{lost}"
        );
        assert_eq!(
            (&shown.settings.workspace, &shown.settings.model),
            (&listed[0].workspace, &listed[0].model)
        );
        // Settings that only the first fact had get safe defaults.
        assert_eq!(
            (shown.settings.asks, shown.settings.policy),
            (AsksMode::Wait, PolicyMode::Ask),
            "{lost}"
        );
        assert_eq!(shown.last_line.as_deref(), Some("two"), "{lost}");

        let events = events_of(&harness, &id).await;
        assert_eq!(events[0].delta(), Some(&Delta::Gap { from: 1, to: 1 }), "{lost}");
        let answers = events
            .iter()
            .filter(|event| matches!(event.fact(), Some(Fact::Turn(TurnFact::AssistantMessage(_)))))
            .count();
        assert_eq!(answers, 2, "{lost}");

        let session = harness.sessions().get("after").await.unwrap();
        session.prompt("third").await.unwrap();
        assert_eq!(
            session.settled().await.unwrap().last_turn.as_ref().unwrap().outcome,
            Outcome::Done
        );
        let mut text = Vec::new();
        export(&Sqlite::open(folder.path()).unwrap(), &id, &mut text).await.unwrap();
        let text = String::from_utf8(text).unwrap();
        assert!(text.contains("third") && text.contains("gap"), "{text}");
    }
}

/// With the list's entry lost, too, the session has no settings at all. Every call that asks for it
/// reports the damage.
#[tokio::test]
async fn t_u5_a_session_without_first_fact_and_summary_is_reported_as_damaged() {
    let folder = TempDir::new().unwrap();
    let (id, _) = session_in(folder.path()).await;
    change(folder.path(), &id, "DELETE FROM facts WHERE session = ?1 AND seq = 1");
    change(folder.path(), &id, "UPDATE sessions SET summary = NULL WHERE id = ?1");

    let harness = on(folder.path());
    for error in [
        harness.sessions().look(id.as_str()).await.err().unwrap(),
        harness.sessions().get(id.as_str()).await.err().unwrap(),
    ] {
        assert_eq!(error.code(), "damaged");
        assert!(
            matches!(&error, SessionError::Damaged { session, .. } if *session == id),
            "{error}"
        );
    }
    harness.sessions().delete(id.as_str()).await.unwrap();
}

#[tokio::test]
async fn t_u5_a_session_without_any_fact_is_listed_and_reported_as_damaged() {
    let folder = TempDir::new().unwrap();
    let (id, last) = session_in(folder.path()).await;
    change(folder.path(), &id, "DELETE FROM facts WHERE session = ?1");

    let harness = on(folder.path());
    let listed = harness.sessions().list().await.unwrap();
    assert_eq!((&listed[0].id, listed[0].title.as_str()), (&id, "after"));
    for error in [
        harness.sessions().look("after").await.err().unwrap(),
        harness.sessions().get("after").await.err().unwrap(),
    ] {
        assert_eq!(error.code(), "damaged");
        assert!(error.to_string().contains(&format!("1 to {last}")), "{error}");
    }
    harness.sessions().delete("after").await.unwrap();
    assert!(harness.sessions().list().await.unwrap().is_empty());
}

/// Ids that may have been lost are not given again, and the remaining events are accepted.
#[tokio::test]
async fn t_u5_the_rest_of_a_damaged_session_can_be_exported_and_imported() {
    let folder = TempDir::new().unwrap();
    let (id, _) = session_in(folder.path()).await;
    change(
        folder.path(),
        &id,
        "DELETE FROM facts WHERE session = ?1 AND event LIKE '%\"promptAccepted\"%'",
    );
    let mut text = Vec::new();
    export(&Sqlite::open(folder.path()).unwrap(), &id, &mut text).await.unwrap();
    let other = TempDir::new().unwrap();
    let taken =
        import(&Sqlite::open(other.path()).unwrap(), &Limits::default(), &mut text.as_slice())
            .await
            .unwrap();

    let harness = on(other.path());
    harness.model.then(reply().text("three"));
    let session = harness.sessions().get(taken.as_str()).await.unwrap();
    let prompted = session.prompt("third").await.unwrap();
    assert!(prompted.prompt.0 > 2, "{prompted:?}");
    assert_eq!(session.settled().await.unwrap().last_line.as_deref(), Some("three"));
}

/// The asks of two sessions that are only saved.
async fn two_that_ask(store: &Path) -> [Ask; 2] {
    let harness = on(store);
    let ask = async |n: u8| {
        harness.model.then(reply().call("probe", json!({ "n": n })));
        let session =
            harness.sessions().open(harness.session().policy(PolicyMode::Ask)).await.unwrap();
        let mut events = harness.watch(&session).await;
        session.prompt("go").await.unwrap();
        events.asked().await
    };
    [ask(0).await, ask(1).await]
}

/// A session without its facts hides no other one. The list still has the first of its asks.
#[tokio::test]
async fn t_u5_the_asks_of_others_are_in_the_inbox_beside_a_session_without_any_fact() {
    let folder = TempDir::new().unwrap();
    let asks = two_that_ask(folder.path()).await;
    change(folder.path(), &asks[0].id.session, "DELETE FROM facts WHERE session = ?1");

    let harness = on(folder.path());
    let inbox = harness.sessions().inbox().await.unwrap();
    assert_eq!(inbox.into_iter().map(|ask| ask.ask).collect::<Vec<_>>(), asks);
}

/// A store that can't read one of its sessions.
struct Unreadable(Sqlite, SessionId);

impl StoreLayer for Unreadable {
    fn inner(&self) -> &dyn SessionStore {
        &self.0
    }

    fn open(&self, session: &SessionId) -> Stored<Arc<dyn SessionPast>> {
        if *session == self.1 {
            return ready(Err(StoreError::Io { message: "the disk does not respond".to_owned() }))
                .boxed();
        }
        self.0.open(session)
    }
}

/// A request for the asks of one session does not report the fault of another.
#[tokio::test]
async fn t_u5_asks_of_a_session_ignore_faults_of_other_sessions() {
    let folder = TempDir::new().unwrap();
    let [unreadable, ask] = two_that_ask(folder.path()).await;
    let store = Unreadable(Sqlite::open(folder.path()).unwrap(), unreadable.id.session.clone());
    let harness = Harness::with(|engine| engine.store(store));
    let sessions = harness.sessions();
    assert!(matches!(sessions.inbox().await, Err(SessionError::Store { .. })));
    let asks = sessions.asks(&ask.id.session).await.unwrap();
    let saved = (
        asks[0].live,
        asks[0].name == sessions.look(ask.id.session.as_str()).await.unwrap().settings.name,
    );
    assert_eq!((asks.len(), &asks[0].ask, saved), (1, &ask, (false, true)));
    assert!(matches!(sessions.asks(&unreadable.id.session).await, Err(SessionError::Store { .. })));
    let nobody = "nobody".parse().unwrap();
    assert_eq!(
        sessions.asks(&nobody).await,
        Err(SessionError::UnknownSession { given: "nobody".to_owned() })
    );
    // A session with this name is still not the one with this id.
    sessions.rename(&ask.id.session, "nobody").await.unwrap();
    assert_eq!(
        sessions.asks(&nobody).await,
        Err(SessionError::UnknownSession { given: "nobody".to_owned() })
    );
}
