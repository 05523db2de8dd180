//! Asks against the real actor: raised by real tool threads, answered by real clients.

use std::sync::atomic::{AtomicBool, Ordering};

use holdpoint_common::api::AnswerRequest;
use holdpoint_common::{
    Answer, AnswerError, AnsweredBy, Ask, AskCloseCause, AskFact, AskRequest, AsksMode, Delta,
    Fact, Outcome, PauseKind, PauseResponse, PolicyMode, Refused, SessionFact, SessionStatus,
    ToolFact, ToolStatus, TurnFact, Usage, Who,
};
use holdpoint_session::store::Sqlite;
use holdpoint_session::testing::{Harness, Recorder, reply};
use holdpoint_session::{AttachFrom, SessionError, SessionHandle};
use holdpoint_tools::{ToolError, ToolOutcome};
use serde_json::{Value, json};
use tempfile::TempDir;

/// The probe raises a Confirm or a Continue, as its input says, and reports the response.
fn asking(harness: &Harness) {
    harness.probe.does(|input, context| {
        let kind =
            if input["kind"] == "confirm" { PauseKind::Confirm } else { PauseKind::Continue };
        match context.pause(kind, input["message"].as_str().unwrap_or("?"), None) {
            PauseResponse::Resumed => Ok(ToolOutcome::text("resumed")),
            PauseResponse::Approved => Ok(ToolOutcome::text("approved")),
            PauseResponse::Denied { reason } => Err(ToolError::Denied { reason }),
            PauseResponse::Interrupted => Err(ToolError::Interrupted),
        }
    });
}

/// Opens a session and makes its probe raise an ask. Returns the session, a recorder and the ask.
async fn asked(harness: &Harness, input: Value) -> (SessionHandle, Recorder, Ask) {
    harness.model.then(reply().call("probe", input));
    let session = harness.open().await;
    let mut events = harness.watch(&session).await;
    session.prompt("go").await.unwrap();
    let ask = events.asked().await;
    (session, events, ask)
}

fn result_text(facts: &[Fact]) -> Vec<(ToolStatus, String)> {
    let results = facts.iter().filter_map(|fact| match fact {
        Fact::Tool(ToolFact::Finished(result)) => Some((result.status, result.result.clone())),
        _ => None,
    });
    results.collect()
}

#[tokio::test]
async fn m_b6_the_usage_of_an_answer_counts_while_its_call_asks() {
    let harness = Harness::start();
    asking(&harness);
    let usage = Usage { input: 3_296, output: 15, ..Usage::default() };
    harness.model.then(reply().call("probe", json!({"kind": "confirm"})).usage(usage));
    let session = harness.open().await;
    let mut events = harness.watch(&session).await;
    session.prompt("go").await.unwrap();
    events.asked().await;
    assert_eq!(session.snapshot().usage, usage);
    // The second step counts only when it has an answer.
    let second = harness.model.then_live();
    events.answer(Answer::Approve { always: false }).await.unwrap();
    events
        .until("the end of the step", |event| {
            matches!(event.fact(), Some(Fact::Turn(TurnFact::StepFinished { .. }))).then_some(())
        })
        .await;
    assert_eq!(session.snapshot().usage, usage, "once");
    drop(second);
    events.turn_finished().await;
}

#[tokio::test]
async fn m_a1_status_is_paused_exactly_while_an_ask_is_open() {
    let harness = Harness::start();
    asking(&harness);
    harness
        .model
        .then(reply().call("probe", json!({"kind": "continue", "message": "Page loaded"})));
    let session = harness.open().await;
    assert_eq!(session.snapshot().status, SessionStatus::Idle);
    let mut events = harness.watch(&session).await;
    session.prompt("go").await.unwrap();
    assert_ne!(session.snapshot().status, SessionStatus::Idle, "running before the reply");
    let ask = events.asked().await;
    assert_eq!(session.snapshot().status, SessionStatus::Paused);
    assert_eq!(session.snapshot().asks, std::slice::from_ref(&ask));
    assert_eq!(ask.pause().unwrap().request.message, "Page loaded");
    events.answer(Answer::Resume).await.unwrap();
    assert_eq!(session.snapshot().status, SessionStatus::Running);
    assert_eq!(events.turn_finished().await.outcome, Outcome::Done);
    assert_eq!(session.snapshot().status, SessionStatus::Idle);
}

