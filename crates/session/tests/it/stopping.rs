//! An engine that stops: a tidy crash. Open turns are cut and saved, and a restart finds where to
//! continue.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use holdpoint_common::api::SessionNews;
use holdpoint_common::{
    Answer, AskCloseCause, AskFact, AskOrigin, CutCause, Event, Fact, HoldState, JobEnd, JobFact,
    Limits, Outcome, PauseKind, PauseResponse, PolicyMode, SessionFact, SessionStatus, ToolFact,
    ToolStatus, TurnFact,
};
use holdpoint_session::store::Sqlite;
use holdpoint_session::testing::{Harness, Recorder, patience, reply};
use holdpoint_session::{AttachFrom, SessionError, SessionHandle};
use holdpoint_tools::{ToolError, ToolOutcome};
use serde_json::json;
use tempfile::TempDir;

fn on(store: &Path) -> Harness {
    let store = Sqlite::open(store).unwrap();
    Harness::with(|engine| engine.store(store))
}

/// Stops the engine, within the patience.
fn stop(harness: Harness) {
    let (stopped, stops) = mpsc::channel();
    std::thread::spawn(move || {
        drop(harness);
        let _ = stopped.send(());
    });
    stops.recv_timeout(patience()).expect("the engine stops");
}

/// The facts of a session before it is opened again.
async fn facts(store: &Path, session: &SessionHandle) -> Vec<Arc<Event>> {
    use holdpoint_session::store::SessionStore;
    let store = Sqlite::open(store).unwrap();
    store.open(session.id()).await.unwrap().read(0..u64::MAX).await.unwrap()
}

#[tokio::test]
async fn m_b8_stopping_cuts_turns_saves_their_text_and_keeps_the_queue() {
    let folder = TempDir::new().unwrap();
    let harness = on(folder.path());
    let answer = harness.model.then_live();
    let session = harness.open().await;
    let mut events = harness.watch(&session).await;
    session.prompt("one").await.unwrap();
    session.prompt("two").await.unwrap();
    answer.text("half an");
    let has_text = |event: &Event| {
        matches!(event.delta(), Some(holdpoint_common::Delta::Text { .. })).then_some(())
    };
    events.until("a word", has_text).await;
    stop(harness);
    // The attached client received all of it.
    let end = events.turn_finished().await;
    assert_eq!((end.outcome, end.cause), (Outcome::Interrupted, Some(CutCause::Shutdown)));
    assert!(end.receipt.unwrap().prompts.is_empty(), "queued prompts are not handed back");
    let saved = facts(folder.path(), &session).await;
    let partial = |event: &Arc<Event>| match event.fact() {
        Some(Fact::Turn(TurnFact::AssistantMessage(message))) => {
            message.partial.then(|| message.text())
        }
        _ => None,
    };
    assert_eq!(saved.iter().find_map(partial).as_deref(), Some("half an"));
    assert!(
        !saved
            .iter()
            .any(|event| matches!(event.fact(), Some(Fact::Session(SessionFact::Closed { .. }))))
    );

    let again = on(folder.path());
    let line = again.sessions().list().await.unwrap().remove(0);
    assert_eq!(line.last_turn.unwrap().cause, Some(CutCause::Shutdown));
    assert_eq!((line.status, line.hold.shown()), (SessionStatus::Paused, HoldState::Standing));
    let session = again.sessions().get(session.id().as_str()).await.unwrap();
    assert_eq!(session.snapshot().queue.len(), 1);
    assert!(again.model.requests().is_empty(), "nothing runs on load");
    session.release().await.unwrap();
    assert_eq!(session.settled().await.unwrap().last_turn.as_ref().unwrap().outcome, Outcome::Done);
}

