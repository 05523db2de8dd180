//! Hold and release against the real runner.

use std::sync::Mutex;

use holdpoint_common::{
    Answer, Fact, Hold, HoldCause, HoldState, Outcome, PauseKind, SessionFact, SessionStatus,
    TurnFact,
};
use holdpoint_session::testing::{Harness, Recorder, reply};
use holdpoint_session::{Interruption, SessionHandle};
use holdpoint_tools::ToolOutcome;
use holdpoint_tools::testing::rounds;
use serde_json::json;

/// A turn of three steps. Its probe calls wait until the test lets each continue.
struct Stepper {
    go: std::sync::mpsc::Sender<()>,
}

fn stepper(harness: &Harness) -> Stepper {
    let (go, gone) = std::sync::mpsc::channel::<()>();
    let gone = Mutex::new(gone);
    harness.probe.does(move |_, context| {
        context.output("at work");
        // The call also ends when the test is over.
        let _ = gone.lock().unwrap().recv();
        Ok(ToolOutcome::text("done"))
    });
    for _ in 0..2 {
        harness.model.then(reply().call("probe", json!({})));
    }
    Stepper { go }
}

fn is_standing(hold: &Hold) -> bool {
    matches!(hold, Hold::Standing { .. })
}

/// Waits until a hold is in force.
async fn wait_held(events: &mut Recorder) -> Hold {
    events
        .until_new("a stand", |event| match event.fact() {
            Some(Fact::Session(SessionFact::HoldChanged { hold })) if is_standing(hold) => {
                Some(hold.clone())
            }
            _ => None,
        })
        .await
}

async fn in_a_step(harness: &Harness) -> (SessionHandle, Recorder, Stepper) {
    let stepper = stepper(harness);
    let session = harness.open().await;
    let mut events = harness.watch(&session).await;
    session.prompt("go").await.unwrap();
    events.tool_started().await;
    (session, events, stepper)
}

#[tokio::test]
async fn m_d1_m_d2_a_hold_takes_effect_at_the_end_of_the_step_and_release_continues() {
    let harness = Harness::start();
    let (session, mut events, stepper) = in_a_step(&harness).await;
    let hold = session.toggle_hold(HoldState::Off).await.unwrap();
    assert_eq!(hold.shown(), HoldState::Requested);
    assert_eq!(
        session.snapshot().status,
        SessionStatus::Running,
        "while PAUSING the turn still runs"
    );
    assert_eq!(events.hold_changed().await.shown(), HoldState::Requested);
    stepper.go.send(()).unwrap();
    assert!(is_standing(&events.hold_changed().await));
    assert_eq!(session.snapshot().status, SessionStatus::Paused);
    let finished =
        events.facts().any(|fact| matches!(fact, Fact::Turn(TurnFact::StepFinished { .. })));
    assert!(finished, "a hold never takes effect in the middle of a step");
    assert_eq!(harness.model.requests().len(), 1, "no request is sent while the hold is in force");
    // The hold remains: a toggle by a client that shows another state changes nothing.
    assert!(is_standing(&session.toggle_hold(HoldState::Off).await.unwrap()));
    assert_eq!(session.toggle_hold(HoldState::Standing).await.unwrap(), Hold::Off);
    stepper.go.send(()).unwrap();
    assert_eq!(events.turn_finished().await.outcome, Outcome::Done);
    assert_eq!(harness.model.requests().len(), 3);
}

#[tokio::test]
async fn m_d1_a_toggle_while_pausing_cancels_the_request() {
    let harness = Harness::start();
    let (session, mut events, stepper) = in_a_step(&harness).await;
    session.toggle_hold(HoldState::Off).await.unwrap();
    assert_eq!(session.toggle_hold(HoldState::Requested).await.unwrap(), Hold::Off);
    stepper.go.send(()).unwrap();
    stepper.go.send(()).unwrap();
    assert_eq!(events.turn_finished().await.outcome, Outcome::Done);
    assert!(!events.facts().any(
        |fact| matches!(fact, Fact::Session(SessionFact::HoldChanged { hold }) if is_standing(hold))
    ));
}

#[tokio::test]
async fn m_d2_if_nothing_follows_the_request_is_cleared() {
    let harness = Harness::start();
    let live = harness.model.then_live();
    let session = harness.open().await;
    let mut events = harness.watch(&session).await;
    session.prompt("go").await.unwrap();
    events.step_started().await;
    session.hold().await.unwrap();
    drop(live);
    assert_eq!(events.turn_finished().await.outcome, Outcome::Done);
    assert_eq!(events.hold_changed().await, Hold::Off);
    assert_eq!(session.snapshot().status, SessionStatus::Idle);
}

