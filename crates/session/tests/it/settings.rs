//! Changes to a live session: another model, and debugging.

use std::sync::Arc;

use holdpoint_common::{Fact, Outcome, Refused, SessionFact, Timestamp, Who};
use holdpoint_session::model::{Catalog, Model, ModelRequest, ModelStream};
use holdpoint_session::store::Sqlite;
use holdpoint_session::testing::{Harness, ScriptedModel, reply, within_patience};
use holdpoint_session::{AttachFrom, Engine, OpenSession, SessionError};
use tempfile::TempDir;

/// A scripted model under another name.
#[derive(Default)]
struct Other(ScriptedModel);

impl Model for Other {
    fn name(&self) -> &'static str {
        "own/other"
    }

    fn stream(&self, request: &ModelRequest) -> ModelStream {
        self.0.stream(request)
    }
}

/// An engine's two models, and a catalog with both.
fn two() -> (ScriptedModel, ScriptedModel, Catalog) {
    let (one, other) = (ScriptedModel::default(), ScriptedModel::default());
    let catalog =
        Catalog::default().with(Arc::new(one.clone())).with(Arc::new(Other(other.clone())));
    (one, other, catalog)
}

#[tokio::test]
async fn a_changed_model_applies_from_the_next_turn() {
    let folder = TempDir::new().unwrap();
    let (one, other, catalog) = two();
    let engine =
        Engine::builder(catalog).store(Sqlite::open(folder.path()).unwrap()).start().unwrap();
    let sessions = engine.sessions(Who::named("test"));
    let open = OpenSession::in_folder(folder.path());
    let session = sessions.open(open.clone()).await.unwrap();
    assert_eq!(session.snapshot().settings.model, ScriptedModel::NAME);
    let mut events = session.attach(AttachFrom::start()).await.unwrap();

    let live = one.then_live();
    session.prompt("begin").await.unwrap();
    assert!(live.text("a piece"));
    session.change_model("own/other").await.unwrap();
    let changed = |fact: &Fact| matches!(fact, Fact::Session(SessionFact::ModelChanged { model, by }) if model == "own/other" && by.name == "test");
    while !within_patience("the change", events.next()).await.unwrap().fact().is_some_and(changed) {
    }
    assert_eq!(session.snapshot().settings.model, "own/other");
    drop(live);
    session.settled().await.unwrap();
    assert_eq!(
        (one.requests().len(), other.requests().len()),
        (1, 0),
        "the open turn keeps its model"
    );

    other.then(reply().text("from the other"));
    session.prompt("go on").await.unwrap();
    assert_eq!(session.settled().await.unwrap().last_turn.as_ref().unwrap().outcome, Outcome::Done);
    assert_eq!((one.requests().len(), other.requests().len()), (1, 1));

    session.panic_now().await;
    session.prompt("and after a fault").await.unwrap();
    session.settled().await.unwrap();
    assert_eq!(
        (one.requests().len(), other.requests().len()),
        (1, 2),
        "later turns keep the new model"
    );

    let before = session.snapshot().seq;
    for unknown in ["nowhere/x", "rehearsal/x", "openai/gpt-5"] {
        let refused = session.change_model(unknown).await.unwrap_err();
        let SessionError::ModelSetup { hint, .. } = &refused else { panic!("{refused}") };
        assert!(!hint.is_empty());
    }
    session.change_model("own/other").await.unwrap();
    assert_eq!(session.snapshot().seq, before, "a refused or equal model changes nothing");
    session.close().await.unwrap();
    assert_eq!(
        session.change_model(ScriptedModel::NAME).await,
        Err(SessionError::Refused(Refused::Closed))
    );

    let id = session.id().clone();
    drop((sessions, session, events, engine));
    // This engine has no such model: the session can be read, reports that, and continues with
    // another one.
    let harness = Harness::with(|engine| engine.store(Sqlite::open(folder.path()).unwrap()));
    let session = harness.sessions().get(id.as_str()).await.unwrap();
    assert_eq!(session.snapshot().settings.model, "own/other");
    session.prompt("?").await.unwrap();
    assert_eq!(
        session.settled().await.unwrap().last_turn.as_ref().unwrap().outcome,
        Outcome::Failed
    );
    harness.model.then(reply().text("here"));
    session.change_model(ScriptedModel::NAME).await.unwrap();
    session.prompt("!").await.unwrap();
    assert_eq!(session.settled().await.unwrap().last_turn.as_ref().unwrap().outcome, Outcome::Done);
}

#[tokio::test]
async fn m_f2_debugging_is_a_fact_that_every_client_sees_and_that_survives_a_restart() {
    let folder = TempDir::new().unwrap();
    let on = || Harness::with(|engine| engine.store(Sqlite::open(folder.path()).unwrap()));
    let id = {
        let harness = on();
        let session = harness.open().await;
        assert!(!session.snapshot().is_debug_enabled);
        let mut events = harness.watch(&session).await;
        session.change_debug(true).await.unwrap();
        assert!(session.snapshot().is_debug_enabled, "the snapshot changes before the reply");
        let changed = |fact: &Fact| matches!(fact, Fact::Session(SessionFact::DebugChanged { enabled: true, by }) if by.name == "test");
        events
            .until("the change", |event| event.fact().filter(|fact| changed(fact)).map(|_| ()))
            .await;
        let seq = session.snapshot().seq;
        session.change_debug(true).await.unwrap();
        assert_eq!(session.snapshot().seq, seq, "the same level changes nothing");
        session.id().clone()
    };
    let harness = on();
    let session = harness.sessions().get(id.as_str()).await.unwrap();
    assert!(session.snapshot().is_debug_enabled);
    session.change_debug(false).await.unwrap();
    assert!(!session.snapshot().is_debug_enabled);
    session.close().await.unwrap();
    assert_eq!(session.change_debug(true).await, Err(SessionError::Refused(Refused::Closed)));
}

#[tokio::test]
async fn m_b9_the_snapshot_has_the_last_line_and_the_working_time() {
    let harness = Harness::start();
    harness.model.then(reply().thought("hm").text("Done.\n\n  All tests pass.  \n"));
    let session = harness.open().await;
    let fresh = session.snapshot();
    assert_eq!((fresh.last_line.as_deref(), fresh.worked_ms, fresh.working_since), (None, 0, None));
    let live = harness.model.then_live();
    session.prompt("first").await.unwrap();
    session.settled().await.unwrap();
    session.prompt("second").await.unwrap();
    let running = session.snapshot();
    assert_eq!(running.last_line.as_deref(), Some("All tests pass."));
    assert!(running.working_since.is_some(), "{running:?}");
    let now = Timestamp(running.working_since.unwrap().0 + 5_000);
    assert_eq!(running.worked(now).as_millis(), u128::from(running.worked_ms) + 5_000);
    drop(live);
    let after = session.settled().await.unwrap();
    assert!(after.working_since.is_none() && after.worked_ms >= running.worked_ms, "{after:?}");
    let listed = harness.sessions().list().await.unwrap();
    assert_eq!(listed[0].last_line.as_deref(), Some("All tests pass."));
}
