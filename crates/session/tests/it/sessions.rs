//! Many sessions: their prompts, the limit, the list, closing, and faults.

use holdpoint_common::{
    Answer, AnswerError, AskFact, Delta, Event, Fact, Limits, Outcome, PauseKind, PauseResponse,
    PolicyMode, Refused, SessionFact, SessionStatus, ToolFact, ToolStatus, TurnFact, TurnId,
};
use holdpoint_session::store::{SessionStore, Sqlite};
use holdpoint_session::testing::{Harness, LiveReply, Recorder, reply, within_patience};
use holdpoint_session::{AttachFrom, ClientEnd, SessionError, SessionHandle};
use holdpoint_tools::testing::{Census, rounds};
use holdpoint_tools::{ToolError, ToolOutcome};
use serde_json::json;
use tempfile::TempDir;

/// Waits until the model gives this answer. Later scripts are for other requests.
async fn asked(events: &mut Recorder, answer: &LiveReply) {
    assert!(answer.text("I look."));
    events
        .until("a word", |event| matches!(event.delta(), Some(Delta::Text { .. })).then_some(()))
        .await;
}

/// A session with a started tool that returns when the third value is dropped.
async fn stuck(harness: &Harness) -> (SessionHandle, Recorder, impl Drop + use<>) {
    let release = harness.probe.ignores_cancel("begun");
    harness.model.then(reply().call("probe", json!({})));
    let session = harness.open().await;
    let mut events = harness.watch(&session).await;
    session.prompt("go").await.unwrap();
    events.output("begun").await;
    (session, events, release)
}

#[tokio::test]
async fn m_b2_prompts_run_in_order_and_each_ends_once() {
    let harness = Harness::start();
    let live = harness.model.then_live();
    let session = harness.open().await;
    let mut events = harness.watch(&session).await;
    assert_eq!(session.prompt("0").await.unwrap().position, 0);
    for n in 1..=32 {
        assert_eq!(session.prompt(n.to_string()).await.unwrap().position, n);
    }
    let full = session.prompt("33").await.unwrap_err();
    assert_eq!(full, SessionError::Refused(Refused::QueueFull { waiting: 32 }));
    drop(live);
    for _ in 0..=32 {
        assert_eq!(events.turn_finished().await.outcome, Outcome::Done);
    }
    let order: Vec<_> = events
        .facts()
        .filter_map(|fact| match fact {
            Fact::Turn(TurnFact::Started { prompt, .. }) => Some(prompt.0),
            _ => None,
        })
        .collect();
    assert_eq!(order, (1..=33).collect::<Vec<_>>());
}

#[tokio::test]
async fn m_b2_after_a_failed_turn_the_next_prompt_runs() {
    let harness = Harness::start();
    let live = harness.model.then_live();
    let session = harness.open().await;
    let mut events = harness.watch(&session).await;
    session.prompt("one").await.unwrap();
    session.prompt("two").await.unwrap();
    harness.model.then(reply().text("part").fail("overloaded")).then(reply().text("fine"));
    live.call("no_such_tool", json!({}));
    drop(live);
    let failed = events.turn_finished().await;
    assert_eq!(failed.outcome, Outcome::Failed);
    assert!(failed.error.unwrap().contains("overloaded"));
    assert_eq!(events.turn_finished().await.outcome, Outcome::Done);
}

#[tokio::test]
async fn m_b2_bad_prompts_are_refused_and_change_nothing() {
    let harness = Harness::limited(Limits { max_prompt_bytes: 10, ..Limits::default() });
    let session = harness.open().await;
    assert_eq!(
        session.prompt(" \n").await.unwrap_err(),
        SessionError::Refused(Refused::EmptyPrompt)
    );
    let long = session.prompt("12345678901").await.unwrap_err();
    assert_eq!(long, SessionError::Refused(Refused::PromptTooLong { bytes: 11, limit: 10 }));
    assert_eq!(session.snapshot().status, SessionStatus::Idle);
}

#[tokio::test]
async fn m_b2_a_turn_ends_at_its_limit_of_steps() {
    let harness = Harness::start();
    for _ in 0..9 {
        harness.model.then(reply().call("probe", json!({})));
    }
    let session = harness.sessions().open(harness.session().max_steps(3)).await.unwrap();
    let mut events = harness.watch(&session).await;
    session.prompt("go").await.unwrap();
    assert_eq!(events.turn_finished().await.outcome, Outcome::Limit);
    assert_eq!(harness.model.requests().len(), 3, "no request starts once the limit is reached");
}