#[tokio::test]
async fn m_d2_a_hold_takes_effect_before_queued_prompts_even_after_a_failed_turn() {
    for fails in [false, true] {
        let harness = Harness::start();
        let live = harness.model.then_live();
        let session = harness.open().await;
        let mut events = harness.watch(&session).await;
        session.prompt("first").await.unwrap();
        session.prompt("second").await.unwrap();
        events.step_started().await;
        session.hold().await.unwrap();
        if fails {
            live.fail("out of order");
        }
        drop(live);
        let outcome = events.turn_finished().await.outcome;
        assert_eq!(outcome, if fails { Outcome::Failed } else { Outcome::Done });
        assert!(matches!(
            wait_held(&mut events).await,
            Hold::Standing { cause: HoldCause::User { .. }, .. }
        ));
        assert_eq!(session.snapshot().queue.len(), 1);
        session.release().await.unwrap();
        assert_eq!(events.turn_finished().await.outcome, Outcome::Done);
    }
}

#[tokio::test]
async fn m_d3_holding_an_idle_session_takes_effect_at_once_and_prompts_queue() {
    let harness = Harness::start();
    let session = harness.open().await;
    let mut events = harness.watch(&session).await;
    assert!(is_standing(&session.hold().await.unwrap()));
    assert_eq!(session.snapshot().status, SessionStatus::Paused);
    assert_eq!(session.prompt("later").await.unwrap().position, 1);
    assert!(harness.model.requests().is_empty());
    assert!(matches!(session.interrupt(None).await.unwrap(), Interruption::NotRunning));
    session.release().await.unwrap();
    assert_eq!(events.turn_finished().await.outcome, Outcome::Done);
    assert_eq!(harness.model.requests().len(), 1);
}

#[tokio::test]
async fn m_d4_a_hold_during_a_pause_does_not_answer_it() {
    let harness = Harness::start();
    harness.probe.does(|_, context| {
        context.pause(PauseKind::Continue, "?", None);
        Ok(ToolOutcome::text("went on"))
    });
    harness.model.then(reply().call("probe", json!({})));
    let session = harness.open().await;
    let mut events = harness.watch(&session).await;
    session.prompt("go").await.unwrap();
    events.asked().await;
    assert_eq!(session.hold().await.unwrap().shown(), HoldState::Requested);
    assert_eq!(session.snapshot().asks.len(), 1);
    events.answer(Answer::Resume).await.unwrap();
    wait_held(&mut events).await;
    session.release().await.unwrap();
    assert_eq!(events.turn_finished().await.outcome, Outcome::Done);
}

#[tokio::test]
async fn m_d4_an_interrupt_clears_the_hold_and_a_close_while_paused_ends_cleanly() {
    for close in [false, true] {
        let harness = Harness::start();
        let (session, mut events, stepper) = in_a_step(&harness).await;
        session.hold().await.unwrap();
        stepper.go.send(()).unwrap();
        wait_held(&mut events).await;
        if close {
            session.close().await.unwrap();
        } else {
            session.interrupt_and_wait().await.unwrap().unwrap();
        }
        assert_eq!(events.hold_changed().await, Hold::Off);
        assert_eq!(events.turn_finished().await.outcome, Outcome::Interrupted);
        assert_eq!(harness.model.requests().len(), 1);
    }
}

/// A hold requested as the boundary is reached: the label and the runner always agree.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn m_d1_a_hold_races_the_boundary() {
    let rounds = rounds(200, 1_000);
    let harness = Harness::start();
    let session = harness.open().await;
    let mut events = harness.watch(&session).await;
    let (mut applied, mut cleared) = (0, 0);
    for round in 0..rounds {
        // In some rounds, the hold is certainly requested before the boundary.
        let answer = (round % 10 == 0).then(|| harness.model.then_live());
        if answer.is_none() {
            harness.model.then(reply().call("probe", json!({})));
        }
        harness.model.then(reply());
        session.prompt("go").await.unwrap();
        // Spread over the turn, from its start to after its end.
        for _ in 0..fastrand::u32(..20_000) {
            std::hint::spin_loop();
        }
        let hold = session.hold().await.unwrap();
        if let Some(answer) = answer {
            assert!(answer.call("probe", json!({})));
        }
        match hold {
            Hold::Requested { .. } => {
                let stands =
                    events.until_new("a hold in force or the end", |event| match event.fact() {
                        Some(Fact::Session(SessionFact::HoldChanged { hold }))
                            if is_standing(hold) =>
                        {
                            Some(true)
                        }
                        Some(Fact::Turn(TurnFact::Finished { .. })) => Some(false),
                        _ => None,
                    });
                if stands.await {
                    applied += 1;
                    assert_eq!(
                        session.snapshot().step,
                        Some(1),
                        "the hold takes effect between the steps"
                    );
                    session.release().await.unwrap();
                    assert_eq!(events.turn_finished().await.outcome, Outcome::Done);
                } else {
                    cleared += 1;
                }
            }
            Hold::Standing { .. } => {
                // The turn was over already.
                assert_eq!(events.turn_finished().await.outcome, Outcome::Done);
                session.release().await.unwrap();
            }
            Hold::Off => panic!("a hold was requested"),
        }
        let settled = session.settled().await.unwrap();
        assert_eq!(settled.status, SessionStatus::Idle, "{settled:?}");
        while events.events().last().is_none_or(|event| event.seq < settled.seq) {
            events.next().await.unwrap();
        }
    }
    assert!(applied > 0, "both outcomes occur: {applied} took effect, {cleared} were cleared");
}
