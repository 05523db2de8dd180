//! Background jobs in a session: shown to clients, and ended by the interrupt of their turn or with
//! their session.
#![cfg(target_os = "linux")]

use std::time::{Duration, Instant};

use holdpoint_common::{
    CallId, Event, Fact, Job, JobEnd, JobFact, Limits, Outcome, SessionStatus, ToolFact, TurnFact,
};
use holdpoint_session::testing::{Harness, Recorder, reply};
use holdpoint_session::{Interruption, SessionError};
use holdpoint_tools::testing::{Census, rounds};
use serde_json::json;

async fn job_started(events: &mut Recorder) -> Job {
    events
        .until_new("a job to start", |event| match event.fact() {
            Some(Fact::Job(JobFact::Started { job })) => Some(job.clone()),
            _ => None,
        })
        .await
}

async fn job_ended(events: &mut Recorder) -> (CallId, JobEnd) {
    events
        .until_new("a job to end", |event| match event.fact() {
            Some(Fact::Job(JobFact::Ended { job, end })) => Some((*job, *end)),
            _ => None,
        })
        .await
}

fn background(command: &str) -> serde_json::Value {
    json!({"command": command, "background": true})
}

#[tokio::test]
async fn t_p11_a_job_outlives_its_turn_is_shown_and_ends_with_the_session() {
    let harness = Harness::start();
    let census = Census::new();
    let command = format!("exec -a {} sleep 1000", census.mark());
    harness.model.then(reply().call("shell", background(&command)));
    let session = harness.open().await;
    let mut events = harness.watch(&session).await;
    session.prompt("serve").await.unwrap();
    let job = job_started(&mut events).await;
    assert_eq!(job.command, command);
    assert_eq!(events.turn_finished().await.outcome, Outcome::Done);
    let snapshot = session.snapshot();
    assert_eq!((snapshot.status, &snapshot.jobs[..]), (SessionStatus::Idle, &[job.clone()][..]));
    census.wait_living(1);
    // A client that attaches later sees the job, and a later turn of the session finds it.
    let late = harness.watch(&session).await;
    assert_eq!(late.attachment().snapshot().jobs.len(), 1);
    harness.model.then(reply().call("jobs", json!({"action": "list"})));
    session.prompt("look").await.unwrap();
    let listed = events.turn_finished().await;
    assert_eq!(listed.outcome, Outcome::Done);
    let result = events.facts().filter_map(|fact| match fact {
        Fact::Tool(ToolFact::Finished(result)) => Some(result.result.clone()),
        _ => None,
    });
    let result = result.last().unwrap();
    assert!(result.contains(&format!("job {}: running", job.id)), "{result}");

    session.close().await.unwrap();
    assert_eq!(job_ended(&mut events).await, (job.id, JobEnd::SessionClosed));
    census.wait_none();
}

#[tokio::test]
async fn m_e7_an_interrupt_ends_the_jobs_of_its_turn_alone() {
    let harness = Harness::start();
    let (old, new) = (Census::new(), Census::new());
    let session = harness.open().await;
    let mut events = harness.watch(&session).await;
    harness
        .model
        .then(reply().call("shell", background(&format!("exec -a {} sleep 1000", old.mark()))));
    session.prompt("one").await.unwrap();
    let first = job_started(&mut events).await;
    events.turn_finished().await;
    old.wait_living(1);

    let command = format!("exec -a {} sleep 1000 & exec -a {0} sleep 1000", new.mark());
    harness.model.then(reply().call("shell", background(&command)));
    let _silent = harness.model.then_live();
    session.prompt("two").await.unwrap();
    let second = job_started(&mut events).await;
    new.wait_living(2);
    let end = session.interrupt_and_wait().await.unwrap().unwrap();
    // At the time of the receipt the jobs are gone, counted and reported.
    assert_eq!(new.living(), []);
    let receipt = end.receipt.unwrap();
    assert!(receipt.processes.total() >= 2 && receipt.processes.not_ended.is_empty(), "{receipt}");
    assert_eq!(job_ended(&mut events).await, (second.id, JobEnd::Interrupted));
    assert_eq!(session.snapshot().jobs, [first]);
    assert_eq!(old.living().len(), 1);
    let ended = events
        .events()
        .iter()
        .position(|event| matches!(event.fact(), Some(Fact::Job(JobFact::Ended { .. }))));
    events.turn_finished().await;
    let finished = events
        .events()
        .iter()
        .rposition(|event| matches!(event.fact(), Some(Fact::Turn(TurnFact::Finished { .. }))));
    assert!(ended < finished, "the job's end is reported before the turn's");
}