#[tokio::test]
async fn m_a2_a_reason_reaches_the_model_in_the_same_step() {
    let harness = Harness::start();
    asking(&harness);
    let (_, mut events, _) =
        asked(&harness, json!({"kind": "confirm", "message": "Drop the table?"})).await;
    events
        .answer(Answer::Deny { reason: Some("not on Fridays".into()), always: false })
        .await
        .unwrap();
    events.turn_finished().await;
    let requests = harness.model.requests();
    let holdpoint_session::model::Message::Tool(result) = requests[1].messages.last().unwrap()
    else {
        panic!("{requests:#?}")
    };
    assert!(result.to_text().contains("not on Fridays"), "{result:?}");
    assert_eq!(result.status, ToolStatus::Denied);
}

#[tokio::test]
async fn m_a3_answers_to_two_paused_sessions_reach_only_their_own() {
    let harness = Harness::start();
    asking(&harness);
    let (one, two) = (harness.open().await, harness.open().await);
    let (mut one_events, mut two_events) = (harness.watch(&one).await, harness.watch(&two).await);
    harness.model.then(reply().call("probe", json!({"kind": "continue", "message": "one"})));
    one.prompt("go").await.unwrap();
    let one_ask = one_events.asked().await;
    harness.model.then(reply().call("probe", json!({"kind": "confirm", "message": "two"})));
    two.prompt("go").await.unwrap();
    let two_ask = two_events.asked().await;
    assert_eq!(one_ask.pause().unwrap().request.message, "one");
    assert_eq!(two_ask.pause().unwrap().request.message, "two");
    let stray = one.answer(&two_ask.id, Answer::Approve { always: false }).await.unwrap_err();
    assert_eq!(
        stray,
        SessionError::Refused(Refused::Answer(AnswerError::Unknown { ask: two_ask.id.clone() }))
    );
    let request =
        AnswerRequest { ask: two_ask.id.clone(), answer: Answer::Approve { always: false } };
    assert_eq!(harness.sessions().act(one.id(), request).await.unwrap_err(), stray);
    one.answer(&one_ask.id, Answer::Resume).await.unwrap();
    assert_eq!(one_events.turn_finished().await.outcome, Outcome::Done);
    assert_eq!(two.snapshot().status, SessionStatus::Paused);
    two.answer(&two_ask.id, Answer::Approve { always: false }).await.unwrap();
    assert_eq!(two_events.turn_finished().await.outcome, Outcome::Done);
}

#[tokio::test]
async fn m_a3_an_always_is_remembered_in_its_session_alone() {
    let harness = Harness::start();
    let sessions = harness.sessions();
    let open = || sessions.open(harness.session().policy(PolicyMode::Ask));
    let (one, two) = (open().await.unwrap(), open().await.unwrap());
    let mut events = harness.watch(&one).await;
    for round in 0..2 {
        harness.model.then(reply().call("probe", json!({"same": true}))).then(reply().text("ok"));
        one.prompt("go").await.unwrap();
        if round == 0 {
            events.asked().await;
            events.answer(Answer::Approve { always: true }).await.unwrap();
        }
        assert_eq!(events.turn_finished().await.outcome, Outcome::Done);
    }
    assert_eq!(
        events.facts().filter(|fact| matches!(fact, Fact::Ask(AskFact::Raised { .. }))).count(),
        1
    );
    let mut others = harness.watch(&two).await;
    harness.model.then(reply().call("probe", json!({"same": true})));
    two.prompt("go").await.unwrap();
    others.asked().await;
    one.close().await.unwrap();
    // Reopened, the session has forgotten the approval.
    let one = harness.sessions().get(one.id().as_str()).await.unwrap();
    let mut events = Recorder::new(one.attach(AttachFrom::now()).await.unwrap());
    harness.model.then(reply().call("probe", json!({"same": true})));
    one.prompt("go").await.unwrap();
    events.asked().await;
}

