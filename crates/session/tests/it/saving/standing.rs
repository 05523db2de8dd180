//! A session that stands: so much of it is not saved that it begins nothing more.

use std::sync::atomic::Ordering;

use crossbeam_channel::{Receiver, Sender, bounded};
use holdpoint_common::{Delta, Event, Fact, Limits, Outcome, ToolStatus};
use holdpoint_session::state::Refused;
use holdpoint_session::testing::{Harness, Recorder, reply, soon};
use holdpoint_session::{AttachFrom, SessionError, SessionHandle};
use holdpoint_tools::{Act, Intent, Tool, ToolContext, ToolError, ToolOutcome, Toolbox, Workspace};
use serde_json::{Value, json};

use super::door::Door;

/// How many bytes of a session that is brought to a stand may be unsaved.
const BOUND: usize = 65_536;

/// A harness whose sessions stand when that is not saved.
fn narrow(door: &Door) -> Harness {
    let limits = Limits { buffered_bytes: BOUND, ..Limits::default() };
    Harness::with(|engine| engine.store(door.clone()).limits(limits))
}

/// A session whose turn has come to a stand, for nothing can be saved from its beginning on.
async fn come_to_a_stand(harness: &Harness, door: &Door) -> (SessionHandle, Recorder) {
    let session = harness.open().await;
    let from = AttachFrom::start().with_room(100 * BOUND);
    let mut events = Recorder::of(session.attach(from).await.unwrap());
    door.full.store(true, Ordering::SeqCst);
    session.prompt("go").await.unwrap();
    events.until("it stands", stands).await;
    (session, events)
}

/// A turn of twenty calls, none of which can be saved, that has come to a stand.
async fn standing(door: &Door) -> (Harness, SessionHandle, Recorder) {
    let harness = narrow(door);
    harness.probe.does(|_, _| Ok(ToolOutcome::text("x".repeat(BOUND / 4))));
    for _ in 0..20 {
        harness.model.then(reply().call("probe", json!({})));
    }
    let (session, events) = come_to_a_stand(&harness, door).await;
    (harness, session, events)
}

/// That a session begins nothing more.
fn stands(event: &Event) -> Option<()> {
    match event.delta() {
        Some(Delta::NotSaved { reason }) if reason.contains("nothing more is begun") => Some(()),
        _ => None,
    }
}

/// How many calls were begun.
fn begun(events: &Recorder) -> usize {
    events.facts().filter(|fact| matches!(fact, Fact::ToolStarted { .. })).count()
}

/// What is not saved is kept in memory: at the bound, a turn that goes on by itself begins nothing more until it is.
#[tokio::test]
async fn m_b8_a_turn_stands_when_too_much_of_it_is_not_saved() {
    let door = Door::new();
    let (_harness, session, mut events) = standing(&door).await;
    assert!((2..=6).contains(&begun(&events)), "{} calls before the bound", begun(&events));
    let refused = session.prompt("more").await.unwrap_err();
    let not_saving = |refused: &SessionError| matches!(refused, SessionError::Refused(Refused::NotSaving { .. }));
    assert!(not_saving(&refused), "{refused}");
    // Nor is anything else taken on that there is no end of. What stops something is.
    session.hold().await.unwrap();
    for refused in [session.release().await.map(drop), session.rename("another").await] {
        assert!(refused.as_ref().is_err_and(not_saving), "{refused:?}");
    }
    door.full.store(false, Ordering::SeqCst);
    events.until("saving works again", |event| matches!(event.delta(), Some(Delta::SavedAgain)).then_some(())).await;
    session.release().await.unwrap();
    assert_eq!(events.turn_finished().await.outcome, Outcome::Done);
    assert_eq!(begun(&events), 20, "it goes on where it stood");
}

