//! Sessions of an earlier process, found in their store: listed, opened again, and mended after a
//! crash.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt;
use holdpoint_common::{
    Answer, Ask, CutCause, Delta, Event, Fact, Hold, HoldCause, HoldState, Limits, Outcome,
    PauseKind, PolicyMode, PromptFact, RestoreCause, SessionFact, SessionId, SessionStatus,
    ToolFact, ToolStatus, TurnFact, Usage,
};
use holdpoint_session::model::Message;
use holdpoint_session::store::{
    Memory, NewLog, SavedPage, SavedSession, SessionLog, SessionPast, SessionStore, Sqlite,
};
use holdpoint_session::testing::{Harness, Recorder, StoreLayer, Stored, reply, within_patience};
use holdpoint_session::transfer::export;
use holdpoint_session::{AttachFrom, ClientEnd, RunRequest, SessionError};
use serde_json::json;
use tempfile::TempDir;
use tokio::sync::{Notify, oneshot, watch};

fn on(store: &Path) -> Harness {
    let store = Sqlite::open(store).unwrap();
    Harness::with(|engine| engine.store(store))
}

/// The store's files as a SIGKILL at this moment would leave them.
fn crashed(store: &Path) -> TempDir {
    let copy = TempDir::new().unwrap();
    for entry in fs::read_dir(store).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), copy.path().join(entry.file_name())).unwrap();
    }
    copy
}

#[tokio::test]
async fn m_b9_sessions_of_an_earlier_process_are_listed_and_open_by_id_name_and_prefix() {
    let folder = TempDir::new().unwrap();
    let (first, second) = {
        let harness = on(folder.path());
        harness.model.then(reply().text("Hello."));
        let first = harness.sessions().open(harness.session().name("first")).await.unwrap();
        first.prompt("say hello\nplease").await.unwrap();
        first.settled().await.unwrap();
        let second = harness.sessions().open(harness.session().name("second")).await.unwrap();
        second.close().await.unwrap();
        (first.id().clone(), second.id().clone())
    };
    let harness = on(folder.path());
    let list = harness.sessions().list().await.unwrap();
    assert_eq!(
        list.iter().map(|line| (&line.id, line.live)).collect::<Vec<_>>(),
        [(&second, false), (&first, false)]
    );
    let line = &list[1];
    assert_eq!(
        (line.name.as_str(), line.title.as_str(), line.status),
        ("first", "say hello", SessionStatus::Idle)
    );
    assert_eq!(line.last_turn.as_ref().unwrap().outcome, Outcome::Done);

    for what in [first.as_str(), "first", &first.as_str()[..9]] {
        assert_eq!(*harness.sessions().get(what).await.unwrap().id(), first);
    }
    assert_eq!(harness.sessions().get("second").await.unwrap().id(), &second);
    let unknown = harness.sessions().get("nobody").await.err().unwrap();
    assert_eq!(unknown, SessionError::UnknownSession { given: "nobody".into() });
    for length in 0..4 {
        let short = harness.sessions().get(&first.as_str()[..length]).await.err().unwrap();
        assert!(matches!(short, SessionError::UnknownSession { .. }), "{length}: {short}");
    }

    // The session continues with the whole conversation.
    let session = harness.sessions().get("first").await.unwrap();
    session.prompt("and now?").await.unwrap();
    session.settled().await.unwrap();
    let sent = harness.model.requests().pop().unwrap().messages;
    assert!(matches!(&sent[..], [Message::User(_), Message::Assistant(answer), Message::User(now)]
        if answer.text() == "Hello." && now == "and now?"));
    let mut events = harness.watch(&session).await;
    let restored = |event: &Event| match event.fact() {
        Some(Fact::Session(SessionFact::Restored { cause })) => Some(*cause),
        _ => None,
    };
    assert_eq!(
        events.until("the restore", restored).await,
        RestoreCause::Unloaded,
        "nothing was cut"
    );
}