#[tokio::test]
async fn m_a5_second_answer_reports_who_answered_first() {
    let harness = Harness::start();
    asking(&harness);
    let (session, mut events, ask) = asked(&harness, json!({"kind": "confirm"})).await;
    let other = harness.engine.sessions(Who { name: "other".into(), pid: Some(7) });
    let other = other.get(session.id().as_str()).await.unwrap();

    let mismatch = other.answer(&ask.id, Answer::Resume).await.unwrap_err();
    assert!(
        matches!(
            mismatch,
            SessionError::Refused(Refused::Answer(AnswerError::KindMismatch { .. }))
        ),
        "{mismatch:?}"
    );
    assert_eq!(session.snapshot().asks.len(), 1, "the ask stays open");

    other.answer(&ask.id, Answer::Approve { always: false }).await.unwrap();
    let late =
        session.answer(&ask.id, Answer::Deny { reason: None, always: false }).await.unwrap_err();
    let by = AnsweredBy::Client(Who { name: "other".into(), pid: Some(7) });
    assert_eq!(
        late,
        SessionError::Refused(Refused::Answer(AnswerError::AlreadyAnswered {
            ask: ask.id.clone(),
            by
        }))
    );
    assert_eq!(events.turn_finished().await.outcome, Outcome::Done);
    assert_eq!(
        events.facts().filter(|fact| matches!(fact, Fact::Ask(AskFact::Answered { .. }))).count(),
        1
    );
}

#[tokio::test]
async fn m_a5_an_answer_to_a_closed_ask_reports_the_cause() {
    let harness = Harness::start();
    asking(&harness);
    let (session, _events, ask) = asked(&harness, json!({"kind": "confirm"})).await;
    session.interrupt_and_wait().await.unwrap().unwrap();
    let closed = session.answer(&ask.id, Answer::Approve { always: false }).await.unwrap_err();
    let cause = AskCloseCause::Interrupted;
    assert_eq!(
        closed,
        SessionError::Refused(Refused::Answer(AnswerError::Closed { ask: ask.id, cause }))
    );
}

#[tokio::test]
async fn m_a5_an_answer_without_an_id_goes_to_the_ask_last_shown() {
    let harness = Harness::start();
    asking(&harness);
    let calls = reply().call("probe", json!({"kind": "continue", "message": "a"}));
    harness.model.then(calls.call("probe", json!({"kind": "continue", "message": "b"})));
    let session = harness.open().await;
    let mut events = harness.watch(&session).await;
    let nothing = events.answer(Answer::Resume).await.unwrap_err();
    assert_eq!(nothing, SessionError::Refused(Refused::Answer(AnswerError::NothingShown)));
    session.prompt("go").await.unwrap();
    let first = events.asked().await;
    events.asked().await;
    assert_eq!(events.attachment().waiting(), 1);
    // Another client answers the ask that this one shows and has not seen answered yet.
    session.answer(&first.id, Answer::Resume).await.unwrap();
    let late = events.answer(Answer::Resume).await.unwrap_err();
    assert!(
        matches!(late, SessionError::Refused(Refused::Answer(AnswerError::AlreadyAnswered { .. }))),
        "{late:?}"
    );
    events
        .until("the answer of the other client", |event| {
            matches!(event.fact(), Some(Fact::Ask(AskFact::Answered { .. }))).then_some(())
        })
        .await;
    events.answer(Answer::Resume).await.unwrap();
    assert_eq!(events.turn_finished().await.outcome, Outcome::Done);
}