#[tokio::test]
async fn m_b8_a_confirm_stays_open_over_a_stop_and_running_calls_end() {
    let folder = TempDir::new().unwrap();
    let harness = on(folder.path());
    // One call runs and asks, the other waits for its Confirm.
    let calls = reply()
        .call("shell", json!({"command": "echo begun; sleep 1000"}))
        .call("probe", json!({"deploy": 1}));
    harness.model.then(calls);
    let open = harness.session().policy(PolicyMode::Ask);
    let session = harness.sessions().open(open).await.unwrap();
    let mut events = harness.watch(&session).await;
    session.prompt("go").await.unwrap();
    let first = events.asked().await;
    let second = events.asked().await;
    let (shell, probe) = if first.call < second.call { (first, second) } else { (second, first) };
    session.answer(&shell.id, Answer::Approve { always: false }).await.unwrap();
    events.output("begun").await;
    stop(harness);
    let saved = facts(folder.path(), &session).await;
    let ended = |event: &Arc<Event>| {
        matches!(event.fact(), Some(Fact::Turn(TurnFact::Finished { .. } | TurnFact::Cut { .. })))
    };
    assert!(!saved.iter().any(ended), "the turn is open");

    let again = on(folder.path());
    let ran = Arc::new(AtomicBool::new(false));
    let runs = Arc::clone(&ran);
    again.probe.does(move |_, _| {
        runs.store(true, Ordering::SeqCst);
        Ok(ToolOutcome::text("deployed"))
    });
    let line = again.sessions().list().await.unwrap().remove(0);
    assert_eq!((line.status, line.waits_for.as_ref()), (SessionStatus::Paused, Some(&probe)));
    let session = again.sessions().get(session.id().as_str()).await.unwrap();
    let mut events = again.watch(&session).await;
    assert!(!ran.load(Ordering::SeqCst), "never allowed without an answer");
    session.answer(&probe.id, Answer::Approve { always: false }).await.unwrap();
    assert_eq!(events.turn_finished().await.outcome, Outcome::Done);
    assert!(ran.load(Ordering::SeqCst));
    let results: Vec<_> = events
        .facts()
        .filter_map(|fact| match fact {
            Fact::Tool(ToolFact::Finished(result)) => {
                Some((result.call, result.status, &*result.output.head))
            }
            _ => None,
        })
        .collect();
    // The output that clients saw is in the log.
    assert_eq!(
        results,
        [(shell.call, ToolStatus::Interrupted, "begun\n"), (probe.call, ToolStatus::Ok, "")]
    );
}

#[tokio::test]
async fn m_b8_stopping_closes_the_asks_of_tools_and_ends_jobs() {
    let folder = TempDir::new().unwrap();
    let harness = on(folder.path());
    let (sender, receiver) = std::sync::mpsc::channel();
    harness.probe.does(move |_, context| {
        sender.send(context.pause(PauseKind::Confirm, "Go?", None)).unwrap();
        Err(ToolError::Interrupted)
    });
    let calls = reply().call("shell", json!({"command": "sleep 1000", "background": true}));
    harness.model.then(calls).then(reply().call("probe", json!({})));
    let session = harness.open().await;
    let mut events = harness.watch(&session).await;
    session.prompt("go").await.unwrap();
    let ask = events.asked().await;
    assert_eq!(ask.origin, AskOrigin::Tool);
    assert_eq!(session.snapshot().jobs.len(), 1);
    stop(harness);
    assert_eq!(receiver.recv().unwrap(), PauseResponse::Interrupted);
    let saved = facts(folder.path(), &session).await;
    let closed = |event: &Arc<Event>| match event.fact() {
        Some(Fact::Ask(AskFact::Closed { ask, cause })) => Some((ask.clone(), *cause)),
        _ => None,
    };
    assert_eq!(saved.iter().find_map(closed), Some((ask.id, AskCloseCause::Shutdown)));
    let ended = |event: &Arc<Event>| match event.fact() {
        Some(Fact::Job(JobFact::Ended { end, .. })) => Some(*end),
        _ => None,
    };
    assert_eq!(saved.iter().filter_map(ended).collect::<Vec<_>>(), [JobEnd::Interrupted]);
    assert!(matches!(saved.last().unwrap().fact(), Some(Fact::Turn(TurnFact::Finished { .. }))));
}

