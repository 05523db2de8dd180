//! Sessions that move to another folder, with everything that they do.

use holdpoint_common::api::{HandOverRequest, MoveRequest};
use holdpoint_common::{Answer, Fact, HoldState, Outcome, PolicyMode, SessionError, SessionFact};
use holdpoint_session::store::Sqlite;
use holdpoint_session::testing::{Harness, Recorder, reply, within_patience};
use holdpoint_session::{AttachFrom, ClientEnd};
use serde_json::json;
use tempfile::TempDir;

fn harness(data: &TempDir) -> Harness {
    let store = Sqlite::open(data.path()).unwrap();
    Harness::with(|engine| engine.store(store))
}

fn to(folder: &TempDir) -> MoveRequest {
    MoveRequest { workspace: Some(folder.path().to_owned()), ..MoveRequest::default() }
}

/// The path of a folder without links.
fn path(folder: &TempDir) -> String {
    folder.path().canonicalize().unwrap().to_str().unwrap().to_owned()
}

#[tokio::test]
async fn t_a_turn_continues_in_the_folder_that_its_session_moves_to() {
    let (data, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let harness = harness(&data);
    harness.model.then(reply().call("probe", json!({})));
    harness.model.then(reply().call("shell", json!({ "command": "pwd" })));
    harness.model.then(reply().text("done"));
    let session = harness.open().await;
    let id = session.id().clone();
    let mut events = harness.watch(&session).await;
    let call = harness.probe.ignores_cancel("begun");
    session.prompt("go").await.unwrap();
    events.output("begun").await;

    // The move waits for the end of the call.
    let sessions = harness.sessions();
    let moving = tokio::spawn(async move {
        sessions.move_session(id.as_str(), to(&folder)).await.map(|moved| (moved, folder))
    });
    assert_eq!(events.hold_changed().await.shown(), HoldState::Requested);
    assert_eq!(harness.model.requests().len(), 1);
    drop(call);
    let (moved, folder) = within_patience("the move", moving).await.unwrap().unwrap();
    assert_eq!(moved.settings.workspace, path(&folder));
    assert_eq!(moved.hold.shown(), HoldState::Off);

    // The stream of a client ends, and continues at the next actor of the session.
    while within_patience("the end", events.next()).await.is_some() {}
    let ClientEnd::Moved { after } = events.end() else { panic!("{:?}", events.end()) };
    let mut events = Recorder::new(session.attach(AttachFrom::after(after)).await.unwrap());
    assert_eq!(events.turn_finished().await.outcome, Outcome::Done);
    let requests = harness.model.requests();
    assert_eq!(requests.len(), 3);
    let last = format!("{:?}", requests.last().unwrap());
    assert!(last.contains(&path(&folder)), "{last}");
}

#[tokio::test]
async fn t_a_client_that_gives_up_a_move_leaves_the_session_as_it_was() {
    let (data, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let harness = harness(&data);
    harness.model.then(reply().call("probe", json!({})));
    harness.model.then(reply().text("done"));
    let session = harness.open().await;
    let mut events = harness.watch(&session).await;
    let call = harness.probe.ignores_cancel("begun");
    session.prompt("go").await.unwrap();
    events.output("begun").await;
    let sessions = harness.sessions();
    let (id, request) = (session.id().clone(), to(&folder));
    let moving = tokio::spawn(async move { sessions.move_session(id.as_str(), request).await });
    assert_eq!(events.hold_changed().await.shown(), HoldState::Requested);
    moving.abort();
    assert_eq!(events.hold_changed().await.shown(), HoldState::Off);
    drop(call);
    assert_eq!(events.turn_finished().await.outcome, Outcome::Done);
    assert_eq!(session.snapshot().settings.workspace, path(&harness.folder));
    // A hold of a user stays.
    session.hold().await.unwrap();
    let request = HandOverRequest { machine: None, workspace: path(&folder) };
    assert!(harness.sessions().act(session.id(), request).await.unwrap().live);
    let moved = harness.sessions().get(session.id().as_str()).await.unwrap();
    assert_eq!(moved.snapshot().hold.shown(), HoldState::Standing);
}

#[tokio::test]
async fn t_a_confirm_is_asked_again_in_the_new_folder_and_a_saved_session_stays_saved() {
    let (data, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let harness = harness(&data);
    harness.model.then(reply().call("shell", json!({ "command": "pwd > here" })));
    harness.model.then(reply().text("done"));
    let session = harness.sessions().open(harness.session().policy(PolicyMode::Ask)).await.unwrap();
    let mut events = harness.watch(&session).await;
    session.prompt("go").await.unwrap();
    let ask = events.asked().await;
    let id = session.id().to_string();
    std::fs::write(folder.path().join("AGENTS.md"), "Be brief.").unwrap();
    harness.sessions().move_session(&id, to(&folder)).await.unwrap();
    while within_patience("the end", events.next()).await.is_some() {}
    let ClientEnd::Moved { after } = events.end() else { panic!("{:?}", events.end()) };
    // The command would run in another folder than the one that the user saw.
    let mut events = Recorder::new(session.attach(AttachFrom::after(after)).await.unwrap());
    let again = events.asked().await;
    assert!(again.id != ask.id && format!("{again:?}").contains(&path(&folder)), "{again:?}");
    session.answer(&again.id, Answer::Approve { always: false }).await.unwrap();
    assert_eq!(events.turn_finished().await.outcome, Outcome::Done);
    let here = std::fs::read_to_string(folder.path().join("here")).unwrap();
    assert_eq!(here.trim(), path(&folder));

    session.close().await.unwrap();
    let back = harness.sessions().move_session(&id, to(&harness.folder)).await.unwrap();
    assert_eq!(back.settings.workspace, path(&harness.folder));
    let listed = harness.sessions().list().await.unwrap();
    assert!(!listed[0].live && listed[0].workspace == path(&harness.folder), "{listed:?}");
    let mut log = Recorder::new(
        harness.sessions().get(&id).await.unwrap().attach(AttachFrom::start()).await.unwrap(),
    );
    let moves = |fact: &Fact| matches!(fact, Fact::Session(SessionFact::Moved { by, .. }) if by.name == "test");
    for _ in 0..2 {
        log.until_new("a move", |event| event.fact().filter(|fact| moves(fact)).map(drop)).await;
    }
}

#[tokio::test]
async fn t_a_session_moves_only_to_a_folder_that_can_be_used() {
    let data = tempfile::tempdir().unwrap();
    let harness = harness(&data);
    let session = harness.open().await;
    let id = session.id().as_str();
    let gone = harness.folder.path().join("gone");
    let missing = MoveRequest { workspace: Some(gone), ..MoveRequest::default() };
    let refused = harness.sessions().move_session(id, missing).await.unwrap_err();
    assert!(matches!(refused, SessionError::Workspace { .. }), "{refused:?}");
    let machine = MoveRequest { machine: Some("m2".to_owned()), ..to(&data) };
    let refused = harness.sessions().move_session(id, machine).await.unwrap_err();
    assert!(matches!(refused, SessionError::UnknownMachine { .. }), "{refused:?}");
    assert!(session.snapshot().hold.shown() == HoldState::Off);
    assert_eq!(session.snapshot().settings.workspace, path(&harness.folder));
}
