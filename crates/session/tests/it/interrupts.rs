//! Interrupts against the real actor: in every phase, with real processes.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Barrier, Mutex};

use futures_util::{StreamExt, stream};
use holdpoint_common::api::InterruptRequest;
use holdpoint_common::{
    Fact, FileMark, Limits, Outcome, PauseKind, PauseResponse, PolicyMode, PromptFact, PromptId,
    Refused, SessionError, SessionStatus, StopHow, ToolFact, ToolStatus, TurnFact, Who,
};
use holdpoint_session::model::{Catalog, Message, Model, ModelEvent, ModelRequest, ModelStream};
use holdpoint_session::testing::{Harness, reply, within_patience};
use holdpoint_session::{Engine, Interruption, OpenSession};
use holdpoint_tools::testing::{Census, rounds};
use holdpoint_tools::{ToolError, ToolOutcome};
use serde_json::json;

#[tokio::test]
async fn m_c1_an_interrupt_works_while_the_model_is_silent() {
    let harness = Harness::start();
    let silent = harness.model.then_live();
    let session = harness.open().await;
    let mut events = harness.watch(&session).await;
    session.prompt("go").await.unwrap();
    events.step_started().await;
    let end = session.interrupt_and_wait().await.unwrap().unwrap();
    assert_eq!(end.outcome, Outcome::Interrupted);
    within_patience("the request to be dropped", silent.dropped()).await;
    assert_eq!(session.snapshot().status, SessionStatus::Idle);
}

#[tokio::test]
async fn m_c1_m_c4_while_the_model_streams_partial_text_is_kept_and_marked() {
    let harness = Harness::start();
    let live = harness.model.then_live();
    let session = harness.open().await;
    let mut events = harness.watch(&session).await;
    session.prompt("first").await.unwrap();
    live.text("half a sen");
    events.until("text", |event| event.delta().map(|_| ())).await;
    events
        .until("the text", |event| match event.delta() {
            Some(holdpoint_common::Delta::Text { .. }) => Some(()),
            _ => None,
        })
        .await;
    session.interrupt_and_wait().await.unwrap().unwrap();
    within_patience("the request to be dropped", live.dropped()).await;
    let finished = events.turn_finished().await;
    assert!(
        finished.usage.estimated && finished.usage.output > 0,
        "usage is estimated: {:?}",
        finished.usage
    );
    let partial = events.facts().find_map(|fact| match fact {
        Fact::Turn(TurnFact::AssistantMessage(message)) => Some(message.clone()),
        _ => None,
    });
    let partial = partial.unwrap();
    assert!(partial.partial);
    assert_eq!(partial.text(), "half a sen");
    // The next prompt is accepted, and its request is in order.
    session.prompt("second").await.unwrap();
    assert_eq!(events.turn_finished().await.outcome, Outcome::Done);
    let sent = harness.model.requests().pop().unwrap().messages;
    assert!(
        matches!(&sent[..], [Message::User(a), Message::Assistant(_), Message::User(b)] if a == "first" && b == "second")
    );
}

#[tokio::test]
async fn m_c2_m_c3_a_tool_tree_is_gone_and_the_receipt_says_so() {
    let harness = Harness::start();
    let census = Census::new();
    let mark = census.mark();
    let command = format!(
        "(setsid sleep 1000) & sh -c 'trap \"\" TERM; echo up; : {mark}; while :; do sleep 0.05; done' & exec -a {mark} sleep 1000"
    );
    harness.model.then(reply().call("shell", json!({"command": command})));
    let session = harness.open().await;
    let mut events = harness.watch(&session).await;
    session.prompt("go").await.unwrap();
    events.output("up").await;
    let end = session.interrupt_and_wait().await.unwrap().unwrap();
    assert!(census.living().is_empty(), "{:?}", census.living());
    let receipt = end.receipt.unwrap();
    assert_eq!(receipt.tools.len(), 1);
    assert_eq!(receipt.tools[0].how, StopHow::Returned);
    assert!(receipt.processes.total() >= 2 && receipt.processes.killed >= 1, "{receipt}");
    let finished = events.turn_finished().await;
    assert_eq!(finished.receipt.as_ref(), Some(&receipt), "the receipt is part of the event");
}