#[tokio::test]
async fn m_b8_a_tool_that_does_not_return_does_not_delay_the_stop() {
    let folder = TempDir::new().unwrap();
    let harness = on(folder.path());
    let release = harness.probe.ignores_cancel("begun");
    harness.model.then(reply().call("probe", json!({})));
    let session = harness.open().await;
    let mut events = Recorder::new(session.attach(AttachFrom::start()).await.unwrap());
    session.prompt("go").await.unwrap();
    events.output("begun").await;
    stop(harness);
    let saved = facts(folder.path(), &session).await;
    let Some(Fact::Turn(TurnFact::Finished { cause, receipt, .. })) = saved.last().unwrap().fact()
    else {
        panic!("{saved:?}")
    };
    assert_eq!(*cause, Some(CutCause::Shutdown));
    assert_eq!(receipt.as_ref().unwrap().tools.len(), 1, "the receipt names the tool");
    drop(release);
}

/// Until the engine has stopped, only its actor writes a session's log, and no client deletes it.
#[tokio::test]
async fn invariant_2_a_stopping_session_is_neither_written_nor_deleted_by_others() {
    let folder = TempDir::new().unwrap();
    let store = Sqlite::open(folder.path()).unwrap();
    let limits = Limits { grace_ms: 60_000, ..Limits::default() };
    let harness = Harness::with(|engine| engine.store(store).limits(limits));
    let release = harness.probe.ignores_cancel("begun");
    harness.model.then(reply().call("probe", json!({})));
    let (session, sessions) = (harness.open().await, harness.sessions());
    let mut events = harness.watch(&session).await;
    session.prompt("go").await.unwrap();
    events.output("begun").await;
    let stopping = std::thread::spawn(move || stop(harness));
    let cut = |event: &Event| {
        matches!(event.fact(), Some(Fact::Turn(TurnFact::Cut { .. }))).then_some(())
    };
    events.until("the cut", cut).await;
    let refused = [
        sessions.rename(session.id(), "another").await,
        sessions.close(session.id()).await,
        sessions.delete(session.id().as_str()).await,
    ];
    assert_eq!(refused, [const { Err(SessionError::Stopped) }; 3]);
    drop(release);
    stopping.join().unwrap();
    let saved = facts(folder.path(), &session).await;
    assert!(
        matches!(saved.last().unwrap().fact(), Some(Fact::Turn(TurnFact::Finished { .. }))),
        "{saved:?}"
    );
}

/// Sessions that end earlier, as an idle one does at once, do not end the news of the others.
#[tokio::test]
async fn m_b9_a_watch_of_a_stopping_engine_sees_each_session_to_its_end() {
    let harness = Harness::limited(Limits { grace_ms: 60_000, ..Limits::default() });
    let release = harness.probe.ignores_cancel("begun");
    harness.model.then(reply().call("probe", json!({})));
    let busy = harness.open().await;
    let mut events = harness.watch(&busy).await;
    busy.prompt("go").await.unwrap();
    events.output("begun").await;
    harness.open().await;
    let sessions = harness.sessions();
    let mut watch = sessions.watch().await.unwrap();
    let other = sessions
        .list()
        .await
        .unwrap()
        .into_iter()
        .find(|session| session.id != *busy.id())
        .unwrap();
    let mut exported = Vec::new();
    sessions.export(other.id.as_str(), &mut exported).await.unwrap();
    let stopped = tokio::task::spawn_blocking(move || stop(harness));
    let cut = |event: &Event| {
        matches!(event.fact(), Some(Fact::Turn(TurnFact::Cut { .. }))).then_some(())
    };
    events.until("the cut", cut).await;
    // A change of the saved sessions makes the watch list all sessions again.
    sessions.import(&mut exported.as_slice()).await.unwrap();
    while let Ok(Some(_)) = tokio::time::timeout(Duration::from_millis(200), watch.next()).await {}
    drop(release);
    let mut last = None;
    while let Some(news) = watch.next().await {
        match news {
            SessionNews::Session(session) if session.id == *busy.id() => last = session.last_turn,
            _ => {}
        }
    }
    stopped.await.unwrap();
    assert_eq!(last.expect("its end").cause, Some(CutCause::Shutdown));
}
