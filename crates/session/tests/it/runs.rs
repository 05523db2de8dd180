//! Runs of iterations against the real runner: held, limited, interrupted, killed, and continued.

use std::num::NonZeroU64;

use holdpoint_common::{
    Answer, Delta, Fact, Hold, HoldAt, HoldCause, HoldState, Limits, Outcome, PauseKind,
    PromptFact, RunEnd, RunFact, RunLimit, RunLimits, SessionFact, SessionStatus, TurnFact,
};
use holdpoint_session::model::{Message, ModelRequest};
use holdpoint_session::testing::{Harness, Recorder, reply};
use holdpoint_session::{Interruption, RunRequest, SessionError, SessionHandle};
use holdpoint_tools::ToolOutcome;
use serde_json::json;

/// A run with one task, which the model never finishes by itself.
fn endless() -> RunRequest {
    RunRequest { tasks: vec!["the task".to_owned()], ..RunRequest::new("the goal") }
}

fn at_most(iterations: u64) -> RunRequest {
    let limits = RunLimits { iterations: NonZeroU64::new(iterations), ..RunLimits::default() };
    RunRequest { limits, ..endless() }
}

async fn iteration_started(events: &mut Recorder) -> u32 {
    events
        .until_new("an iteration", |event| match event.fact() {
            Some(Fact::Run(RunFact::IterationStarted { iteration, .. })) => Some(*iteration),
            _ => None,
        })
        .await
}

async fn run_finished(events: &mut Recorder) -> RunEnd {
    events
        .until_new("the run's end", |event| match event.fact() {
            Some(Fact::Run(RunFact::Finished { end, .. })) => Some(*end),
            _ => None,
        })
        .await
}

/// Waits until a hold is in force and returns its cause.
async fn wait_held(events: &mut Recorder) -> HoldCause {
    events
        .until_new("a stand", |event| match event.fact() {
            Some(Fact::Session(SessionFact::HoldChanged {
                hold: Hold::Standing { cause, .. },
            })) => Some(cause.clone()),
            _ => None,
        })
        .await
}

fn iterations(events: &Recorder) -> usize {
    events
        .facts()
        .filter(|fact| matches!(fact, Fact::Run(RunFact::IterationStarted { .. })))
        .count()
}

/// The first message of a request.
fn opening(request: &ModelRequest) -> &str {
    match &request.messages[0] {
        Message::User(text) => text,
        other => panic!("{other:?}"),
    }
}

async fn open(harness: &Harness) -> (SessionHandle, Recorder) {
    let session = harness.open().await;
    let events = harness.watch(&session).await;
    (session, events)
}

fn is_text(delta: &Delta) -> bool {
    matches!(delta, Delta::Text { .. })
}

fn is_user(cause: &HoldCause) -> bool {
    matches!(cause, HoldCause::User { .. })
}

#[tokio::test]
async fn m_d5_iterations_begin_afresh_until_no_task_is_left() {
    let harness = Harness::start();
    let (session, mut events) = open(&harness).await;
    let tasks = |input| reply().call("tasks", input);
    harness
        .model
        .then(tasks(json!({"action": "add", "titles": ["one", "two"]})))
        .then(reply().text("planned"));
    for _ in 0..2 {
        harness.model.then(tasks(json!({"action": "start"})));
        harness.model.then(tasks(json!({"action": "finish"})));
        harness
            .model
            .then(tasks(json!({"action": "note", "text": "it works"})))
            .then(reply().text("done"));
    }
    let started = session.start_run(RunRequest::new("make it work")).await.unwrap();
    assert!(started.turn.is_some() && !started.saved, "the run is only in memory");
    assert_eq!(run_finished(&mut events).await, RunEnd::Done);
    let snapshot = session.settled().await.unwrap();
    assert_eq!((snapshot.status, iterations(&events)), (SessionStatus::Idle, 3));
    assert_eq!(snapshot.last_run.unwrap().progress.iteration, 3);
    let requests = harness.model.requests();
    let begins: Vec<_> =
        requests.iter().filter(|request| request.messages.len() == 1).map(opening).collect();
    assert_eq!(begins.len(), 3, "each iteration begins with one message");
    assert!(begins[0].contains("There are no tasks yet") && begins[0].contains("make it work"));
    assert!(begins[1].contains("[ ] 1. one") && begins[1].contains("iteration 2"));
    assert!(begins[2].contains("[x] 1. one") && begins[2].contains("- it works"));
    assert!(!begins[2].contains("planned"), "no other text of earlier iterations");
}

