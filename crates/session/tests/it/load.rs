//! Many sessions that wait, and clients that leave in the middle of a request.

use std::sync::mpsc;

use holdpoint_common::{
    Answer, AnswerError, Ask, AskFact, Fact, Limits, Outcome, PauseKind, PauseResponse, PromptFact,
    Refused, SessionStatus, TurnFact, TurnId,
};
use holdpoint_session::testing::{Harness, Recorder, reply, within_patience};
use holdpoint_session::{AttachFrom, Interruption, SessionError, SessionHandle};
use holdpoint_tools::{ToolError, ToolOutcome};
use serde_json::json;

#[tokio::test]
async fn t_t3_idle_sessions_answer_beside_ninety_that_wait() {
    const WAITING: usize = 90;
    const IDLE: usize = 10;
    const TURNS: usize = 50;
    let harness = Harness::limited(Limits { max_sessions: WAITING + IDLE, ..Limits::default() });
    harness.probe.does(|_, context| match context.pause(PauseKind::Continue, "Go on?", None) {
        PauseResponse::Resumed => Ok(ToolOutcome::default()),
        _ => Err(ToolError::Interrupted),
    });
    let mut waiting = Vec::new();
    for _ in 0..WAITING {
        harness.model.then(reply().call("probe", json!({})));
        let session = harness.open().await;
        let mut events = harness.watch(&session).await;
        session.prompt("go").await.unwrap();
        events.asked().await;
        waiting.push((session, events));
    }
    let mut idle = Vec::new();
    for _ in 0..IDLE {
        idle.push(harness.open().await);
    }
    for _ in 0..TURNS {
        for session in &idle {
            session.prompt("are you there?").await.unwrap();
            let settled = within_patience("the turn", session.settled()).await.unwrap();
            assert_eq!(settled.last_turn.as_ref().unwrap().outcome, Outcome::Done);
        }
    }
    // Every place is taken; an idle session makes room for one more.
    drop(idle);
    harness.open().await;
    for (session, events) in &mut waiting {
        assert_eq!(session.snapshot().status, SessionStatus::Paused);
        events.answer(Answer::Resume).await.unwrap();
        assert_eq!(events.turn_finished().await.outcome, Outcome::Done);
    }
}

/// Drops a request at a random moment. Returns its reply, if it had one by then.
async fn cut<T: Send + 'static>(request: impl Future<Output = T> + Send + 'static) -> Option<T> {
    // Polled this often and dropped, or dropped from another thread while it runs.
    let looks = fastrand::u32(..4);
    if looks > 0 {
        let mut request = Box::pin(request);
        for _ in 0..looks {
            if let std::task::Poll::Ready(value) = futures_util::poll!(&mut request) {
                return Some(value);
            }
            jitter();
        }
        return None;
    }
    let task = tokio::spawn(request);
    jitter();
    task.abort();
    task.await.ok()
}

/// Spins for up to a little longer than a request takes.
fn jitter() {
    for _ in 0..fastrand::u32(..20_000) {
        std::hint::spin_loop();
    }
}

/// Checks that some requests were dropped before the reply and some were not.
fn assert_both_outcomes(dropped: usize) {
    println!("{dropped} of {ROUNDS} requests were dropped before the reply");
    assert!((1..ROUNDS).contains(&dropped), "{dropped}");
}

const ROUNDS: usize = 1_000;

/// Waits until this client has received all events of a session at rest.
async fn settled(session: &SessionHandle, events: &mut Recorder) {
    let settled = within_patience("rest", session.settled()).await.unwrap();
    while events.events().last().is_none_or(|event| event.seq < settled.seq) {
        events.next().await.unwrap();
    }
}

