//! Logs with a lease, which other machines can own: no work begins before its facts are saved or after
//! the lease has ended, and a session that another machine has taken over ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use holdpoint_common::{
    Answer, AskFact, Delta, Event, Fact, JobEnd, JobFact, Outcome, PauseKind, PolicyMode,
    SessionError, SessionStatus, ToolFact, TurnFact,
};
use holdpoint_session::testing::{Harness, reply, within_patience};
use holdpoint_session::{AttachFrom, ClientEnd};
use holdpoint_tools::{ToolError, ToolOutcome};
use serde_json::json;

use super::gated_store::GatedStore;

const HOUR: Duration = Duration::from_secs(3600);

/// A store whose logs may have a lease.
fn store(is_leased: bool) -> GatedStore {
    let door = GatedStore::new();
    if is_leased {
        door.lease(HOUR);
    }
    door
}

fn harness(door: &GatedStore) -> Harness {
    Harness::with(|engine| engine.store(door.clone()))
}

fn not_saved(event: &Event) -> Option<String> {
    match event.delta() {
        Some(Delta::NotSaved { reason }) => Some(reason.clone()),
        _ => None,
    }
}

fn saved_again(event: &Event) -> Option<()> {
    matches!(event.delta(), Some(Delta::SavedAgain)).then_some(())
}

/// Lets calls of the probe report whether their start is saved when they begin.
fn report_saves(harness: &Harness, door: &GatedStore) -> Receiver<bool> {
    let (sender, receiver) = channel();
    let saved = Arc::clone(&door.saved);
    harness.probe.does(move |_, _| {
        let saved = saved.lock().unwrap();
        let is_start =
            |event: &Arc<Event>| matches!(event.fact(), Some(Fact::Tool(ToolFact::Started { .. })));
        sender.send(saved.iter().any(is_start)).unwrap();
        Ok(ToolOutcome::default())
    });
    receiver
}

async fn received(receiver: Receiver<bool>) -> bool {
    let received = tokio::task::spawn_blocking(move || receiver.recv().unwrap());
    within_patience("the tool", received).await.unwrap()
}

/// Without a lease, work begins even if saving fails: that is the control.
#[tokio::test]
async fn with_a_lease_a_turn_begins_only_when_it_is_saved() {
    for is_leased in [false, true] {
        let door = store(is_leased);
        let harness = harness(&door);
        let began = report_saves(&harness, &door);
        harness.model.then(reply().call("probe", json!({})));
        let session = harness.open().await;
        let mut events = harness.watch(&session).await;
        door.full.store(true, Ordering::SeqCst);
        assert!(!session.prompt("go").await.unwrap().saved);
        events.until("the notice", not_saved).await;
        // Clients see the turn, and can interrupt it.
        assert_eq!(session.snapshot().status, SessionStatus::Running);
        if is_leased {
            // A failed save is tried again a second later. Without the rule, the turn begins before.
            door.full.store(false, Ordering::SeqCst);
            events.until_new("saves", saved_again).await;
            let is_step = |fact: &Fact| matches!(fact, Fact::Turn(TurnFact::StepStarted));
            assert!(!events.facts().any(is_step));
        }
        assert_eq!(received(began).await, is_leased);
        door.full.store(false, Ordering::SeqCst);
        assert_eq!(events.turn_finished().await.outcome, Outcome::Done);
    }
}

#[tokio::test]
async fn with_a_lease_a_call_begins_only_when_it_is_saved() {
    for is_leased in [false, true] {
        let door = store(is_leased);
        let harness = harness(&door);
        let began = report_saves(&harness, &door);
        let live = harness.model.then_live();
        let session = harness.open().await;
        let mut events = harness.watch(&session).await;
        session.prompt("go").await.unwrap();
        events.step_started().await;
        door.full.store(true, Ordering::SeqCst);
        live.call("probe", json!({}));
        drop(live);
        events.until("the notice", not_saved).await;
        if is_leased {
            door.full.store(false, Ordering::SeqCst);
        }
        assert_eq!(received(began).await, is_leased);
        door.full.store(false, Ordering::SeqCst);
        assert_eq!(events.turn_finished().await.outcome, Outcome::Done);
    }
}

