//! The limits of a turn or a run: once one is reached, no request to the model starts, and the
//! error has the numbers.

use std::num::NonZeroU64;

use holdpoint_common::{
    Event, Fact, HistoryLimit, Hold, HoldCause, Limits, Outcome, RunEnd, RunFact, RunLimit,
    RunLimits, SessionFact, SessionStatus, TurnFact,
};
use holdpoint_session::RunRequest;
use holdpoint_session::testing::Finished;
use holdpoint_tests::model_server::{Reply, Wire, openai};
use holdpoint_tests::world::{TestEngine, TestSession};

/// Tokens of each answer: 11 in, 7 out.
const EACH: u64 = 18;

/// A model that always makes another call.
fn endless(world: &TestEngine) {
    world.server.answer(|_| Reply::calls([("shell", r#"{"command":"true"}"#)]));
}

async fn turn(talk: &mut TestSession, prompt: &str) -> Finished {
    talk.session.prompt(prompt).await.unwrap();
    talk.events.turn_finished().await
}

fn requests(world: &TestEngine) -> usize {
    world.server.requests().len()
}

#[tokio::test]
async fn t_l13_no_request_begins_once_the_cap_on_tokens_is_reached() {
    for wire in Wire::ALL {
        // Reached in the middle of the third answer, and exactly at its end.
        for cap in [2 * EACH + 1, 3 * EACH] {
            let world = TestEngine::start(wire);
            let mut talk = world.open_with(|open| open.max_turn_tokens(cap)).await;
            endless(&world);
            for turns in 1..3 {
                let end = turn(&mut talk, "go").await;
                assert_eq!(
                    (end.outcome, end.usage.total()),
                    (Outcome::Limit, 3 * EACH),
                    "{wire:?}"
                );
                assert_eq!(
                    end.error.unwrap(),
                    format!("the limit of {cap} tokens is reached: 54 used")
                );
                assert_eq!(requests(&world), 3 * turns, "{wire:?}: each turn has its own limit");
            }
            world.server.assert_no_violations();
        }
    }
}

#[tokio::test]
async fn t_l13_tokens_that_the_provider_does_not_count_are_estimated() {
    let world = TestEngine::start(Wire::OpenAi);
    let mut talk = world.open_with(|open| open.max_turn_tokens(1)).await;
    let call = || Reply::stream().call(0, "shell", r#"{"command":"true"}"#);
    world.server.answer(move |_| {
        call().event(&openai::finish("tool_calls").to_string()).event("[DONE]").end()
    });
    let end = turn(&mut talk, "go").await;
    assert_eq!((end.outcome, end.usage.estimated, requests(&world)), (Outcome::Limit, true, 1));
}

#[tokio::test]
async fn t_l13_no_request_begins_once_the_cap_on_steps_is_reached() {
    for wire in Wire::ALL {
        let world = TestEngine::start(wire);
        let mut talk = world.open_with(|open| open.max_steps(3)).await;
        endless(&world);
        let end = turn(&mut talk, "go").await;
        assert_eq!((end.outcome, requests(&world)), (Outcome::Limit, 3), "{wire:?}");
        assert_eq!(end.error.unwrap(), "the limit of 3 steps is reached");
    }
}

#[tokio::test]
async fn t_l13_a_broken_answer_gets_no_step_beyond_the_cap() {
    let world = TestEngine::start(Wire::OpenAi);
    let mut talk = world.open_with(|open| open.max_steps(1)).await;
    world.server.reply(Reply::stream().say("half").cut());
    assert_eq!(turn(&mut talk, "go").await.outcome, Outcome::Limit);
    assert_eq!(requests(&world), 1);
}

#[tokio::test]
async fn t_l13_no_request_begins_once_the_cap_on_tries_is_reached() {
    for wire in Wire::ALL {
        let world = TestEngine::with(wire, "", |limits| Limits { model_tries: 3, ..limits });
        let mut talk = world.open().await;
        world.server.answer(|_| Reply::status(503, &[], r#"{"error":{"message":"busy"}}"#));
        let end = turn(&mut talk, "go").await;
        assert_eq!((end.outcome, requests(&world)), (Outcome::Failed, 3), "{wire:?}");
        assert!(end.error.unwrap().contains("tried 3 times"), "{wire:?}");
    }
}

/// Waits until a hold is in force and returns its cause.
async fn wait_held(talk: &mut TestSession) -> HoldCause {
    let stands = |fact: &Fact| match fact {
        Fact::Session(SessionFact::HoldChanged { hold: Hold::Standing { cause, .. } }) => {
            Some(cause.clone())
        }
        _ => None,
    };
    talk.events.until_new("a hold", |event| stands(event.fact()?)).await
}

#[tokio::test]
async fn t_l13_m_d5_a_run_is_held_before_the_request_beyond_its_tokens_and_loses_nothing() {
    let world = TestEngine::start(Wire::Anthropic);
    let mut talk = world.open().await;
    endless(&world);
    let limits = RunLimits { tokens: NonZeroU64::new(2 * EACH), ..RunLimits::default() };
    talk.session.start_run(RunRequest { limits, ..RunRequest::new("the goal") }).await.unwrap();
    for granted in 1..4 {
        let count = granted * 2 * EACH;
        assert_eq!(
            wait_held(&mut talk).await,
            HoldCause::Limit { reached: RunLimit::Tokens { count } }
        );
        let snapshot = talk.session.snapshot();
        assert_eq!(snapshot.status, SessionStatus::Paused);
        assert_eq!(
            (snapshot.turn.map(|turn| turn.0), snapshot.step),
            (Some(1), u32::try_from(2 * granted).ok())
        );
        assert_eq!(
            requests(&world) as u64,
            2 * granted,
            "no request is sent while the run is held"
        );
        talk.session.release().await.unwrap();
    }
    wait_held(&mut talk).await;
    world.server.assert_no_violations();
    talk.session.interrupt(None).await.unwrap();
    assert_eq!(talk.events.turn_finished().await.outcome, Outcome::Interrupted);
    let ended = talk.events.until("the run's end", |event| match event.fact()? {
        Fact::Run(RunFact::Finished { end, .. }) => Some(*end),
        _ => None,
    });
    assert_eq!(ended.await, RunEnd::Interrupted);
    assert_eq!((requests(&world), talk.session.snapshot().hold.clone()), (8, Hold::Off));
}

#[tokio::test]
async fn t_l13_m_d5_a_release_grants_the_limit_until_it_exceeds_the_usage() {
    let world = TestEngine::start(Wire::Anthropic);
    let mut talk = world.open().await;
    endless(&world);
    let limits = RunLimits { tokens: NonZeroU64::new(5), ..RunLimits::default() };
    talk.session.start_run(RunRequest { limits, ..RunRequest::new("the goal") }).await.unwrap();
    assert_eq!(
        wait_held(&mut talk).await,
        HoldCause::Limit { reached: RunLimit::Tokens { count: 5 } }
    );
    talk.session.release().await.unwrap();
    assert_eq!(
        wait_held(&mut talk).await,
        HoldCause::Limit { reached: RunLimit::Tokens { count: 20 } }
    );
    assert_eq!(requests(&world), 2, "the run continued meanwhile");
    talk.session.close().await.unwrap();
}

#[tokio::test]
async fn a_cut_names_the_window_of_the_model_where_that_was_reached() {
    let world =
        TestEngine::with(Wire::OpenAi, "[models.'openai/scripted']\nwindow = 12000", |limits| {
            limits
        });
    let mut talk = world.open().await;
    world.server.answer(|_| Reply::text(["Yes."]));
    let words = "a line of words\n".repeat(900);
    for _ in 0..3 {
        assert_eq!(turn(&mut talk, &words).await.outcome, Outcome::Done);
    }
    let cut = |event: &Event| match event.fact()? {
        Fact::Turn(TurnFact::HistoryCut(cut)) => Some((cut.reached, cut.limit < 12_000)),
        _ => None,
    };
    assert_eq!(talk.events.until("the cut", cut).await, (HistoryLimit::Window, true));
}