#[tokio::test]
async fn m_b1_twenty_sessions_opened_at_once_leave_ten_live() {
    let harness = Harness::start();
    let sessions = harness.sessions();
    let opened =
        futures_util::future::join_all((0..20).map(|_| sessions.open(harness.session()))).await;
    let opened: Vec<_> = opened.into_iter().map(Result::unwrap).collect();
    let listed = sessions.list().await.unwrap();
    assert_eq!(listed.iter().filter(|session| session.live).count(), 10);
    assert_eq!(listed.len(), 20);
    // An unloaded session opens again when it is used.
    let saved = listed.iter().find(|session| !session.live).unwrap();
    let handle = opened.iter().find(|handle| *handle.id() == saved.id).unwrap();
    handle.prompt("still here?").await.unwrap();
    let listed = sessions.list().await.unwrap();
    assert!(listed.iter().find(|session| session.id == *handle.id()).unwrap().live);
    assert_eq!(listed.iter().filter(|session| session.live).count(), 10);
}

#[tokio::test]
async fn m_b1_open_is_refused_only_if_all_are_busy_held_or_attached() {
    let harness = Harness::limited(Limits { max_sessions: 3, ..Limits::default() });
    let sessions = harness.sessions();
    let _silent = harness.model.then_live();
    let busy = harness.open().await;
    busy.prompt("go").await.unwrap();
    let held = harness.open().await;
    held.hold().await.unwrap();
    let attached = harness.open().await;
    let client = attached.attach(AttachFrom::now()).await.unwrap();
    let refused = sessions.open(harness.session()).await.err().unwrap();
    assert_eq!(refused, SessionError::TooManySessions { limit: 3 });
    assert!(refused.to_string().contains('3'));
    // Twenty at once: all are refused, and none is unloaded.
    let refused =
        futures_util::future::join_all((0..20).map(|_| sessions.open(harness.session()))).await;
    assert!(refused.iter().all(Result::is_err));
    client.detach().await;
    sessions.open(harness.session()).await.unwrap();
}

#[tokio::test]
async fn m_b9_the_list_shows_each_status() {
    let harness = Harness::start();
    harness.probe.does(|_, context| match context.pause(PauseKind::Confirm, "ok?", None) {
        PauseResponse::Approved => Ok(ToolOutcome::default()),
        _ => Err(ToolError::Interrupted),
    });
    harness.model.then(reply().call("probe", json!({})));
    let sessions = harness.sessions();
    let waits = sessions.open(harness.session().name("waits")).await.unwrap();
    let mut events = harness.watch(&waits).await;
    waits.prompt("do the first thing\nand more").await.unwrap();
    events.asked().await;
    let other = harness.open().await;
    let list = sessions.list().await.unwrap();
    assert_eq!(list.len(), 2);
    let line = list.iter().find(|session| session.id == *waits.id()).unwrap();
    assert_eq!((line.name.as_str(), line.title.as_str()), ("waits", "do the first thing"));
    assert_eq!(line.status, SessionStatus::Paused);
    assert_eq!(line.waits_for.as_ref().unwrap().request.tool_name(), "probe");
    let taken = sessions.open(harness.session().name("waits")).await.err().unwrap();
    assert_eq!(taken, SessionError::NameTaken { name: "waits".into() });
    assert_eq!(sessions.get("waits").await.unwrap().id(), waits.id());
    assert_eq!(sessions.get(&waits.id().as_str()[..8]).await.unwrap().id(), waits.id());
    waits.close().await.unwrap();
    // Its name is free, and it is still listed, after the live ones.
    other.close().await.unwrap();
    let again = sessions.open(harness.session().name("waits")).await.unwrap();
    let list = sessions.list().await.unwrap();
    assert_eq!(list[0].id, *again.id());
    let closed = list.iter().find(|session| session.id == *waits.id()).unwrap();
    assert!(!closed.live);
    assert_eq!(closed.last_turn.as_ref().unwrap().outcome, Outcome::Interrupted);
}