#[tokio::test]
async fn t_p10_another_session_running_the_same_program_is_untouched() {
    let harness = Harness::start();
    let (one, two) = (harness.open().await, harness.open().await);
    let (mut one_events, mut two_events) = (harness.watch(&one).await, harness.watch(&two).await);
    let census = Census::new();
    let mark = census.mark();
    let command = format!("echo up; exec -a {mark} sleep 1000");
    for session in [&one, &two] {
        harness.model.then(reply().call("shell", json!({"command": command})));
        session.prompt("go").await.unwrap();
        let events = if session.id() == one.id() { &mut one_events } else { &mut two_events };
        events.output("up").await;
    }
    census.wait_living(2);
    one.interrupt_and_wait().await.unwrap().unwrap();
    assert_eq!(census.living().len(), 1);
    assert_eq!(two.snapshot().status, SessionStatus::Running);
    two.interrupt_and_wait().await.unwrap().unwrap();
    assert!(census.living().is_empty());
}

#[tokio::test]
async fn m_c3_a_tool_that_does_not_return_is_abandoned_and_named() {
    let limits = holdpoint_common::Limits { grace_ms: 10, ..holdpoint_common::Limits::default() };
    let harness = Harness::limited(limits);
    let release = Arc::new(AtomicBool::new(false));
    let stuck = Arc::clone(&release);
    harness.probe.does(move |_, context| {
        context.output("stuck");
        while !stuck.load(Ordering::Relaxed) {
            std::thread::park_timeout(std::time::Duration::from_millis(20));
        }
        context.output("too late");
        Ok(ToolOutcome::text("too late"))
    });
    harness.model.then(reply().call("probe", json!({})));
    let session = harness.open().await;
    let mut events = harness.watch(&session).await;
    session.prompt("go").await.unwrap();
    events.output("stuck").await;
    let end = session.interrupt_and_wait().await.unwrap().unwrap();
    assert_eq!(end.receipt.as_ref().unwrap().tools[0].how, StopHow::Abandoned);
    assert!(end.receipt.unwrap().to_string().contains("probe"));
    release.store(true, Ordering::Relaxed);
    session.prompt("next").await.unwrap();
    events.turn_finished().await;
    assert_eq!(events.turn_finished().await.outcome, Outcome::Done);
    let late = events.facts().any(
        |fact| matches!(fact, Fact::Tool(ToolFact::Finished(result)) if result.to_text().contains("late")),
    );
    assert!(!late, "the late result is ignored");
}

/// A tool that is released from its ask continues after the cut: it sees the cut, and the receipt
/// names it.
#[tokio::test]
async fn m_c3_a_tool_released_from_an_ask_sees_the_cut() {
    let harness = Harness::start();
    let (sender, receiver) = mpsc::channel();
    harness.probe.does(move |_, context| {
        assert_eq!(context.pause(PauseKind::Continue, "Go on?", None), PauseResponse::Interrupted);
        sender.send(context.is_cancelled()).unwrap();
        Err(ToolError::Interrupted)
    });
    // While some tools are being woken, the first of them already run.
    let calls = Limits::default().parallel_tools;
    let answer = (0..calls).fold(reply(), |answer, n| answer.call("probe", json!({"n": n})));
    harness.model.then(answer);
    let session = harness.open().await;
    let mut events = harness.watch(&session).await;
    session.prompt("go").await.unwrap();
    for _ in 0..calls {
        events.asked().await;
    }
    let end = session.interrupt_and_wait().await.unwrap().unwrap();
    assert_eq!(receiver.try_iter().collect::<Vec<_>>(), vec![true; calls]);
    let receipt = end.receipt.unwrap();
    assert_eq!((receipt.tools.len(), receipt.asks.len()), (calls, calls), "{receipt:?}");
}

