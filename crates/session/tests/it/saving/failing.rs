//! Stores that fail at the worst moment: while a session is rebuilt, changed or stopped.

use std::sync::atomic::Ordering;
use std::time::Instant;

use holdpoint_common::{Event, Fact, Outcome, PromptFact, SessionFact, TurnFact};
use holdpoint_session::testing::{Harness, reply, within_patience};
use holdpoint_session::{AttachFrom, SessionError};
use holdpoint_tools::ToolOutcome;
use serde_json::json;

use super::gated_store::GatedStore;

/// Closing a session that can't be rebuilt now fails at once instead of waiting until it can.
#[tokio::test]
async fn m_b8_a_close_does_not_wait_for_a_log_that_can_not_be_read() {
    let door = GatedStore::new();
    let harness = Harness::with(|engine| engine.store(door.clone()));
    let session = harness.open().await;
    door.unreadable.store(true, Ordering::SeqCst);
    session.panic_now().await;
    let error = within_patience("an answer", session.close()).await.unwrap_err();
    assert!(matches!(error, SessionError::Store { .. }), "{error}");
    door.unreadable.store(false, Ordering::SeqCst);
    session.settled().await.unwrap();
    session.close().await.unwrap();
}

/// The session uses the model that it shows, even if the change was not saved.
#[tokio::test]
async fn m_b8_an_unsaved_model_change_survives_an_actors_fault() {
    let door = GatedStore::new();
    let harness = Harness::with(|engine| engine.store(door.clone()));
    let session = harness.open().await;
    door.full.store(true, Ordering::SeqCst);
    session.change_model("rehearsal").await.unwrap();
    session.panic_now().await;
    door.full.store(false, Ordering::SeqCst);
    session.prompt("say Hello.").await.unwrap();
    assert_eq!(session.settled().await.unwrap().settings.model, "rehearsal");
    assert!(harness.model.requests().is_empty(), "and asked");
    let saved = door.saved.lock().unwrap().clone();
    let changed = |fact: &Fact| matches!(fact, Fact::Session(SessionFact::ModelChanged { model, .. }) if model == "rehearsal");
    assert_eq!(
        saved.iter().filter_map(|event| event.fact()).filter(|fact| changed(fact)).count(),
        1
    );
}

/// A failed reservation of numbers is retried after a while, and not with every event.
#[tokio::test]
async fn a_failed_reservation_of_numbers_is_retried_slowly() {
    let door = GatedStore::new();
    let harness = Harness::with(|engine| engine.store(door.clone()));
    harness.probe.does(|_, context| {
        (0..60_000).for_each(|_| context.output("x"));
        Ok(ToolOutcome::text("told"))
    });
    harness.model.then(reply().call("probe", json!({})));
    let session = harness.open().await;
    door.full.store(true, Ordering::SeqCst);
    let since = Instant::now();
    session.prompt("go").await.unwrap();
    session.settled().await.unwrap();
    let asked = door.reserves.load(Ordering::SeqCst) as u64;
    assert!((1..=since.elapsed().as_secs() + 2).contains(&asked), "{asked} times");
    door.full.store(false, Ordering::SeqCst);
    session.prompt("again").await.unwrap();
    let settled = session.settled().await.unwrap();
    assert_eq!(settled.last_turn.as_ref().unwrap().outcome, Outcome::Done);
}

/// A prompt that arrives while a session ends for a restart starts no turn, which would be cut at
/// once.
#[tokio::test]
async fn m_b8_a_prompt_to_an_ending_session_starts_no_turn() {
    for _ in 0..20 {
        // An earlier prompt is queued and returns with the session.
        if prompted_at_the_end().await == Err(SessionError::Stopped) {
            return;
        }
    }
    panic!("no prompt came while the session ended");
}

/// Prompts a session that has only its end left to save, or nearly so. Returns the outcome of the
/// prompt.
async fn prompted_at_the_end() -> Result<(), SessionError> {
    let door = GatedStore::new();
    let harness = Harness::with(|engine| engine.store(door.clone()));
    let (session, model) = (harness.open().await, harness.model.clone());
    let mut events = harness.watch(&session).await;
    let live = model.then_live();
    session.prompt("go").await.unwrap();
    events.step_started().await;
    let tries = door.tries.load(Ordering::SeqCst);
    door.open.send_replace(false);
    let stopping = std::thread::spawn(move || drop(harness));
    door.asked(tries).await;
    // Ends the turn's runner.
    while live.text("on and on") {
        tokio::task::yield_now().await;
    }
    for _ in 0..10 {
        within_patience("an attach", session.attach(AttachFrom::now())).await.unwrap();
    }
    let prompted = tokio::spawn(async move { session.prompt("more").await.map(drop) });
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    door.open.send_replace(true);
    let came = within_patience("an answer", prompted).await.unwrap();
    stopping.join().unwrap();
    let saved = door.saved.lock().unwrap().clone();
    let count = |is: fn(&Fact) -> bool| {
        saved.iter().filter_map(|event| event.fact()).filter(|fact| is(fact)).count()
    };
    assert_eq!(count(|fact| matches!(fact, Fact::Turn(TurnFact::Started { .. }))), 1);
    assert_eq!(
        count(|fact| matches!(fact, Fact::Prompt(PromptFact::Accepted { .. }))),
        1 + usize::from(came.is_ok())
    );
    assert_eq!(model.requests().len(), 1);
    came
}

/// A turn that was published and never saved is not in the log, but the ids of its items are not
/// given again.
#[tokio::test]
async fn invariant_3_no_item_gets_the_id_of_an_unsaved_one() {
    let answer_item = |event: &Event| match event.fact() {
        Some(Fact::Turn(TurnFact::AssistantMessage(message))) => Some(message.blocks[0].item),
        _ => None,
    };
    let door = GatedStore::new();
    let harness = Harness::with(|engine| engine.store(door.clone()));
    let session = harness.open().await;
    let id = session.id().clone();
    let mut events = harness.watch(&session).await;
    door.full.store(true, Ordering::SeqCst);
    session.prompt("go").await.unwrap();
    let first = events.until("the answer", answer_item).await;
    events.turn_finished().await;
    drop((harness, session, events));
    door.full.store(false, Ordering::SeqCst);
    let harness = Harness::with(|engine| engine.store(door.clone()));
    let session = harness.sessions().get(id.as_str()).await.unwrap();
    session.prompt("again").await.unwrap();
    let next = harness.watch(&session).await.until("the answer", answer_item).await;
    assert!(next > first, "{next} after {first}");
}