#[tokio::test]
async fn m_b8_closing_answers_asks_ends_processes_and_stops_the_actor() {
    let harness = Harness::start();
    let census = Census::new();
    let mark = census.mark();
    let (sender, receiver) = std::sync::mpsc::channel();
    harness.probe.does(move |_, context| {
        sender.send(context.pause(PauseKind::Continue, "?", None)).unwrap();
        Err(ToolError::Interrupted)
    });
    let command = format!("echo up; exec -a {mark} sleep 1000");
    harness
        .model
        .then(reply().call("shell", json!({ "command": command })).call("probe", json!({})));
    let session = harness.open().await;
    let mut events = harness.watch(&session).await;
    session.prompt("go").await.unwrap();
    let ask = events.asked().await;
    events.output("up").await;
    session.close().await.unwrap();
    assert_eq!(receiver.recv().unwrap(), PauseResponse::Interrupted);
    assert!(census.living().is_empty());
    while within_patience("the stream's end", events.next()).await.is_some() {}
    assert_eq!(events.end(), ClientEnd::Ended);
    assert!(matches!(events.facts().last(), Some(Fact::Session(SessionFact::Closed { .. }))));
    let closed = events
        .facts()
        .any(|fact| matches!(fact, Fact::Ask(AskFact::Closed { ask: id, .. }) if *id == ask.id));
    assert!(closed);
}

#[tokio::test]
async fn t_t1_m_b8_a_tool_panic_is_reported_and_the_next_prompt_works() {
    let harness = Harness::start();
    harness.probe.does(|_, _| panic!("the probe fell over"));
    harness.model.then(reply().call("probe", json!({})));
    let session = harness.open().await;
    let mut events = harness.watch(&session).await;
    session.prompt("go").await.unwrap();
    let end = events.turn_finished().await;
    assert_eq!(end.outcome, Outcome::Panicked);
    assert!(end.error.unwrap().contains("the probe fell over"));
    check_next_prompt(&session, "again", &mut events).await;
}

/// Checks that a session that has failed accepts a prompt and runs it.
async fn check_next_prompt(session: &SessionHandle, prompt: &str, events: &mut Recorder) {
    session.prompt(prompt).await.unwrap();
    while events.turn_finished().await.outcome != Outcome::Done {}
}

/// The text so far stays, and the next answer does not continue it.
#[tokio::test]
async fn m_b8_a_model_that_panics_ends_its_turn_alone() {
    let harness = Harness::start();
    harness.model.then(reply().text("So far ").panic("the model fell over"));
    let session = harness.open().await;
    let mut events = harness.watch(&session).await;
    session.prompt("go").await.unwrap();
    let end = events.turn_finished().await;
    assert_eq!(end.outcome, Outcome::Failed);
    assert!(end.error.unwrap().contains("the model panicked: the model fell over"));
    session.prompt("again").await.unwrap();
    assert_eq!(events.turn_finished().await.outcome, Outcome::Done);
    let answers = events.facts().filter_map(|fact| match fact {
        Fact::Turn(TurnFact::AssistantMessage(message)) => {
            Some((message.text(), message.partial, message.blocks[0].item))
        }
        _ => None,
    });
    let answers: Vec<_> = answers.collect();
    assert!(answers[0].0 == "So far " && answers[0].1, "{answers:?}");
    assert!(answers[1].0 == "done" && answers[1].2 > answers[0].2, "{answers:?}");
}

/// The id of an item that was published and never saved is not given again: a client that returns
/// with its events appends to no other item.
#[tokio::test]
async fn invariant_3_no_item_gets_the_id_of_one_lost_with_its_actor() {
    let harness = Harness::start();
    let session = harness.open().await;
    let mut events = harness.watch(&session).await;
    let answer = harness.model.then_live();
    session.prompt("go").await.unwrap();
    answer.text("half an ");
    let first = events
        .until("the text", |event| match event.delta() {
            Some(Delta::Text { item, .. }) => Some(*item),
            _ => None,
        })
        .await;
    session.panic_now().await;
    session.settled().await.unwrap();
    harness.model.then(reply().text("another"));
    session.prompt("again").await.unwrap();
    let mut events = harness.watch(&session).await;
    let answer_item = |event: &Event| match event.fact() {
        Some(Fact::Turn(TurnFact::AssistantMessage(message))) if !message.partial => {
            Some(message.blocks[0].item)
        }
        _ => None,
    };
    let next = events.until("the answer", answer_item).await;
    assert!(next > first, "{next} after {first}");
}

