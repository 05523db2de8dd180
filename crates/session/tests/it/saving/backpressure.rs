//! A session with too much unsaved data, which starts nothing new.

use std::sync::atomic::Ordering;

use crossbeam_channel::{Receiver, Sender, bounded};
use holdpoint_common::{Delta, Event, Fact, Limits, Outcome, Refused, ToolFact, ToolStatus};
use holdpoint_session::testing::{Harness, Recorder, reply, within_patience};
use holdpoint_session::{AttachFrom, SessionError, SessionHandle};
use holdpoint_tools::{Act, Intent, Tool, ToolContext, ToolError, ToolOutcome, Toolbox, Workspace};
use serde_json::{Value, json};

use super::gated_store::GatedStore;

/// How many bytes of a session may be unsaved before it starts nothing new.
const BOUND: usize = 65_536;

/// A harness with that bound for its sessions.
fn with_small_bound(door: &GatedStore) -> Harness {
    let limits = Limits { buffered_bytes: BOUND, ..Limits::default() };
    Harness::with(|engine| engine.store(door.clone()).limits(limits))
}

/// Prompts a session while saves fail, and waits until it starts nothing new.
async fn stall(harness: &Harness, door: &GatedStore) -> (SessionHandle, Recorder) {
    let session = harness.open().await;
    let from = AttachFrom::start().with_room(100 * BOUND);
    let mut events = Recorder::new(session.attach(from).await.unwrap());
    door.full.store(true, Ordering::SeqCst);
    session.prompt("go").await.unwrap();
    events.until("it stands", refuses_work).await;
    (session, events)
}

/// A turn of twenty calls that has stopped because nothing can be saved.
async fn stalled_turn(door: &GatedStore) -> (Harness, SessionHandle, Recorder) {
    let harness = with_small_bound(door);
    harness.probe.does(|_, _| Ok(ToolOutcome::text("x".repeat(BOUND / 4))));
    for _ in 0..20 {
        harness.model.then(reply().call("probe", json!({})));
    }
    let (session, events) = stall(&harness, door).await;
    (harness, session, events)
}

/// Matches the notice that a session starts nothing new.
fn refuses_work(event: &Event) -> Option<()> {
    match event.delta() {
        Some(Delta::NotSaved { reason }) if reason.contains("new work is refused") => Some(()),
        _ => None,
    }
}

/// How many calls were started.
fn begun(events: &Recorder) -> usize {
    events.facts().filter(|fact| matches!(fact, Fact::Tool(ToolFact::Started { .. }))).count()
}

/// Unsaved facts are kept in memory. At the bound, a running turn starts nothing new until they are
/// saved.
#[tokio::test]
async fn m_b8_a_turn_with_too_much_unsaved_data_starts_nothing_new() {
    let door = GatedStore::new();
    let (_harness, session, mut events) = stalled_turn(&door).await;
    assert!((2..=6).contains(&begun(&events)), "{} calls before the bound", begun(&events));
    let refused = session.prompt("more").await.unwrap_err();
    let not_saving = |refused: &SessionError| {
        matches!(refused, SessionError::Refused(Refused::NotSaving { .. }))
    };
    assert!(not_saving(&refused), "{refused}");
    // Other requests that lead to new facts are refused, too. Requests that stop something are not.
    session.hold().await.unwrap();
    for refused in [session.release().await.map(drop), session.rename("another").await] {
        assert!(refused.as_ref().is_err_and(not_saving), "{refused:?}");
    }
    door.full.store(false, Ordering::SeqCst);
    events
        .until("saving works again", |event| {
            matches!(event.delta(), Some(Delta::SavedAgain)).then_some(())
        })
        .await;
    session.release().await.unwrap();
    assert_eq!(events.turn_finished().await.outcome, Outcome::Done);
    assert_eq!(begun(&events), 20, "the turn continues where it stopped");
}

