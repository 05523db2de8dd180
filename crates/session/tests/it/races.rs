//! Races with real actors, a thousand rounds each: both orders are right, and no other outcome is.

use std::sync::mpsc;

use holdpoint_common::{
    Answer, AnswerError, Ask, AskFact, AskId, Delta, Event, Fact, Outcome, PauseKind,
    PauseResponse, Refused, SessionStatus, TurnFact, Who,
};
use holdpoint_session::testing::{Harness, Recorder, reply};
use holdpoint_session::{Answered, AttachFrom, Interruption, SessionError, SessionHandle};
use holdpoint_tools::{ToolError, ToolOutcome};
use serde_json::json;

/// How often each race is run.
fn rounds() -> usize {
    holdpoint_tools::testing::rounds(100, 1_000)
}

/// The probe asks `times` Confirms, after the cut if `late` is set, and sends each response.
fn asking(harness: &Harness) -> mpsc::Receiver<PauseResponse> {
    let (sender, receiver) = mpsc::channel();
    harness.probe.does(move |input, context| {
        if input["late"] == true {
            context.output("begun");
            while !context.is_cancelled() {
                std::thread::yield_now();
            }
        }
        for _ in 0..input["times"].as_u64().unwrap_or(1) {
            let response = context.pause(PauseKind::Confirm, "?", None);
            // The test may be over.
            let _ = sender.send(response.clone());
            if response == PauseResponse::Interrupted {
                return Err(ToolError::Interrupted);
            }
        }
        Ok(ToolOutcome::text("done"))
    });
    receiver
}

fn approve() -> Answer {
    Answer::Approve { always: false }
}

/// Spins for a random part of the time in which two requests race.
fn jitter() {
    for _ in 0..fastrand::u32(..5_000) {
        std::hint::spin_loop();
    }
}

/// Runs two futures at once; in some rounds one after the other, so that each is first on any
/// machine.
async fn race<A: Send + 'static, B>(
    round: usize,
    one: impl Future<Output = A> + Send + 'static,
    other: impl Future<Output = B>,
) -> (A, B) {
    match round % 10 {
        0 => (one.await, other.await),
        1 => {
            let other = other.await;
            (one.await, other)
        }
        _ => {
            let one = tokio::spawn(async {
                jitter();
                one.await
            });
            jitter();
            let other = other.await;
            (one.await.unwrap(), other)
        }
    }
}

/// Answers an ask, in a future that can be spawned.
fn answers(
    session: &SessionHandle,
    ask: &AskId,
    answer: Answer,
) -> impl Future<Output = Result<Answered, SessionError>> + Send + 'static {
    let (session, ask) = (session.clone(), ask.clone());
    async move { session.answer(&ask, answer).await }
}

/// Makes the session ask, and returns the first ask.
async fn asked(
    harness: &Harness,
    session: &SessionHandle,
    events: &mut Recorder,
    times: u64,
) -> Ask {
    harness.model.then(reply().call("probe", json!({ "times": times })));
    session.prompt("go").await.unwrap();
    events.asked().await
}