#[tokio::test]
async fn m_a6_who_answers_is_a_property_of_the_session() {
    let harness = Harness::start();
    asking(&harness);
    for (asks, confirm) in
        [(AsksMode::Deny, ToolStatus::Denied), (AsksMode::Approve, ToolStatus::Ok)]
    {
        let session = harness.sessions().open(harness.session().asks(asks)).await.unwrap();
        // Attached clients make no difference.
        let mut events = harness.watch(&session).await;
        let calls = reply().call("probe", json!({"kind": "continue"}));
        harness.model.then(calls.call("probe", json!({"kind": "confirm"}))).then(reply());
        session.prompt("go").await.unwrap();
        assert_eq!(events.turn_finished().await.outcome, Outcome::Done);
        let facts: Vec<_> = events.facts().cloned().collect();
        let statuses: Vec<_> =
            result_text(&facts).into_iter().map(|(status, text)| (text, status)).collect();
        assert!(statuses.contains(&("resumed".to_owned(), ToolStatus::Ok)), "{statuses:?}");
        assert!(statuses.iter().any(|(_, status)| *status == confirm), "{asks}: {statuses:?}");
        let by = |fact: &Fact| {
            matches!(fact, Fact::Ask(AskFact::Answered { by: AnsweredBy::Setting { .. }, .. }))
        };
        assert_eq!(facts.iter().filter(|fact| by(fact)).count(), 2, "the error names who answered");
    }
}

#[tokio::test]
async fn m_a6_a_new_asks_mode_answers_open_and_later_asks_and_survives_a_restart() {
    let folder = TempDir::new().unwrap();
    let start = || Harness::with(|engine| engine.store(Sqlite::open(folder.path()).unwrap()));
    let id = {
        let harness = start();
        asking(&harness);
        let session = harness.open().await;
        let mut events = harness.watch(&session).await;
        let confirm = || reply().call("probe", json!({"kind": "confirm"}));
        harness.model.then(confirm()).then(confirm()).then(reply());
        session.prompt("go").await.unwrap();
        let open = events.asked().await;
        session.change_asks(AsksMode::Approve).await.unwrap();
        assert_eq!(events.turn_finished().await.outcome, Outcome::Done);
        let facts: Vec<_> = events.facts().cloned().collect();
        let changed = |fact: &Fact| matches!(fact, Fact::Session(SessionFact::AsksChanged { asks: AsksMode::Approve, by }) if by.name == "test");
        assert_eq!(facts.iter().filter(|fact| changed(fact)).count(), 1);
        let by_setting = |fact: &Fact| {
            matches!(fact, Fact::Ask(AskFact::Answered { by: AnsweredBy::Setting { .. }, .. }))
        };
        assert_eq!(
            facts.iter().filter(|fact| by_setting(fact)).count(),
            2,
            "the open ask and the next one"
        );
        let late = session.answer(&open.id, Answer::Approve { always: false }).await.unwrap_err();
        assert!(late.to_string().contains("asks = approve"), "{late}");
        let seq = session.snapshot().seq;
        session.change_asks(AsksMode::Approve).await.unwrap();
        assert_eq!(session.snapshot().seq, seq, "the same mode changes nothing");
        session.id().clone()
    };
    let harness = start();
    asking(&harness);
    let session = harness.sessions().get(id.as_str()).await.unwrap();
    assert_eq!(session.snapshot().settings.asks, AsksMode::Approve);
    session.change_asks(AsksMode::Wait).await.unwrap();
    let mut events = session.attach(AttachFrom::now()).await.unwrap();
    harness.model.then(reply().call("probe", json!({"kind": "confirm"}))).then(reply());
    session.prompt("go").await.unwrap();
    while events.shown().is_none() && events.next().await.is_some() {}
    events.answer(Answer::Approve { always: false }).await.unwrap();
    session.settled().await.unwrap();
    session.close().await.unwrap();
    assert_eq!(
        session.change_asks(AsksMode::Deny).await,
        Err(SessionError::Refused(Refused::Closed))
    );
}