#[tokio::test]
async fn t_t1_an_actor_that_panics_is_rebuilt_and_others_lose_nothing() {
    let folder = TempDir::new().unwrap();
    let store = Sqlite::open(folder.path()).unwrap();
    let harness = Harness::with(|engine| engine.store(store.clone()));
    let census = Census::new();
    let mark = census.mark();
    let other = harness.open().await;
    let mut others = harness.watch(&other).await;
    let other_live = harness.model.then_live();
    other.prompt("go").await.unwrap();
    asked(&mut others, &other_live).await;

    let (sender, receiver) = std::sync::mpsc::channel();
    harness.probe.does(move |_, context| {
        sender.send(context.pause(PauseKind::Confirm, "?", None)).unwrap();
        Err(ToolError::Interrupted)
    });
    let command = format!("echo up; exec -a {mark} sleep 1000");
    harness
        .model
        .then(reply().call("shell", json!({ "command": command })).call("probe", json!({})));
    let session = harness.open().await;
    let mut events = harness.watch(&session).await;
    session.prompt("go").await.unwrap();
    let ask = events.asked().await;
    events.output("up").await;
    session.panic_now().await;
    while within_patience("the stream's end", events.next()).await.is_some() {}
    assert_eq!(events.end(), ClientEnd::Ended);
    assert_eq!(
        receiver.recv().unwrap(),
        PauseResponse::Interrupted,
        "no tool waits on a dead session"
    );

    // Through the same handle, as if nothing had happened.
    let mut events = harness.watch(&session).await;
    assert_eq!(events.turn_finished().await.outcome, Outcome::Panicked);
    check_next_prompt(&session, "next", &mut events).await;
    assert!(census.living().is_empty(), "no process of the old turn is alive");
    let late = session.answer(&ask.id, Answer::Approve { always: false }).await.unwrap_err();
    assert!(
        matches!(late, SessionError::Refused(Refused::Answer(AnswerError::Closed { .. }))),
        "{late:?}"
    );

    other_live.text("unharmed");
    drop(other_live);
    assert_eq!(others.turn_finished().await.outcome, Outcome::Done);
    let received: Vec<_> =
        others.events().iter().filter(|event| event.fact().is_some()).cloned().collect();
    let logged = store.open(other.id()).await.unwrap().read(0..u64::MAX).await.unwrap();
    assert_eq!(received, logged, "every event of the other session, once and in order");
    let is_unharmed = |event: &Event| matches!(event.delta(), Some(Delta::Text { text, .. }) if text == "unharmed");
    assert!(others.events().iter().any(|event| is_unharmed(event)));
}

/// A failing actor is neither present nor gone for a while. The message that it fails on is not
/// sent to the next actor.
#[tokio::test]
async fn m_b8_a_message_that_fails_an_actor_is_not_sent_again() {
    let harness = Harness::start();
    let session = harness.open().await;
    let rounds = rounds(4, 32);
    for _ in 0..rounds {
        // They are notified of its end, one by one, before it is gone.
        let mut clients = Vec::new();
        for _ in 0..128 {
            clients.push(session.attach(AttachFrom::now()).await.unwrap());
        }
        session.panic_now().await;
    }
    let mut events = harness.watch(&session).await;
    let last = events.attachment().snapshot().seq;
    events.until("the last event", |event| (event.seq >= last).then_some(())).await;
    let restored = events
        .facts()
        .filter(|fact| matches!(fact, Fact::Session(SessionFact::Restored { .. })))
        .count();
    assert_eq!(restored, rounds, "each prompt reached one actor");
}

/// Without a crash of the process: a fact that is acknowledged as saved is in the log at that
/// moment, so that an actor that dies right then loses nothing.
#[tokio::test]
async fn invariant_7_what_is_acknowledged_is_in_the_log() {
    let folder = TempDir::new().unwrap();
    let harness = Harness::with(|engine| engine.store(Sqlite::open(folder.path()).unwrap()));
    let session = harness.open().await;
    session.hold().await.unwrap();
    for round in 0..32 {
        assert!(session.prompt(format!("prompt {round}")).await.unwrap().saved);
        if round % 4 == 0 {
            session.panic_now().await;
        }
        let snapshot = session.attach(AttachFrom::now()).await.unwrap().snapshot().clone();
        assert_eq!(snapshot.queue.len(), round + 1, "no prompt is lost or doubled");
        assert_eq!(snapshot.queue.last().unwrap().text, format!("prompt {round}").into());
    }
}

