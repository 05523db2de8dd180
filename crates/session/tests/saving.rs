//! The outbox against stores that are slow or fail: nothing leaves before it is saved, and nobody is fooled.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, reason = "a test")]

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use crossbeam_channel::{Receiver, Sender, bounded};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use holdpoint_common::{
    Answer, Delta, Event, Fact, Limits, Outcome, PauseKind, PauseResponse, SessionId, SessionStatus, SessionSummary,
    ToolStatus,
};
use holdpoint_session::state::Refused;
use holdpoint_session::store::{Memory, Page, SavedSession, SessionLog, SessionStore, StoreError};
use holdpoint_session::testing::{Harness, Recorder, reply, soon};
use holdpoint_session::{AttachFrom, Interruption, SessionError, SessionHandle};
use holdpoint_tools::{Act, Intent, Tool, ToolContext, ToolError, ToolOutcome, Toolbox, Workspace};
use serde_json::{Value, json};
use tokio::sync::watch;

/// The real store, behind a door that the test shuts.
#[derive(Clone)]
struct Door {
    store: Arc<Memory>,
    /// Saves wait while it is shut.
    open: watch::Sender<bool>,
    /// Saves fail while it is set.
    full: Arc<AtomicBool>,
    /// What has been saved.
    saved: Arc<Mutex<Vec<Arc<Event>>>>,
    /// Saves take a moment, rather than being done at once.
    yields: Arc<AtomicBool>,
    /// How often it was tried.
    tries: Arc<AtomicUsize>,
    /// How many pieces of drafts were kept.
    drafted: watch::Sender<usize>,
}

struct DoorLog {
    log: Arc<dyn SessionLog>,
    door: Door,
}

impl Door {
    fn new() -> Self {
        Self {
            store: Arc::default(),
            open: watch::Sender::new(true),
            full: Arc::default(),
            saved: Arc::default(),
            yields: Arc::default(),
            tries: Arc::default(),
            drafted: watch::Sender::new(0),
        }
    }

    /// Waits until a save has been asked for that had not been at `tries`.
    async fn asked(&self, tries: usize) {
        soon("a save", async {
            while self.tries.load(Ordering::SeqCst) == tries {
                tokio::task::yield_now().await;
            }
        })
        .await;
    }

    fn wrap(
        &self,
        log: BoxFuture<'static, Result<Arc<dyn SessionLog>, StoreError>>,
    ) -> BoxFuture<'static, Result<Arc<dyn SessionLog>, StoreError>> {
        let door = self.clone();
        async move { Ok(Arc::new(DoorLog { log: log.await?, door }) as Arc<dyn SessionLog>) }.boxed()
    }
}

impl SessionStore for Door {
    fn create(&self, session: &SessionId) -> BoxFuture<'static, Result<Arc<dyn SessionLog>, StoreError>> {
        self.wrap(self.store.create(session))
    }

    fn open(&self, session: &SessionId) -> BoxFuture<'static, Result<Arc<dyn SessionLog>, StoreError>> {
        self.wrap(self.store.open(session))
    }

    fn list(&self) -> BoxFuture<'static, Result<Vec<SavedSession>, StoreError>> {
        self.store.list()
    }

    fn delete(&self, session: &SessionId) -> BoxFuture<'static, Result<(), StoreError>> {
        self.store.delete(session)
    }
}

