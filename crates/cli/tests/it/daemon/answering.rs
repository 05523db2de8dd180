//! Asks and their answers, from several clients at once and across a daemon's death.

use holdpoint_common::api::Inbox;
use holdpoint_common::{AskFact, AskId, Fact, HoldState, Outcome, TurnFact};
use rustix::process::Signal;
use serde_json::{Value, json};

use super::client::{Api, at_once};
use super::harness::DaemonWorld;
use crate::world::rounds;

fn house() -> (DaemonWorld, Api) {
    let house = DaemonWorld::new();
    house.start();
    let api = Api::new(&house);
    (house, api)
}

fn inbox(api: &Api) -> Inbox {
    serde_json::from_value(api.get("asks").ok()).unwrap()
}

#[test]
fn t_c9_of_two_concurrent_answers_the_second_reports_who_answered_first() {
    const ASKS: usize = 100;
    let (_house, api) = house();
    let clients = [api.named("one"), api.named("two")];
    for _ in 0..rounds(1, 10) {
        let session = api.open("ask");
        api.prompt(&session, &"shell: touch made\n---\n".repeat(ASKS));
        for _ in 0..ASKS {
            let ask = api.asks(&session, 1).remove(0);
            let given = [json!({ "type": "approve" }), json!({ "type": "deny" })];
            let answers = at_once(2, |n| clients[n].answer(&ask, &given[n]));
            let winner = answers
                .iter()
                .position(|answer| answer.status == 200)
                .expect("one answer is accepted");
            let error = answers[1 - winner].error(409);
            assert_eq!(error.code, "alreadyAnswered");
            let by = json!({ "type": "client", "name": clients[winner].name(), "pid": std::process::id() });
            assert_eq!(error.details, json!({ "ask": ask, "by": by }));
        }
        assert_eq!(api.settled(&session).last_turn.unwrap().outcome, Outcome::Done);
        let mut answered = answered(&api, &session);
        assert_eq!(answered.len(), ASKS);
        answered.dedup();
        assert_eq!(answered.len(), ASKS, "in the log each ask has one answer");
        api.post(&format!("sessions/{session}/close"), &Value::Null).ok();
    }
}

/// The asks that were answered in the session's only turn, from its log.
fn answered(api: &Api, session: &str) -> Vec<AskId> {
    let mut events = api.attach(session, "");
    let mut answered = Vec::new();
    loop {
        match events.until_event(|_| true).fact() {
            Some(Fact::Ask(AskFact::Answered { ask, .. })) => answered.push(ask.clone()),
            Some(Fact::Turn(TurnFact::Finished { .. })) => return answered,
            _ => {}
        }
    }
}

#[test]
fn t_c9_an_answer_that_has_no_effect_says_why() {
    let (_house, api) = house();
    let (session, other) = (api.open("ask"), api.open("ask"));
    api.prompt(&session, "shell: touch made\n---\nshell: touch made");
    let first = api.asks(&session, 1).remove(0);
    for wrong in [
        json!({ "type": "resume" }),
        json!({ "type": "cancel" }),
        json!({ "type": "reply", "answers": [] }),
    ] {
        assert_eq!(api.answer(&first, &wrong).error(422).code, "kindMismatch");
    }
    let never = format!("{session}.999999");
    assert_eq!(api.answer(&never, &json!({ "type": "approve" })).error(404).code, "unknownAsk");
    let others = format!("{other}.{}", first.rsplit_once('.').unwrap().1);
    assert_eq!(api.answer(&others, &json!({ "type": "approve" })).error(404).code, "unknownAsk");
    assert_eq!(
        api.answer("nobody.1", &json!({ "type": "approve" })).error(404).code,
        "unknownSession"
    );
    assert_eq!(api.answer("no-id", &json!({ "type": "approve" })).error(400).code, "malformed");
    // None of these answers changed anything.
    assert_eq!(api.asks(&session, 1), [first.as_str()]);
    api.answer(&first, &json!({ "type": "approve" })).ok();
    let second = api.asks(&session, 1).remove(0);
    api.post(&format!("sessions/{session}/interrupt"), &json!({})).ok();
    assert_eq!(api.answer(&second, &json!({ "type": "approve" })).error(410).code, "askClosed");
}

#[test]
fn t_c9_a_question_takes_whole_replies_only() {
    let (_house, api) = house();
    let session = api.open("ask");
    api.prompt(&session, "ask: Which one?");
    let asks = inbox(&api).asks;
    let ask =
        if asks.is_empty() { api.asks(&session, 1).remove(0) } else { asks[0].ask.id.to_string() };
    for answers in [json!([]), json!([{ "id": "nobody", "answer": "x" }])] {
        let error = api.answer(&ask, &json!({ "type": "reply", "answers": answers })).error(422);
        assert_eq!(error.code, "incompleteAnswer");
    }
    api.answer(&ask, &json!({ "type": "cancel" })).ok();
    assert_eq!(api.settled(&session).last_turn.unwrap().outcome, Outcome::Done);
}