#[tokio::test]
async fn m_a7_parallel_asks_form_a_queue_and_an_interrupt_answers_them_all() {
    let harness = Harness::start();
    asking(&harness);
    let mut calls = reply();
    for n in 0..5 {
        calls = calls.call("probe", json!({"kind": "confirm", "message": format!("{n}")}));
    }
    harness.model.then(calls);
    let session = harness.open().await;
    let mut events = harness.watch(&session).await;
    session.prompt("go").await.unwrap();
    for _ in 0..5 {
        events.asked().await;
    }
    assert_eq!(events.attachment().waiting(), 4);
    let end = session.interrupt_and_wait().await.unwrap().unwrap();
    assert_eq!(end.receipt.unwrap().asks.len(), 5);
    assert!(session.snapshot().asks.is_empty());
}

#[tokio::test]
async fn m_a8_interrupt_while_paused_drops_the_prompt_everywhere() {
    let harness = Harness::start();
    let (sender, receiver) = std::sync::mpsc::channel();
    harness.probe.does(move |_, context| {
        let response = context.pause(PauseKind::Confirm, "?", None);
        sender.send(response).unwrap();
        // An ask raised after the cut is answered at once and never shown.
        sender.send(context.pause(PauseKind::Continue, "late", None)).unwrap();
        Err(ToolError::Interrupted)
    });
    harness.model.then(reply().call("probe", json!({})));
    let session = harness.open().await;
    let mut events = harness.watch(&session).await;
    let mut second = harness.watch(&session).await;
    session.prompt("go").await.unwrap();
    let ask = events.asked().await;
    session.interrupt(None).await.unwrap();
    for events in [&mut events, &mut second] {
        assert_eq!(events.turn_finished().await.outcome, Outcome::Interrupted);
        assert!(events.attachment().shown().is_none());
        let closed = |fact: &Fact| matches!(fact, Fact::Ask(AskFact::Closed { ask: id, .. }) if *id == ask.id);
        assert_eq!(events.facts().filter(|fact| closed(fact)).count(), 1);
        assert_eq!(
            events.facts().filter(|fact| matches!(fact, Fact::Ask(AskFact::Raised { .. }))).count(),
            1
        );
    }
    assert_eq!(receiver.recv().unwrap(), PauseResponse::Interrupted);
    assert_eq!(receiver.recv().unwrap(), PauseResponse::Interrupted);
}

#[tokio::test]
async fn m_a11_an_open_ask_is_shown_to_later_clients() {
    let harness = Harness::start();
    asking(&harness);
    let (session, events, ask) =
        asked(&harness, json!({"kind": "confirm", "message": "still here"})).await;
    drop(events);
    let late = session.attach(AttachFrom::now()).await.unwrap();
    assert_eq!(late.shown(), Some(&ask));
    assert_eq!(
        match &ask.request {
            AskRequest::Pause(pause) => &pause.message,
            _ => "",
        },
        "still here"
    );
    late.answer(Answer::Approve { always: false }).await.unwrap();
    let settled = session.settled().await.unwrap();
    assert_eq!(settled.last_turn.as_ref().unwrap().outcome, Outcome::Done);
}

/// The mailbox is faster than the lane: an ask must not overtake its call's own output.
#[tokio::test]
async fn an_ask_follows_the_output_of_its_call() {
    let harness = Harness::start();
    harness.probe.does(|_, context| {
        for n in 0..500 {
            context.output(&format!("line {n}\n"));
        }
        context.pause(PauseKind::Continue, "seen all of it?", None);
        Ok(ToolOutcome::default())
    });
    for _ in 0..20 {
        harness.model.then(reply().call("probe", json!({}))).then(reply());
        let session = harness.open().await;
        let mut events = harness.watch(&session).await;
        session.prompt("go").await.unwrap();
        events.asked().await;
        let pieces = events
            .events()
            .iter()
            .filter(|event| matches!(event.delta(), Some(Delta::Output { .. })))
            .count();
        assert_eq!(pieces, 500);
        events.answer(Answer::Resume).await.unwrap();
        events.turn_finished().await;
    }
}