#[tokio::test]
async fn m_b7_a_turn_cut_by_a_crash_is_ended_at_the_start_and_the_queue_waits() {
    let folder = TempDir::new().unwrap();
    let harness = on(folder.path());
    harness.model.then(reply().text("I look.").call("probe", json!({})));
    harness.probe.does(|_, context| {
        context.output("begun");
        context.pause(PauseKind::Continue, "Look?", None);
        Ok(holdpoint_tools::ToolOutcome::default())
    });
    let session = harness.open().await;
    let mut events = harness.watch(&session).await;
    session.prompt("go").await.unwrap();
    events.asked().await;
    assert!(session.prompt("next").await.unwrap().saved);
    let after_crash = crashed(folder.path());

    let again = on(after_crash.path());
    let list = again.sessions().list().await.unwrap();
    let line = &list[0];
    let last = line.last_turn.as_ref().unwrap();
    assert_eq!((last.outcome, last.cause.clone()), (Outcome::Interrupted, Some(CutCause::Restart)));
    assert!(line.waits_for.is_none(), "the tool's ask is closed");
    let restored = again.sessions().get(session.id().as_str()).await.unwrap();
    let snapshot = restored.snapshot();
    assert_eq!((snapshot.queue.len(), snapshot.hold.shown()), (1, HoldState::Standing));
    assert!(matches!(
        &snapshot.hold,
        holdpoint_common::Hold::Standing { cause: HoldCause::Restored, .. }
    ));
    let mut events = again.watch(&restored).await;
    let result = events
        .until("the call's result", |event| match event.fact() {
            Some(Fact::Tool(ToolFact::Finished(result))) => Some(result.clone()),
            _ => None,
        })
        .await;
    assert_eq!(result.status, ToolStatus::Interrupted);
    assert!(again.model.requests().is_empty(), "nothing runs on load");
    restored.release().await.unwrap();
    restored.settled().await.unwrap();
    let sent = again.model.requests().pop().unwrap().messages;
    assert!(matches!(sent.last(), Some(Message::User(text)) if text == "next"), "{sent:?}");
    assert!(sent.iter().any(|message| matches!(message, Message::Tool(_))));
}

/// A slow store: its list waits until a session is made, or for half a second.
struct SlowToList {
    store: Memory,
    made: Arc<Notify>,
    /// A session was made before the list was returned.
    overtaken: Arc<AtomicBool>,
}

impl StoreLayer for SlowToList {
    fn inner(&self) -> &dyn SessionStore {
        &self.store
    }

    fn create(&self, session: &SessionId, contents: NewLog) -> Stored<Arc<dyn SessionLog>> {
        self.made.notify_one();
        self.store.create(session, contents)
    }

    fn list_page(&self, page: SavedPage) -> Stored<Vec<SavedSession>> {
        let (made, overtaken, list) =
            (Arc::clone(&self.made), Arc::clone(&self.overtaken), self.store.list_page(page));
        let wait = async move {
            if tokio::time::timeout(Duration::from_millis(500), made.notified()).await.is_ok() {
                overtaken.store(true, Ordering::SeqCst);
            }
            list.await
        };
        wait.boxed()
    }
}

/// A session opened during the search for cut turns would be taken for cut, and its turn ended
/// under its actor.
#[tokio::test]
async fn invariant_2_no_session_is_opened_before_cut_turns_are_found() {
    let overtaken = Arc::new(AtomicBool::new(false));
    let store = SlowToList {
        store: Memory::default(),
        made: Arc::default(),
        overtaken: Arc::clone(&overtaken),
    };
    let harness = Harness::with(|engine| engine.store(store));
    harness.open().await;
    assert!(!overtaken.load(Ordering::SeqCst), "a session was opened before the list was complete");
}

/// The session whose log is opened next only once the receiver gets a message.
type GatedLog = (SessionId, oneshot::Receiver<()>);