#[tokio::test]
async fn m_e7_files_and_shell_do_real_work() {
    let harness = Harness::start();
    harness
        .model
        .then(reply().call("write_file", json!({"path": "a/b.txt", "content": "hello\n"})))
        .then(reply().call("shell", json!({"command": "cat a/b.txt; echo 2 >&2; exit 3"})))
        .then(reply().call("read_file", json!({"path": "a/b.txt"})));
    let session = harness.open().await;
    let mut events = harness.watch(&session).await;
    session.prompt("go").await.unwrap();
    assert_eq!(events.turn_finished().await.outcome, Outcome::Done);
    let results: Vec<_> = events
        .facts()
        .filter_map(|fact| match fact {
            Fact::Tool(ToolFact::Finished(result)) => Some((result.status, result.to_text())),
            _ => None,
        })
        .collect();
    assert_eq!(results[0].0, ToolStatus::Ok, "{results:#?}");
    assert!(results[1].1.contains("hello\n2\n") && results[1].1.contains('3'), "{results:#?}");
    assert_eq!(results[1].0, ToolStatus::Error);
    assert!(results[2].1.contains("hello"));
    assert_eq!(*session.snapshot().files_modified, ["a/b.txt".to_owned()].into());
}

/// A refused name does not unload another session.
#[tokio::test]
async fn opening_under_a_refused_name_unloads_no_session() {
    let harness = Harness::limited(Limits { max_sessions: 1, ..Limits::default() });
    let (sessions, open) = (harness.sessions(), |name: &str| harness.session().name(name));
    sessions.open(open("first")).await.unwrap();
    for _ in 0..2 {
        let invalid = sessions.open(open("a\nb")).await.err();
        assert!(matches!(invalid, Some(SessionError::Refused(Refused::Name(_)))), "{invalid:?}");
        let taken = sessions.open(open("first")).await.err();
        assert_eq!(taken, Some(SessionError::NameTaken { name: "first".into() }));
        assert!(sessions.list().await.unwrap()[0].live);
    }
    // A name whose session found no place is free again.
    let client = sessions.get("first").await.unwrap().attach(AttachFrom::now()).await.unwrap();
    let full = sessions.open(open("second")).await.err();
    assert_eq!(full, Some(SessionError::TooManySessions { limit: 1 }));
    client.detach().await;
    sessions.open(open("second")).await.unwrap();
}

/// A prompt that meets its session's unloading is neither lost nor refused.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn m_b1_a_prompt_races_the_unloading() {
    let harness = Harness::limited(Limits { max_sessions: 1, ..Limits::default() });
    let session = harness.open().await;
    for round in 1..=300 {
        let opener = tokio::spawn({
            let (sessions, open) = (harness.sessions(), harness.session());
            async move { sessions.open(open).await }
        });
        for _ in 0..fastrand::u32(..20_000) {
            std::hint::spin_loop();
        }
        let prompted = session.prompt("go").await;
        let opened = opener.await.unwrap();
        // With one place, the later one waits until the other is idle, or is refused for lack of
        // room.
        assert!(prompted.is_ok() || opened.is_ok(), "round {round}: {prompted:?}");
        if let Err(error) = &prompted {
            assert_eq!(*error, SessionError::TooManySessions { limit: 1 });
        }
        within_patience("the session", async { while session.prompt("again").await.is_err() {} })
            .await;
        session.settled().await.unwrap();
    }
}

/// A close that meets its session's unloading closes the saved session.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn m_b8_a_close_races_the_unloading() {
    let harness = Harness::limited(Limits { max_sessions: 1, ..Limits::default() });
    for round in 1..=300 {
        let session = harness.open().await;
        let opener = tokio::spawn({
            let (sessions, open) = (harness.sessions(), harness.session());
            async move { sessions.open(open).await }
        });
        for _ in 0..fastrand::u32(..20_000) {
            std::hint::spin_loop();
        }
        let closed = within_patience("the close", session.close()).await;
        assert_eq!(closed, Ok(()), "round {round}");
        opener.await.unwrap().unwrap();
        assert_eq!(
            session.prompt("go").await.unwrap_err(),
            SessionError::Refused(Refused::Closed),
            "round {round}"
        );
    }
}

#[tokio::test]
async fn m_b9_a_closed_session_opens_only_by_an_explicit_request() {
    let harness = Harness::start();
    let session = harness.open().await;
    session.close().await.unwrap();
    let refused = session.prompt("go").await.unwrap_err();
    assert_eq!(refused, SessionError::Refused(Refused::Closed));
    assert_eq!(session.close().await.unwrap_err(), SessionError::Refused(Refused::Closed));
    let again = harness.sessions().get(session.id().as_str()).await.unwrap();
    again.prompt("go").await.unwrap();
    assert_eq!(again.settled().await.unwrap().last_turn.as_ref().unwrap().outcome, Outcome::Done);
    // The old handle reaches it again, too, and shows its current state.
    let before = again.snapshot().seq;
    session.prompt("go").await.unwrap();
    assert_eq!(session.settled().await.unwrap().last_turn.as_ref().unwrap().outcome, Outcome::Done);
    assert!(session.snapshot().seq > before, "{:?}", session.snapshot());
}

