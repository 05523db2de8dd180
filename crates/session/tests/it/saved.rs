//! Sessions without an actor: renamed, closed and deleted as they are, and opened again with the
//! supplies of the client that opens them.

use std::sync::Arc;

use holdpoint_common::api::AnswerRequest;
use holdpoint_common::{
    Answer, AnswerError, AskCloseCause, AskFact, AskId, CutCause, Delta, Event, Fact, Hold, Limits,
    Outcome, PolicyMode, PromptFact, Refused, RestoreCause, SessionFact, ToolFact, TurnFact, Usage,
};
use holdpoint_session::store::{SessionLog, SessionStore, Sqlite};
use holdpoint_session::testing::{Harness, ScriptedModel, reply, within_patience};
use holdpoint_session::{OpenSession, SessionError, SessionHandle};
use serde_json::json;
use tempfile::TempDir;

/// A harness with room for one live session.
fn with_one_place(folder: &TempDir) -> Harness {
    let store = Sqlite::open(folder.path()).unwrap();
    let limits = Limits { max_sessions: 1, ..Limits::default() };
    Harness::with(|engine| engine.store(store).limits(limits))
}

/// All facts of a session on the disk.
async fn facts(folder: &TempDir, session: &SessionHandle) -> Vec<Arc<Event>> {
    let log: Arc<dyn SessionLog> =
        Sqlite::open(folder.path()).unwrap().own(session.id()).await.unwrap();
    log.read(0..u64::MAX).await.unwrap()
}

fn count(facts: &[Arc<Event>], wanted: impl Fn(&Fact) -> bool) -> usize {
    facts.iter().filter_map(|event| event.fact()).filter(|fact| wanted(fact)).count()
}

/// A saved session, and another one that takes the only place.
async fn saved_and_busy(harness: &Harness) -> (SessionHandle, SessionHandle) {
    let saved = harness.open().await;
    harness.model.then(reply().text("Hello."));
    saved.prompt("go").await.unwrap();
    saved.settled().await.unwrap();
    let busy = harness.open().await;
    busy.hold().await.unwrap();
    (saved, busy)
}

#[tokio::test]
async fn m_b7_a_session_of_the_memory_store_is_never_reported_as_saved() {
    let harness = Harness::start();
    let session = harness.open().await;
    let mut events = harness.watch(&session).await;
    let reason = |shown: &holdpoint_common::Snapshot| {
        assert!(!shown.saved);
        shown.not_saved.clone().unwrap()
    };
    assert!(reason(events.attachment().snapshot()).contains("in memory"));
    harness.model.then(reply().call(
        "ask_user",
        json!({ "questions": [{ "id": "a", "header": "A", "question": "A?" }] }),
    ));
    assert!(!session.prompt("go").await.unwrap().saved);
    let ask = events.asked().await;
    assert!(!session.answer(&ask.id, Answer::Cancel).await.unwrap().saved);
    reason(&session.settled().await.unwrap());
    reason(&harness.sessions().look(session.id().as_str()).await.unwrap());
    // It can still be closed, and it is found as long as the process lasts.
    session.close().await.unwrap();
    reason(&harness.sessions().look(session.id().as_str()).await.unwrap());
    assert!(
        events.events().iter().all(|event| !matches!(event.delta(), Some(Delta::NotSaved { .. }))),
        "the error is not a fault"
    );

    // On a disk, everything is saved.
    let folder = TempDir::new().unwrap();
    let harness = with_one_place(&folder);
    let session = harness.open().await;
    harness.model.then(reply().text("Hello."));
    assert!(session.prompt("go").await.unwrap().saved);
    let settled = session.settled().await.unwrap();
    assert_eq!((settled.saved, &settled.not_saved), (true, &None));
}