#[tokio::test]
async fn with_a_lease_a_tool_gets_its_answer_when_that_is_saved_and_a_cut_at_once() {
    for is_cut in [false, true] {
        let door = store(true);
        let harness = harness(&door);
        let (sender, is_saved) = channel();
        let saved = Arc::clone(&door.saved);
        harness.probe.does(move |_, context| {
            context.pause(PauseKind::Confirm, "?", None);
            let is_answer = |event: &Arc<Event>| {
                matches!(event.fact(), Some(Fact::Ask(AskFact::Answered { .. })))
            };
            sender.send(saved.lock().unwrap().iter().any(is_answer)).unwrap();
            Ok(ToolOutcome::default())
        });
        harness.model.then(reply().call("probe", json!({})));
        let session = harness.open().await;
        let mut events = harness.watch(&session).await;
        session.prompt("go").await.unwrap();
        let ask = events.asked().await;
        door.full.store(true, Ordering::SeqCst);
        session.answer(&ask.id, Answer::Approve { always: false }).await.unwrap();
        events.until("the notice", not_saved).await;
        if is_cut {
            let cut = within_patience("the cut", session.interrupt_and_wait()).await;
            assert_eq!(cut.unwrap().unwrap().outcome, Outcome::Interrupted);
        }
        door.full.store(false, Ordering::SeqCst);
        assert_eq!(received(is_saved).await, !is_cut);
        let outcome = events.turn_finished().await.outcome;
        assert_eq!(outcome, if is_cut { Outcome::Interrupted } else { Outcome::Done });
    }
}

#[tokio::test]
async fn running_work_ends_with_the_lease_and_no_more_begins() {
    let door = store(true);
    let harness = harness(&door);
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    harness.probe.does(move |_, _| {
        counted.fetch_add(1, Ordering::SeqCst);
        Ok(ToolOutcome::default())
    });
    let live = harness.model.then_live();
    let session = harness.open().await;
    let mut events = harness.watch(&session).await;
    session.prompt("go").await.unwrap();
    events.step_started().await;
    door.lease(Duration::ZERO);
    live.call("probe", json!({}));
    drop(live);
    let reason = events.until("the notice", not_saved).await;
    assert!(reason.contains("this machine's lease of its sessions has ended"), "{reason}");
    assert_eq!(events.turn_finished().await.outcome, Outcome::Interrupted);
    while within_patience("the end", events.next()).await.is_some() {}
    assert_eq!(events.end(), ClientEnd::Ended);
    assert_eq!(calls.load(Ordering::SeqCst), 0);
    // A prompt is accepted and saved, and its turn begins with the next lease.
    assert!(session.prompt("again").await.unwrap().saved);
    let mut events = harness.watch(&session).await;
    harness.model.then(reply().call("probe", json!({})));
    assert_eq!(events.turn_finished().await.outcome, Outcome::Interrupted, "the past one");
    assert_eq!(harness.model.requests().len(), 1);
    door.lease(HOUR);
    assert_eq!(events.turn_finished().await.outcome, Outcome::Done);
    assert_eq!(calls.load(Ordering::SeqCst), 1);
}

/// As after the machine slept: another one may have owned the session.
#[tokio::test]
async fn running_work_ends_with_a_lease_that_is_extended_too_late() {
    let door = store(true);
    door.lapse();
    let harness = harness(&door);
    let live = harness.model.then_live();
    let session = harness.open().await;
    let mut events = harness.watch(&session).await;
    session.prompt("go").await.unwrap();
    events.step_started().await;
    door.lapse();
    assert_eq!(events.turn_finished().await.outcome, Outcome::Interrupted);
    drop(live);
    // The next turn begins under the new lease.
    harness.model.then(reply().text("done"));
    session.prompt("again").await.unwrap();
    let mut events = harness.watch(&session).await;
    assert_eq!(events.turn_finished().await.outcome, Outcome::Interrupted, "the past one");
    assert_eq!(events.turn_finished().await.outcome, Outcome::Done);
}