/// A session that fails has the only place: it is rebuilt, and a client that needs the place is
/// served or refused.
#[tokio::test]
async fn m_b1_a_failing_idle_session_does_not_block_the_next_open() {
    let harness = Harness::limited(Limits { max_sessions: 1, ..Limits::default() });
    for _ in 0..50 {
        let session = within_patience("a place", harness.open()).await;
        session.panic_now().await;
        let sessions = harness.sessions();
        let opened = within_patience("an answer", sessions.open(harness.session())).await;
        assert!(matches!(opened, Ok(_) | Err(SessionError::TooManySessions { .. })));
    }
}

/// Everything that a model streams has a bound.
#[tokio::test]
async fn an_endless_answer_is_a_failed_turn() {
    let harness = Harness::limited(Limits { max_answer_bytes: 64 * 1024, ..Limits::default() });
    let mut calls = reply();
    for n in 0..5_000 {
        calls = calls.call("probe", json!({ "n": n }));
    }
    let mut texts = reply();
    for _ in 0..100 {
        texts = texts.text("x".repeat(1_000));
    }
    let session = harness.open().await;
    let mut events = harness.watch(&session).await;
    for answer in [calls, texts] {
        harness.model.then(answer);
        session.prompt("go").await.unwrap();
        let end = events.turn_finished().await;
        assert_eq!(end.outcome, Outcome::Failed);
        assert!(end.error.unwrap().contains("65536 bytes"));
    }
    assert!(
        !events.facts().any(|fact| matches!(fact, Fact::Tool(ToolFact::Started { .. }))),
        "no call of the turn runs"
    );
}

#[tokio::test]
async fn m_b8_a_saved_session_can_be_closed() {
    let harness = Harness::limited(Limits { max_sessions: 1, ..Limits::default() });
    let session = harness.open().await;
    harness.open().await;
    session.close().await.unwrap();
    assert_eq!(session.prompt("go").await.unwrap_err(), SessionError::Refused(Refused::Closed));
}

#[tokio::test]
async fn m_b2_close_unused_is_refused_after_later_prompts() {
    let harness = Harness::start();
    let session = harness.open().await;
    let in_use = Err(SessionError::Refused(Refused::InUse));
    harness.model.then(reply().text("Done."));
    session.prompt("first").await.unwrap();
    let ended = session.settled().await.unwrap().seq;

    let answer = harness.model.then_live();
    session.prompt("second").await.unwrap();
    assert_eq!(session.close_unused(ended).await, in_use);
    assert!(session.snapshot().turn.is_some(), "the turn is not cut");
    answer.text("Done, too.");
    drop(answer);
    let ended_too = session.settled().await.unwrap();
    assert_eq!(ended_too.last_turn.as_ref().unwrap().outcome, Outcome::Done);
    assert_eq!(
        session.close_unused(ended).await,
        in_use,
        "the session received work in the meantime"
    );

    // A prompt accepted before and started since was used by others as well.
    let answer = harness.model.then_live();
    session.prompt("third").await.unwrap();
    harness.model.then(reply().text("Done."));
    session.prompt("fourth").await.unwrap();
    let mut events = harness.watch(&session).await;
    drop(answer);
    let ends = |event: &Event| {
        event.turn == Some(TurnId(3))
            && matches!(event.fact(), Some(Fact::Turn(TurnFact::Finished { .. })))
    };
    let third = events.until("the third's end", |event| ends(event).then_some(event.seq)).await;
    session.settled().await.unwrap();
    assert_eq!(session.close_unused(third).await, in_use);

    // A queued prompt is work to do, whenever it was accepted.
    session.hold().await.unwrap();
    session.prompt("fifth").await.unwrap();
    assert_eq!(session.close_unused(session.snapshot().seq).await, in_use);
    session.close().await.unwrap();
}

#[tokio::test]
async fn m_b2_close_unused_closes_a_session_without_later_use() {
    let harness = Harness::start();
    let session = harness.open().await;
    harness.model.then(reply().text("Done."));
    session.prompt("first").await.unwrap();
    let ended = session.settled().await.unwrap().seq;
    session.rename("looked at").await.unwrap();
    session.close_unused(ended).await.unwrap();
    assert_eq!(session.close_unused(ended).await, Err(SessionError::Refused(Refused::Closed)));
}