#[tokio::test]
async fn m_d5_one_run_at_a_time_with_a_goal_and_not_in_a_turn() {
    let harness = Harness::start();
    let (session, mut events) = open(&harness).await;
    let refused = |run: Result<_, SessionError>| run.err().unwrap().code();
    assert_eq!(refused(session.start_run(RunRequest::new(" ")).await), "emptyGoal");
    let unnamed = RunRequest { tasks: vec![String::new()], ..endless() };
    assert_eq!(refused(session.start_run(unnamed).await), "badTask");
    let live = harness.model.then_live();
    session.prompt("go").await.unwrap();
    assert_eq!(refused(session.start_run(endless()).await), "turnOpen");
    drop(live);
    events.turn_finished().await;
    let _live = harness.model.then_live();
    session.start_run(endless()).await.unwrap();
    assert_eq!(refused(session.start_run(endless()).await), "runOpen");
    session.close().await.unwrap();
    assert_eq!(refused(session.start_run(endless()).await), "closed");
}

#[tokio::test]
async fn m_d1_m_d2_a_hold_takes_effect_at_the_end_of_any_iteration() {
    for fails in [false, true] {
        let harness = Harness::start();
        let (session, mut events) = open(&harness).await;
        let live = harness.model.then_live();
        harness.probe.does(|_, _| Ok(ToolOutcome::text("fine")));
        live.call("probe", json!({}));
        let more = harness.model.then_live();
        session.start_run(endless()).await.unwrap();
        events.step_started().await;
        assert_eq!(session.hold().await.unwrap().shown(), HoldState::Requested);
        drop(live);
        // Not between two of its steps: the second request is sent.
        events.until_new("a second step", |event| event.step.filter(|step| *step == 2)).await;
        assert_eq!(session.snapshot().hold.shown(), HoldState::Requested);
        if fails {
            more.fail("out of order");
        }
        drop(more);
        assert!(is_user(&wait_held(&mut events).await));
        assert_eq!((iterations(&events), session.snapshot().status), (1, SessionStatus::Paused));
        assert_eq!(session.release().await.unwrap(), Hold::Off);
        assert_eq!(iteration_started(&mut events).await, 2);
    }
    // The last iteration: no other follows, and the request is cleared.
    let harness = Harness::start();
    let (session, mut events) = open(&harness).await;
    let live = harness.model.then_live();
    session.start_run(RunRequest::new("the goal")).await.unwrap();
    events.step_started().await;
    session.hold().await.unwrap();
    drop(live);
    assert_eq!(run_finished(&mut events).await, RunEnd::Done);
    assert_eq!(events.hold_changed().await, Hold::Off);
}

#[tokio::test]
async fn m_d2_hold_at_step_moves_the_boundary() {
    let harness = Harness::start();
    let (session, mut events) = open(&harness).await;
    let live = harness.model.then_live();
    live.call("probe", json!({}));
    session.start_run(RunRequest { hold_at: HoldAt::Step, ..endless() }).await.unwrap();
    events.step_started().await;
    session.hold().await.unwrap();
    drop(live);
    assert!(is_user(&wait_held(&mut events).await));
    let snapshot = session.snapshot();
    assert_eq!(
        (snapshot.step, harness.model.requests().len()),
        (Some(1), 1),
        "in the middle of the iteration"
    );
    let _next = harness.model.then_live();
    session.release().await.unwrap();
    events.until_new("its second step", |event| event.step.filter(|step| *step == 2)).await;
}

#[tokio::test]
async fn m_d4_a_hold_during_an_ask_takes_effect_at_the_boundary() {
    let harness = Harness::start();
    let (session, mut events) = open(&harness).await;
    harness.probe.does(|_, context| {
        context.pause(PauseKind::Continue, "?", None);
        Ok(ToolOutcome::text("went on"))
    });
    harness.model.then(reply().call("probe", json!({})));
    session.start_run(endless()).await.unwrap();
    events.asked().await;
    session.hold().await.unwrap();
    assert_eq!(session.snapshot().asks.len(), 1);
    events.answer(Answer::Resume).await.unwrap();
    assert!(is_user(&wait_held(&mut events).await));
    assert_eq!(iterations(&events), 1);
}