#[tokio::test]
async fn m_c4_every_open_call_gets_a_result() {
    let harness = Harness::start();
    let go = Arc::new(Barrier::new(1));
    harness.probe.does(move |_, context| {
        go.wait();
        while !context.is_cancelled() {
            std::thread::park_timeout(std::time::Duration::from_millis(1));
        }
        Ok(ToolOutcome::text("saw it"))
    });
    let mut calls = reply().text("now");
    for n in 0..40 {
        calls = calls.call("probe", json!({ "n": n }));
    }
    harness.model.then(calls);
    let session = harness.open().await;
    let mut events = harness.watch(&session).await;
    session.prompt("go").await.unwrap();
    events.tool_started().await;
    session.interrupt_and_wait().await.unwrap().unwrap();
    events.turn_finished().await;
    let results =
        events.facts().filter(|fact| matches!(fact, Fact::Tool(ToolFact::Finished(_)))).count();
    assert_eq!(results, 40);
    let started =
        events.facts().filter(|fact| matches!(fact, Fact::Tool(ToolFact::Started { .. }))).count();
    assert!(started < 40, "calls not started at the cut never start: {started}");
    session.prompt("next").await.unwrap();
    events.turn_finished().await;
    let sent = harness.model.requests().pop().unwrap().messages;
    assert_eq!(sent.iter().filter(|message| matches!(message, Message::Tool(_))).count(), 40);
}

#[tokio::test]
async fn m_c5_an_interrupt_never_touches_the_next_turn() {
    let harness = Harness::start();
    let session = harness.open().await;
    let mut events = harness.watch(&session).await;
    assert!(matches!(session.interrupt(None).await.unwrap(), Interruption::NotRunning));
    let silent = harness.model.then_live();
    session.prompt("first").await.unwrap();
    let before = session.snapshot().seq;
    let Interruption::Interrupting(first) = session.interrupt(None).await.unwrap() else {
        panic!("running")
    };
    let again =
        session.act(InterruptRequest { turn: Some(first.turn), no_wait: true }).await.unwrap();
    assert!(again.after >= before, "{again:?}");
    // Interrupt twice, then with a turn that is not open.
    let twice = session.interrupt(Some(first.turn)).await.unwrap();
    assert!(matches!(twice, Interruption::Interrupting(_) | Interruption::NotRunning));
    let turn = first.turn;
    first.end().await.unwrap();
    drop(silent);
    harness.model.then(reply().text("second"));
    session.prompt("second").await.unwrap();
    let stale = session.interrupt(Some(turn)).await.unwrap();
    assert!(matches!(stale, Interruption::NotRunning));
    assert_eq!(events.turn_finished().await.outcome, Outcome::Interrupted);
    assert_eq!(events.turn_finished().await.outcome, Outcome::Done);
}

#[tokio::test]
async fn m_c5_queued_prompts_are_handed_back() {
    let harness = Harness::start();
    let _silent = harness.model.then_live();
    let session = harness.open().await;
    let mut events = harness.watch(&session).await;
    session.prompt("one").await.unwrap();
    events.step_started().await;
    assert_eq!(session.prompt("two").await.unwrap().position, 1);
    assert_eq!(session.prompt("three").await.unwrap().position, 2);
    let end = session.interrupt_and_wait().await.unwrap().unwrap();
    assert_eq!(end.receipt.unwrap().prompts.len(), 2);
    events.turn_finished().await;
    let returned: Vec<_> = events
        .facts()
        .filter_map(|fact| match fact {
            Fact::Prompt(PromptFact::Returned { text, .. }) => Some(text.to_string()),
            _ => None,
        })
        .collect();
    assert_eq!(returned, ["two", "three"]);
    assert_eq!(session.snapshot().status, SessionStatus::Idle);
    let started =
        events.facts().filter(|fact| matches!(fact, Fact::Turn(TurnFact::Started { .. }))).count();
    assert_eq!(started, 1, "the queued prompts are not run");
}

