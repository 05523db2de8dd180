//! Events and replies while saving is slow or fails.

use std::sync::atomic::Ordering;

use holdpoint_common::{
    Answer, AnswerError, Delta, Event, Fact, Limits, Outcome, PauseKind, PauseResponse, Refused,
    SessionFact, SessionStatus, TurnFact, TurnId, Who,
};
use holdpoint_session::testing::{Harness, reply, within_patience};
use holdpoint_session::{AttachFrom, Interruption, RunRequest, SessionError};
use holdpoint_tools::{ToolError, ToolOutcome};
use serde_json::json;

use super::gated_store::GatedStore;

fn not_saved(event: &Event) -> Option<()> {
    matches!(event.delta(), Some(Delta::NotSaved { .. })).then_some(())
}

fn saved_again(event: &Event) -> Option<()> {
    matches!(event.delta(), Some(Delta::SavedAgain)).then_some(())
}

#[tokio::test]
async fn no_event_reply_or_request_leaves_before_its_save() {
    let door = GatedStore::new();
    let harness = Harness::with(|engine| engine.store(door.clone()));
    let session = harness.open().await;
    let mut events = harness.watch(&session).await;
    // The session's own opening.
    events.next().await.unwrap();
    door.open.send_replace(false);
    let tries = door.tries.load(Ordering::SeqCst);
    let prompt = tokio::spawn({
        let session = session.clone();
        async move { session.prompt("go").await }
    });
    door.asked(tries).await;
    within_patience("an attach", session.attach(AttachFrom::now())).await.unwrap();
    assert!(events.attachment().snapshot().turn.is_none());
    assert_eq!(session.snapshot().status, SessionStatus::Idle, "not published");
    assert!(!prompt.is_finished(), "not replied");
    assert!(harness.model.requests().is_empty(), "not begun");
    door.open.send_replace(true);
    assert!(within_patience("the reply", prompt).await.unwrap().unwrap().saved);
    assert_eq!(events.turn_finished().await.outcome, Outcome::Done);
    let received = events.facts().count();
    // Every fact that a client received is in the log.
    assert!(door.saved.lock().unwrap().len() >= received - 1);
}

#[tokio::test]
async fn an_approval_that_the_cut_overtakes_arrives_as_interrupted() {
    let door = GatedStore::new();
    let harness = Harness::with(|engine| engine.store(door.clone()));
    let (sender, receiver) = std::sync::mpsc::channel();
    harness.probe.does(move |_, context| {
        sender.send(context.pause(PauseKind::Confirm, "?", None)).unwrap();
        Err(ToolError::Interrupted)
    });
    harness.model.then(reply().call("probe", json!({})));
    let session = harness.open().await;
    let mut events = harness.watch(&session).await;
    session.prompt("go").await.unwrap();
    let ask = events.asked().await;
    door.open.send_replace(false);
    let tries = door.tries.load(Ordering::SeqCst);
    let answer = tokio::spawn({
        let (session, ask) = (session.clone(), ask.id.clone());
        async move { session.answer(&ask, Answer::Approve { always: false }).await }
    });
    door.asked(tries).await;
    within_patience("an attach", session.attach(AttachFrom::now())).await.unwrap();
    assert!(receiver.try_recv().is_err(), "an approval waits for its save");
    // The cut does not wait.
    let Interruption::Interrupting(turn) =
        within_patience("the cut", session.interrupt(None)).await.unwrap()
    else {
        panic!("it runs")
    };
    assert_eq!(receiver.recv().unwrap(), PauseResponse::Interrupted);
    door.open.send_replace(true);
    within_patience("the answer", answer).await.unwrap().unwrap();
    turn.end().await.unwrap();
    assert_eq!(events.turn_finished().await.outcome, Outcome::Interrupted);
}