#[tokio::test]
async fn m_d2_m_b2_prompts_during_an_iteration_wait_for_the_boundary_behind_a_hold() {
    let harness = Harness::start();
    let (session, mut events) = open(&harness).await;
    let live = harness.model.then_live();
    session.start_run(endless()).await.unwrap();
    events.step_started().await;
    let prompted = session.prompt("mind the port").await.unwrap();
    assert_eq!(prompted.position, 1);
    session.prompt("and the time").await.unwrap();
    assert_eq!(session.snapshot().queue.len(), 2, "both prompts are queued");
    session.hold().await.unwrap();
    drop(live);
    wait_held(&mut events).await;
    assert_eq!(
        session.snapshot().queue.len(),
        2,
        "the hold takes effect before the prompts are delivered"
    );
    let next = harness.model.then_live();
    next.text("I mind.");
    session.release().await.unwrap();
    let delivered = events
        .until_new("a delivery", |event| match event.fact() {
            Some(Fact::Prompt(PromptFact::Delivered { prompt, iteration })) => {
                Some((*prompt, *iteration))
            }
            _ => None,
        })
        .await;
    assert_eq!(delivered, (prompted.prompt, 2));
    events
        .until_new("its answer", |event| event.delta().filter(|delta| is_text(delta)).map(|_| ()))
        .await;
    let requests = harness.model.requests();
    let last = requests.last().unwrap();
    assert_eq!(last.messages.len(), 1);
    assert!(opening(last).contains("mind the port") && opening(last).contains("and the time"));
    assert!(session.snapshot().queue.is_empty());
}

#[tokio::test]
async fn m_d5_a_prompt_in_the_last_iteration_gets_another_iteration() {
    let harness = Harness::start();
    let (session, mut events) = open(&harness).await;
    let live = harness.model.then_live();
    session.start_run(RunRequest::new("the goal")).await.unwrap();
    events.step_started().await;
    session.prompt("one thing more").await.unwrap();
    drop(live);
    assert_eq!(run_finished(&mut events).await, RunEnd::Done);
    assert!(opening(&harness.model.requests()[1]).contains("one thing more"));
    assert_eq!(iterations(&events), 2);
}

/// Prompts delivered to an iteration that failed before its answer have not reached the model: the
/// next one gets them again.
#[tokio::test]
async fn m_d5_prompts_of_a_failed_iteration_are_delivered_again() {
    let harness = Harness::limited(Limits { run_retry_ms: 1, model_tries: 1, ..Limits::default() });
    let (session, mut events) = open(&harness).await;
    let live = harness.model.then_live();
    for _ in 0..2 {
        harness.model.then(reply().fail("overloaded"));
    }
    harness.model.then(reply().text("I mind."));
    session.start_run(endless()).await.unwrap();
    events.step_started().await;
    session.prompt("mind the port").await.unwrap();
    session.prompt("and the time").await.unwrap();
    drop(live);
    while iteration_started(&mut events).await < 5 {}
    session.interrupt_and_wait().await.unwrap();
    let counts_of = |text: &str| {
        let requests = harness.model.requests();
        let counts = requests.iter().map(|request| opening(request).matches(text).count());
        counts.collect::<Vec<_>>()
    };
    // The second and third fail; the fourth answers.
    let [port, time] = ["mind the port", "and the time"].map(counts_of);
    assert_eq!((&port[..4], &time[..4]), (&[0, 1, 1, 1][..], &[0, 1, 1, 1][..]));
    assert!(
        port[4..].iter().chain(&time[4..]).all(|times| *times == 0),
        "each prompt is sent until its answer: {port:?}, {time:?}"
    );
}

#[tokio::test]
async fn m_d5_a_run_does_not_end_before_its_prompts_are_delivered() {
    let harness = Harness::limited(Limits { run_retry_ms: 1, model_tries: 1, ..Limits::default() });
    let (session, mut events) = open(&harness).await;
    harness.model.then(reply().call("tasks", json!({"action": "start"})));
    harness.model.then(reply().call("tasks", json!({"action": "finish"})));
    let live = harness.model.then_live();
    harness.model.then(reply().fail("overloaded"));
    session.start_run(endless()).await.unwrap();
    for _ in 0..3 {
        events.step_started().await;
    }
    session.prompt("one thing more").await.unwrap();
    drop(live);
    assert_eq!(run_finished(&mut events).await, RunEnd::Done);
    assert!(opening(harness.model.requests().last().unwrap()).contains("one thing more"));
    assert_eq!(iterations(&events), 3);
}

