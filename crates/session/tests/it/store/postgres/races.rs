//! Machines and writes that race for one session: one of them gets it, never both and never none.

use futures_util::future::join_all;
use holdpoint_session::store::{SessionLog, SessionStore, StoreError};
use holdpoint_tools::testing::rounds;

use super::{connect, create, end_lease, start};
use crate::store::{id, prompt, summary};

/// How many sessions are raced for at the same time.
const SESSIONS: usize = 50;

#[tokio::test]
async fn m_i1_of_two_facts_after_the_same_one_a_log_accepts_one() {
    let server = start(&[]);
    let store = connect(&server.database("fleet"), "m1").await;
    let session = id("s");
    let log = create(&store, &session).await;
    let append =
        |last: u64, text| log.append(last, vec![prompt(last + 1, text)], summary(&session, text));
    let mut written = Vec::new();
    for last in 1..=rounds(200, 10_000) {
        let conflict = Err(StoreError::Conflict { after: last, last: last + 1 });
        written.push(match tokio::join!(append(last, "one"), append(last, "two")) {
            (Ok(()), refused) if refused == conflict => prompt(last + 1, "one"),
            (refused, Ok(())) if refused == conflict => prompt(last + 1, "two"),
            results => panic!("after {last}: {results:?}"),
        });
    }
    assert_eq!(log.read(2..u64::MAX).await.unwrap(), written);
}

#[tokio::test]
async fn m_i1_of_two_machines_that_take_a_session_one_gets_it_with_every_acknowledged_fact() {
    let server = start(&[]);
    let url = server.database("fleet");
    let (two, three) = (connect(&url, "m2").await, connect(&url, "m3").await);
    let (mut refused, mut taken_by_two) = (0, 0);
    for _ in 0..rounds(2, 10_000 / SESSIONS) {
        let one = connect(&url, "m1").await;
        let sessions: Vec<_> =
            (0..SESSIONS).map(|_| id(&format!("s{}", fastrand::u64(..)))).collect();
        let logs = join_all(sessions.iter().map(|session| create(&one, session))).await;
        end_lease(&server, "m1");
        for (session, old) in sessions.iter().zip(logs) {
            let append = |log: &dyn SessionLog, last: u64, text| {
                log.append(last, vec![prompt(last + 1, text)], summary(session, text))
            };
            let (taken, also_taken, appended) =
                tokio::join!(two.own(session), three.own(session), append(&*old, 1, "old"));
            let owned_by = |by: &str| StoreError::Owned { session: session.clone(), by: by.into() };
            let (new, by) = match (taken, also_taken) {
                (Ok(new), Err(error)) if error == owned_by("m2") => (new, "m2"),
                (Err(error), Ok(new)) if error == owned_by("m3") => (new, "m3"),
                (two, three) => panic!("{:?}, {:?}", two.err(), three.err()),
            };
            taken_by_two += usize::from(by == "m2");
            let fenced = StoreError::Fenced { session: session.clone(), by: by.into() };
            let last = new.read(0..u64::MAX).await.unwrap().len() as u64;
            match appended {
                Ok(()) => assert_eq!(last, 2),
                Err(error) => assert_eq!((last, error), (1, fenced.clone())),
            }
            refused += 2 - last;
            assert_eq!(append(&*old, last, "late").await, Err(fenced.clone()));
            append(&*new, last, "new").await.unwrap();
            assert_eq!(append(&*old, last, "late").await, Err(fenced));
            let facts = new.read(last + 1..u64::MAX).await.unwrap();
            assert_eq!(facts, [prompt(last + 1, "new")]);
        }
    }
    println!("{refused} appends were refused, and m2 has taken {taken_by_two} sessions");
}