/// A store with a list that waits while `open` is false.
#[derive(Clone)]
struct GatedList {
    store: Arc<Memory>,
    open: watch::Sender<bool>,
    /// How many lists and logs wait.
    waiting: watch::Sender<usize>,
    next_log: Arc<Mutex<Option<GatedLog>>>,
}

impl GatedList {
    fn new() -> Self {
        Self {
            store: Arc::default(),
            open: watch::Sender::new(true),
            waiting: watch::Sender::new(0),
            next_log: Arc::default(),
        }
    }
}

impl StoreLayer for GatedList {
    fn inner(&self) -> &dyn SessionStore {
        &*self.store
    }

    fn open(&self, session: &SessionId) -> Stored<Arc<dyn SessionPast>> {
        let log = self.store.open(session);
        let gated = self.next_log.lock().unwrap().take_if(|(gated, _)| gated == session);
        let Some((_, passed)) = gated else { return log };
        let waiting = self.waiting.clone();
        async move {
            waiting.send_modify(|waiting| *waiting += 1);
            passed.await.unwrap();
            log.await
        }
        .boxed()
    }

    fn list_page(&self, page: SavedPage) -> Stored<Vec<SavedSession>> {
        let Self { store, open, waiting, .. } = self.clone();
        async move {
            if !*open.borrow() {
                waiting.send_modify(|waiting| *waiting += 1);
                open.subscribe().wait_for(|open| *open).await.unwrap();
            }
            store.list_page(page).await
        }
        .boxed()
    }
}

#[tokio::test]
async fn a_session_that_becomes_live_while_the_store_is_read_is_shown_live() {
    let gate = GatedList::new();
    let id = {
        let harness = Harness::with(|engine| engine.store(gate.clone()));
        harness.sessions().open(harness.session().name("it")).await.unwrap().id().clone()
    };
    let harness = Harness::with(|engine| engine.store(gate.clone()));
    let sessions = harness.sessions();
    assert!(!sessions.list().await.unwrap()[0].live);
    gate.open.send_replace(false);
    let becomes_live = async {
        let mut waiting = gate.waiting.subscribe();
        within_patience("two lists", waiting.wait_for(|waiting| *waiting == 2)).await.unwrap();
        let session = sessions.get(id.as_str()).await.unwrap();
        let client = session.attach(AttachFrom::now()).await.unwrap();
        gate.open.send_replace(true);
        client
    };
    let (looked, listed, _client) =
        tokio::join!(sessions.look("it"), sessions.list(), becomes_live);
    assert_eq!(looked.unwrap().clients, 1);
    assert!(listed.unwrap()[0].live);
}

#[tokio::test]
async fn a_session_that_becomes_live_while_its_log_is_read_is_shown_live() {
    let gate = GatedList::new();
    let id = {
        let harness = Harness::with(|engine| engine.store(gate.clone()));
        harness.sessions().open(harness.session().name("it")).await.unwrap().id().clone()
    };
    let harness = Harness::with(|engine| engine.store(gate.clone()));
    let sessions = harness.sessions();
    sessions.list().await.unwrap();
    let (release, passed) = oneshot::channel();
    *gate.next_log.lock().unwrap() = Some((id.clone(), passed));
    let becomes_live = async {
        let mut waiting = gate.waiting.subscribe();
        within_patience("the log", waiting.wait_for(|waiting| *waiting == 1)).await.unwrap();
        let session = sessions.get(id.as_str()).await.unwrap();
        let client = session.attach(AttachFrom::now()).await.unwrap();
        release.send(()).unwrap();
        client
    };
    let (looked, _client) = tokio::join!(sessions.look("it"), becomes_live);
    assert_eq!(looked.unwrap().clients, 1);
}