#[tokio::test]
async fn m_d5_a_limit_holds_and_a_hold_at_a_limit_is_released_one_after_the_other() {
    let harness = Harness::start();
    let (session, mut events) = open(&harness).await;
    session.start_run(at_most(2)).await.unwrap();
    let two = HoldCause::Limit { reached: RunLimit::Iterations { count: 2 } };
    assert_eq!(wait_held(&mut events).await, two);
    assert_eq!((harness.model.requests().len(), two.to_string().as_str()), (2, "2 iterations"));
    let live = harness.model.then_live();
    session.release().await.unwrap();
    assert_eq!(iteration_started(&mut events).await, 3);
    let last = harness.model.then_live();
    drop(live);
    assert_eq!(iteration_started(&mut events).await, 4);
    session.hold().await.unwrap();
    drop(last);
    assert!(is_user(&wait_held(&mut events).await), "the user's hold comes first");
    let hold = session.release().await.unwrap();
    assert!(
        matches!(hold, Hold::Standing { cause: HoldCause::Limit { .. }, .. }),
        "the limit's hold comes next: {hold:?}"
    );
    assert_eq!(iterations(&events), 4);
}

#[tokio::test]
async fn m_d5_a_failed_iteration_backs_off_and_three_in_a_row_hold_the_run() {
    let harness = Harness::limited(Limits { run_retry_ms: 1, model_tries: 1, ..Limits::default() });
    let (session, mut events) = open(&harness).await;
    for _ in 0..3 {
        harness.model.then(reply().fail("overloaded"));
    }
    session.start_run(endless()).await.unwrap();
    assert_eq!(
        wait_held(&mut events).await,
        HoldCause::Limit { reached: RunLimit::Failures { count: 3 } }
    );
    let waits =
        events.facts().filter(|fact| matches!(fact, Fact::Run(RunFact::Waiting { .. }))).count();
    assert_eq!((iterations(&events), waits), (3, 2));
    let is_failure = |fact: &Fact| {
        matches!(
            fact,
            Fact::Turn(TurnFact::Finished { outcome: Outcome::Failed, error: Some(_), .. })
        )
    };
    assert_eq!(events.facts().filter(|fact| is_failure(fact)).count(), 3);
    session.release().await.unwrap();
    assert_eq!(iteration_started(&mut events).await, 4);
}

#[tokio::test]
async fn m_d5_m_d4_interrupt_ends_the_run_in_a_turn_while_it_waits_and_while_held() {
    // In a turn:
    let harness =
        Harness::limited(Limits { run_retry_ms: 3_600_000, model_tries: 1, ..Limits::default() });
    let (session, mut events) = open(&harness).await;
    let _live = harness.model.then_live();
    session.start_run(endless()).await.unwrap();
    events.step_started().await;
    session.prompt("never").await.unwrap();
    let end = session.interrupt_and_wait().await.unwrap().unwrap();
    assert_eq!((end.outcome, end.receipt.unwrap().prompts.len()), (Outcome::Interrupted, 1));
    assert_eq!(run_finished(&mut events).await, RunEnd::Interrupted);
    assert_eq!(session.settled().await.unwrap().status, SessionStatus::Idle);
    // While the run waits after a failure:
    harness.model.then(reply().fail("overloaded"));
    session.start_run(endless()).await.unwrap();
    events
        .until_new("the wait", |event| {
            matches!(event.fact(), Some(Fact::Run(RunFact::Waiting { .. }))).then_some(())
        })
        .await;
    assert_eq!(session.snapshot().status, SessionStatus::Running);
    assert!(matches!(session.interrupt(None).await.unwrap(), Interruption::RunEnded));
    assert_eq!(run_finished(&mut events).await, RunEnd::Interrupted);
    // While the run is held:
    session.hold().await.unwrap();
    assert_eq!(session.start_run(endless()).await.unwrap().turn, None);
    assert!(matches!(session.interrupt(None).await.unwrap(), Interruption::RunEnded));
    let snapshot = session.snapshot();
    assert_eq!((snapshot.status, snapshot.hold.shown()), (SessionStatus::Idle, HoldState::Off));
    assert!(matches!(session.interrupt(None).await.unwrap(), Interruption::NotRunning));
}

#[tokio::test]
async fn m_d4_closing_while_paused_ends_the_run_cleanly() {
    let harness = Harness::start();
    let (session, mut events) = open(&harness).await;
    session.start_run(at_most(1)).await.unwrap();
    wait_held(&mut events).await;
    session.prompt("never").await.unwrap();
    session.close().await.unwrap();
    assert_eq!(run_finished(&mut events).await, RunEnd::Closed);
    let saved = harness.sessions().look(session.id().as_str()).await.unwrap();
    assert_eq!(
        (saved.run.clone(), saved.hold.shown(), saved.queue.len()),
        (None, HoldState::Off, 0)
    );
}

