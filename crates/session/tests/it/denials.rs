//! Denials that a session remembers.

use std::fs;
use std::path::Path;

use holdpoint_common::{
    Answer, AskFact, Fact, Outcome, PolicyMode, PolicyRules, ToolFact, ToolStatus,
};
use holdpoint_session::store::Sqlite;
use holdpoint_session::testing::{Harness, Recorder, reply};
use holdpoint_session::{AttachFrom, SessionHandle};
use serde_json::{Value, json};
use tempfile::TempDir;

const FOR_SESSION: &str = "the user denied this for the whole session: not here";

fn deny_always() -> Answer {
    Answer::Deny { reason: Some("not here".to_owned()), always: true }
}

fn on(store: &Path) -> Harness {
    let store = Sqlite::open(store).unwrap();
    Harness::with(|engine| engine.store(store))
}

async fn open(harness: &Harness) -> SessionHandle {
    harness.sessions().open(harness.session().policy(PolicyMode::Ask)).await.unwrap()
}

/// Runs a turn in which the model calls `tool` once. Gives `answer` to the ask of the call; `None`
/// if the call raises no ask.
async fn turn(
    harness: &Harness,
    session: &SessionHandle,
    (tool, input): (&str, Value),
    answer: Option<Answer>,
) -> Recorder {
    harness.model.then(reply().call(tool, input)).then(reply().text("ok"));
    let mut events = Recorder::new(session.attach(AttachFrom::now()).await.unwrap());
    session.prompt("go").await.unwrap();
    if let Some(answer) = answer {
        events.asked().await;
        events.answer(answer).await.unwrap();
    }
    assert_eq!(events.turn_finished().await.outcome, Outcome::Done);
    events
}

/// The status and the text of each call's result.
fn results(events: &Recorder) -> Vec<(ToolStatus, &str)> {
    let result = |fact| match fact {
        &Fact::Tool(ToolFact::Finished(ref result)) => {
            Some((result.status, result.result.as_str()))
        }
        _ => None,
    };
    events.facts().filter_map(result).collect()
}

fn asks(events: &Recorder) -> usize {
    events.facts().filter(|fact| matches!(fact, Fact::Ask(AskFact::Raised { .. }))).count()
}

#[tokio::test]
async fn m_a2_a_denial_for_always_denies_later_calls_and_open_asks_with_the_same_key() {
    let harness = Harness::start();
    let session = open(&harness).await;
    let mut events = harness.watch(&session).await;
    let (same, other) = (json!({"same": true}), json!({"same": false}));
    let model = &harness.model;
    model
        .then(reply().call("probe", same.clone()).call("probe", other).call("probe", same.clone()));
    model.then(reply().call("probe", same)).then(reply().text("ok"));
    session.prompt("go").await.unwrap();
    for _ in 0..3 {
        events.asked().await;
    }
    let first = session.snapshot().asks[0].clone();
    session.answer(&first.id, deny_always()).await.unwrap();
    let open = session.snapshot().asks.clone();
    assert_eq!(open.len(), 1, "{open:?}");
    assert_eq!(open[0].always.as_deref(), Some(r#"probe {"same":false}"#));
    session.answer(&open[0].id, Answer::Approve { always: false }).await.unwrap();
    assert_eq!(events.turn_finished().await.outcome, Outcome::Done);
    assert_eq!(asks(&events), 3);
    let (denied, others): (Vec<_>, Vec<_>) =
        results(&events).into_iter().partition(|(status, _)| *status == ToolStatus::Denied);
    assert_eq!(denied, [(ToolStatus::Denied, FOR_SESSION); 3]);
    assert_eq!(others.len(), 1, "{others:?}");
}

/// The rules allow the same command once the link is a file of the workspace.
#[tokio::test]
async fn m_a2_a_remembered_denial_also_denies_a_call_that_the_policy_allows() {
    let harness = Harness::start();
    let outside = TempDir::new().unwrap();
    let out = harness.folder.path().join("out");
    fs::create_dir(&out).unwrap();
    std::os::unix::fs::symlink(outside.path().join("x"), out.join("x")).unwrap();
    let allow = ["shell(echo *)", "write(out/**)"].map(|rule| rule.parse().unwrap()).to_vec();
    let rules = PolicyRules { allow, ..PolicyRules::default() };
    let session = harness.session().policy(PolicyMode::Ask).rules(rules);
    let session = harness.sessions().open(session).await.unwrap();
    let call = |command| ("shell", json!({"command": command}));
    turn(&harness, &session, call("echo x > out/x"), Some(deny_always())).await;
    fs::remove_file(out.join("x")).unwrap();
    let events = turn(&harness, &session, call("echo x > out/x"), None).await;
    assert_eq!(results(&events), [(ToolStatus::Denied, FOR_SESSION)]);
    let events = turn(&harness, &session, call("echo y > out/x"), None).await;
    assert_eq!(results(&events)[0].0, ToolStatus::Ok);
}

#[tokio::test]
async fn m_a3_a_remembered_denial_outlives_a_restart_and_an_approval_does_not() {
    let store = TempDir::new().unwrap();
    let (denied, approved) = (|| ("probe", json!({"n": 1})), || ("probe", json!({"n": 2})));
    let approval = || Some(Answer::Approve { always: true });
    let harness = on(store.path());
    let session = open(&harness).await;
    let id = session.id().clone();
    turn(&harness, &session, denied(), Some(deny_always())).await;
    turn(&harness, &session, approved(), approval()).await;
    turn(&harness, &session, approved(), None).await;
    drop((session, harness));

    let harness = on(store.path());
    let session = harness.sessions().get(id.as_str()).await.unwrap();
    let events = turn(&harness, &session, denied(), None).await;
    assert_eq!(results(&events), [(ToolStatus::Denied, FOR_SESSION)]);
    turn(&harness, &session, approved(), approval()).await;
}

#[tokio::test]
async fn m_a3_a_change_of_the_policy_or_a_close_forgets_what_was_answered_for_always() {
    let harness = Harness::start();
    let mut session = open(&harness).await;
    let approval = Answer::Approve { always: true };
    for close in [false, true] {
        for (input, answer) in [(1, deny_always()), (2, approval.clone())] {
            let call = || ("probe", json!({"n": input}));
            turn(&harness, &session, call(), Some(answer)).await;
            turn(&harness, &session, call(), None).await;
            if close {
                session.close().await.unwrap();
                session = harness.sessions().get(session.id().as_str()).await.unwrap();
            } else {
                let mode = session.snapshot().settings.policy;
                let other =
                    if mode == PolicyMode::Ask { PolicyMode::Edits } else { PolicyMode::Ask };
                session.change_policy(other).await.unwrap();
            }
            turn(&harness, &session, call(), Some(Answer::Approve { always: false })).await;
        }
    }
}