#[tokio::test]
async fn m_b7_a_run_killed_in_mid_iteration_is_held_and_continues_on_release() {
    let folder = TempDir::new().unwrap();
    let harness = on(folder.path());
    harness.model.then(reply().text("I begin.").call("probe", json!({})));
    harness.probe.does(|_, context| {
        context.output("begun");
        context.pause(PauseKind::Continue, "Look?", None);
        Ok(holdpoint_tools::ToolOutcome::default())
    });
    let session = harness.open().await;
    let mut events = harness.watch(&session).await;
    let request = RunRequest { tasks: vec!["the task".to_owned()], ..RunRequest::new("the goal") };
    session.start_run(request).await.unwrap();
    events.asked().await;
    assert!(session.prompt("mind the port").await.unwrap().saved);
    let after_crash = crashed(folder.path());

    let again = on(after_crash.path());
    let listed = again.sessions().list().await.unwrap();
    assert_eq!(listed[0].run.unwrap().iteration, 1);
    assert_eq!(
        (listed[0].status, listed[0].hold.shown()),
        (SessionStatus::Paused, HoldState::Standing)
    );
    let restored = again.sessions().get(session.id().as_str()).await.unwrap();
    let snapshot = restored.snapshot();
    let cause = |hold: &holdpoint_common::Hold| match hold {
        holdpoint_common::Hold::Standing { cause, .. } => Some(cause.clone()),
        _ => None,
    };
    assert_eq!((cause(&snapshot.hold), snapshot.queue.len()), (Some(HoldCause::Restored), 1));
    assert!(again.model.requests().is_empty(), "nothing runs on load");

    let live = again.model.then_live();
    live.text("I look.");
    restored.release().await.unwrap();
    let mut events = again.watch(&restored).await;
    let answer = |event: &Event| matches!(event.delta(), Some(Delta::Text { text, .. }) if text == "I look.");
    events.until("its answer", |event| answer(event).then_some(())).await;
    let sent = again.model.requests().pop().unwrap().messages;
    let [
        Message::User(_),
        Message::Assistant(answer),
        Message::Tool(result),
        Message::User(prompt),
    ] = &sent[..]
    else {
        panic!("{sent:#?}");
    };
    assert_eq!((answer.text().as_str(), result.status), ("I begin.", ToolStatus::Interrupted));
    for part in ["restarted in the middle", "the goal", "[ ] 1. the task", "mind the port"] {
        assert!(prompt.contains(part), "`{part}` is not in\n{prompt}");
    }
    assert_eq!(
        restored.snapshot().run.as_ref().unwrap().progress.iteration,
        1,
        "the same iteration"
    );
}

#[tokio::test]
async fn a_session_whose_model_is_gone_opens_and_its_prompts_fail() {
    let folder = TempDir::new().unwrap();
    let id = {
        let harness = on(folder.path());
        harness.open().await.id().clone()
    };
    let store = Sqlite::open(folder.path()).unwrap();
    let engine =
        holdpoint_session::Engine::builder(Default::default()).store(store).start().unwrap();
    let session =
        engine.sessions(holdpoint_common::Who::named("t")).get(id.as_str()).await.unwrap();
    session.prompt("go").await.unwrap();
    let snapshot = session.settled().await.unwrap();
    let last = snapshot.last_turn.as_ref().unwrap();
    assert_eq!(last.outcome, Outcome::Failed);
    assert!(last.error.as_ref().unwrap().contains("scripted"), "{:?}", last.error);
}