#[tokio::test]
async fn m_c3_turn_end_returns_once_the_end_is_saved_and_later_from_the_log() {
    let door = GatedStore::new();
    let harness = Harness::with(|engine| engine.store(door.clone()));
    let sessions = harness.engine.sessions(Who::named("test"));
    let session = harness.open().await;
    let mut events = harness.watch(&session).await;
    let silent = harness.model.then_live();
    session.prompt("go").await.unwrap();
    events.step_started().await;
    door.open.send_replace(false);
    let Interruption::Interrupting(cut) =
        within_patience("the cut", session.interrupt(None)).await.unwrap()
    else {
        panic!("it runs")
    };
    let turn = cut.turn;
    within_patience("the request to be dropped", silent.dropped()).await;
    // Until the actor has ended the turn, which is not published yet.
    while matches!(session.interrupt(Some(turn)).await.unwrap(), Interruption::Interrupting(_)) {
        tokio::task::yield_now().await;
    }
    let end = tokio::spawn({
        let (sessions, id) = (sessions.clone(), session.id().clone());
        async move { sessions.turn_end(&id, turn).await }
    });
    // The end of another turn is looked up in the log.
    for _ in 0..2 {
        assert_eq!(sessions.turn_end(session.id(), TurnId(99)).await.unwrap(), None);
    }
    assert!(!end.is_finished() && session.snapshot().turn == Some(turn));
    door.open.send_replace(true);
    let finished = within_patience("the end", end).await.unwrap().unwrap().unwrap();
    assert_eq!((finished.turn, finished.outcome), (turn, Outcome::Interrupted));
    assert_eq!(cut.end().await.unwrap(), finished);
    harness.model.then(reply().text("another"));
    session.prompt("again").await.unwrap();
    session.settled().await.unwrap();
    assert_eq!(
        sessions.turn_end(session.id(), turn).await.unwrap(),
        Some(finished.clone()),
        "by the log"
    );
    session.close().await.unwrap();
    assert_eq!(sessions.turn_end(session.id(), turn).await.unwrap(), Some(finished));
    assert!(!sessions.list().await.unwrap()[0].live);
    assert!(matches!(
        sessions.turn_end(&"h57zbqb4yk".parse().unwrap(), turn).await,
        Err(SessionError::UnknownSession { .. })
    ));
}

#[tokio::test]
async fn the_end_of_a_run_is_published_once_it_is_saved() {
    let door = GatedStore::new();
    let harness = Harness::with(|engine| engine.store(door.clone()));
    let session = harness.open().await;
    session.hold().await.unwrap();
    session.start_run(RunRequest::new("the goal")).await.unwrap();
    door.open.send_replace(false);
    let tries = door.tries.load(Ordering::SeqCst);
    let interrupt = tokio::spawn({
        let session = session.clone();
        async move { session.interrupt(None).await }
    });
    door.asked(tries).await;
    within_patience("an attach", session.attach(AttachFrom::now())).await.unwrap();
    assert!(!interrupt.is_finished() && session.snapshot().run.is_some());
    door.open.send_replace(true);
    let interruption = within_patience("the reply", interrupt).await.unwrap().unwrap();
    assert!(matches!(interruption, Interruption::RunEnded) && session.snapshot().run.is_none());
}

#[tokio::test]
async fn m_b8_a_failed_save_is_reported_and_the_session_continues() {
    let door = GatedStore::new();
    let harness = Harness::with(|engine| engine.store(door.clone()));
    let session = harness.open().await;
    let mut events = harness.watch(&session).await;
    door.full.store(true, Ordering::SeqCst);
    harness.model.then(reply().text("still working"));
    let prompted = session.prompt("go").await.unwrap();
    assert!(!prompted.saved, "unsaved facts are not acknowledged");
    let reason = events
        .until("not saved", |event| match event.delta() {
            Some(Delta::NotSaved { reason }) => Some(reason.clone()),
            _ => None,
        })
        .await;
    assert!(reason.contains("no space left"), "{reason}");
    assert_eq!(events.turn_finished().await.outcome, Outcome::Done);
    assert!(!session.snapshot().saved);
    door.full.store(false, Ordering::SeqCst);
    events.until("saved again", saved_again).await;
    assert!(session.snapshot().saved);
    // The facts kept meanwhile have been written, in order, once.
    let saved: Vec<_> = door.saved.lock().unwrap().iter().map(|event| event.seq).collect();
    let received: Vec<_> = events
        .events()
        .iter()
        .filter(|event| event.fact().is_some())
        .map(|event| event.seq)
        .collect();
    assert_eq!(saved, received);
    assert!(session.prompt("more").await.unwrap().saved);
}