impl SessionLog for DoorLog {
    fn append(
        &self,
        after: u64,
        facts: Vec<Arc<Event>>,
        summary: SessionSummary,
    ) -> BoxFuture<'static, Result<(), StoreError>> {
        let (door, log) = (self.door.clone(), Arc::clone(&self.log));
        door.tries.fetch_add(1, Ordering::SeqCst);
        async move {
            let mut open = door.open.subscribe();
            let _ = open.wait_for(|open| *open).await;
            if door.yields.load(Ordering::SeqCst) {
                tokio::task::yield_now().await;
            }
            if door.full.load(Ordering::SeqCst) {
                return Err(StoreError::Io { message: "no space left on device".into() });
            }
            log.append(after, facts.clone(), summary).await?;
            door.saved.lock().unwrap().extend(facts);
            Ok(())
        }
        .boxed()
    }

    fn page(&self, range: Range<u64>, most: usize) -> BoxFuture<'static, Result<Page, StoreError>> {
        self.log.page(range, most)
    }

    fn newest(&self, range: Range<u64>, newest: usize) -> BoxFuture<'static, Result<u64, StoreError>> {
        self.log.newest(range, newest)
    }

    fn keep_draft(&self, pieces: Vec<Arc<Event>>) -> BoxFuture<'static, Result<(), StoreError>> {
        if self.door.full.load(Ordering::SeqCst) {
            return std::future::ready(Err(StoreError::Io { message: "no space left on device".into() })).boxed();
        }
        let (drafted, count) = (self.door.drafted.clone(), pieces.len());
        let keep = self.log.keep_draft(pieces);
        async move {
            keep.await?;
            drafted.send_modify(|kept| *kept += count);
            Ok(())
        }
        .boxed()
    }

    fn draft(&self) -> BoxFuture<'static, Result<Vec<Arc<Event>>, StoreError>> {
        self.log.draft()
    }

    fn reserve(&self, count: u64) -> BoxFuture<'static, Result<Range<u64>, StoreError>> {
        self.log.reserve(count)
    }
}

#[tokio::test]
async fn nothing_leaves_before_it_is_saved() {
    let door = Door::new();
    let harness = Harness::with(|engine| engine.store(door.clone()));
    let session = harness.open().await;
    let mut events = harness.watch(&session).await;
    // Its own opening.
    events.next().await.unwrap();
    door.open.send_replace(false);
    let tries = door.tries.load(Ordering::SeqCst);
    let prompt = tokio::spawn({
        let session = session.clone();
        async move { session.prompt("go").await }
    });
    door.asked(tries).await;
    soon("an attach", session.attach(AttachFrom::now())).await.unwrap();
    assert!(events.attachment().snapshot().turn.is_none());
    assert_eq!(session.snapshot().status, SessionStatus::Idle, "not published");
    assert!(!prompt.is_finished(), "not replied");
    assert!(harness.model.requests().is_empty(), "not begun");
    door.open.send_replace(true);
    assert!(soon("the reply", prompt).await.unwrap().unwrap().saved);
    assert_eq!(events.turn_finished().await.outcome, Outcome::Done);
    let told = events.facts().count();
    // Every fact a client was told is in the log.
    assert!(door.saved.lock().unwrap().len() >= told - 1);
}