#[tokio::test]
async fn m_b9_a_saved_session_is_renamed_and_closed_without_a_place_for_it() {
    let folder = TempDir::new().unwrap();
    let harness = with_one_place(&folder);
    let (saved, busy) = saved_and_busy(&harness).await;
    let sessions = harness.sessions();
    assert!(matches!(
        sessions.get(saved.id().as_str()).await.err().unwrap(),
        SessionError::TooManySessions { .. }
    ));
    sessions.rename(saved.id(), "another").await.unwrap();
    assert_eq!(sessions.look("another").await.unwrap().settings.id, *saved.id());
    assert_eq!(saved.snapshot().settings.name, "another", "a handle sees the new name");
    let taken = busy.snapshot().settings.name.clone();
    assert_eq!(
        sessions.rename(saved.id(), &taken).await.unwrap_err(),
        SessionError::NameTaken { name: taken }
    );
    // A saved session does not reserve its name.
    busy.rename("another").await.unwrap();
    saved.close().await.unwrap();
    assert_eq!(saved.close().await.unwrap_err(), SessionError::Refused(Refused::Closed));
    sessions.rename(saved.id(), "third").await.unwrap();
    assert_eq!(
        sessions.look("third").await.unwrap().settings.id,
        *saved.id(),
        "a closed session is found, too"
    );
    let all = facts(&folder, &saved).await;
    assert_eq!(count(&all, |fact| matches!(fact, Fact::Session(SessionFact::Closed { .. }))), 1);
    assert_eq!(
        count(&all, |fact| matches!(fact, Fact::Session(SessionFact::Restored { .. }))),
        0,
        "no actor was started for it"
    );
    assert_eq!(sessions.list().await.unwrap().iter().filter(|session| session.live).count(), 1);
    let nobody = "nobody".parse().unwrap();
    assert!(matches!(
        sessions.close(&nobody).await.unwrap_err(),
        SessionError::UnknownSession { .. }
    ));
}

#[tokio::test]
async fn m_b8_closing_a_saved_session_closes_its_asks_and_hands_back_its_queue() {
    let folder = TempDir::new().unwrap();
    let session = {
        let harness = with_one_place(&folder);
        harness.model.then(reply().call("probe", json!({ "deploy": true })));
        let session =
            harness.sessions().open(harness.session().policy(PolicyMode::Ask)).await.unwrap();
        let mut events = harness.watch(&session).await;
        session.prompt("go").await.unwrap();
        events.asked().await;
        session.prompt("next").await.unwrap();
        session
    };
    let harness = with_one_place(&folder);
    assert_eq!(harness.sessions().inbox().await.unwrap().len(), 1, "it stands");
    let busy = harness.open().await;
    busy.hold().await.unwrap();
    harness.sessions().close(session.id()).await.unwrap();
    assert!(harness.sessions().inbox().await.unwrap().is_empty());
    let all = facts(&folder, &session).await;
    let closed = |fact: &Fact| {
        matches!(fact, Fact::Ask(AskFact::Closed { cause: AskCloseCause::SessionClosed, .. }))
    };
    assert_eq!(count(&all, closed), 1);
    assert_eq!(
        count(
            &all,
            |fact| matches!(fact, Fact::Prompt(PromptFact::Returned { text, .. }) if &**text == "next")
        ),
        1
    );
    let finished = |fact: &Fact| {
        let Fact::Turn(TurnFact::Finished { outcome, cause, receipt, usage, .. }) = fact else {
            return false;
        };
        let counted = usage.estimated && usage.total() > 0;
        let closed =
            *outcome == Outcome::Interrupted && matches!(cause, Some(CutCause::Close { .. }));
        closed && receipt.is_some() && counted
    };
    assert_eq!(count(&all, finished), 1, "{all:?}");
    assert!(matches!(all.last().unwrap().fact(), Some(Fact::Session(SessionFact::Closed { .. }))));
    assert_eq!(harness.sessions().look(session.id().as_str()).await.unwrap().hold, Hold::Off);
}