#[tokio::test]
async fn t_u5_a_session_with_an_unreadable_fact_opens_and_declares_the_gap() {
    let folder = TempDir::new().unwrap();
    let id = {
        let harness = on(folder.path());
        harness.model.then(reply().text("one")).then(reply().text("two"));
        let session = harness.open().await;
        for prompt in ["first", "second"] {
            session.prompt(prompt).await.unwrap();
            session.settled().await.unwrap();
        }
        session.id().clone()
    };
    let db = rusqlite::Connection::open(folder.path().join("sessions.db")).unwrap();
    let seq: u64 = db
        .query_row(
            "SELECT seq FROM facts WHERE event LIKE '%\"assistantMessage\"%' ORDER BY seq",
            [],
            |row| row.get::<_, i64>(0).map(i64::cast_unsigned),
        )
        .unwrap();
    db.execute("UPDATE facts SET event = 'garbage' WHERE seq = ?1", [seq.cast_signed()]).unwrap();
    let harness = on(folder.path());
    let session = harness.sessions().get(id.as_str()).await.unwrap();
    let mut events = Recorder::new(session.attach(AttachFrom::start()).await.unwrap());
    let gap = events
        .until("the gap", |event| match event.delta() {
            Some(Delta::Gap { from, to }) => Some((*from, *to)),
            _ => None,
        })
        .await;
    assert_eq!(gap, (seq, seq));
    session.prompt("third").await.unwrap();
    assert_eq!(session.settled().await.unwrap().last_turn.as_ref().unwrap().outcome, Outcome::Done);
}

/// The provider's usage for the answer with the Confirm that survives a crash.
const COUNTED: Usage =
    Usage { input: 3296, cached: 0, cache_written: 0, output: 57, cost: None, estimated: false };

/// A session with an open policy Confirm for `input`, at the moment of a crash.
async fn asked_and_crashed(
    harness: &Harness,
    store: &Path,
    tool: &str,
    input: serde_json::Value,
) -> (Ask, TempDir) {
    harness.model.then(reply().call(tool, input).usage(COUNTED));
    let session = harness.sessions().open(harness.session().policy(PolicyMode::Ask)).await.unwrap();
    let mut events = harness.watch(&session).await;
    session.prompt("go").await.unwrap();
    let ask = events.asked().await;
    (ask, crashed(store))
}

/// A session at rest is not mended before it is opened. Its job is gone all the same.
#[tokio::test]
async fn m_b7_a_job_lost_in_a_crash_is_not_shown() {
    let store = TempDir::new().unwrap();
    let harness = on(store.path());
    let session = harness.open().await;
    harness.model.then(reply().call("shell", json!({"command": "sleep 1000", "background": true})));
    session.prompt("go").await.unwrap();
    session.settled().await.unwrap();
    assert_eq!(session.snapshot().jobs.len(), 1);
    let crash = crashed(store.path());
    let after = on(crash.path());
    let shown = after.sessions().look(session.id().as_str()).await.unwrap();
    assert_eq!((shown.status, shown.jobs.len()), (SessionStatus::Idle, 0));
    session.close().await.unwrap();
}

/// A session that has just been opened has its whole past in the log, and none of it in the buffer.
#[tokio::test]
async fn m_b6_a_client_that_lags_in_the_log_continues_without_loss() {
    let folder = TempDir::new().unwrap();
    let begin = |limits| {
        let store = Sqlite::open(folder.path()).unwrap();
        Harness::with(|engine| engine.store(store).limits(limits))
    };
    let harness = begin(Limits::default());
    let live = harness.model.then_live();
    let session = harness.open().await;
    session.prompt("go").await.unwrap();
    drop(harness);
    drop(live);
    let harness = begin(Limits { buffered_events: 20, ..Limits::default() });
    harness.probe.does(|_, context| {
        (0..500).for_each(|n| context.output(&format!("line {n}\n")));
        Ok(holdpoint_tools::ToolOutcome::default())
    });
    let id = session.id().clone();
    let session = harness.sessions().get(id.as_str()).await.unwrap();
    let mut slow = session.attach(AttachFrom::start()).await.unwrap();
    harness.model.then(reply().call("probe", json!({})));
    session.prompt("go on").await.unwrap();
    session.settled().await.unwrap();
    let mut seen = Vec::new();
    while let Some(event) = within_patience("an event or the end", slow.next()).await {
        seen.push(event);
    }
    let ClientEnd::Lagged { after } = slow.end() else { panic!("{:?}", slow.end()) };
    let mut rest = session.attach(AttachFrom::after(after)).await.unwrap();
    while seen.last().unwrap().seq < session.snapshot().seq {
        seen.push(within_patience("an event", rest.next()).await.unwrap());
    }
    let facts: Vec<_> = seen.into_iter().filter(|event| event.fact().is_some()).collect();
    drop((session, harness));
    let log = Sqlite::open(folder.path()).unwrap().open(&id).await.unwrap();
    assert_eq!(
        facts,
        log.read(0..facts.last().unwrap().seq + 1).await.unwrap(),
        "every fact once, in order"
    );
}