/// After close, or the actor's death, no tool thread of the session waits on an ask.
#[tokio::test]
async fn invariant_6_no_tool_waits_on_a_session_that_is_gone() {
    for panics in [false, true] {
        let harness = Harness::start();
        let (sender, receiver) = std::sync::mpsc::channel();
        harness.probe.does(move |_, context| {
            // More than one ask, the second of them too late in any case.
            for _ in 0..2 {
                sender.send(context.pause(PauseKind::Confirm, "?", None)).unwrap();
            }
            Err(ToolError::Interrupted)
        });
        let mut calls = reply();
        for n in 0..16 {
            calls = calls.call("probe", json!({ "n": n }));
        }
        harness.model.then(calls);
        let session = harness.open().await;
        let mut events = harness.watch(&session).await;
        session.prompt("go").await.unwrap();
        for _ in 0..16 {
            events.asked().await;
        }
        if panics {
            session.panic_now().await;
        } else {
            session.close().await.unwrap();
        }
        for _ in 0..32 {
            let response = receiver.recv_timeout(holdpoint_session::testing::patience());
            assert_eq!(response, Ok(PauseResponse::Interrupted));
        }
    }
}

/// One session's fault never ends another's turn: a panicking tool, a panicking actor, a failing
/// model, a close.
#[tokio::test]
async fn invariant_8_one_sessions_fault_never_ends_anothers_turn() {
    let harness = Harness::start();
    harness.probe.does(|_, _| panic!("the probe fell over"));
    let bystander = harness.open().await;
    let mut events = harness.watch(&bystander).await;
    let live = harness.model.then_live();
    bystander.prompt("go").await.unwrap();
    asked(&mut events, &live).await;
    for fault in 0..4 {
        let session = harness.open().await;
        match fault {
            0 => harness.model.then(reply().call("probe", json!({}))),
            1 => harness.model.then(reply().fail("overloaded")),
            _ => harness.model.then(reply().call("shell", json!({ "command": "sleep 1000" }))),
        };
        session.prompt("go").await.unwrap();
        match fault {
            0 | 1 => drop(session.settled().await.unwrap()),
            2 => session.panic_now().await,
            _ => session.close().await.unwrap(),
        }
        let word = format!("word {fault}");
        assert!(live.text(word.clone()), "the other session's request continues");
        events
            .until_new(&word, |event| match event.delta() {
                Some(holdpoint_common::Delta::Text { text, .. }) if text.contains(&word) => {
                    Some(())
                }
                _ => None,
            })
            .await;
    }
    drop(live);
    assert_eq!(events.turn_finished().await.outcome, Outcome::Done);
}

/// An accepted close outlives the actor: the rebuilt session ends at once, and its place is free.
#[tokio::test]
async fn m_b8_a_session_that_fails_while_it_closes_is_closed() {
    let harness = Harness::limited(Limits { max_sessions: 1, grace_ms: 10, ..Limits::default() });
    let release = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let stuck = std::sync::Arc::clone(&release);
    harness.probe.does(move |_, context| {
        context.output("stuck");
        while !stuck.load(std::sync::atomic::Ordering::Relaxed) {
            std::thread::park_timeout(std::time::Duration::from_millis(1));
        }
        Ok(ToolOutcome::default())
    });
    harness.model.then(reply().call("probe", json!({})));
    let session = harness.open().await;
    let mut events = harness.watch(&session).await;
    session.prompt("go").await.unwrap();
    events.output("stuck").await;
    let closing = tokio::spawn({
        let session = session.clone();
        async move { session.close().await }
    });
    events
        .until("the cut", |event| {
            matches!(event.fact(), Some(Fact::Turn(TurnFact::Cut { .. }))).then_some(())
        })
        .await;
    drop(events);
    session.panic_now().await;
    assert!(matches!(
        within_patience("the close", closing).await.unwrap(),
        Err(SessionError::Gone { .. })
    ));
    release.store(true, std::sync::atomic::Ordering::Relaxed);
    // It is rebuilt only to be closed; then there is room.
    let next = within_patience("a place", async {
        loop {
            if let Ok(next) = harness.sessions().open(harness.session()).await {
                break next;
            }
            tokio::task::yield_now().await;
        }
    })
    .await;
    let list = harness.sessions().list().await.unwrap();
    let closed = list.iter().find(|line| line.id == *session.id()).unwrap();
    assert!(!closed.live);
    assert_eq!(closed.last_turn.as_ref().unwrap().outcome, Outcome::Interrupted);
    assert!(list.iter().find(|line| line.id == *next.id()).unwrap().live);
    // Using the old handle does not open it.
    next.close().await.unwrap();
    assert_eq!(session.hold().await, Err(SessionError::Refused(Refused::Closed)));
}

