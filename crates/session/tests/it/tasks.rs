//! Tasks and notes of a session: the model's tool for them, their facts, and the clients that see
//! them.

use holdpoint_common::{Fact, Outcome, PolicyMode, TaskRequest, TaskState, ToolFact, ToolStatus};
use holdpoint_session::store::Sqlite;
use holdpoint_session::testing::{Harness, Recorder, reply, within_patience};
use holdpoint_tools::{TasksResponse, ToolOutcome};
use serde_json::{Value, json};

/// The result of the next call.
async fn result(events: &mut Recorder) -> (ToolStatus, String) {
    events
        .until_new("a call's result", |event| match event.fact() {
            Some(Fact::Tool(ToolFact::Finished(result))) => {
                Some((result.status, result.result.clone()))
            }
            _ => None,
        })
        .await
}

#[tokio::test]
async fn m_e7_the_model_keeps_tasks_and_notes_in_any_session() {
    let harness = Harness::start();
    let session = harness.open().await;
    let mut events = harness.watch(&session).await;
    let calls: [(Value, &str); 12] = [
        (json!({"action": "next"}), "[no task is left]"),
        (json!({"action": "list"}), "[no tasks]"),
        (
            json!({"action": "add", "titles": ["write it", " test\n it "]}),
            "[0 done, 0 doing, 2 to do; next: task 1 [todo] write it]",
        ),
        (json!({"action": "start"}), "[0 done, 1 doing, 1 to do; next: task 1 [doing] write it]"),
        (json!({"action": "finish"}), "[1 done, 0 doing, 1 to do; next: task 2 [todo] test it]"),
        (
            json!({"action": "finish"}),
            "no task is started: give the id of the task to mark as done",
        ),
        (json!({"action": "note", "text": "port 80 is taken", "task": 2}), "[noted]"),
        (json!({"action": "note", "text": " "}), "the note is empty"),
        (json!({"action": "drop", "task": 9}), "there is no task 9"),
        (
            json!({"action": "add"}),
            "not run: `titles` is missing: give a title for each task, one line of at most 500 bytes",
        ),
        (json!({"action": "drop", "task": 2}), "[1 done, 0 doing, 0 to do]"),
        (
            json!({"action": "list"}),
            "task 1 [done] write it\ntask 2 [dropped] test it\nnote on task 2: port 80 is taken",
        ),
    ];
    for (call, _) in &calls {
        harness.model.then(reply().call("tasks", call.clone()));
    }
    session.prompt("go").await.unwrap();
    for (call, text) in calls {
        assert_eq!(result(&mut events).await.1, text, "{call}");
    }
    assert_eq!(events.turn_finished().await.outcome, Outcome::Done);
    let snapshot = session.snapshot();
    let tasks: Vec<_> =
        snapshot.tasks.iter().map(|task| (task.title.as_str(), task.state)).collect();
    assert_eq!(tasks, [("write it", TaskState::Done), ("test it", TaskState::Dropped)]);
    assert_eq!(snapshot.notes[0].text, "port 80 is taken");
    let listed = harness.sessions().list().await.unwrap();
    assert_eq!(listed[0].tasks.to_string(), "✓1 ●0 ○0");
}

#[tokio::test]
async fn m_e7_a_task_request_over_the_limit_is_refused_whole() {
    let harness = Harness::start();
    let session = harness.open().await;
    let mut events = harness.watch(&session).await;
    let add = |count: usize| json!({"action": "add", "titles": vec!["one"; count]});
    let mut calls: Vec<(Value, &str)> = vec![
        (add(51), "51 tasks at once; the limit is 50"),
        (
            json!({"action": "add", "titles": ["fine", "x".repeat(501)]}),
            "the title has 501 bytes; at most 500 are allowed",
        ),
        (
            json!({"action": "note", "text": "x".repeat(2001)}),
            "the note has 2001 bytes; at most 2000 are allowed",
        ),
        (json!({"action": "list", "all": true}), "'all' was unexpected"),
    ];
    calls.extend((0..9).map(|_| (add(50), "0 done")));
    calls.push((add(49), "499 to do"));
    calls.push((add(2), "a session can have at most 500 tasks; this one has 499"));
    calls.push((add(1), "500 to do"));
    for (call, _) in &calls {
        harness.model.then(reply().call("tasks", call.clone()));
    }
    session.prompt("go").await.unwrap();
    for (_, text) in calls {
        let (_, result) = result(&mut events).await;
        assert!(result.contains(text), "no {text:?} in {result}");
    }
    assert_eq!((session.snapshot().tasks.len(), session.snapshot().notes.len()), (500, 0));
}