#[tokio::test]
async fn m_c5_a_queued_prompt_is_taken_back_and_the_others_run() {
    let harness = Harness::start();
    let first = harness.model.then_live();
    let session = harness.open().await;
    let mut events = harness.watch(&session).await;
    let one = session.prompt("one").await.unwrap().prompt;
    events.step_started().await;
    let two = session.prompt("two").await.unwrap().prompt;
    session.prompt("three").await.unwrap();
    let unqueued = session.unqueue(two).await.unwrap();
    assert_eq!((unqueued.prompt, unqueued.text.as_str()), (two, "two"));
    // One that runs, has ended or never was is not in the queue.
    for prompt in [one, two, PromptId(99)] {
        let refused = session.unqueue(prompt).await.unwrap_err();
        assert!(
            matches!(refused, SessionError::Refused(Refused::NotQueued { prompt: p }) if p == prompt),
            "{refused}"
        );
    }
    harness.model.then(reply().text("done"));
    first.text("done");
    drop(first);
    events.turn_finished().await;
    events.turn_finished().await;
    let started: Vec<_> = events
        .facts()
        .filter_map(|fact| match fact {
            Fact::Turn(TurnFact::Started { prompt, .. }) => Some(*prompt),
            _ => None,
        })
        .collect();
    assert_eq!(started, [one, PromptId(3)]);
}

#[tokio::test]
async fn m_c5_a_prompt_taken_back_under_a_hold_does_not_run_after_the_release() {
    let harness = Harness::start();
    let session = harness.open().await;
    let mut events = harness.watch(&session).await;
    session.hold().await.unwrap();
    let one = session.prompt("one").await.unwrap().prompt;
    session.prompt("two").await.unwrap();
    session.unqueue(one).await.unwrap();
    harness.model.then(reply().text("done"));
    session.release().await.unwrap();
    events.turn_finished().await;
    assert!(session.snapshot().queue.is_empty());
    let texts = events.facts().filter_map(|fact| match fact {
        Fact::Turn(TurnFact::Started { prompt, .. }) => Some(*prompt),
        _ => None,
    });
    assert_eq!(texts.collect::<Vec<_>>(), [PromptId(2)]);
}

#[tokio::test]
async fn m_c1_an_interrupt_works_while_a_policy_confirm_is_open() {
    let harness = Harness::start();
    harness.model.then(reply().call("shell", json!({"command": "touch ran"})));
    let session = harness.sessions().open(harness.session().policy(PolicyMode::Ask)).await.unwrap();
    let mut events = harness.watch(&session).await;
    session.prompt("go").await.unwrap();
    let ask = events.asked().await;
    assert!(ask.pause().unwrap().request.details.unwrap().contains("touch ran"));
    session.interrupt_and_wait().await.unwrap().unwrap();
    events.turn_finished().await;
    assert!(!harness.folder.path().join("ran").exists());
    let result = events.facts().find_map(|fact| match fact {
        Fact::Tool(ToolFact::Finished(result)) => Some(result.status),
        _ => None,
    });
    assert_eq!(result, Some(ToolStatus::Interrupted));
}