/// Waits until the session is idle and this client has received all of its events.
async fn settled(session: &SessionHandle, events: &mut Recorder) {
    let settled = session.settled().await.unwrap();
    assert_eq!(settled.status, SessionStatus::Idle);
    assert!(settled.asks.is_empty());
    while events.events().last().is_none_or(|event| event.seq < settled.seq) {
        events.next().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn race_answer_and_interrupt_at_once() {
    let harness = Harness::start();
    let responses = asking(&harness);
    let session = harness.open().await;
    let mut events = harness.watch(&session).await;
    let (mut answered, mut cut) = (0, 0);
    for round in 0..rounds() {
        let ask = asked(&harness, &session, &mut events, 1).await;
        let answer = answers(&session, &ask.id, approve());
        let (answer, interrupted) = race(round, answer, session.interrupt(None)).await;
        let response = responses.recv().unwrap();
        match answer {
            Ok(_) => {
                answered += 1;
                // The answer counted. If the cut overtook it on the way to the tool, the tool sees
                // an interrupt.
                assert!(matches!(response, PauseResponse::Approved | PauseResponse::Interrupted));
            }
            Err(SessionError::Refused(Refused::Answer(AnswerError::Closed { .. }))) => {
                cut += 1;
                assert_eq!(response, PauseResponse::Interrupted);
            }
            Err(other) => panic!("{other}"),
        }
        if let Interruption::Interrupting(turn) = interrupted.unwrap() {
            turn.end().await.unwrap();
        }
        settled(&session, &mut events).await;
    }
    let closings = events.facts().filter(|fact| {
        matches!(fact, Fact::Ask(AskFact::Answered { .. } | AskFact::Closed { .. }))
    });
    assert_eq!(closings.count(), rounds(), "each ask closes exactly once");
    assert!(answered > 0 && cut > 0, "both outcomes occur: {answered} answered, {cut} cut");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t_c9_two_answers_at_once_have_one_effect() {
    let harness = Harness::start();
    let responses = asking(&harness);
    let session = harness.open().await;
    let mut events = harness.watch(&session).await;
    let other =
        harness.engine.sessions(Who::named("other")).get(session.id().as_str()).await.unwrap();
    let stranger = harness.open().await;
    let mut previous: Option<Ask> = None;
    let mut won = [0, 0];
    for round in 0..rounds() {
        let ask = asked(&harness, &session, &mut events, 1).await;
        let id = ask.id.clone();
        let deny = answers(&other, &id, Answer::Deny { reason: None, always: false });
        let (denied, approved) = race(round, deny, session.answer(&id, approve())).await;
        let response = responses.recv().unwrap();
        let loser = match (approved, denied) {
            (Ok(_), Err(loser)) => {
                won[0] += 1;
                assert_eq!(response, PauseResponse::Approved);
                assert!(loser.to_string().contains("by test"), "{loser}");
                loser
            }
            (Err(loser), Ok(_)) => {
                won[1] += 1;
                assert_eq!(response, PauseResponse::Denied { reason: None });
                assert!(loser.to_string().contains("by other"), "{loser}");
                loser
            }
            both => panic!("{both:?}"),
        };
        assert!(matches!(
            loser,
            SessionError::Refused(Refused::Answer(AnswerError::AlreadyAnswered { .. }))
        ));
        // A late answer, an answer to another session's ask, and one to an ask that never existed.
        if let Some(previous) = previous.replace(ask) {
            let late = session.answer(&previous.id, approve()).await.unwrap_err();
            assert!(
                matches!(
                    late,
                    SessionError::Refused(Refused::Answer(AnswerError::AlreadyAnswered { .. }))
                ),
                "{late:?}"
            );
        }
        let astray = stranger.answer(&id, approve()).await.unwrap_err();
        assert!(
            matches!(astray, SessionError::Refused(Refused::Answer(AnswerError::Unknown { .. }))),
            "{astray:?}"
        );
        let mut never = id.clone();
        never.seq += 1_000_000;
        let unknown = session.answer(&never, approve()).await.unwrap_err();
        assert!(
            matches!(unknown, SessionError::Refused(Refused::Answer(AnswerError::Unknown { .. }))),
            "{unknown:?}"
        );
        settled(&session, &mut events).await;
    }
    assert_eq!(
        events.facts().filter(|fact| matches!(fact, Fact::Ask(AskFact::Answered { .. }))).count(),
        rounds()
    );
    assert!(won[0] > 0 && won[1] > 0, "both outcomes occur: {won:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn race_answer_then_the_same_tool_asks_again() {
    let harness = Harness::start();
    let responses = asking(&harness);
    let session = harness.open().await;
    let mut events = harness.watch(&session).await;
    let mut ask = asked(&harness, &session, &mut events, rounds() as u64).await;
    for round in 1..=rounds() {
        let stale = ask.id.clone();
        session.answer(&stale, approve()).await.unwrap();
        assert_eq!(responses.recv().unwrap(), PauseResponse::Approved);
        if round < rounds() {
            ask = events.asked().await;
            assert_ne!(ask.id, stale, "an id is never reused");
        }
        // A second answer to the first ask never reaches the next one.
        let late = session.answer(&stale, approve()).await.unwrap_err();
        assert!(
            matches!(
                late,
                SessionError::Refused(Refused::Answer(AnswerError::AlreadyAnswered { .. }))
            ),
            "{late:?}"
        );
    }
    settled(&session, &mut events).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn race_an_ask_raised_as_the_turn_is_cut() {
    let harness = Harness::start();
    let responses = asking(&harness);
    let session = harness.open().await;
    let mut events = harness.watch(&session).await;
    let (mut shown, mut raised) = (0, 0);
    for round in 0..rounds() {
        // In some rounds the ask is certainly raised before the cut, or after it.
        let (before, after) = (round % 10 == 0, round % 10 == 1);
        harness.model.then(reply().call("probe", json!({ "times": 1, "late": after })));
        session.prompt("go").await.unwrap();
        events.tool_started().await;
        if before {
            events.asked().await;
        } else if after {
            let begun =
                |event: &Event| matches!(event.delta(), Some(Delta::Output { .. })).then_some(());
            events.until_new("the tool to begin", begun).await;
        } else {
            jitter();
        }
        session.interrupt_and_wait().await.unwrap().unwrap();
        // The receipt waits for the tool, which has not even started if the cut was faster than its
        // thread.
        if let Ok(response) = responses.try_recv() {
            assert_eq!(response, PauseResponse::Interrupted);
            raised += 1;
        }
        settled(&session, &mut events).await;
    }
    let mut cut = false;
    for fact in events.facts() {
        match fact {
            Fact::Turn(TurnFact::Started { .. }) => cut = false,
            Fact::Turn(TurnFact::Cut { .. }) => cut = true,
            Fact::Ask(AskFact::Raised { .. }) => {
                shown += 1;
                assert!(!cut, "an ask raised after the cut is never shown");
            }
            _ => {}
        }
    }
    assert!(shown > 0 && shown < raised, "both outcomes occur: {shown} of {raised} were shown");
    println!("{raised} of {} began, {shown} of their asks were shown", rounds());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn race_interrupt_between_accept_and_start() {
    let harness = Harness::start();
    let session = harness.open().await;
    let mut events = harness.watch(&session).await;
    let mut cut = 0;
    for round in 0..rounds() {
        // In some rounds the turn certainly does not end by itself.
        let answer = (round % 10 == 0).then(|| harness.model.then_live());
        // The next turn must run whole: an interrupt never leaks into it.
        session.prompt("first").await.unwrap();
        let interrupted = session.interrupt(None).await.unwrap();
        drop(answer);
        session.prompt("second").await.unwrap();
        if let Interruption::Interrupting(turn) = interrupted {
            cut += 1;
            assert_eq!(turn.end().await.unwrap().outcome, Outcome::Interrupted);
            assert_eq!(events.turn_finished().await.outcome, Outcome::Interrupted);
        } else {
            assert_eq!(events.turn_finished().await.outcome, Outcome::Done);
        }
        assert_eq!(events.turn_finished().await.outcome, Outcome::Done);
        settled(&session, &mut events).await;
    }
    assert!(cut > 0, "the cut happens");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn race_close_while_asking() {
    let harness = Harness::start();
    let responses = asking(&harness);
    for round in 0..rounds() {
        let session = harness.open().await;
        let mut events = Recorder::new(session.attach(AttachFrom::start()).await.unwrap());
        let ask = asked(&harness, &session, &mut events, 1).await;
        let (answer, closed) =
            race(round, answers(&session, &ask.id, approve()), session.close()).await;
        closed.unwrap();
        let response = responses.recv().unwrap();
        match answer {
            Ok(_) => {
                assert!(matches!(response, PauseResponse::Approved | PauseResponse::Interrupted))
            }
            Err(_) => assert_eq!(response, PauseResponse::Interrupted),
        }
        while let Some(event) = events.next().await {
            if let Some(Fact::Turn(TurnFact::Finished { outcome, .. })) = event.fact() {
                assert!(matches!(outcome, Outcome::Interrupted | Outcome::Done), "{outcome}");
            }
        }
        let closings = events.facts().filter(|fact| {
            matches!(fact, Fact::Ask(AskFact::Answered { .. } | AskFact::Closed { .. }))
        });
        assert_eq!(closings.count(), 1);
    }
}

/// A prompt during the close is refused as closed, through a current handle or one from before.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn race_prompts_while_the_session_closes() {
    let harness = Harness::start();
    let before = harness.open().await;
    before.close().await.unwrap();
    for round in 0..rounds() / 4 {
        let session = harness.sessions().get(before.id().as_str()).await.unwrap();
        let known = if round % 2 == 0 { session.clone() } else { before.clone() };
        let prompts = tokio::spawn(async move {
            jitter();
            loop {
                match known.prompt("go").await {
                    Ok(_) | Err(SessionError::Refused(Refused::QueueFull { .. })) => {}
                    Err(error) => return error,
                }
            }
        });
        jitter();
        session.close().await.unwrap();
        assert_eq!(prompts.await.unwrap(), SessionError::Refused(Refused::Closed), "round {round}");
    }
}
