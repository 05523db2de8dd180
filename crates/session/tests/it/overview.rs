//! All sessions at once: a watch of their changes, snapshots of sessions that stay saved, and one
//! inbox of their asks.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use futures_util::FutureExt;
use holdpoint_common::api::{ListQuery, SessionNews};
use holdpoint_common::{
    Answer, MAX_TITLE, NameError, PolicyMode, Refused, SessionStatus, SessionSummary,
};
use holdpoint_session::store::{Memory, SavedPage, SavedSession, SessionStore, StoreError};
use holdpoint_session::testing::{Harness, StoreLayer, Stored, reply, within_patience};
use holdpoint_session::{SessionError, SessionHandle, Watch};
use serde_json::json;

/// Reads news until the summary of this session matches `wanted`.
async fn wait_for_change(
    watch: &mut Watch,
    session: &SessionHandle,
    wanted: impl Fn(&SessionSummary) -> bool,
) -> SessionSummary {
    within_patience("a change of the session", async {
        loop {
            match watch.next().await.expect("the watch continues") {
                SessionNews::Session(summary)
                    if summary.id == *session.id() && wanted(&summary) =>
                {
                    return *summary;
                }
                _ => {}
            }
        }
    })
    .await
}

#[tokio::test]
async fn m_b9_a_watch_reports_every_session_and_then_its_changes() {
    let harness = Harness::start();
    let first = harness.open().await;
    let mut watch = harness.sessions().watch().await.unwrap();
    let summary = wait_for_change(&mut watch, &first, |_| true).await;
    assert!(summary.live && summary.status == SessionStatus::Idle, "{summary:?}");
    // A session that is opened later is reported, too, with each of its changes.
    let second = harness.sessions().open(harness.session().policy(PolicyMode::Ask)).await.unwrap();
    wait_for_change(&mut watch, &second, |summary| summary.live).await;
    harness
        .model
        .then(reply().call("shell", json!({"command": "touch a"})))
        .then(reply().text("done"));
    second.prompt("go").await.unwrap();
    let asking = wait_for_change(&mut watch, &second, |summary| summary.waits_for.is_some()).await;
    assert_eq!(asking.status, SessionStatus::Paused);
    second.answer(&asking.waits_for.unwrap().id, Answer::Approve { always: false }).await.unwrap();
    wait_for_change(&mut watch, &second, |summary| {
        summary.status == SessionStatus::Idle && summary.last_turn.is_some()
    })
    .await;
    second.close().await.unwrap();
    wait_for_change(&mut watch, &second, |summary| !summary.live).await;
}

#[tokio::test]
async fn m_b9_the_inbox_has_every_open_ask_the_oldest_first() {
    let harness = Harness::start();
    let mut asks = Vec::new();
    for name in ["one", "two"] {
        let open = harness.session().policy(PolicyMode::Ask).name(name);
        let session = harness.sessions().open(open).await.unwrap();
        let mut events = harness.watch(&session).await;
        let both = reply()
            .call("shell", json!({"command": "touch a"}))
            .call("shell", json!({"command": "touch b"}));
        harness.model.then(both);
        session.prompt("go").await.unwrap();
        asks.push(events.asked().await.id);
        asks.push(events.asked().await.id);
    }
    let inbox = harness.sessions().inbox().await.unwrap();
    assert_eq!(inbox.iter().map(|entry| entry.ask.id.clone()).collect::<Vec<_>>(), asks);
    assert_eq!(
        inbox.iter().map(|entry| entry.name.as_str()).collect::<Vec<_>>(),
        ["one", "one", "two", "two"]
    );
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
    assert_eq!(unknown, SessionError::UnknownSession { given: "nobody".into() });
}

/// Opens a session and makes it ask.
async fn asking(harness: &Harness, name: &str) -> SessionHandle {
    let session = harness
        .sessions()
        .open(harness.session().policy(PolicyMode::Ask).name(name))
        .await
        .unwrap();
    let mut events = harness.watch(&session).await;
    harness.model.then(reply().call("shell", json!({"command": "touch a"})));
    session.prompt("go").await.unwrap();
    events.asked().await;
    session
}

#[tokio::test]
async fn m_b9_no_session_is_named_like_the_id_of_another_session_or_ask() {
    let harness = Harness::start();
    let sessions = harness.sessions();
    let one = asking(&harness, "one").await;
    let closed = harness.open().await;
    closed.close().await.unwrap();
    let other = harness.open().await;
    let ask = one.snapshot().asks[0].id.to_string();
    for id in [one.id().to_string(), closed.id().to_string(), ask] {
        let refused = SessionError::Refused(Refused::Name(NameError::Id));
        assert_eq!(
            sessions.open(harness.session().name(&id)).await.err(),
            Some(refused.clone()),
            "{id}"
        );
        assert_eq!(other.rename(&id).await, Err(refused), "{id}");
    }
    // An id that no session has is a name like any other.
    other.rename("k3v9x2m7qa").await.unwrap();
    let folder = harness.folder.path().join("release-1.2");
    std::fs::create_dir(&folder).unwrap();
    let named = sessions.open(holdpoint_session::OpenSession::in_folder(folder)).await.unwrap();
    assert_eq!(named.snapshot().settings.name, "release-1-2");
}