/// Sleeping, looping, compiling, a pipeline of ten: by the receipt, all processes are gone, every
/// time.
#[tokio::test]
async fn t_p1_all_processes_are_gone_at_the_receipt() {
    let harness = Harness::start();
    let census = Census::new();
    let mark = census.mark();
    std::fs::write(harness.folder.path().join("main.c"), "int main(void) { return 0; }\n").unwrap();
    let pipeline = ["cat"; 9].join(" | ");
    let commands = [
        format!("echo up; exec -a {mark} sleep 1000"),
        format!("echo up; : {mark}; while :; do :; done"),
        format!(
            "echo up; : {mark}; while :; do cc -D{} -o out main.c; done",
            mark.replace('-', "_")
        ),
        format!("(echo up; : {mark}; while :; do echo y; sleep 0.01; done) | {pipeline}"),
    ];
    let session = harness.open().await;
    let mut events = harness.watch(&session).await;
    for command in commands.iter().cycle().take(rounds(12, 100)) {
        harness.model.then(reply().call("shell", json!({ "command": command })));
        session.prompt("go").await.unwrap();
        events
            .until_new("output", |event| match event.delta() {
                Some(holdpoint_common::Delta::Output { .. }) => Some(()),
                _ => None,
            })
            .await;
        let end = session.interrupt_and_wait().await.unwrap().unwrap();
        assert!(census.living().is_empty(), "{command}: {:?}", census.living());
        assert!(end.receipt.unwrap().processes.total() >= 1);
        events.turn_finished().await;
    }
}

#[tokio::test]
async fn m_c3_the_effects_of_an_interrupted_call_are_recorded() {
    let harness = Harness::start();
    let mark = FileMark { path: "made".into(), size: 1, modified: 1, hash: None };
    let wrote = mark.clone();
    harness.probe.does(move |_, context| {
        context.output("up");
        while !context.is_cancelled() {
            std::thread::yield_now();
        }
        Ok(ToolOutcome { wrote: vec![wrote.clone()], ..ToolOutcome::text("wrote made") })
    });
    harness.model.then(reply().call("probe", json!({})));
    let session = harness.open().await;
    let mut events = harness.watch(&session).await;
    session.prompt("go").await.unwrap();
    events.output("up").await;
    session.interrupt_and_wait().await.unwrap().unwrap();
    events.turn_finished().await;
    let result = events.facts().find_map(|fact| match fact {
        Fact::Tool(ToolFact::Finished(result)) => Some(result.clone()),
        _ => None,
    });
    let result = result.unwrap();
    assert_eq!((result.status, &result.wrote), (ToolStatus::Interrupted, &vec![mark]));
    assert!(result.result.contains("wrote made"), "{}", result.result);
    assert!(session.snapshot().files_modified.contains("made"));
}

/// A model that says "done". If it has a receiver, it first occupies every blocking thread of its
/// runtime until the receiver returns.
struct ThreadHog(Mutex<Option<Receiver<()>>>);

impl Model for ThreadHog {
    fn name(&self) -> &'static str {
        "hoarder/one"
    }

    fn stream(&self, _: &ModelRequest) -> ModelStream {
        if let Some(released) = self.0.lock().unwrap().take() {
            let released = Arc::new(Mutex::new(released));
            // As many threads as a runtime has.
            for _ in 0..512 {
                let released = Arc::clone(&released);
                tokio::task::spawn_blocking(move || released.lock().unwrap().recv());
            }
        }
        stream::iter([Ok(ModelEvent::Text("done".to_owned()))]).boxed()
    }
}

/// The project's instructions may be on a disk that does not respond.
#[tokio::test]
async fn m_c1_an_interrupt_works_while_the_project_file_is_read() {
    let (release, released) = mpsc::channel::<()>();
    let model = ThreadHog(Mutex::new(Some(released)));
    let engine = Engine::builder(Catalog::default().with(Arc::new(model))).start().unwrap();
    let folder = tempfile::TempDir::new().unwrap();
    let session = engine
        .sessions(Who::named("test"))
        .open(OpenSession::in_folder(folder.path()))
        .await
        .unwrap();
    session.prompt("first").await.unwrap();
    within_patience("the first turn", session.settled()).await.unwrap();
    session.prompt("second").await.unwrap();
    let end = within_patience("the receipt", session.interrupt_and_wait()).await.unwrap().unwrap();
    assert_eq!(end.outcome, Outcome::Interrupted);
    drop(release);
}