#[tokio::test]
async fn a_late_save_is_reported_and_the_session_continues() {
    let door = GatedStore::new();
    let harness = Harness::with(|engine| engine.store(door.clone()));
    harness.probe.does(|_, _| Ok(ToolOutcome::text("ran")));
    harness.model.then(reply().call("probe", json!({})));
    let session = harness.open().await;
    let mut events = harness.watch(&session).await;
    door.open.send_replace(false);
    let prompted = within_patience("the reply", session.prompt("go")).await.unwrap();
    assert!(!prompted.saved);
    events.until("not saved", not_saved).await;
    assert_eq!(events.turn_finished().await.outcome, Outcome::Done);
    door.open.send_replace(true);
    events.until("saved again", saved_again).await;
    let finished = door
        .saved
        .lock()
        .unwrap()
        .iter()
        .any(|event| matches!(event.fact(), Some(Fact::Turn(TurnFact::Finished { .. }))));
    assert!(finished, "the events of the meantime are written");
}

/// A failing store is tried again on schedule, and not for every fact, however busy the session is.
#[tokio::test]
async fn a_failing_store_is_retried_on_schedule() {
    for yields in [false, true] {
        let door = GatedStore::new();
        let harness = Harness::with(|engine| engine.store(door.clone()));
        let session = harness.open().await;
        let mut events = harness.watch(&session).await;
        door.yields.store(yields, Ordering::SeqCst);
        door.full.store(true, Ordering::SeqCst);
        let before = door.tries.load(Ordering::SeqCst);
        let begun = std::time::Instant::now();
        for _ in 0..20 {
            for _ in 0..10 {
                harness.model.then(reply().call("probe", json!({})));
            }
            session.prompt("go").await.unwrap();
            events.turn_finished().await;
        }
        let tries = door.tries.load(Ordering::SeqCst) - before;
        // One try at once, then one a second.
        let most = 2 + begun.elapsed().as_secs() as usize;
        assert!(tries <= most, "{tries} tries, more than {most}");
    }
}

/// An idle session with unsaved facts can't be unloaded, and a client that needs its place gets an
/// error.
#[tokio::test]
async fn a_session_with_unsaved_facts_is_not_unloaded() {
    let door = GatedStore::new();
    let limits = Limits { max_sessions: 1, ..Limits::default() };
    let harness = Harness::with(|engine| engine.store(door.clone()).limits(limits));
    let session = harness.open().await;
    door.full.store(true, Ordering::SeqCst);
    session.prompt("go").await.unwrap();
    session.settled().await.unwrap();
    door.full.store(false, Ordering::SeqCst);
    let refused = within_patience("an answer", harness.sessions().open(harness.session()))
        .await
        .err()
        .unwrap();
    assert_eq!(refused, holdpoint_session::SessionError::TooManySessions { limit: 1 });
}