/// Mending records the restart, so opening the session afterwards adds no second fact.
#[tokio::test]
async fn m_b7_a_restart_under_an_open_confirm_is_one_fact() {
    let folder = TempDir::new().unwrap();
    let harness = on(folder.path());
    let (ask, copy) =
        asked_and_crashed(&harness, folder.path(), "probe", json!({"deploy": true})).await;
    let id = ask.id.session.clone();
    for _ in 0..2 {
        let again = on(copy.path());
        again.sessions().list().await.unwrap();
        let session = again.sessions().get(id.as_str()).await.unwrap();
        assert_eq!(session.snapshot().asks, std::slice::from_ref(&ask));
        // After this, all of its facts are saved.
        drop((session, again));
        let facts = Sqlite::open(copy.path())
            .unwrap()
            .open(&id)
            .await
            .unwrap()
            .read(0..u64::MAX)
            .await
            .unwrap();
        let restored = |event: &&Arc<Event>| {
            matches!(event.fact(), Some(Fact::Session(SessionFact::Restored { .. })))
        };
        assert_eq!(facts.iter().filter(restored).count(), 1);
    }
}

#[tokio::test]
async fn m_a11_a_policy_confirm_is_open_after_a_crash_and_its_turn_continues() {
    for answer in [
        Answer::Approve { always: false },
        Answer::Deny { reason: Some("not on Fridays".to_owned()), always: false },
    ] {
        let folder = TempDir::new().unwrap();
        let harness = on(folder.path());
        let (ask, copy) =
            asked_and_crashed(&harness, folder.path(), "probe", json!({"deploy": true})).await;
        let id = ask.id.session.clone();

        let again = on(copy.path());
        let ran = Arc::new(AtomicUsize::new(0));
        let runs = Arc::clone(&ran);
        again.probe.does(move |_, _| {
            runs.fetch_add(1, Ordering::SeqCst);
            Ok(holdpoint_tools::ToolOutcome::text("deployed"))
        });
        let list = again.sessions().list().await.unwrap();
        assert_eq!(
            (list[0].status, list[0].waits_for.as_ref()),
            (SessionStatus::Paused, Some(&ask))
        );
        let session = again.sessions().get(id.as_str()).await.unwrap();
        let mut events = again.watch(&session).await;
        assert_eq!(session.snapshot().asks, std::slice::from_ref(&ask));
        assert_eq!(ran.load(Ordering::SeqCst), 0, "never allowed without an answer");
        session.answer(&ask.id, answer.clone()).await.unwrap();
        let end = events.turn_finished().await;
        assert_eq!((end.outcome, end.cause), (Outcome::Done, None));
        let finished = |event: &Arc<Event>| match event.fact() {
            Some(Fact::Turn(TurnFact::StepFinished { usage, .. })) => Some(*usage),
            _ => None,
        };
        let steps: Vec<_> = events.events().iter().filter_map(finished).collect();
        assert!(steps.len() == 2 && steps[0] == COUNTED, "the counted usage is kept: {steps:?}");
        let approved = matches!(answer, Answer::Approve { .. });
        assert_eq!(ran.load(Ordering::SeqCst), usize::from(approved));
        let sent = again.model.requests().pop().unwrap().messages;
        let Some(Message::Tool(result)) = sent.last() else { panic!("{sent:?}") };
        assert!(
            result.result.contains(if approved { "deployed" } else { "not on Fridays" }),
            "{result:?}"
        );
    }
}

