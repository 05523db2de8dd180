//! All sessions at once: watched as they change, looked at without being opened, and their asks in one inbox.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use holdpoint_common::api::SessionNews;
use holdpoint_common::{Answer, MAX_TITLE, NameError, PolicyMode, SessionId, SessionStatus, SessionSummary};
use holdpoint_session::state::Refused;
use holdpoint_session::store::{Memory, SavedSession, SessionLog, SessionStore, StoreError};
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

/// Opens a session, and has it ask.
async fn asking(harness: &Harness, name: &str) -> SessionHandle {
    let session = harness.sessions().open(harness.session().policy(PolicyMode::Ask).name(name)).await.unwrap();
    let mut events = harness.watch(&session).await;
    harness.model.then(reply().call("shell", json!({"command": "touch a"})));
    session.prompt("go").await.unwrap();
    events.asked().await;
    session
}

#[tokio::test]
async fn m_b9_no_session_is_called_what_is_the_id_of_another_or_of_its_ask() {
    let harness = Harness::start();
    let sessions = harness.sessions();
    let one = asking(&harness, "one").await;
    let closed = harness.open().await;
    closed.close().await.unwrap();
    let other = harness.open().await;
    let ask = one.snapshot().asks[0].id.to_string();
    for id in [one.id().to_string(), closed.id().to_string(), ask] {
        let refused = SessionError::Refused(Refused::Name(NameError::Id));
        assert_eq!(sessions.open(harness.session().name(&id)).await.err(), Some(refused.clone()), "{id}");
        assert_eq!(other.rename(&id).await, Err(refused), "{id}");
    }
    // What is nobody's id is a name like any other.
    other.rename("k3v9x2m7qa").await.unwrap();
    let folder = harness.folder.path().join("release-1.2");
    std::fs::create_dir(&folder).unwrap();
    let named = sessions.open(holdpoint_session::OpenSession::in_folder(folder)).await.unwrap();
    assert_eq!(named.snapshot().settings.name, "release-1-2");
}

#[tokio::test]
async fn m_b9_an_id_is_the_session_s_own_whatever_another_one_is_called() {
    let harness = Harness::start();
    let sessions = harness.sessions();
    let one = asking(&harness, "one").await;
    let closed = harness.open().await;
    closed.close().await.unwrap();
    // Nobody is given such a name; a folder can have it.
    for (n, id) in [one.id(), closed.id()].into_iter().enumerate() {
        let folder = harness.folder.path().join(id.as_str());
        std::fs::create_dir(&folder).unwrap();
        let open = holdpoint_session::OpenSession::in_folder(folder).policy(PolicyMode::Ask);
        let named = sessions.open(open).await.unwrap();
        assert_eq!(named.snapshot().settings.name, id.as_str());
        assert_eq!(sessions.look(id.as_str()).await.unwrap().settings.id, *id);
        let inbox = sessions.inbox().await.unwrap();
        assert_eq!(inbox.iter().map(|ask| &ask.session).collect::<Vec<_>>(), [one.id()], "{n}");
        assert_eq!(sessions.get(id.as_str()).await.unwrap().id(), id);
    }
    closed.close().await.unwrap();
    sessions.delete(closed.id().as_str()).await.unwrap();
    assert_eq!(sessions.list().await.unwrap().len(), 3);
    assert!(sessions.look(one.id().as_str()).await.is_ok());
}

#[tokio::test]
async fn m_b9_a_title_is_bounded() {
    let harness = Harness::start();
    let session = harness.open().await;
    session.prompt("ü".repeat(300_000)).await.unwrap();
    session.settled().await.unwrap();
    assert_eq!(session.snapshot().title, "ü".repeat(MAX_TITLE));
}

/// A store whose list can't be read while `broken` is set; it counts how often it was.
#[derive(Default, Clone)]
struct Counting {
    store: Arc<Memory>,
    broken: Arc<AtomicBool>,
    listed: Arc<AtomicUsize>,
}

