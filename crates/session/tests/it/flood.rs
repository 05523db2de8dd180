//! A flood of requests at one session.
#![cfg(target_os = "linux")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::join_all;
use holdpoint_common::{Answer, AnswerError, AskId, Outcome, Refused, SessionStatus, Who};
use holdpoint_session::model::Catalog;
use holdpoint_session::testing::within_patience;
use holdpoint_session::{AttachFrom, Engine, OpenSession, SessionError, SessionHandle, Sessions};
use holdpoint_tools::testing::{in_own_process, rounds};
use tempfile::TempDir;

use crate::forgetful_store::Forgetful;
use crate::process::resident_kib;

/// How many tasks flood.
const TASKS: usize = 8;
/// How many requests each task has open at once.
const AT_ONCE: usize = 1_000;
/// Sessions beside the flooded one: more than there are threads for sessions, so that some share
/// its thread.
const NEIGHBOURS: usize = 4;
/// How many turns a session beside the flooded one has before it is closed.
const TURNS: usize = 100;
/// How many KiB the process may grow, whatever the number of requests.
const GROWTH: u64 = 16 * 1024;

fn requests() -> usize {
    rounds(100_000, 1_000_000)
}

/// How the requests of the flood ended.
#[derive(Default)]
struct Ends {
    accepted: AtomicUsize,
    full: AtomicUsize,
    other: AtomicUsize,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t_t2_a_flooded_session_refuses_and_others_answer() {
    if !in_own_process() {
        return;
    }
    let folder = TempDir::new().unwrap();
    let engine = Engine::builder(Catalog::default()).store(Forgetful).start().unwrap();
    let sessions = engine.sessions(Who::named("test"));
    let open = OpenSession::in_folder(folder.path()).model("rehearsal");
    let flooded = sessions.open(open.clone()).await.unwrap();
    flooded.prompt("hang").await.unwrap();

    let answers = Arc::new(AtomicUsize::new(0));
    let neighbours: Vec<_> = (0..NEIGHBOURS)
        .map(|_| tokio::spawn(answering(sessions.clone(), open.clone(), Arc::clone(&answers))))
        .collect();

    // The baseline: a flood that fills the queue, and as many turns as the whole conversations of
    // all neighbours.
    flood(&flooded, TASKS * AT_ONCE).await;
    while answers.load(Ordering::SeqCst) < NEIGHBOURS * TURNS {
        assert!(!neighbours.iter().any(|neighbour| neighbour.is_finished()));
        flood(&flooded, TASKS * AT_ONCE).await;
    }
    let (before, earlier) = (resident_kib(), answers.load(Ordering::SeqCst));
    let ends = flood(&flooded, requests()).await;
    let grown = resident_kib().saturating_sub(before);
    let answered = answers.load(Ordering::SeqCst) - earlier;
    answers.fetch_add(STOP, Ordering::SeqCst);
    for neighbour in neighbours {
        within_patience("a neighbour", neighbour).await.unwrap();
    }
    println!("{answered} turns of other sessions meanwhile; grown by {grown} KiB");

    let (full, accepted) = (ends.full.load(Ordering::SeqCst), ends.accepted.load(Ordering::SeqCst));
    assert_eq!(accepted, 0, "the queue is full from the first flood on");
    assert!(full >= requests() / 5, "overload is reported as an error: {full}");
    assert_eq!(ends.other.load(Ordering::SeqCst), 0);
    assert!(grown < GROWTH, "grown by {grown} KiB");
    assert!(answered > 0, "other sessions answer during the flood");
    // The flooded session is unchanged and can be cut.
    let snapshot = flooded.snapshot();
    assert_eq!(
        (snapshot.queue.len(), snapshot.clients, snapshot.status),
        (32, 0, SessionStatus::Running)
    );
    let end = within_patience("the cut", flooded.interrupt_and_wait()).await.unwrap().unwrap();
    assert_eq!(end.outcome, Outcome::Interrupted);
}

/// When added to the count of answers, this ends the neighbours.
const STOP: usize = usize::MAX / 2;

/// Runs turns in new sessions, one after the other.
async fn answering(sessions: Sessions, open: OpenSession, answers: Arc<AtomicUsize>) {
    while answers.load(Ordering::SeqCst) < STOP {
        let session = within_patience("a session", sessions.open(open.clone())).await.unwrap();
        // Not for ever, because a conversation grows.
        for _ in 0..TURNS {
            session.prompt("say here").await.unwrap();
            let settled = within_patience("the turn", session.settled()).await.unwrap();
            assert_eq!(settled.last_turn.as_ref().unwrap().outcome, Outcome::Done);
            if answers.fetch_add(1, Ordering::SeqCst) >= STOP {
                break;
            }
        }
        session.close().await.unwrap();
    }
}

/// Sends this many requests of all kinds, many at once.
async fn flood(session: &SessionHandle, requests: usize) -> Arc<Ends> {
    let ends = Arc::new(Ends::default());
    let tasks = (0..TASKS).map(|_| {
        let (session, ends) = (session.clone(), Arc::clone(&ends));
        tokio::spawn(async move {
            for _ in 0..requests / TASKS / AT_ONCE {
                join_all((0..AT_ONCE).map(|n| request(&session, &ends, n))).await;
            }
        })
    });
    for task in join_all(tasks).await {
        task.unwrap();
    }
    ends
}

async fn request(session: &SessionHandle, ends: &Ends, n: usize) {
    match n % 4 {
        0 => match session.prompt("hang").await {
            Ok(_) => ends.accepted.fetch_add(1, Ordering::SeqCst),
            Err(SessionError::Refused(Refused::QueueFull { waiting: 32 })) => {
                ends.full.fetch_add(1, Ordering::SeqCst)
            }
            Err(_) => ends.other.fetch_add(1, Ordering::SeqCst),
        },
        1 => match session
            .answer(&AskId { session: session.id().clone(), seq: u64::MAX }, Answer::Resume)
            .await
        {
            Err(SessionError::Refused(Refused::Answer(AnswerError::Unknown { .. }))) => 0,
            _ => ends.other.fetch_add(1, Ordering::SeqCst),
        },
        2 => match session.hold().await {
            Ok(_) => 0,
            Err(_) => ends.other.fetch_add(1, Ordering::SeqCst),
        },
        // At most 256 clients fit.
        _ => match session.attach(AttachFrom::now()).await {
            Ok(_) | Err(SessionError::TooManyClients { limit: 256 }) => 0,
            Err(_) => ends.other.fetch_add(1, Ordering::SeqCst),
        },
    };
}