/// The text of a streaming answer is saved as it arrives, and kept when a fault cuts the turn.
#[tokio::test]
async fn m_b7_the_streamed_part_of_an_answer_survives_an_actors_fault() {
    let door = GatedStore::new();
    let harness = Harness::with(|engine| engine.store(door.clone()));
    let session = harness.open().await;
    let mut events = harness.watch(&session).await;
    let answer = harness.model.then_live();
    session.prompt("go").await.unwrap();
    for piece in ["half ", "an ", "answer \u{1f600}"] {
        assert!(answer.text(piece));
        events
            .until(piece, |event| text_of(event).filter(|text| text.contains(piece)).map(|_| ()))
            .await;
    }
    let mut drafted = door.drafted.subscribe();
    within_patience("the draft", drafted.wait_for(|kept| *kept == 1)).await.unwrap();
    drop(events);
    session.panic_now().await;
    let mut events = harness.watch(&session).await;
    assert_eq!(events.turn_finished().await.outcome, Outcome::Panicked);
    let kept: Vec<_> = events.facts().filter_map(partial).collect();
    assert_eq!(kept, ["half an answer \u{1f600}"]);
    // The text is part of the conversation now, and the draft is gone.
    session.prompt("go on").await.unwrap();
    session.settled().await.unwrap();
    let sent = harness.model.requests().pop().unwrap().messages;
    assert!(
        sent.iter().any(|message| format!("{message:?}").contains("half an answer")),
        "{sent:?}"
    );
    session.panic_now().await;
    session.settled().await.unwrap();
    let mut events = harness.watch(&session).await;
    let restores = |event: &Event| {
        matches!(event.fact(), Some(Fact::Session(SessionFact::Restored { .. }))).then_some(())
    };
    events.until("the first restore", restores).await;
    events.until_new("the second restore", restores).await;
    assert_eq!(events.facts().filter_map(partial).count(), 1);
}

#[tokio::test]
async fn t_u6_a_disk_that_fills_during_an_answer_is_reported() {
    let door = GatedStore::new();
    let harness = Harness::with(|engine| engine.store(door.clone()));
    let session = harness.open().await;
    let mut events = harness.watch(&session).await;
    let answer = harness.model.then_live();
    session.prompt("go").await.unwrap();
    events.step_started().await;
    door.full.store(true, Ordering::SeqCst);
    answer.text("something");
    events.until("not saved", not_saved).await;
    door.full.store(false, Ordering::SeqCst);
    events.until("saved again", saved_again).await;
    assert_eq!(*door.drafted.borrow(), 1, "with all that was not");
    assert!(session.snapshot().saved);
}

/// Saved facts don't mean that the streaming answer is saved, too.
#[tokio::test]
async fn a_session_is_saved_again_only_with_its_draft() {
    let door = GatedStore::new();
    let harness = Harness::with(|engine| engine.store(door.clone()));
    let session = harness.open().await;
    let mut events = harness.watch(&session).await;
    let answer = harness.model.then_live();
    session.prompt("go").await.unwrap();
    events.step_started().await;
    door.drafts_fail.store(true, Ordering::SeqCst);
    answer.text("something");
    events.until("not saved", not_saved).await;
    for _ in 0..3 {
        session.prompt("later").await.unwrap();
    }
    assert!(!session.snapshot().saved);
    door.drafts_fail.store(false, Ordering::SeqCst);
    events.until("saved again", saved_again).await;
    assert_eq!(*door.drafted.borrow(), 1);
    assert!(session.snapshot().saved);
}

/// A store that saves facts, but no draft, is used for facts as ever.
#[tokio::test]
async fn replies_wait_for_their_facts_while_only_the_draft_can_not_be_saved() {
    let door = GatedStore::new();
    let harness = Harness::with(|engine| engine.store(door.clone()));
    let session = harness.open().await;
    let mut events = harness.watch(&session).await;
    let answer = harness.model.then_live();
    session.prompt("go").await.unwrap();
    events.step_started().await;
    door.drafts_fail.store(true, Ordering::SeqCst);
    answer.text("something");
    events.until("not saved", not_saved).await;
    let tries = door.tries.load(Ordering::SeqCst);
    door.open.send_replace(false);
    let prompt = tokio::spawn({
        let session = session.clone();
        async move { session.prompt("later").await }
    });
    door.asked(tries).await;
    // By now the actor has handled the prompt.
    within_patience("the actor", session.attach(AttachFrom::now())).await.unwrap();
    assert!(!prompt.is_finished() && !session.snapshot().saved);
    door.open.send_replace(true);
    let prompted = within_patience("the prompt", prompt).await.unwrap().unwrap();
    assert!(prompted.saved && !session.snapshot().saved);
    within_patience("the close", session.close()).await.unwrap();
}

