//! The file tools in a session: several calls in one answer, and file marks after a restart.

use std::fs;
use std::sync::Arc;

use holdpoint_common::{Answer, Fact, PolicyMode, ToolFact, ToolResult, ToolStatus};
use holdpoint_session::OpenSession;
use holdpoint_session::store::Sqlite;
use holdpoint_session::testing::{Finished, Harness, Recorder, ScriptedModel, reply};
use serde_json::{Value, json};
use tempfile::TempDir;

fn replace(old: &str, new: &str) -> Value {
    json!({ "path": "a", "old_string": old, "new_string": new })
}

/// The results of the next turn to end.
async fn results(events: &mut Recorder) -> Vec<Arc<ToolResult>> {
    let before = events.facts().count();
    let _: Finished = events.turn_finished().await;
    let results = events.facts().skip(before).filter_map(|fact| match fact {
        Fact::Tool(ToolFact::Finished(result)) => Some(result.clone()),
        _ => None,
    });
    results.collect()
}

#[tokio::test]
async fn m_e7_edits_of_one_answer_all_land() {
    let harness = Harness::start();
    let file = harness.folder.path().join("a");
    fs::write(&file, "one two\nthree\n").unwrap();
    let mut answer = reply();
    for (old, new) in [("one", "1"), ("two", "2"), ("three", "3\n4")] {
        answer = answer.call("edit_file", replace(old, new));
    }
    harness.model.then(answer);
    let session = harness.open().await;
    let mut events = harness.watch(&session).await;
    session.prompt("go").await.unwrap();
    let results = results(&mut events).await;
    assert!(results.iter().all(|result| result.status == ToolStatus::Ok), "{results:?}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "1 2\n3\n4\n");
    assert_eq!(session.snapshot().files_modified.len(), 1);
}

#[tokio::test]
async fn m_b7_an_edit_approved_after_the_file_changed_is_refused() {
    let harness = Harness::start();
    let file = harness.folder.path().join("a");
    fs::write(&file, "one\ntwo\n").unwrap();
    harness.model.then(reply().call("edit_file", replace("two", "2")));
    let session = harness.sessions().open(harness.session().policy(PolicyMode::Ask)).await.unwrap();
    let mut events = harness.watch(&session).await;
    session.prompt("go").await.unwrap();
    let ask = events.asked().await;
    fs::write(&file, "ONE\ntwo\n").unwrap();
    session.answer(&ask.id, Answer::Approve { always: false }).await.unwrap();
    let results = results(&mut events).await;
    assert_eq!(results[0].result, "a has changed since the edit was shown: nothing was done");
    assert_eq!(fs::read_to_string(&file).unwrap(), "ONE\ntwo\n");
}

#[tokio::test]
async fn t_d10_a_change_is_noticed_after_a_restart() {
    let (store, folder) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let on_store = || {
        let store = Sqlite::open(store.path()).unwrap();
        Harness::with(|engine| engine.store(store))
    };
    for name in ["a", "b"] {
        fs::write(folder.path().join(name), "one\ntwo\n").unwrap();
    }
    {
        let harness = on_store();
        let read = |path: &str| json!({ "path": path });
        harness.model.then(reply().call("read_file", read("a")).call("read_file", read("b")));
        harness.model.then(reply().call("edit_file", replace("one", "1")));
        let settings = OpenSession::in_folder(folder.path())
            .model(ScriptedModel::NAME)
            .policy(PolicyMode::All)
            .name("it");
        let session = harness.sessions().open(settings).await.unwrap();
        let mut events = harness.watch(&session).await;
        session.prompt("read").await.unwrap();
        assert_eq!(results(&mut events).await.len(), 3);
    }
    fs::write(folder.path().join("b"), "six\ntwo\n").unwrap();

    let harness = on_store();
    let again = |path: &str| json!({"path": path, "old_string": "two", "new_string": "2"});
    harness.model.then(reply().call("edit_file", again("b")).call("edit_file", again("a")));
    let session = harness.sessions().get("it").await.unwrap();
    let mut events = harness.watch(&session).await;
    results(&mut events).await;
    session.prompt("edit").await.unwrap();
    let mut results = results(&mut events).await;
    results.sort_by_key(|result| result.call);
    assert_eq!(results[0].result, "b: the file has changed since it was last read: read it again");
    assert_eq!(results[1].result, "edited a: line 2");
    assert_eq!(fs::read_to_string(folder.path().join("a")).unwrap(), "1\n2\n");
    assert_eq!(fs::read_to_string(folder.path().join("b")).unwrap(), "six\ntwo\n");
}