#[tokio::test]
async fn m_b9_an_id_finds_its_session_even_if_another_has_it_as_name() {
    let harness = Harness::start();
    let sessions = harness.sessions();
    let one = asking(&harness, "one").await;
    let closed = harness.open().await;
    closed.close().await.unwrap();
    // No client can give such a name, but a folder can have it.
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
async fn m_b9_the_list_is_read_in_pages_live_sessions_first() {
    let store = Counting::default();
    let former = Harness::with(|engine| engine.store(store.clone()));
    for name in ["saved-1", "saved-2"] {
        former.sessions().open(former.session().name(name)).await.unwrap();
    }
    drop(former);
    let harness = Harness::with(|engine| engine.store(store.clone()));
    let sessions = harness.sessions();
    let mut opened = Vec::new();
    for name in ["live-1", "closed-1", "live-2", "closed-2"] {
        opened.push(sessions.open(harness.session().name(name)).await.unwrap());
    }
    for closed in [1, 3] {
        opened[closed].close().await.unwrap();
    }
    let all = sessions.list().await.unwrap();
    let live: Vec<_> = all.iter().take_while(|session| session.live).collect();
    assert_eq!((all.len(), live.len()), (6, 2));
    assert!(live.iter().all(|session| session.name.starts_with("live")), "{all:?}");
    for limit in 1..=7 {
        let (mut listed, mut query) = (Vec::new(), ListQuery::default());
        query.limit = NonZeroUsize::new(limit);
        loop {
            let page = sessions.list_page(query.clone()).await.unwrap();
            assert!(page.sessions.len() <= limit);
            listed.extend(page.sessions);
            match page.next {
                next @ Some(_) => query.after = next,
                None => break,
            }
        }
        assert_eq!(listed, all, "{limit}");
    }
}

#[tokio::test]
async fn m_b9_a_title_is_bounded() {
    let harness = Harness::start();
    let session = harness.open().await;
    session.prompt("ü".repeat(300_000)).await.unwrap();
    session.settled().await.unwrap();
    assert_eq!(session.snapshot().title, "ü".repeat(MAX_TITLE));
}

/// A store that can't read its list while `broken` is set. It counts how often the list is read.
#[derive(Default, Clone)]
struct Counting {
    store: Arc<Memory>,
    broken: Arc<AtomicBool>,
    listed: Arc<AtomicUsize>,
}

impl StoreLayer for Counting {
    fn inner(&self) -> &dyn SessionStore {
        &*self.store
    }

    fn list_page(&self, page: SavedPage) -> Stored<Vec<SavedSession>> {
        if self.broken.load(Ordering::SeqCst) {
            return async { Err(StoreError::Io { message: "it is broken".into() }) }.boxed();
        }
        self.listed.fetch_add(1, Ordering::SeqCst);
        self.store.list_page(page)
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
    wait_for_change(&mut watch, &first, |_| true).await;
    store.broken.store(true, Ordering::SeqCst);
    let second = sessions.import(&mut &text[..]).await.unwrap();
    // The watch looks for the second session and can't read the list.
    assert!(watch.next().now_or_never().is_none());
    first.prompt("go").await.unwrap();
    wait_for_change(&mut watch, &first, |summary| summary.last_turn.is_some()).await;
    store.broken.store(false, Ordering::SeqCst);
    first.prompt("go on").await.unwrap();
    within_patience("a change of the second session", async {
        while !matches!(watch.next().await.unwrap(), SessionNews::Session(summary) if summary.id == second) {}
    })
    .await;
}

/// A slow watch reports a session that was opened and closed meanwhile in its latest state.
#[tokio::test]
async fn m_b9_a_slow_watch_reports_a_session_opened_and_closed_meanwhile() {
    let harness = Harness::start();
    let sessions = harness.sessions();
    let mut watch = sessions.watch().await.unwrap();
    let session = harness.open().await;
    session.prompt("go").await.unwrap();
    session.settled().await.unwrap();
    session.close().await.unwrap();
    let summary = wait_for_change(&mut watch, &session, |_| true).await;
    assert!(!summary.live && summary.last_turn.is_some(), "{summary:?}");
}

/// There may be thousands of saved sessions: a watch lists them once, and not whenever a session is
/// opened or closed.
#[tokio::test]
async fn m_b9_a_watch_lists_the_saved_sessions_only_when_they_change() {
    let store = Counting::default();
    let harness = Harness::with(|engine| engine.store(store.clone()));
    let sessions = harness.sessions();
    let saved = harness.open().await;
    saved.close().await.unwrap();
    let mut watch = sessions.watch().await.unwrap();
    wait_for_change(&mut watch, &saved, |summary| !summary.live).await;
    let listed = || store.listed.load(Ordering::SeqCst);
    let before = listed();
    let session = harness.open().await;
    wait_for_change(&mut watch, &session, |summary| summary.live).await;
    session.prompt("go").await.unwrap();
    wait_for_change(&mut watch, &session, |summary| summary.last_turn.is_some()).await;
    session.close().await.unwrap();
    let summary = wait_for_change(&mut watch, &session, |summary| !summary.live).await;
    assert_eq!(listed(), before, "the list is not read again");
    let list = sessions.list().await.unwrap();
    assert_eq!(
        summary,
        *list.iter().find(|listed| listed.id == summary.id).unwrap(),
        "the reported change matches the list"
    );
    // A deleted session is reported, too.
    sessions.delete(saved.id().as_str()).await.unwrap();
    within_patience("the deletion", async {
        while !matches!(watch.next().await.unwrap(), SessionNews::Deleted(id) if id == *saved.id())
        {
        }
    })
    .await;
}