/// Even if the interrupt arrives as the turn ends by itself, so that its runner has seen no cut.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn m_c3_a_receipt_waits_for_jobs_however_late_the_interrupt_comes() {
    let harness = Harness::limited(Limits { grace_ms: 50, ..Limits::default() });
    let (mut cut, mut late) = (0, 0);
    // Ten interrupts after the last step are enough.
    for round in 0..rounds(60, 1_000) {
        let census = Census::new();
        let session = harness.open().await;
        let mut events = harness.watch(&session).await;
        let command = format!("trap '' TERM; exec -a {} sleep 1000", census.mark());
        harness.model.then(reply().call("shell", background(&command)));
        let answer = harness.model.then_live();
        session.prompt("go").await.unwrap();
        job_started(&mut events).await;
        census.wait_living(1);
        let second = |event: &Event| {
            matches!(event.fact(), Some(Fact::Turn(TurnFact::StepStarted))).then_some(())
        };
        events.until_new("the second step", second).await;
        drop(answer);
        let after_the_step = round % 2 == 0;
        if after_the_step {
            let ended = |event: &Event| {
                matches!(event.fact(), Some(Fact::Turn(TurnFact::StepFinished { .. })))
                    .then_some(())
            };
            events.until_new("the answer", ended).await;
        }
        let at = Instant::now()
            + Duration::from_micros(fastrand::u64(..if after_the_step { 20 } else { 1_000 }));
        while Instant::now() < at {
            std::hint::spin_loop();
        }
        if let Interruption::Interrupting(turn) = session.interrupt(None).await.unwrap() {
            let end = turn.end().await.unwrap();
            assert_eq!(census.living(), [], "in round {round}, with {:?}", end.receipt);
            assert!(end.receipt.unwrap().processes.total() >= 1);
            events.turn_finished().await;
            let before = events.events().iter().take_while(|event| {
                !matches!(event.fact(), Some(Fact::Turn(TurnFact::Cut { .. })))
            });
            let mut steps = before.filter(|event| {
                matches!(event.fact(), Some(Fact::Turn(TurnFact::StepFinished { .. })))
            });
            cut += 1;
            late += usize::from(steps.any(|event| event.step == Some(2)));
        }
        session.close().await.unwrap();
        if late == 10 {
            break;
        }
    }
    println!("{cut} turns were cut, {late} after their last step");
    assert!(cut > 0);
}

#[tokio::test]
async fn m_e7_a_job_that_ends_by_itself_is_reported_between_turns() {
    let harness = Harness::start();
    let session = harness.open().await;
    let mut events = harness.watch(&session).await;
    let gate = harness.folder.path().join("gate");
    assert!(std::process::Command::new("mkfifo").arg(&gate).status().unwrap().success());
    harness.model.then(reply().call("shell", background("read -r < gate; exit 7")));
    session.prompt("go").await.unwrap();
    let job = job_started(&mut events).await;
    events.turn_finished().await;
    std::fs::write(gate, "\n").unwrap();
    assert_eq!(job_ended(&mut events).await, (job.id, JobEnd::Exited { code: 7 }));
    assert_eq!(session.snapshot().jobs, []);
    let ended = events.events().iter().rfind(|event| event.fact().is_some()).unwrap();
    assert_eq!((ended.turn, ended.step), (None, None));
}

#[tokio::test]
async fn m_b1_a_session_with_a_job_is_not_unloaded_to_make_room() {
    let harness = Harness::limited(Limits { max_sessions: 1, ..Limits::default() });
    let session = harness.open().await;
    let mut events = harness.watch(&session).await;
    harness.model.then(reply().call("shell", background("sleep 1000")));
    session.prompt("go").await.unwrap();
    let job = job_started(&mut events).await;
    events.turn_finished().await;
    drop(events);
    let refused = harness.sessions().open(harness.session()).await;
    assert!(matches!(refused, Err(SessionError::TooManySessions { limit: 1 })));
    assert_eq!(
        harness.engine.load_meter().load().await.unwrap().sessions.busy,
        1,
        "the engine is not idle either"
    );
    harness.model.then(reply().call("jobs", json!({"action": "stop", "job": job.id})));
    session.prompt("stop it").await.unwrap();
    let mut events = harness.watch(&session).await;
    assert_eq!(job_ended(&mut events).await, (job.id, JobEnd::Stopped));
}

#[tokio::test]
async fn m_b8_a_failed_session_ends_its_jobs_and_records_them_as_lost() {
    let harness = Harness::start();
    let census = Census::new();
    let session = harness.open().await;
    let mut events = harness.watch(&session).await;
    harness
        .model
        .then(reply().call("shell", background(&format!("exec -a {} sleep 1000", census.mark()))));
    session.prompt("go").await.unwrap();
    let job = job_started(&mut events).await;
    events.turn_finished().await;
    census.wait_living(1);
    session.panic_now().await;
    census.wait_none();
    // The next use rebuilds the session from its log.
    session.prompt("still there?").await.unwrap();
    let mut events = harness.watch(&session).await;
    assert_eq!(job_ended(&mut events).await, (job.id, JobEnd::Lost));
    events.turn_finished().await;
    assert_eq!(session.snapshot().jobs, []);
}

/// The report of a job's start travels separately from its call's result, and either may be first.
#[tokio::test]
async fn m_e7_no_job_is_lost_behind_a_flood_of_output() {
    let rounds = rounds(5, 50);
    for _ in 0..rounds {
        let harness = Harness::start();
        let flood = json!({"command": "yes | head -c 3000000"});
        let script = reply().call("shell", flood.clone()).call("shell", flood);
        let script =
            (0..4).fold(script, |script, _| script.call("shell", background("sleep 1000")));
        harness.model.then(script);
        let session = harness.open().await;
        let mut events = harness.watch(&session).await;
        session.prompt("go").await.unwrap();
        for _ in 0..4 {
            job_started(&mut events).await;
        }
        session.settled().await.unwrap();
        assert_eq!(session.snapshot().jobs.len(), 4);
    }
}

#[tokio::test]
async fn t_p11_no_job_is_alive_when_close_returns() {
    let harness = Harness::start();
    let census = Census::new();
    let session = harness.open().await;
    let mut events = harness.watch(&session).await;
    let command = format!("trap '' TERM; : {}; while :; do sleep 0.01; done", census.mark());
    harness.model.then(reply().call("shell", background(&command)));
    session.prompt("go").await.unwrap();
    job_started(&mut events).await;
    events.turn_finished().await;
    census.wait_living(1);
    session.close().await.unwrap();
    assert_eq!(census.living(), []);
}