#[tokio::test]
async fn m_d4_closing_while_pausing_ends_the_run_cleanly() {
    let harness = Harness::start();
    let (session, mut events) = open(&harness).await;
    let _live = harness.model.then_live();
    session.start_run(endless()).await.unwrap();
    events.step_started().await;
    assert_eq!(session.hold().await.unwrap().shown(), HoldState::Requested);
    session.close().await.unwrap();
    assert_eq!(run_finished(&mut events).await, RunEnd::Closed);
    let saved = harness.sessions().look(session.id().as_str()).await.unwrap();
    assert_eq!(
        (saved.run.clone(), saved.hold.shown(), saved.status),
        (None, HoldState::Off, SessionStatus::Idle)
    );
}

#[tokio::test]
async fn m_d2_m_d3_a_hold_during_backoff_takes_effect_at_once_and_release_skips_the_wait() {
    let harness =
        Harness::limited(Limits { run_retry_ms: 3_600_000, model_tries: 1, ..Limits::default() });
    let (session, mut events) = open(&harness).await;
    harness.model.then(reply().fail("overloaded"));
    session.start_run(endless()).await.unwrap();
    events
        .until_new("the wait", |event| {
            matches!(event.fact(), Some(Fact::Run(RunFact::Waiting { .. }))).then_some(())
        })
        .await;
    assert_eq!(session.hold().await.unwrap().shown(), HoldState::Standing);
    assert_eq!(session.snapshot().status, SessionStatus::Paused);
    let _next = harness.model.then_live();
    assert_eq!(session.release().await.unwrap(), Hold::Off);
    assert_eq!(iteration_started(&mut events).await, 2);
}

/// The user's hold is named first, then the limit.
#[tokio::test]
async fn m_d2_m_d5_a_users_hold_precedes_the_hold_of_three_failures() {
    let harness = Harness::limited(Limits { run_retry_ms: 1, model_tries: 1, ..Limits::default() });
    let (session, mut events) = open(&harness).await;
    harness.model.then(reply().fail("overloaded")).then(reply().fail("overloaded"));
    let third = harness.model.then_live();
    session.start_run(endless()).await.unwrap();
    while iteration_started(&mut events).await < 3 {}
    session.hold().await.unwrap();
    third.fail("overloaded");
    drop(third);
    assert!(is_user(&wait_held(&mut events).await));
    session.release().await.unwrap();
    assert_eq!(
        wait_held(&mut events).await,
        HoldCause::Limit { reached: RunLimit::Failures { count: 3 } }
    );
    session.release().await.unwrap();
    assert_eq!(iteration_started(&mut events).await, 4);
}

#[tokio::test]
async fn m_b8_a_panic_in_mid_iteration_holds_the_run_and_release_continues_it() {
    let harness = Harness::start();
    let (session, mut events) = open(&harness).await;
    let live = harness.model.then_live();
    live.text("I look around.");
    session.start_run(endless()).await.unwrap();
    events
        .until_new("text", |event| event.delta().filter(|delta| is_text(delta)).map(|_| ()))
        .await;
    session.panic_now().await;
    let mut events = harness.watch(&session).await;
    assert_eq!(wait_held(&mut events).await, HoldCause::Restored);
    assert_eq!(session.snapshot().run.as_ref().unwrap().progress.iteration, 1);
    let _next = harness.model.then_live();
    session.release().await.unwrap();
    assert_eq!(iteration_started(&mut events).await, 1);
}

#[tokio::test]
async fn m_b1_a_run_is_not_unloaded_to_make_room() {
    let limits =
        Limits { max_sessions: 1, run_retry_ms: 3_600_000, model_tries: 1, ..Limits::default() };
    let harness = Harness::limited(limits);
    let session = harness.open().await;
    harness.model.then(reply().fail("overloaded"));
    session.start_run(endless()).await.unwrap();
    while session.snapshot().run.as_ref().is_none_or(|run| run.waits_until.is_none()) {
        tokio::task::yield_now().await;
    }
    let full = harness.sessions().open(harness.session()).await.err().unwrap();
    assert_eq!(full, SessionError::TooManySessions { limit: 1 });
}