/// Calls that run in parallel fill the lane, so that an ask has to wait for room in it.
#[tokio::test]
async fn asks_follow_the_output_of_their_call_while_other_calls_fill_the_lane() {
    const ASKS: usize = 50;
    let harness = Harness::start();
    let asking = AtomicBool::new(true);
    harness.probe.does(move |arguments, context| {
        if arguments["asks"] == true {
            for n in 0..ASKS {
                context.output(&format!("line {n}\n"));
                context.pause(PauseKind::Continue, format!("ask {n}"), None);
            }
            asking.store(false, Ordering::Relaxed);
        }
        while asking.load(Ordering::Relaxed) {
            context.output("flood\n");
        }
        Ok(ToolOutcome::default())
    });
    let flood = || json!({"asks": false});
    let answer = reply().call("probe", json!({"asks": true})).call("probe", flood());
    harness.model.then(answer.call("probe", flood()).call("probe", flood())).then(reply());
    let session = harness.sessions().open(harness.session().asks(AsksMode::Approve)).await.unwrap();
    let mut events = harness.watch(&session).await;
    session.prompt("go").await.unwrap();
    assert_eq!(events.turn_finished().await.outcome, Outcome::Done);
    let mut raised = 0;
    let mut lines = 0;
    for event in events.events() {
        if let Some(Delta::Output { text, .. }) = event.delta() {
            lines += text.matches("line ").count();
        }
        if let Some(Fact::Ask(AskFact::Raised { .. })) = event.fact() {
            raised += 1;
            assert_eq!(lines, raised, "an ask overtook the output before it");
        }
    }
    assert_eq!(raised, ASKS);
}

/// On disk, where a save takes time, all calls that one answer approves wait together.
#[tokio::test]
async fn m_a2_an_always_also_answers_the_same_asks_behind_it_and_all_of_them_run() {
    let folder = TempDir::new().unwrap();
    let harness = Harness::with(|engine| engine.store(Sqlite::open(folder.path()).unwrap()));
    let session = harness.sessions().open(harness.session().policy(PolicyMode::Ask)).await.unwrap();
    let mut events = harness.watch(&session).await;
    let (same, other) = (json!({"same": true}), json!({"same": false}));
    harness
        .model
        .then(reply().call("probe", same.clone()).call("probe", other).call("probe", same));
    session.prompt("go").await.unwrap();
    for _ in 0..3 {
        events.asked().await;
    }
    let asks = session.snapshot().asks.clone();
    let first =
        asks.iter().find(|ask| ask.always.as_deref() == Some(r#"probe {"same":true}"#)).unwrap();
    session.answer(&first.id, Answer::Approve { always: true }).await.unwrap();
    let open = session.snapshot().asks.clone();
    assert_eq!(open.len(), 1, "{open:?}");
    assert_eq!(open[0].always.as_deref(), Some(r#"probe {"same":false}"#));
    session.answer(&open[0].id, Answer::Deny { reason: None, always: false }).await.unwrap();
    assert_eq!(events.turn_finished().await.outcome, Outcome::Done);
    // Every approved call has run.
    let facts: Vec<_> = events.facts().cloned().collect();
    let mut came: Vec<_> =
        result_text(&facts).into_iter().map(|(status, _)| format!("{status:?}")).collect();
    came.sort();
    assert_eq!(came, ["Denied", "Ok", "Ok"]);
}

#[tokio::test]
async fn m_a7_the_asks_of_one_answer_come_in_its_order() {
    for _ in 0..20 {
        let harness = Harness::start();
        let session =
            harness.sessions().open(harness.session().policy(PolicyMode::Ask)).await.unwrap();
        let mut events = harness.watch(&session).await;
        // A call that can't be judged and a call of an unknown tool are among them.
        let script = (0..4).fold(reply(), |script, n| script.call("probe", json!({ "n": n })));
        let script = script.call("shell", json!({"command": ""})).call("nothing", json!({}));
        harness
            .model
            .then((4..8).fold(script, |script, n| script.call("probe", json!({ "n": n }))));
        session.prompt("go").await.unwrap();
        for n in 0..8 {
            let AskRequest::Pause(pause) = events.asked().await.request else {
                panic!("a question")
            };
            assert_eq!(pause.details, Some(format!("{{\"n\":{n}}}")));
        }
    }
}