#[tokio::test]
async fn m_a5_a_refused_answer_opens_nothing() {
    let folder = TempDir::new().unwrap();
    let (session, answered, open) = {
        let harness = with_one_place(&folder);
        harness.model.then(reply().call("probe", json!({ "deploy": true })));
        harness.model.then(reply().call("probe", json!({ "deploy": true })));
        let session =
            harness.sessions().open(harness.session().policy(PolicyMode::Ask)).await.unwrap();
        let mut events = harness.watch(&session).await;
        session.prompt("go").await.unwrap();
        let answered = events.asked().await;
        events.answer(Answer::Approve { always: false }).await.unwrap();
        (session, answered, events.asked().await)
    };
    let harness = with_one_place(&folder);
    let sessions = harness.sessions();
    let is_live = async || sessions.list().await.unwrap().iter().any(|session| session.live);
    let approve = || Answer::Approve { always: false };
    let without_opening = async |ask: &AskId| {
        let request = AnswerRequest { ask: ask.clone(), answer: approve() };
        sessions.act(&ask.session, request).await
    };
    for refused in
        [sessions.answer(&answered.id, approve()).await, without_opening(&answered.id).await]
    {
        assert!(
            matches!(
                refused,
                Err(SessionError::Refused(Refused::Answer(AnswerError::AlreadyAnswered { .. })))
            ),
            "{refused:?}"
        );
    }
    let refused = sessions.answer(&open.id, Answer::Resume).await.unwrap_err();
    assert!(
        matches!(refused, SessionError::Refused(Refused::Answer(AnswerError::KindMismatch { .. }))),
        "{refused:?}"
    );
    let refused =
        sessions.answer(&AskId { seq: 999_999, ..open.id.clone() }, approve()).await.unwrap_err();
    assert!(
        matches!(refused, SessionError::Refused(Refused::Answer(AnswerError::Unknown { .. }))),
        "{refused:?}"
    );
    let not_live = SessionError::NotLive { session: session.id().clone() };
    assert_eq!(without_opening(&open.id).await.unwrap_err(), not_live);
    assert!(!is_live().await);
    // An answer that counts opens the session, and its turn continues.
    harness.model.then(reply().text("Done."));
    sessions.answer(&open.id, approve()).await.unwrap();
    assert!(is_live().await);
    let reopened = sessions.get(session.id().as_str()).await.unwrap();
    reopened.settled().await.unwrap();
    // Nor does an answer through the handle of a session that was unloaded, or closed since.
    let other = harness.open().await;
    for _ in 0..2 {
        let refused = reopened.answer(&open.id, approve()).await.unwrap_err();
        assert!(
            matches!(
                refused,
                SessionError::Refused(Refused::Answer(AnswerError::AlreadyAnswered { .. }))
            ),
            "{refused:?}"
        );
        assert_eq!(
            sessions.list().await.unwrap().iter().find(|line| line.live).unwrap().id,
            *other.id()
        );
        // In the second round it is closed already.
        let _ = reopened.close().await;
    }
}

/// A session's supplies may be large, and are dropped with its actor.
#[tokio::test]
async fn m_e2_a_reopened_session_has_the_supplies_of_its_opener() {
    let folder = TempDir::new().unwrap();
    let harness = with_one_place(&folder);
    let supplied = |prompt: &str| {
        let supplies = holdpoint_common::Supplies {
            system_prompt: Some(prompt.to_owned()),
            ..Default::default()
        };
        harness.sessions().with_supplies(supplies)
    };
    let mine = supplied("mine").open(harness.session()).await.unwrap();
    let unload = || async {
        let other = harness.open().await;
        assert!(
            !harness
                .sessions()
                .list()
                .await
                .unwrap()
                .iter()
                .any(|line| line.live && line.id == *mine.id())
        );
        other.close().await.unwrap();
    };
    let system = async |session: &SessionHandle| {
        session.prompt("go").await.unwrap();
        session.settled().await.unwrap();
        harness.model.requests().pop().unwrap().system.to_string()
    };
    unload().await;
    // Reaching a session without supplies does not open it.
    let reached = harness.sessions().reach(mine.id()).await.err().unwrap();
    assert_eq!(reached, SessionError::NotLive { session: mine.id().clone() });
    let theirs = supplied("theirs").get(mine.id().as_str()).await.unwrap();
    assert!(system(&theirs).await.contains("theirs"));
    let reached = harness.sessions().reach(mine.id()).await.unwrap();
    unload().await;
    let refused = reached.change_model(ScriptedModel::NAME.to_owned()).await.unwrap_err();
    assert_eq!(refused, SessionError::NotLive { session: mine.id().clone() });
    assert!(system(&mine).await.contains("mine"));
    // Its snapshot is that of the session, whichever client has opened it again.
    assert_eq!(theirs.snapshot(), mine.snapshot());
}

/// Where an action can't be undone, a name that several sessions have means none of them.
#[tokio::test]
async fn m_b9_delete_refuses_an_ambiguous_name() {
    let harness = Harness::start();
    let mut ids = Vec::new();
    for _ in 0..2 {
        let session = harness.sessions().open(harness.session().name("same")).await.unwrap();
        session.close().await.unwrap();
        ids.push(session.id().clone());
    }
    ids.sort();
    let refused = harness.sessions().delete("same").await.unwrap_err();
    assert_eq!(refused, SessionError::Ambiguous { given: "same".into(), ids: ids.clone() });
    harness.sessions().delete(ids[0].as_str()).await.unwrap();
    harness.sessions().delete("same").await.unwrap();
    assert!(harness.sessions().list().await.unwrap().is_empty());
}