/// Tasks are the session's own: they need no approval, and no policy denies them.
#[tokio::test]
async fn m_e7_tasks_need_no_approval() {
    let harness = Harness::start();
    for policy in [PolicyMode::Ask, PolicyMode::Readonly] {
        let session = harness.sessions().open(harness.session().policy(policy)).await.unwrap();
        harness.model.then(reply().call("tasks", json!({"action": "add", "titles": ["one"]})));
        session.prompt("go").await.unwrap();
        let settled = within_patience("the end of the turn", session.settled()).await.unwrap();
        assert_eq!(settled.tasks.len(), 1, "{policy:?}");
    }
}

#[tokio::test]
async fn m_b7_tasks_and_notes_outlive_the_actor() {
    let harness = Harness::start();
    let session = harness.open().await;
    harness.model.then(reply().call("tasks", json!({"action": "add", "titles": ["one"]})));
    harness.model.then(reply().call("tasks", json!({"action": "note", "text": "known"})));
    session.prompt("go").await.unwrap();
    session.settled().await.unwrap();
    session.panic_now().await;
    harness.model.then(reply().call("tasks", json!({"action": "start"})));
    session.prompt("go on").await.unwrap();
    let snapshot = session.settled().await.unwrap();
    assert_eq!((snapshot.tasks[0].state, snapshot.notes.len()), (TaskState::Doing, 1));
}

/// Many parallel calls of one answer: each change is whole, and none is lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn m_e7_parallel_calls_lose_no_task() {
    let harness = Harness::start();
    let session = harness.open().await;
    let calls = (0..40).fold(reply(), |reply, n| {
        reply.call("tasks", json!({"action": "add", "titles": [format!("a{n}"), format!("b{n}")]}))
    });
    harness.model.then(calls);
    session.prompt("go").await.unwrap();
    let snapshot = session.settled().await.unwrap();
    let ids: Vec<_> = snapshot.tasks.iter().map(|task| task.id.0).collect();
    assert_eq!(ids, (1..=80).collect::<Vec<_>>());
    for pair in snapshot.tasks.chunks(2) {
        assert_eq!(pair[0].title[1..], pair[1].title[1..], "added together");
    }
}

/// A model may send all of these calls in one answer: each sees the changes of the one before.
#[tokio::test]
async fn m_e7_calls_of_one_answer_keep_the_list_in_their_order() {
    let harness = Harness::start();
    for round in 0..20 {
        let session = harness.open().await;
        let mut events = harness.watch(&session).await;
        harness.model.then(
            reply()
                .call("tasks", json!({"action": "add", "titles": ["one", "two"]}))
                .call("probe", json!({}))
                .call("tasks", json!({"action": "start"}))
                .call("tasks", json!({"action": "finish"}))
                .call("tasks", json!({"action": "note", "text": "done", "task": 1})),
        );
        session.prompt("go").await.unwrap();
        assert_eq!(events.turn_finished().await.outcome, Outcome::Done);
        let failed: Vec<_> = events
            .facts()
            .filter(|fact| matches!(fact, Fact::Tool(ToolFact::Finished(result)) if result.status != ToolStatus::Ok))
            .collect();
        assert!(failed.is_empty(), "round {round}: {failed:#?}");
        session.close().await.unwrap();
    }
}

/// Each thread of a tool gets its own replies: none gets another's, and none waits for ever.
#[tokio::test]
async fn m_e7_the_threads_of_one_call_each_change_the_tasks() {
    let folder = tempfile::TempDir::new().unwrap();
    let store = Sqlite::open(folder.path()).unwrap();
    let harness = Harness::with(|engine| engine.store(store));
    harness.probe.does(|_, context| {
        let add =
            |titles: &str| context.tasks(TaskRequest::Add { titles: vec![titles.to_owned()] });
        let responses = std::thread::scope(|threads| {
            let added = threads.spawn(|| (0..20).map(|_| add("write it")).collect::<Vec<_>>());
            let refused = threads.spawn(|| (0..20).map(|_| add(" ")).collect::<Vec<_>>());
            (added.join().unwrap(), refused.join().unwrap())
        });
        assert!(
            responses.0.iter().all(|response| matches!(response, TasksResponse::Tasks(_))),
            "{:?}",
            responses.0
        );
        assert!(
            responses.1.iter().all(|response| matches!(response, TasksResponse::Refused(_))),
            "{:?}",
            responses.1
        );
        Ok(ToolOutcome::text("done"))
    });
    harness.model.then(reply().call("probe", json!({})));
    let session = harness.open().await;
    let mut events = harness.watch(&session).await;
    session.prompt("go").await.unwrap();
    assert_eq!(result(&mut events).await, (ToolStatus::Ok, "done".to_owned()));
    assert_eq!(session.snapshot().tasks.len(), 20);
}