/// The calls of one answer that stand together all run, each once, when saving works again.
#[tokio::test]
async fn m_b8_calls_that_stand_for_a_save_together_all_run() {
    let door = Door::new();
    door.yields.store(true, Ordering::SeqCst);
    let harness = narrow(&door);
    let answer = reply().text("x".repeat(2 * BOUND));
    harness.model.then((0..4).fold(answer, |answer, n| answer.call("probe", json!({ "n": n }))));
    let (_session, mut events) = come_to_a_stand(&harness, &door).await;
    assert_eq!(begun(&events), 0);
    door.full.store(false, Ordering::SeqCst);
    assert_eq!(events.turn_finished().await.outcome, Outcome::Done);
    let results = events.facts().filter_map(|fact| match fact {
        Fact::ToolFinished(result) => Some(result.status),
        _ => None,
    });
    assert_eq!(results.collect::<Vec<_>>(), [ToolStatus::Ok; 4]);
}

/// One large fact is no sign of a disk that fails: its calls wait for its save, and no client gets a notice.
#[tokio::test]
async fn m_b8_an_answer_that_is_larger_than_the_bound_is_saved_without_a_notice() {
    let door = Door::new();
    door.yields.store(true, Ordering::SeqCst);
    let harness = narrow(&door);
    harness.model.then(reply().text("x".repeat(3 * BOUND)).call("probe", json!({})));
    let session = harness.open().await;
    let from = AttachFrom::start().with_room(100 * BOUND);
    let mut events = Recorder::of(session.attach(from).await.unwrap());
    session.prompt("go").await.unwrap();
    assert_eq!(events.turn_finished().await.outcome, Outcome::Done);
    assert_eq!(begun(&events), 1);
    let notices = events.events().iter().filter_map(|event| event.delta());
    let notices: Vec<_> = notices.filter(|delta| matches!(delta, Delta::NotSaved { .. } | Delta::SavedAgain)).collect();
    assert!(notices.is_empty(), "{notices:?}");
}

/// A turn that stands for want of a save is interrupted as any other.
#[tokio::test]
async fn m_b8_a_turn_that_stands_for_a_save_is_interrupted() {
    let door = Door::new();
    let (_harness, session, mut events) = standing(&door).await;
    session.interrupt(None).await.unwrap();
    assert_eq!(events.turn_finished().await.outcome, Outcome::Interrupted);
    assert!(begun(&events) < 20);
}

/// Says when it has looked at a call, and takes its time for one that is `slow`.
struct Looks {
    looked: Sender<()>,
    released: Receiver<()>,
}

impl Tool for Looks {
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
        // Nothing but who looks on has an interest.
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

/// A call that waits for the one before it comes to its gate when the cut has ended that: it, too, waits for no save.
#[tokio::test]
async fn m_b8_a_call_that_would_begin_after_the_cut_waits_for_no_save() {
    let door = Door::new();
    let limits = Limits { buffered_bytes: BOUND, ..Limits::default() };
    let ((looked, looks), (release, released)) = (bounded(2), bounded::<()>(0));
    let harness = Harness::with(|engine| {
        engine.store(door.clone()).limits(limits).tools(move |_| {
            let (looked, released) = (looked.clone(), released.clone());
            Toolbox::new().with(move || Looks { looked: looked.clone(), released: released.clone() })
        })
    });
    let long = reply().text("x".repeat(2 * BOUND));
    harness.model.then(long.call("looks", json!({ "slow": true })).call("looks", json!({})));
    let session = harness.open().await;
    let from = AttachFrom::start().with_room(100 * BOUND);
    let mut events = Recorder::of(session.attach(from).await.unwrap());
    door.full.store(true, Ordering::SeqCst);
    session.prompt("go").await.unwrap();
    let both = tokio::task::spawn_blocking(move || looks.iter().take(2).count());
    assert_eq!(soon("both calls to be looked at", both).await.unwrap(), 2);
    session.interrupt(None).await.unwrap();
    assert_eq!(events.turn_finished().await.outcome, Outcome::Interrupted);
    drop(release);
}