/// The store may have saved a piece in spite of the error that it reported.
#[tokio::test]
async fn no_part_of_a_draft_is_doubled_after_a_save_that_seemed_to_fail() {
    let door = GatedStore::new();
    let harness = Harness::with(|engine| engine.store(door.clone()));
    let session = harness.open().await;
    let mut events = harness.watch(&session).await;
    let answer = harness.model.then_live();
    session.prompt("go").await.unwrap();
    events.step_started().await;
    door.drafts_seem_to_fail.store(true, Ordering::SeqCst);
    let mut drafted = door.drafted.subscribe();
    answer.text("half ");
    within_patience("the first save", drafted.wait_for(|kept| *kept >= 1)).await.unwrap();
    answer.text("an answer");
    let arrived = |event: &Event| text_of(event)?.contains("an answer").then_some(());
    events.until("the text", arrived).await;
    door.drafts_seem_to_fail.store(false, Ordering::SeqCst);
    events.until("saved again", saved_again).await;
    session.panic_now().await;
    let mut events = harness.watch(&session).await;
    events.turn_finished().await;
    assert_eq!(events.facts().filter_map(partial).collect::<Vec<_>>(), ["half an answer"]);
}

fn text_of(event: &Event) -> Option<&str> {
    match event.delta() {
        Some(Delta::Text { text, .. }) => Some(text),
        _ => None,
    }
}

fn partial(fact: &Fact) -> Option<String> {
    match fact {
        Fact::Turn(TurnFact::AssistantMessage(message)) => message.partial.then(|| message.text()),
        _ => None,
    }
}

#[tokio::test]
async fn t_u6_a_session_that_can_not_be_saved_is_not_closed_until_it_can() {
    let door = GatedStore::new();
    let harness = Harness::with(|engine| engine.store(door.clone()));
    let session = harness.open().await;
    let mut events = harness.watch(&session).await;
    door.full.store(true, Ordering::SeqCst);
    session.prompt("go").await.unwrap();
    assert_eq!(events.turn_finished().await.outcome, Outcome::Done);
    let refused = session.close().await.unwrap_err();
    assert!(
        matches!(refused, SessionError::Refused(Refused::NotSaving { unsaved: 1.. })),
        "{refused}"
    );
    door.full.store(false, Ordering::SeqCst);
    events.until("saved again", saved_again).await;
    session.close().await.unwrap();
    let saved = door.saved.lock().unwrap().clone();
    assert!(
        saved
            .iter()
            .any(|event| matches!(event.fact(), Some(Fact::Turn(TurnFact::Finished { .. }))))
    );
    assert!(matches!(
        saved.last().unwrap().fact(),
        Some(Fact::Session(SessionFact::Closed { .. }))
    ));
}

#[tokio::test]
async fn t_u6_a_close_that_can_not_be_saved_is_an_error() {
    let door = GatedStore::new();
    let harness = Harness::with(|engine| engine.store(door.clone()));
    let session = harness.open().await;
    door.full.store(true, Ordering::SeqCst);
    let error = session.close().await.unwrap_err();
    assert!(matches!(error, SessionError::Store { .. }), "{error}");
}

/// The end of a session waits for the save of its last facts, however long the save before has
/// taken.
#[tokio::test]
async fn t_u6_a_close_behind_a_late_save_is_saved() {
    let door = GatedStore::new();
    let harness = Harness::with(|engine| engine.store(door.clone()));
    let session = harness.open().await;
    let mut events = harness.watch(&session).await;
    let tries = door.tries.load(Ordering::SeqCst);
    door.open.send_replace(false);
    let renaming = tokio::spawn({
        let session = session.clone();
        async move { session.rename("late").await }
    });
    door.asked(tries).await;
    let closing = tokio::spawn({
        let session = session.clone();
        async move { session.close().await }
    });
    events.until("not saved", not_saved).await;
    door.open.send_replace(true);
    within_patience("the end", closing).await.unwrap().unwrap();
    renaming.await.unwrap().unwrap();
    let last = door.saved.lock().unwrap().last().cloned().unwrap();
    assert!(matches!(last.fact(), Some(Fact::Session(SessionFact::Closed { .. }))), "{last:?}");
}