fn finished(events: &Recorder) -> Vec<TurnId> {
    let finished = events.events().iter();
    finished
        .filter(|event| matches!(event.fact(), Some(Fact::Turn(TurnFact::Finished { .. }))))
        .filter_map(|event| event.turn)
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t_t7_a_dropped_prompt_runs_once_or_not_at_all() {
    let harness = Harness::start();
    let mut dropped = 0;
    let mut early = 0;
    // Not in one session, because a conversation grows.
    for _ in 0..ROUNDS / 100 {
        let session = harness.open().await;
        let mut events = harness.watch(&session).await;
        let mut confirmed = Vec::new();
        for round in 0..100 {
            let prompting = session.clone();
            match cut(async move { prompting.prompt(round.to_string()).await }).await {
                Some(prompted) => confirmed.push((round.to_string(), prompted.unwrap().prompt)),
                None => dropped += 1,
            }
            // This prompt is queued behind the previous one, if that was accepted.
            session.prompt("next").await.unwrap();
            settled(&session, &mut events).await;
        }
        let accepted: Vec<_> = events
            .facts()
            .filter_map(|fact| match fact {
                Fact::Prompt(PromptFact::Accepted { text, prompt, .. }) if &**text != "next" => {
                    Some((text.to_string(), *prompt))
                }
                _ => None,
            })
            .collect();
        assert!(accepted.is_sorted_by_key(|(_, prompt)| *prompt));
        let mut once = accepted.clone();
        once.dedup_by_key(|(text, _)| text.clone());
        assert_eq!(once, accepted, "no prompt was accepted twice");
        assert!(
            confirmed.iter().all(|prompt| accepted.contains(prompt)),
            "every confirmed prompt was accepted"
        );
        early += accepted.len() - confirmed.len();
        // Every accepted prompt ran once.
        let turns = finished(&events);
        assert_eq!(turns.len(), accepted.len() + 100);
        assert!(turns.is_sorted_by(|left, right| left < right));
        session.close().await.unwrap();
    }
    println!("{early} of the dropped requests had taken effect");
    assert_both_outcomes(dropped);
}

/// Makes the session's tool ask, and returns the ask.
async fn asked(harness: &Harness, session: &SessionHandle, events: &mut Recorder) -> Ask {
    harness.model.then(reply().call("probe", json!({})));
    session.prompt("go").await.unwrap();
    events.asked().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t_t7_a_dropped_answer_counts_once_or_not_at_all() {
    let harness = Harness::start();
    let (sender, receiver) = mpsc::channel();
    harness.probe.does(move |_, context| {
        sender.send(context.pause(PauseKind::Confirm, "?", None)).unwrap();
        Ok(ToolOutcome::default())
    });
    let mut dropped = 0;
    let mut early = 0;
    // Not in one session, because a conversation grows.
    for _ in 0..ROUNDS / 100 {
        let session = harness.open().await;
        let mut events = harness.watch(&session).await;
        for _ in 0..100 {
            let ask = asked(&harness, &session, &mut events).await;
            let (answering, id) = (session.clone(), ask.id.clone());
            let replied =
                cut(async move { answering.answer(&id, Answer::Approve { always: false }).await })
                    .await;
            dropped += usize::from(replied.is_none());
            // A denial now is too late, or it is the answer.
            let done =
                match session.answer(&ask.id, Answer::Deny { reason: None, always: false }).await {
                    Ok(_) => false,
                    Err(SessionError::Refused(Refused::Answer(AnswerError::AlreadyAnswered {
                        ..
                    }))) => true,
                    Err(error) => panic!("{error}"),
                };
            if let Some(replied) = &replied {
                assert!(replied.is_ok() && done, "every confirmed answer took effect: {replied:?}");
            }
            early += usize::from(done && replied.is_none());
            settled(&session, &mut events).await;
            let responses: Vec<_> = receiver.try_iter().collect();
            let expected =
                if done { PauseResponse::Approved } else { PauseResponse::Denied { reason: None } };
            assert_eq!(responses, [expected], "the tool received one answer");
        }
        let answers = events
            .facts()
            .filter(|fact| matches!(fact, Fact::Ask(AskFact::Answered { .. })))
            .count();
        assert_eq!(answers, 100, "every ask was answered once");
        session.close().await.unwrap();
    }
    println!("{early} of the dropped requests had taken effect");
    assert_both_outcomes(dropped);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t_t7_a_dropped_interrupt_cuts_once_or_not_at_all() {
    let harness = Harness::start();
    let mut dropped = 0;
    let mut early = 0;
    for _ in 0..ROUNDS / 100 {
        let session = harness.sessions().open(harness.session().model("rehearsal")).await.unwrap();
        let mut events = harness.watch(&session).await;
        for round in 1..=100 {
            let turn = session.prompt("hang").await.unwrap();
            let interrupting = session.clone();
            let replied = cut(async move { interrupting.interrupt(None).await }).await;
            dropped += usize::from(replied.is_none());
            let done = match session.interrupt(None).await.unwrap() {
                Interruption::Interrupting(turn) => {
                    turn.end().await.unwrap();
                    // Which of the two interrupts cut it is unknown here.
                    false
                }
                Interruption::RunEnded | Interruption::NotRunning => true,
            };
            early += usize::from(done && replied.is_none());
            settled(&session, &mut events).await;
            assert_eq!(finished(&events).len(), round, "{turn:?} ended once");
        }
        let cuts =
            events.facts().filter(|fact| matches!(fact, Fact::Turn(TurnFact::Cut { .. }))).count();
        assert_eq!(cuts, 100, "every turn was cut once");
        session.close().await.unwrap();
    }
    println!("{early} of the dropped requests had ended");
    assert_both_outcomes(dropped);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t_t7_a_dropped_attach_leaves_no_client() {
    let harness = Harness::start();
    let session = harness.open().await;
    let mut dropped = 0;
    for round in 0..ROUNDS {
        let attaching = session.clone();
        match cut(async move { attaching.attach(AttachFrom::start()).await }).await {
            // Refused if dropped attaches are still counted.
            Some(attached) => {
                drop(attached.unwrap_or_else(|error| panic!("round {round}: {error}")))
            }
            None => dropped += 1,
        }
    }
    // A dropped attach detaches while the actor handles it, so this reply follows every detach.
    assert!(matches!(session.interrupt(None).await.unwrap(), Interruption::NotRunning));
    let attached = session.attach(AttachFrom::start()).await.unwrap();
    assert_eq!(attached.snapshot().clients, 1, "dropped attachments are not counted");
    assert_both_outcomes(dropped);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t_t7_a_dropped_attach_does_not_keep_a_session_loaded() {
    let harness = Harness::limited(Limits { max_sessions: 1, ..Limits::default() });
    let mut session = harness.open().await;
    for round in 0..100 {
        let attaching = session.clone();
        drop(cut(async move { attaching.attach(AttachFrom::start()).await }).await);
        // Handled after the dropped attach, and changes nothing in the session.
        assert!(matches!(session.interrupt(None).await.unwrap(), Interruption::NotRunning));
        session = harness
            .sessions()
            .open(harness.session())
            .await
            .unwrap_or_else(|error| panic!("round {round}: {error}"));
    }
}