/// A restart is recorded once, by the mend or by the opening of the session, whichever is first.
#[tokio::test]
async fn m_b7_a_restart_is_one_fact() {
    let folder = TempDir::new().unwrap();
    // The answer streams until the program has ended, so the queued prompt never starts.
    let (session, _live) = {
        let harness = with_one_place(&folder);
        let live = harness.model.then_live();
        let session = harness.open().await;
        let mut events = harness.watch(&session).await;
        session.prompt("go").await.unwrap();
        live.text("I begin.");
        events.until("the text", |event| event.delta().map(|_| ())).await;
        session.prompt("next").await.unwrap();
        (session, live)
    };
    let restarts = |facts: &[Arc<Event>]| {
        count(facts, |fact| {
            matches!(fact, Fact::Session(SessionFact::Restored { cause: RestoreCause::Restart }))
        })
    };
    for _ in 0..2 {
        let harness = with_one_place(&folder);
        harness.sessions().list().await.unwrap();
        harness.sessions().get(session.id().as_str()).await.unwrap();
        drop(harness);
        assert_eq!(restarts(&facts(&folder, &session).await), 1);
    }
    // The session ran on and is at rest, so the next restart has cut nothing.
    let harness = with_one_place(&folder);
    let again = harness.sessions().get(session.id().as_str()).await.unwrap();
    harness.model.then(reply().text("Done."));
    again.release().await.unwrap();
    again.settled().await.unwrap();
    drop(harness);
    let harness = with_one_place(&folder);
    let again = harness.sessions().get(session.id().as_str()).await.unwrap();
    let mut restores = 0;
    let restarted = |event: &Event| {
        restores +=
            usize::from(matches!(event.fact(), Some(Fact::Session(SessionFact::Restored { .. }))));
        (restores == 2).then_some(())
    };
    // Published facts are saved.
    harness.watch(&again).await.until("the session to be opened again", restarted).await;
    drop(harness);
    assert_eq!(restarts(&facts(&folder, &session).await), 1);
}

/// The folder as a SIGKILL would leave it now.
fn killed(folder: &TempDir) -> TempDir {
    let copy = TempDir::new().unwrap();
    for entry in std::fs::read_dir(folder.path()).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), copy.path().join(entry.file_name())).unwrap();
    }
    copy
}

/// The usage of a turn that was cut in this folder: in the saved session, and after it is opened.
async fn used(folder: &TempDir, session: &SessionHandle) -> Usage {
    let again = with_one_place(folder);
    let snapshot = again.sessions().look(session.id().as_str()).await.unwrap();
    let opened = again.sessions().get(session.id().as_str()).await.unwrap();
    let mut events = again.watch(&opened).await;
    let of_turn = |event: &Event| match event.fact() {
        Some(Fact::Turn(TurnFact::Finished { usage, .. })) => Some(*usage),
        _ => None,
    };
    assert_eq!(events.until("the turn's end", of_turn).await, snapshot.usage);
    snapshot.usage
}

#[tokio::test]
async fn m_c4_the_usage_of_a_complete_answer_survives_a_crash() {
    let folder = TempDir::new().unwrap();
    let harness = with_one_place(&folder);
    let counted = Usage { input: 3296, cached: 1000, output: 57, ..Usage::default() };
    harness.model.then(reply().call("probe", json!({})).usage(counted));
    harness.probe.does(|_, context| {
        context.pause(holdpoint_common::PauseKind::Continue, "Look?", None);
        Ok(holdpoint_tools::ToolOutcome::default())
    });
    let session = harness.open().await;
    let mut events = harness.watch(&session).await;
    session.prompt("go").await.unwrap();
    events.asked().await;
    assert_eq!(used(&killed(&folder), &session).await, counted);
}

#[tokio::test]
async fn m_c4_the_usage_of_a_cut_answer_is_estimated_from_the_request() {
    let folder = TempDir::new().unwrap();
    let harness = with_one_place(&folder);
    let live = harness.model.then_live();
    let session = harness.open().await;
    let mut events = harness.watch(&session).await;
    session.prompt("x".repeat(1000)).await.unwrap();
    live.text("I begin.");
    events.until("the text", |event| event.delta().map(|_| ())).await;
    // A step that is not saved yet is unknown after a crash.
    let saved = async {
        while count(&facts(&folder, &session).await, |fact| {
            matches!(fact, Fact::Turn(TurnFact::StepStarted))
        }) == 0
        {}
    };
    within_patience("the beginning of the step to be saved", saved).await;
    let Usage { input, estimated, .. } = used(&killed(&folder), &session).await;
    let request = harness.model.requests().pop().unwrap();
    let sent = Usage::estimate(request.bytes(), 0).input;
    assert!(request.fixed_bytes() > 1000, "the tools count: {}", request.fixed_bytes());
    assert!(estimated, "{input} of {sent}");
    assert!((sent * 9 / 10..=sent * 11 / 10).contains(&input), "{input} of {sent}");
}