#[tokio::test]
async fn an_approval_that_the_cut_overtakes_arrives_as_interrupted() {
    let door = Door::new();
    let harness = Harness::with(|engine| engine.store(door.clone()));
    let (told, tells) = std::sync::mpsc::channel();
    harness.probe.does(move |_, context| {
        told.send(context.pause(PauseKind::Confirm, "?", None)).unwrap();
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
    soon("an attach", session.attach(AttachFrom::now())).await.unwrap();
    assert!(tells.try_recv().is_err(), "an approval waits for its save");
    // The cut does not.
    let Interruption::Interrupting(turn) = soon("the cut", session.interrupt(None)).await.unwrap() else {
        panic!("it runs")
    };
    assert_eq!(tells.recv().unwrap(), PauseResponse::Interrupted);
    door.open.send_replace(true);
    soon("the answer", answer).await.unwrap().unwrap();
    turn.end().await.unwrap();
    assert_eq!(events.turn_finished().await.outcome, Outcome::Interrupted);
}

#[tokio::test]
async fn m_b8_a_failed_save_is_told_and_the_session_goes_on() {
    let door = Door::new();
    let harness = Harness::with(|engine| engine.store(door.clone()));
    let session = harness.open().await;
    let mut events = harness.watch(&session).await;
    door.full.store(true, Ordering::SeqCst);
    harness.model.then(reply().text("still working"));
    let prompted = session.prompt("go").await.unwrap();
    assert!(!prompted.saved, "nothing is acknowledged that isn't saved");
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
    let again = |event: &Event| matches!(event.delta(), Some(Delta::SavedAgain)).then_some(());
    events.until("saved again", again).await;
    assert!(session.snapshot().saved);
    // What was kept meanwhile has been written, in order, once.
    let saved: Vec<_> = door.saved.lock().unwrap().iter().map(|event| event.seq).collect();
    let told: Vec<_> = events.events().iter().filter(|event| event.fact().is_some()).map(|event| event.seq).collect();
    assert_eq!(saved, told);
    assert!(session.prompt("more").await.unwrap().saved);
}

#[tokio::test]
async fn a_save_that_is_late_is_told_and_the_session_goes_on() {
    let door = Door::new();
    let harness = Harness::with(|engine| engine.store(door.clone()));
    harness.probe.does(|_, _| Ok(ToolOutcome::text("ran")));
    harness.model.then(reply().call("probe", json!({})));
    let session = harness.open().await;
    let mut events = harness.watch(&session).await;
    door.open.send_replace(false);
    let prompted = soon("the reply", session.prompt("go")).await.unwrap();
    assert!(!prompted.saved);
    let late = |event: &Event| matches!(event.delta(), Some(Delta::NotSaved { .. })).then_some(());
    events.until("not saved", late).await;
    assert_eq!(events.turn_finished().await.outcome, Outcome::Done);
    door.open.send_replace(true);
    let again = |event: &Event| matches!(event.delta(), Some(Delta::SavedAgain)).then_some(());
    events.until("saved again", again).await;
    let finished =
        door.saved.lock().unwrap().iter().any(|event| matches!(event.fact(), Some(Fact::TurnFinished { .. })));
    assert!(finished, "what was kept meanwhile has been written");
}

/// A store that fails is tried again at its time, not for every fact: however busy the session is.
#[tokio::test]
async fn a_failing_store_is_not_stormed() {
    for yields in [false, true] {
        let door = Door::new();
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
        // One at once, then one a second.
        let most = 2 + begun.elapsed().as_secs() as usize;
        assert!(tries <= most, "{tries} tries, at most {most} are due");
    }
}

/// An idle session whose facts are not saved can't be unloaded, and whoever wants its place is told so.
#[tokio::test]
async fn a_session_that_is_not_saved_keeps_its_place() {
    let door = Door::new();
    let limits = Limits { max_sessions: 1, ..Limits::default() };
    let harness = Harness::with(|engine| engine.store(door.clone()).limits(limits));
    let session = harness.open().await;
    door.full.store(true, Ordering::SeqCst);
    session.prompt("go").await.unwrap();
    session.settled().await.unwrap();
    door.full.store(false, Ordering::SeqCst);
    let refused = soon("an answer", harness.sessions().open(harness.session())).await.err().unwrap();
    assert_eq!(refused, holdpoint_session::SessionError::TooManySessions { most: 1 });
}

/// What has come of an answer is saved while it is still coming, and kept when its turn is cut by a fault.
#[tokio::test]
async fn m_b7_what_came_of_an_answer_is_kept_when_its_session_fails() {
    let door = Door::new();
    let harness = Harness::with(|engine| engine.store(door.clone()));
    let session = harness.open().await;
    let mut events = harness.watch(&session).await;
    let answer = harness.model.then_live();
    session.prompt("go").await.unwrap();
    for piece in ["half ", "an ", "answer \u{1f600}"] {
        assert!(answer.text(piece));
        events.until(piece, |event| said(event).filter(|text| text.contains(piece)).map(|_| ())).await;
    }
    let mut drafted = door.drafted.subscribe();
    soon("the draft", drafted.wait_for(|kept| *kept == 1)).await.unwrap();
    drop(events);
    session.panic_now().await;
    let mut events = harness.watch(&session).await;
    assert_eq!(events.turn_finished().await.outcome, Outcome::Panicked);
    let kept: Vec<_> = events.facts().filter_map(partial).collect();
    assert_eq!(kept, ["half an answer \u{1f600}"]);
    // It is a part of the conversation now, and the draft is gone.
    session.prompt("go on").await.unwrap();
    session.settled().await.unwrap();
    let sent = harness.model.requests().pop().unwrap().messages;
    assert!(sent.iter().any(|message| format!("{message:?}").contains("half an answer")), "{sent:?}");
    session.panic_now().await;
    session.settled().await.unwrap();
    let mut events = harness.watch(&session).await;
    let restores = |event: &Event| matches!(event.fact(), Some(Fact::SessionRestored { .. })).then_some(());
    events.until("the first restore", restores).await;
    events.until_new("the second restore", restores).await;
    assert_eq!(events.facts().filter_map(partial).count(), 1);
}

#[tokio::test]
async fn t_u6_a_disk_that_fills_up_in_the_middle_of_an_answer_is_told() {
    let door = Door::new();
    let harness = Harness::with(|engine| engine.store(door.clone()));
    let session = harness.open().await;
    let mut events = harness.watch(&session).await;
    let answer = harness.model.then_live();
    session.prompt("go").await.unwrap();
    events.step_started().await;
    door.full.store(true, Ordering::SeqCst);
    answer.text("something");
    let told = |event: &Event| matches!(event.delta(), Some(Delta::NotSaved { .. })).then_some(());
    events.until("not saved", told).await;
    door.full.store(false, Ordering::SeqCst);
    let again = |event: &Event| matches!(event.delta(), Some(Delta::SavedAgain)).then_some(());
    events.until("saved again", again).await;
    assert_eq!(*door.drafted.borrow(), 1, "with all that was not");
    assert!(session.snapshot().saved);
}

fn said(event: &Event) -> Option<&str> {
    match event.delta() {
        Some(Delta::Text { text, .. }) => Some(text),
        _ => None,
    }
}

fn partial(fact: &Fact) -> Option<String> {
    match fact {
        Fact::AssistantMessage(message) => message.partial.then(|| message.text()),
        _ => None,
    }
}

#[tokio::test]
async fn t_u6_a_session_that_can_not_be_saved_is_not_closed_until_it_can() {
    let door = Door::new();
    let harness = Harness::with(|engine| engine.store(door.clone()));
    let session = harness.open().await;
    let mut events = harness.watch(&session).await;
    door.full.store(true, Ordering::SeqCst);
    session.prompt("go").await.unwrap();
    assert_eq!(events.turn_finished().await.outcome, Outcome::Done);
    let refused = session.close().await.unwrap_err();
    assert!(matches!(refused, SessionError::Refused(Refused::NotSaving { unsaved: 1.. })), "{refused}");
    door.full.store(false, Ordering::SeqCst);
    events.until("saved again", |event| matches!(event.delta(), Some(Delta::SavedAgain)).then_some(())).await;
    session.close().await.unwrap();
    let saved = door.saved.lock().unwrap().clone();
    assert!(saved.iter().any(|event| matches!(event.fact(), Some(Fact::TurnFinished { .. }))));
    assert!(matches!(saved.last().unwrap().fact(), Some(Fact::SessionClosed { .. })));
}

#[tokio::test]
async fn t_u6_an_end_that_can_not_be_saved_is_told() {
    let door = Door::new();
    let harness = Harness::with(|engine| engine.store(door.clone()));
    let session = harness.open().await;
    door.full.store(true, Ordering::SeqCst);
    let told = session.close().await.unwrap_err();
    assert!(matches!(told, SessionError::Store(_)), "{told}");
}

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
    assert!(matches!(refused, SessionError::Refused(Refused::NotSaving { .. })), "{refused}");
    door.full.store(false, Ordering::SeqCst);
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

/// The end of a session waits for the save of its last facts, however long that of the ones before has taken.
#[tokio::test]
async fn t_u6_an_end_behind_a_late_save_is_saved() {
    let door = Door::new();
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
    let late = |event: &Event| matches!(event.delta(), Some(Delta::NotSaved { .. })).then_some(());
    events.until("not saved", late).await;
    door.open.send_replace(true);
    soon("the end", closing).await.unwrap().unwrap();
    renaming.await.unwrap().unwrap();
    let last = door.saved.lock().unwrap().last().cloned().unwrap();
    assert!(matches!(last.fact(), Some(Fact::SessionClosed { .. })), "{last:?}");
}