/// The hold of the restart remains the same, from the answer to a Confirm to the turn's next
/// boundary.
#[tokio::test]
async fn m_b7_a_confirm_before_a_queued_prompt_is_answered_under_the_hold_of_the_restart() {
    let folder = TempDir::new().unwrap();
    let harness = on(folder.path());
    harness.model.then(reply().call("probe", json!({})));
    let session = harness.sessions().open(harness.session().policy(PolicyMode::Ask)).await.unwrap();
    session.prompt("go").await.unwrap();
    let ask = harness.watch(&session).await.asked().await;
    session.prompt("and then").await.unwrap();
    let copy = crashed(folder.path());

    let again = on(copy.path());
    let session = again.sessions().get(session.id().as_str()).await.unwrap();
    let mut events = Recorder::new(session.attach(AttachFrom::now()).await.unwrap());
    let restored = |hold: &Hold| match hold {
        Hold::Requested { cause, .. } | Hold::Standing { cause, .. } => {
            *cause == HoldCause::Restored
        }
        Hold::Off => false,
    };
    assert!(restored(&session.snapshot().hold), "{:?}", session.snapshot().hold);
    session.answer(&ask.id, Answer::Approve { always: false }).await.unwrap();
    for shown in [HoldState::Requested, HoldState::Standing] {
        let hold = events.hold_changed().await;
        assert!(hold.shown() == shown && restored(&hold), "{hold:?}");
    }
    session.release().await.unwrap();
    assert_eq!(events.turn_finished().await.outcome, Outcome::Done);
    assert_eq!(events.turn_finished().await.outcome, Outcome::Done, "the queued prompt");
}

#[tokio::test]
async fn m_b7_a_diff_that_no_longer_applies_after_a_restart_is_refused() {
    let folder = TempDir::new().unwrap();
    let harness = on(folder.path());
    let file = harness.folder.path().join("notes");
    fs::write(&file, "old\n").unwrap();
    let input = json!({"path": "notes", "content": "new\n"});
    let (ask, copy) = asked_and_crashed(&harness, folder.path(), "write_file", input).await;
    fs::write(&file, "somebody else's\n").unwrap();

    let again = on(copy.path());
    let session = again.sessions().get(ask.id.session.as_str()).await.unwrap();
    let mut events = again.watch(&session).await;
    // Refused when it is judged again or when it is approved, whichever is first.
    let _ = session.answer(&ask.id, Answer::Approve { always: false }).await;
    assert_eq!(events.turn_finished().await.outcome, Outcome::Done);
    assert_eq!(fs::read_to_string(&file).unwrap(), "somebody else's\n");
    let sent = again.model.requests().pop().unwrap().messages;
    let Some(Message::Tool(result)) = sent.last() else { panic!("{sent:?}") };
    assert!(result.result.contains("changed"), "{result:?}");
}

/// A flipped bit in a row's number costs that session one fact, and delays no other session.
#[tokio::test]
async fn t_u5_a_row_with_a_garbled_number_delays_no_session() {
    let folder = TempDir::new().unwrap();
    let (hit, other) = {
        let harness = on(folder.path());
        let (hit, other) = (harness.open().await, harness.open().await);
        hit.prompt("go").await.unwrap();
        hit.settled().await.unwrap();
        (hit.id().clone(), other.id().clone())
    };
    let db = rusqlite::Connection::open(folder.path().join("sessions.db")).unwrap();
    let last = "(SELECT max(seq) FROM facts WHERE session = ?1)";
    let garble =
        format!("UPDATE facts SET seq = seq | (1 << 45) WHERE session = ?1 AND seq = {last}");
    assert_eq!(db.execute(&garble, [hit.as_str()]).unwrap(), 1);

    let harness = on(folder.path());
    let sessions = harness.sessions();
    assert_eq!(within_patience("the list", sessions.list()).await.unwrap().len(), 2);
    within_patience("the damaged session", sessions.look(hit.as_str())).await.unwrap();
    let session = within_patience("the damaged session", sessions.get(hit.as_str())).await.unwrap();
    let mut events = Recorder::new(
        within_patience("its events", session.attach(AttachFrom::start())).await.unwrap(),
    );
    events
        .until("the gap", |event| matches!(event.delta(), Some(Delta::Gap { .. })).then_some(()))
        .await;
    assert!(session.prompt("again").await.unwrap().saved);
    assert!(session.settled().await.unwrap().saved);
    within_patience("another", sessions.get(other.as_str())).await.unwrap();
    within_patience("a fresh one", sessions.open(harness.session())).await.unwrap();
    let mut text = Vec::new();
    within_patience("its text", export(&Sqlite::open(folder.path()).unwrap(), &hit, &mut text))
        .await
        .unwrap();
}