#[tokio::test]
async fn m_e2_a_reopened_session_follows_its_moved_folder() {
    let (folder, place) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let work = place.path().join("work");
    std::fs::create_dir(&work).unwrap();
    std::fs::write(work.join("file"), "inside").unwrap();
    let id = {
        let harness = with_one_place(&folder);
        let open = OpenSession::in_folder(&work).model(ScriptedModel::NAME);
        harness.sessions().open(open).await.unwrap().id().clone()
    };
    let moved = place.path().join("moved");
    std::fs::rename(&work, &moved).unwrap();
    std::os::unix::fs::symlink(&moved, &work).unwrap();
    let harness = with_one_place(&folder);
    harness.model.then(reply().call("read_file", json!({ "path": "file" })));
    let session = harness.sessions().get(id.as_str()).await.unwrap();
    let mut events = harness.watch(&session).await;
    session.prompt("go").await.unwrap();
    let asked_or_read = |event: &Event| match event.fact() {
        Some(Fact::Ask(AskFact::Raised { ask })) => Some(Err(ask.clone())),
        Some(Fact::Tool(ToolFact::Finished(result))) => Some(Ok(result.to_text())),
        _ => None,
    };
    let read = events.until("the file", asked_or_read).await.unwrap();
    assert!(read.contains("inside"), "{read}");
    // A missing folder does not prevent reading the conversation.
    session.close().await.unwrap();
    std::fs::remove_file(&work).unwrap();
    harness.sessions().get(id.as_str()).await.unwrap();
}

/// The engine's limits apply whether an actor ends the cut turn or the mend of the log does.
#[tokio::test]
async fn m_c4_the_estimated_usage_of_a_cut_turn_respects_the_engines_limits() {
    let folder = TempDir::new().unwrap();
    let narrow = |folder: &TempDir| {
        let store = Sqlite::open(folder.path()).unwrap();
        let limits = Limits { max_history_tokens: 4_000, ..Limits::default() };
        Harness::with(|engine| engine.store(store).limits(limits))
    };
    let harness = narrow(&folder);
    let session = harness.open().await;
    let mut events = harness.watch(&session).await;
    for _ in 0..4 {
        session.prompt("x".repeat(6_000)).await.unwrap();
        events.turn_finished().await;
    }
    let live = harness.model.then_live();
    session.prompt("and now?").await.unwrap();
    live.text("I begin.");
    let text = |event: &Event| matches!(event.delta(), Some(Delta::Text { .. })).then_some(());
    events.until_new("the text", text).await;
    // The folder as a SIGKILL leaves it.
    let copy = TempDir::new().unwrap();
    for entry in std::fs::read_dir(folder.path()).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), copy.path().join(entry.file_name())).unwrap();
    }
    let again = narrow(&copy);
    // The cut turn is ended before the list is returned.
    again.sessions().list().await.unwrap();
    let last = facts(&copy, &session).await.pop().unwrap();
    let Some(Fact::Turn(TurnFact::Finished { usage, .. })) = last.fact() else {
        panic!("{last:?}")
    };
    assert_eq!(usage.input, 4_000, "{usage:?}");
}

/// Like a session of a daemon, through any handle.
#[tokio::test]
async fn settled_returns_for_a_closed_session_and_fails_for_a_deleted_one() {
    let harness = Harness::start();
    let session = harness.open().await;
    session.prompt("go").await.unwrap();
    session.settled().await.unwrap();
    session.close().await.unwrap();
    assert_eq!(session.settled().await.unwrap().last_turn.as_ref().unwrap().outcome, Outcome::Done);
    harness.sessions().delete(session.id().as_str()).await.unwrap();
    let unknown = SessionError::UnknownSession { given: session.id().to_string() };
    assert_eq!(session.settled().await.err(), Some(unknown));
    drop(harness);
    assert_eq!(session.settled().await.err(), Some(SessionError::Stopped));
}

/// The waiting handle is from before the session was closed.
#[tokio::test]
async fn settled_on_an_old_handle_waits_for_the_reopened_session() {
    let harness = Harness::start();
    let session = harness.open().await;
    session.close().await.unwrap();
    let live = harness.model.then_live();
    let again = harness.sessions().get(session.id().as_str()).await.unwrap();
    let mut events = harness.watch(&again).await;
    again.prompt("go").await.unwrap();
    events.step_started().await;
    let settled = tokio::spawn(async move { session.settled().await });
    live.text("Done.");
    drop(live);
    let snapshot = within_patience("the turn's end", settled).await.unwrap().unwrap();
    assert_eq!(snapshot.last_turn.as_ref().map(|turn| turn.outcome), Some(Outcome::Done));
}