/// While the last facts of a closed session are being saved, a second close waits, too.
#[tokio::test]
async fn m_b8_a_second_close_waits_for_the_last_save_of_the_first() {
    let door = GatedStore::new();
    let harness = Harness::with(|engine| engine.store(door.clone()));
    let session = harness.open().await;
    let mut events = harness.watch(&session).await;
    let close = || {
        let session = session.clone();
        tokio::spawn(async move { session.close().await })
    };
    let tries = door.tries.load(Ordering::SeqCst);
    door.open.send_replace(false);
    let first = close();
    door.asked(tries).await;
    let early = close();
    // By now the manager and the actor have received the second close.
    for _ in 0..2 {
        harness.sessions().list().await.unwrap();
        within_patience("the actor", session.attach(AttachFrom::now())).await.unwrap();
    }
    assert!(!first.is_finished() && !early.is_finished());
    events.until("not saved", not_saved).await;
    let second = close();
    for _ in 0..2 {
        harness.sessions().list().await.unwrap();
        within_patience("the actor", session.attach(AttachFrom::now())).await.unwrap();
    }
    assert!(!second.is_finished());
    door.open.send_replace(true);
    assert_eq!(within_patience("the first", first).await.unwrap(), Ok(()));
    for close in [early, second] {
        assert_eq!(
            within_patience("the second", close).await.unwrap(),
            Err(SessionError::Refused(Refused::Closed))
        );
    }
}

/// While a close is being saved, an answer does not open the session again.
#[tokio::test]
async fn m_b8_an_answer_during_the_last_save_of_a_close_opens_nothing() {
    let door = GatedStore::new();
    let harness = Harness::with(|engine| engine.store(door.clone()));
    harness.probe.does(|_, context| match context.pause(PauseKind::Continue, "?", None) {
        PauseResponse::Resumed => Ok(ToolOutcome::text("resumed")),
        _ => Err(ToolError::Interrupted),
    });
    harness.model.then(reply().call("probe", json!({})));
    let session = harness.open().await;
    let mut events = harness.watch(&session).await;
    session.prompt("go").await.unwrap();
    let ask = events.asked().await;
    let tries = door.tries.load(Ordering::SeqCst);
    door.open.send_replace(false);
    let closing = tokio::spawn({
        let session = session.clone();
        async move { session.close().await }
    });
    door.asked(tries).await;
    let sessions = harness.sessions();
    let answering = tokio::spawn(async move { sessions.answer(&ask.id, Answer::Resume).await });
    // By now the actor has received it.
    for _ in 0..2 {
        harness.sessions().list().await.unwrap();
        within_patience("the actor", session.attach(AttachFrom::now())).await.unwrap();
    }
    door.open.send_replace(true);
    within_patience("the close", closing).await.unwrap().unwrap();
    let refused = within_patience("the answer", answering).await.unwrap().unwrap_err();
    assert!(
        matches!(refused, SessionError::Refused(Refused::Answer(AnswerError::Closed { .. }))),
        "{refused:?}"
    );
    let listed = harness.sessions().list().await.unwrap();
    assert!(!listed[0].live, "{listed:?}");
}

/// While a new session is being saved, a saved one with its name is found.
#[tokio::test]
async fn a_session_that_is_not_open_yet_hides_no_saved_one() {
    let door = GatedStore::new();
    let id = {
        let harness = Harness::with(|engine| engine.store(door.clone()));
        harness.sessions().open(harness.session().name("it")).await.unwrap().id().clone()
    };
    let harness = Harness::with(|engine| engine.store(door.clone()));
    let sessions = harness.sessions();
    sessions.list().await.unwrap();
    let tries = door.tries.load(Ordering::SeqCst);
    door.open.send_replace(false);
    let look = async {
        door.asked(tries).await;
        let looked = sessions.look("it").await;
        door.open.send_replace(true);
        looked
    };
    let (opened, looked) = tokio::join!(sessions.open(harness.session().name("it")), look);
    assert_eq!(looked.unwrap().settings.id, id);
    assert_ne!(*opened.unwrap().id(), id);
}