impl SessionStore for Counting {
    fn create(&self, session: &SessionId) -> BoxFuture<'static, Result<Arc<dyn SessionLog>, StoreError>> {
        self.store.create(session)
    }

    fn open(&self, session: &SessionId) -> BoxFuture<'static, Result<Arc<dyn SessionLog>, StoreError>> {
        self.store.open(session)
    }

    fn list(&self) -> BoxFuture<'static, Result<Vec<SavedSession>, StoreError>> {
        if self.broken.load(Ordering::SeqCst) {
            return async { Err(StoreError::Io { message: "it is broken".into() }) }.boxed();
        }
        self.listed.fetch_add(1, Ordering::SeqCst);
        self.store.list()
    }

    fn delete(&self, session: &SessionId) -> BoxFuture<'static, Result<(), StoreError>> {
        self.store.delete(session)
    }
}

#[tokio::test]
async fn t_u6_a_watch_outlives_a_store_that_can_t_be_read() {
    let store = Counting::default();
    let harness = Harness::with(|engine| engine.store(store.clone()));
    let sessions = harness.sessions();
    let first = harness.open().await;
    let mut text = Vec::new();
    sessions.export(first.id().as_str(), &mut text).await.unwrap();
    let mut watch = sessions.watch().await.unwrap();
    until(&mut watch, &first, |_| true).await;
    store.broken.store(true, Ordering::SeqCst);
    let second = sessions.import(&mut &text[..]).await.unwrap();
    // It looks for the second, and can't read the list.
    assert!(watch.next().now_or_never().is_none());
    first.prompt("go").await.unwrap();
    until(&mut watch, &first, |told| told.last_turn.is_some()).await;
    store.broken.store(false, Ordering::SeqCst);
    first.prompt("go on").await.unwrap();
    soon("news of the second", async {
        while !matches!(watch.next().await.unwrap(), SessionNews::Session(told) if told.id == second) {}
    })
    .await;
}

/// However late it is looked: what came and went meanwhile is told as it is then.
#[tokio::test]
async fn m_b9_a_watch_tells_of_a_session_that_came_and_went_unseen() {
    let harness = Harness::start();
    let sessions = harness.sessions();
    let mut watch = sessions.watch().await.unwrap();
    let session = harness.open().await;
    session.prompt("go").await.unwrap();
    session.settled().await.unwrap();
    session.close().await.unwrap();
    let told = until(&mut watch, &session, |_| true).await;
    assert!(!told.live && told.last_turn.is_some(), "{told:?}");
}

/// There may be thousands of saved sessions: who watches reads them once, and not whenever one comes or goes.
#[tokio::test]
async fn m_b9_a_watch_lists_the_saved_sessions_only_when_they_change() {
    let store = Counting::default();
    let harness = Harness::with(|engine| engine.store(store.clone()));
    let sessions = harness.sessions();
    let saved = harness.open().await;
    saved.close().await.unwrap();
    let mut watch = sessions.watch().await.unwrap();
    until(&mut watch, &saved, |told| !told.live).await;
    let listed = || store.listed.load(Ordering::SeqCst);
    let before = listed();
    let session = harness.open().await;
    until(&mut watch, &session, |told| told.live).await;
    session.prompt("go").await.unwrap();
    until(&mut watch, &session, |told| told.last_turn.is_some()).await;
    session.close().await.unwrap();
    let told = until(&mut watch, &session, |told| !told.live).await;
    assert_eq!(listed(), before, "not even once");
    let list = sessions.list().await.unwrap();
    assert_eq!(told, *list.iter().find(|listed| listed.id == told.id).unwrap(), "it is told of as it is listed");
    // One that is deleted is told of, too.
    sessions.delete(saved.id().as_str()).await.unwrap();
    soon("news of the deleted", async {
        while !matches!(watch.next().await.unwrap(), SessionNews::Deleted(id) if id == *saved.id()) {}
    })
    .await;
}