#[tokio::test]
async fn an_open_confirm_outlives_the_lease() {
    let door = store(true);
    let harness = harness(&door);
    harness.model.then(reply().call("shell", json!({ "command": "touch made" })));
    let open = harness.session().policy(PolicyMode::Ask);
    let session = harness.sessions().open(open).await.unwrap();
    let mut events = harness.watch(&session).await;
    session.prompt("go").await.unwrap();
    let ask = events.asked().await;
    door.lease(Duration::ZERO);
    while within_patience("the end", events.next()).await.is_some() {}
    door.lease(HOUR);
    let mut events = harness.watch(&session).await;
    session.answer(&ask.id, Answer::Approve { always: false }).await.unwrap();
    assert_eq!(events.turn_finished().await.outcome, Outcome::Done);
}

/// Between turns, too.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn background_jobs_end_with_the_lease() {
    let door = store(true);
    let harness = harness(&door);
    let census = holdpoint_tools::testing::Census::new();
    let command = format!("exec -a {} sleep 1000", census.mark());
    harness.model.then(reply().call("shell", json!({ "command": command, "background": true })));
    let session = harness.open().await;
    let mut events = harness.watch(&session).await;
    session.prompt("go").await.unwrap();
    assert_eq!(events.turn_finished().await.outcome, Outcome::Done);
    census.wait_living(1);
    door.lease(Duration::ZERO);
    while within_patience("the end", events.next()).await.is_some() {}
    let is_end =
        |fact: &Fact| matches!(fact, Fact::Job(JobFact::Ended { end: JobEnd::Shutdown, .. }));
    assert!(events.facts().any(is_end), "{:#?}", events.events());
    census.wait_none();
}

/// Nothing of a turn that has not begun has to end, so its interrupt waits for no save.
#[tokio::test]
async fn a_turn_whose_start_is_withheld_can_be_interrupted() {
    let door = store(true);
    let harness = harness(&door);
    let session = harness.open().await;
    let mut events = harness.watch(&session).await;
    door.full.store(true, Ordering::SeqCst);
    session.prompt("go").await.unwrap();
    events.until("the notice", not_saved).await;
    let end = within_patience("the cut", session.interrupt_and_wait()).await;
    assert_eq!(end.unwrap().unwrap().outcome, Outcome::Interrupted);
    assert!(harness.model.requests().is_empty());
}

#[tokio::test]
async fn a_session_that_another_machine_has_taken_over_ends() {
    let door = store(true);
    let harness = harness(&door);
    let (sender, cut) = channel();
    harness.probe.does(move |_, context| {
        context.output("begun");
        while !context.is_cancelled() {
            std::thread::yield_now();
        }
        sender.send(()).unwrap();
        Err(ToolError::Interrupted)
    });
    harness.model.then(reply().call("probe", json!({})));
    let session = harness.open().await;
    let mut events = harness.watch(&session).await;
    session.prompt("go").await.unwrap();
    events.output("begun").await;
    let saved = door.saved.lock().unwrap().last().unwrap().seq;
    door.taken.store(true, Ordering::SeqCst);
    // Any write shows it.
    let elsewhere =
        SessionError::NotOwner { session: session.id().clone(), owner: "m2".to_owned() };
    assert_eq!(session.prompt("more").await.unwrap_err(), elsewhere);
    while within_patience("the end", events.next()).await.is_some() {}
    assert_eq!(events.end(), ClientEnd::Moved { after: saved });
    let ended = tokio::task::spawn_blocking(move || cut.recv().unwrap());
    within_patience("the tool", ended).await.unwrap();
    // Nothing of the unsaved prompt is left, and the session is not open here.
    assert_eq!(session.attach(AttachFrom::now()).await.err(), Some(elsewhere));
    assert_eq!(door.saved.lock().unwrap().last().unwrap().seq, saved);
    let listed = harness.sessions().list().await.unwrap();
    assert!(!listed.iter().any(|summary| summary.live), "{listed:?}");
}