/// Calls of one answer that wait for the same save all run, each once, when saving works again.
#[tokio::test]
async fn m_b8_calls_that_wait_for_the_same_save_all_run() {
    let door = GatedStore::new();
    door.yields.store(true, Ordering::SeqCst);
    let harness = with_small_bound(&door);
    let answer = reply().text("x".repeat(2 * BOUND));
    harness.model.then((0..4).fold(answer, |answer, n| answer.call("probe", json!({ "n": n }))));
    let (_session, mut events) = stall(&harness, &door).await;
    assert_eq!(begun(&events), 0);
    door.full.store(false, Ordering::SeqCst);
    assert_eq!(events.turn_finished().await.outcome, Outcome::Done);
    let results = events.facts().filter_map(|fact| match fact {
        Fact::Tool(ToolFact::Finished(result)) => Some(result.status),
        _ => None,
    });
    assert_eq!(results.collect::<Vec<_>>(), [ToolStatus::Ok; 4]);
}

/// One large fact is no sign of a failing disk: its calls wait for its save, and no client gets a
/// notice.
#[tokio::test]
async fn m_b8_an_answer_that_is_larger_than_the_bound_is_saved_without_a_notice() {
    let door = GatedStore::new();
    door.yields.store(true, Ordering::SeqCst);
    let harness = with_small_bound(&door);
    harness.model.then(reply().text("x".repeat(3 * BOUND)).call("probe", json!({})));
    let session = harness.open().await;
    let from = AttachFrom::start().with_room(100 * BOUND);
    let mut events = Recorder::new(session.attach(from).await.unwrap());
    session.prompt("go").await.unwrap();
    assert_eq!(events.turn_finished().await.outcome, Outcome::Done);
    assert_eq!(begun(&events), 1);
    let notices = events.events().iter().filter_map(|event| event.delta());
    let notices: Vec<_> = notices
        .filter(|delta| matches!(delta, Delta::NotSaved { .. } | Delta::SavedAgain))
        .collect();
    assert!(notices.is_empty(), "{notices:?}");
}

/// A turn that waits for a save is interrupted like any other.
#[tokio::test]
async fn m_b8_a_turn_that_waits_for_a_save_can_be_interrupted() {
    let door = GatedStore::new();
    let (_harness, session, mut events) = stalled_turn(&door).await;
    session.interrupt(None).await.unwrap();
    assert_eq!(events.turn_finished().await.outcome, Outcome::Interrupted);
    assert!(begun(&events) < 20);
}

/// A tool that reports when it judges a call, and waits in a call that is `slow`.
struct SlowIntent {
    looked: Sender<()>,
    released: Receiver<()>,
}

impl Tool for SlowIntent {
    fn name(&self) -> &'static str {
        "looks"
    }

    fn description(&self) -> &'static str {
        "Looks at a call before it begins."
    }

    fn schema(&self) -> Value {
        json!({ "type": "object" })
    }

    fn intent(&self, input: &Value, _: &Workspace) -> Result<Intent, ToolError> {
        // The test may have stopped listening.
        let _ = self.looked.send(());
        if input["slow"] == true {
            let _ = self.released.recv();
        }
        Ok(Intent::new(Act::Other, "Look?"))
    }

    fn call(&mut self, _: Value, _: &ToolContext) -> Result<ToolOutcome, ToolError> {
        Ok(ToolOutcome::default())
    }
}

/// A call that waits for the one before it reaches its gate when the cut has ended that one. It
/// does not wait for a save either.
#[tokio::test]
async fn m_b8_a_call_after_the_cut_does_not_wait_for_a_save() {
    let door = GatedStore::new();
    let limits = Limits { buffered_bytes: BOUND, ..Limits::default() };
    let ((looked, looks), (release, released)) = (bounded(2), bounded::<()>(0));
    let harness = Harness::with(|engine| {
        engine.store(door.clone()).limits(limits).tools(move |_| {
            let (looked, released) = (looked.clone(), released.clone());
            Toolbox::new()
                .with(move || SlowIntent { looked: looked.clone(), released: released.clone() })
        })
    });
    let long = reply().text("x".repeat(2 * BOUND));
    harness.model.then(long.call("looks", json!({ "slow": true })).call("looks", json!({})));
    let session = harness.open().await;
    let from = AttachFrom::start().with_room(100 * BOUND);
    let mut events = Recorder::new(session.attach(from).await.unwrap());
    door.full.store(true, Ordering::SeqCst);
    session.prompt("go").await.unwrap();
    let both = tokio::task::spawn_blocking(move || looks.iter().take(2).count());
    assert_eq!(within_patience("both calls to be judged", both).await.unwrap(), 2);
    session.interrupt(None).await.unwrap();
    assert_eq!(events.turn_finished().await.outcome, Outcome::Interrupted);
    drop(release);
}