#[test]
fn t_c11_a_confirm_outlives_the_daemons_death_and_is_never_allowed_by_itself() {
    let (house, api) = house();
    let session = api.open("ask");
    let made = house.0.work("made");
    api.prompt(&session, "shell: touch made");
    let ask = api.asks(&session, 1).remove(0);
    for _ in 0..rounds(3, 30) {
        house.signal(Signal::KILL);
        house.wait_gone();
        house.start();
        assert!(!made.exists(), "the call was allowed without an answer");
        let asks = inbox(&api).asks;
        assert_eq!(
            asks.iter().map(|entry| entry.ask.id.to_string()).collect::<Vec<_>>(),
            [ask.as_str()]
        );
        assert!(!asks[0].live);
        // A client must first open the session with its supplies.
        assert_eq!(api.answer(&ask, &json!({ "type": "approve" })).error(409).code, "notLive");
        api.post(&format!("sessions/{session}/open"), &api.supplies()).ok();
        assert_eq!(api.asks(&session, 1), [ask.as_str()]);
        assert!(!made.exists(), "the call was allowed without an answer");
    }
    api.answer(&ask, &json!({ "type": "approve" })).ok();
    assert_eq!(api.settled(&session).last_turn.unwrap().outcome, Outcome::Done);
    assert!(made.exists());
}

#[test]
fn m_a5_a_refused_answer_opens_no_saved_session() {
    let (house, api) = house();
    let session = api.open("ask");
    api.prompt(&session, "shell: touch one\nshell: touch two");
    let asks = api.asks(&session, 2);
    api.answer(&asks[0], &json!({ "type": "approve" })).ok();
    house.signal(Signal::KILL);
    house.wait_gone();
    house.start();
    assert_eq!(api.answer(&asks[0], &json!({ "type": "deny" })).error(409).code, "alreadyAnswered");
    assert_eq!(api.answer(&asks[1], &json!({ "type": "resume" })).error(422).code, "kindMismatch");
    let late = house.run(&["approve", &asks[0]]).code(1);
    assert!(late.err.contains("already answered"), "{late:#?}");
    house.run(&["continue", &asks[1]]).code(1);
    assert!(!inbox(&api).asks[0].live, "the session was opened");
    house.run(&["deny", &asks[1]]).code(0);
    assert_eq!(api.settled(&session).last_turn.unwrap().outcome, Outcome::Done);
}

#[test]
fn t_c12_an_unanswered_ask_stays_open_and_keeps_its_age() {
    let (_house, api) = house();
    let session = api.open("ask");
    let mut watched = api.attach(&session, "");
    api.prompt(&session, "shell: touch made");
    watched.until_event(|event| matches!(event.fact(), Some(Fact::Ask(AskFact::Raised { .. }))));
    let seen = inbox(&api).asks;
    drop(watched);
    // Wait until the session has noticed that its last client left.
    while api.look(&session).clients > 0 {
        std::thread::yield_now();
    }
    let asks = inbox(&api).asks;
    assert_eq!(asks, seen);
    assert!(asks[0].live && asks[0].ask.since.0 > 0);
    let of_session: Inbox =
        serde_json::from_value(api.get(&format!("sessions/{session}/asks")).ok()).unwrap();
    assert_eq!(of_session.asks, asks);
}

#[test]
fn t_s10_concurrent_requests_of_two_clients_each_take_effect_once() {
    let (_house, api) = house();
    let clients = [api.named("one"), api.named("two")];
    let both = |path: &str, body: Value| at_once(2, |n| clients[n].post(path, &body));
    for _ in 0..rounds(10, 100) {
        let session = api.open("ask");
        let (toggle, prompts) =
            (format!("sessions/{session}/toggle"), format!("sessions/{session}/prompts"));
        // Both clients show no hold: the first toggle sets it, and the second finds it set.
        let held = both(&toggle, json!({ "shown": "off" }));
        assert!(held.iter().all(|answer| answer.ok()["state"] == "standing"), "{held:?}");
        // Both prompts are accepted, and each answer has the prompt's position.
        let taken = both(&prompts, json!({ "text": "say hello" }));
        let mut places: Vec<_> =
            taken.iter().map(|answer| answer.ok()["position"].as_u64().unwrap()).collect();
        places.sort_unstable();
        assert_eq!(places, [1, 2]);
        let released = both(&toggle, json!({ "shown": "standing" }));
        assert!(released.iter().all(|answer| answer.ok()["state"] == "off"), "{released:?}");
        let settled = api.settled(&session);
        assert_eq!((settled.hold.shown(), settled.queue.len()), (HoldState::Off, 0));
        let closed = both(&format!("sessions/{session}/close"), Value::Null);
        assert!(closed.iter().any(|answer| answer.status == 204), "{closed:?}");
        api.delete(&format!("sessions/{session}")).ok();
        assert_eq!(api.get(&format!("sessions/{session}")).error(404).code, "unknownSession");
    }
}