/// An append that a panicking actor has handed to the store is written before the log is read
/// again, however long it takes.
#[tokio::test]
async fn t_t1_a_session_rebuilt_while_its_save_is_under_way_saves_again() {
    let folder = TempDir::new().unwrap();
    let store = Sqlite::open(folder.path()).unwrap();
    let (reads, harness) = (store.clone(), Harness::with(|engine| engine.store(store)));
    let session = harness.open().await;
    let mut events = harness.watch(&session).await;
    // Another process holds the write lock, and ours waits for it.
    let slow = rusqlite::Connection::open(folder.path().join("sessions.db")).unwrap();
    slow.execute_batch("BEGIN IMMEDIATE").unwrap();
    let prompt = tokio::spawn({
        let session = session.clone();
        async move { session.prompt("first").await }
    });
    let not_saved =
        |event: &Event| matches!(event.delta(), Some(Delta::NotSaved { .. })).then_some(());
    events.until("the save is late", not_saved).await;
    session.panic_now().await;
    while events.next().await.is_some() {}
    // Long enough to read the log.
    for _ in 0..20 {
        reads.open(session.id()).await.unwrap().read(0..u64::MAX).await.unwrap();
    }
    slow.execute_batch("COMMIT").unwrap();
    let _ = prompt.await.unwrap();
    assert!(session.prompt("second").await.unwrap().saved);
    assert!(session.settled().await.unwrap().saved);
    let facts = reads.open(session.id()).await.unwrap().read(0..u64::MAX).await.unwrap();
    let occurrences = |wanted: &str| {
        let is = |event: &&Arc<Event>| matches!(event.fact(), Some(Fact::Prompt(PromptFact::Accepted { text, .. })) if &**text == wanted);
        facts.iter().filter(is).count()
    };
    // The store gives up on the first prompt after a while, and it was reported as not saved: it
    // may be missing, but never doubled.
    assert_eq!(occurrences("second"), 1);
    assert!(occurrences("first") <= 1);
}

/// A store that panics the first time it lists its sessions.
#[derive(Default)]
struct PanickingStore {
    store: Memory,
    listed: AtomicBool,
}

impl StoreLayer for PanickingStore {
    fn inner(&self) -> &dyn SessionStore {
        &self.store
    }

    fn list_page(&self, page: SavedPage) -> Stored<Vec<SavedSession>> {
        assert!(self.listed.swap(true, Ordering::Relaxed), "a test requested a panic");
        self.store.list_page(page)
    }
}

/// A fault in the mending of sessions after a crash leaves an engine that opens and lists sessions.
#[tokio::test]
async fn invariant_8_an_engine_whose_mending_panics_still_works() {
    let harness = Harness::with(|engine| engine.store(PanickingStore::default()));
    let session = within_patience("a session", harness.open()).await;
    let listed = within_patience("the list", harness.sessions().list()).await.unwrap();
    assert_eq!(listed.iter().map(|session| &session.id).collect::<Vec<_>>(), [session.id()]);
}