#[tokio::test]
async fn m_b8_two_concurrent_closes_both_return_at_the_end() {
    let harness = Harness::start();
    let (session, mut events, release) = stuck(&harness).await;
    let close = || {
        let session = session.clone();
        tokio::spawn(async move { session.close().await })
    };
    let first = close();
    events
        .until("the cut", |event| {
            matches!(event.fact(), Some(Fact::Turn(TurnFact::Cut { .. }))).then_some(())
        })
        .await;
    let second = close();
    tokio::task::yield_now().await;
    // A change of the policy takes the same way. When it is done, the actor has received the close.
    let _ = session.change_policy(PolicyMode::Ask).await;
    assert!(!first.is_finished() && !second.is_finished());
    drop(release);
    assert_eq!(within_patience("the first", first).await.unwrap(), Ok(()));
    assert_eq!(within_patience("the second", second).await.unwrap(), Ok(()));
    assert!(!harness.sessions().list().await.unwrap()[0].live);
}

/// A closed session can be renamed, so a rename during a close is done after it.
#[tokio::test]
async fn m_b9_a_rename_during_a_close_is_done_after_it() {
    let harness = Harness::start();
    let (session, mut events, release) = stuck(&harness).await;
    let closing = tokio::spawn({
        let session = session.clone();
        async move { session.close().await }
    });
    events
        .until("the cut", |event| {
            matches!(event.fact(), Some(Fact::Turn(TurnFact::Cut { .. }))).then_some(())
        })
        .await;
    let renaming = tokio::spawn({
        let session = session.clone();
        async move { session.rename("renamed").await }
    });
    // By now the manager and the actor have received the new name.
    for _ in 0..2 {
        harness.sessions().list().await.unwrap();
    }
    drop(release);
    within_patience("the close", closing).await.unwrap().unwrap();
    within_patience("the rename", renaming).await.unwrap().unwrap();
    let listed = harness.sessions().list().await.unwrap();
    assert_eq!((listed[0].name.as_str(), listed[0].live), ("renamed", false));
}

/// Opening a session by its id is never refused, even in the last moment of its close.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn m_b9_a_session_that_is_just_being_closed_can_be_opened() {
    let harness = Harness::start();
    let id = harness.open().await.id().to_string();
    for round in 0..500 {
        let live = harness.sessions().get(&id).await.unwrap();
        let closing = tokio::spawn(async move { live.close().await });
        let closed = closing.abort_handle();
        let openers = std::array::from_fn::<_, 4, _>(|_| {
            let (sessions, id, closed) = (harness.sessions(), id.clone(), closed.clone());
            tokio::spawn(async move {
                while !closed.is_finished() {
                    sessions.get(&id).await?;
                }
                Ok::<_, SessionError>(())
            })
        });
        for opener in openers {
            assert_eq!(
                within_patience("the opening", opener).await.unwrap(),
                Ok(()),
                "round {round}"
            );
        }
        within_patience("the close", closing).await.unwrap().unwrap();
    }
}

/// Only the failed session waits for the tools that its actor has left. It keeps its place
/// meanwhile.
#[tokio::test]
async fn invariant_8_a_session_waiting_to_be_rebuilt_blocks_no_other() {
    let harness =
        Harness::limited(Limits { max_sessions: 2, grace_ms: 60_000, ..Limits::default() });
    let (session, _events, release) = stuck(&harness).await;
    let mut turnover = harness.engine.load_meter().changes().await.unwrap();
    let failing = session.clone();
    let failed = tokio::spawn(async move { failing.panic_now().await });
    assert!(within_patience("the manager to notice", turnover.next()).await);

    let sessions = harness.sessions();
    let other = within_patience("another session", sessions.open(harness.session())).await.unwrap();
    other.hold().await.unwrap();
    let full = within_patience("the limit", sessions.open(harness.session())).await.err().unwrap();
    assert_eq!(full, SessionError::TooManySessions { limit: 2 });
    assert!(!failed.is_finished(), "it waits");
    drop(release);
    within_patience("the next actor", failed).await.unwrap();
    let mut events = harness.watch(&session).await;
    assert_eq!(events.turn_finished().await.outcome, Outcome::Panicked);
    assert_eq!(sessions.list().await.unwrap().iter().filter(|session| session.live).count(), 2);
}
