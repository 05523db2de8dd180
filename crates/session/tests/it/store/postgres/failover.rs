//! A standby that becomes the primary server under load, and the old primary that returns.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use holdpoint_common::{Certificates, SessionId};
use holdpoint_session::store::{Postgres, SessionLog, SessionStore, StoreError};
use holdpoint_session::testing::within_patience;
use holdpoint_tests::postgres_server::PostgresServer;
use holdpoint_tools::testing::rounds;

use super::{append, connect, create, start};
use crate::store::{id, machine};

/// How many sessions are written at once.
const SESSIONS: usize = 8;

/// The number of acknowledged appends of all sessions.
type Written = Arc<AtomicU64>;

/// Appends to a session, and tries again if that fails, until there are `target` acknowledged appends
/// of all sessions. Returns the number of the last fact.
async fn keep_appending(
    log: Arc<dyn SessionLog>,
    session: SessionId,
    written: Written,
    target: Arc<AtomicU64>,
) -> u64 {
    let mut last = 1;
    while written.load(Ordering::SeqCst) < target.load(Ordering::SeqCst) {
        match append(&*log, last, &session).await {
            Ok(number) => {
                last = number;
                written.fetch_add(1, Ordering::SeqCst);
            }
            // The server is killed, or a standby.
            Err(StoreError::Io { .. }) => tokio::task::yield_now().await,
            Err(error) => panic!("after {last}: {error:?}"),
        }
    }
    last
}

async fn wait_for(written: &Written, number: u64) {
    within_patience("appends", async {
        while written.load(Ordering::SeqCst) < number {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

/// The address of a database that is on either server.
fn on_either(url: &str, primary: &PostgresServer, standby: &PostgresServer) -> String {
    let host = primary.host().display().to_string();
    url.replace(&host, &format!("{host},{}", standby.host().display()))
}

#[tokio::test]
async fn m_i5_m_i6_a_promoted_standby_has_every_acknowledged_fact_and_the_old_primary_takes_none() {
    for _ in 0..rounds(1, 20) {
        let mut primary = start(&[]);
        let url = primary.database("fleet");
        let standby = primary.standby();
        let store = connect(&on_either(&url, &primary, &standby), "m1").await;
        let (written, target) = (Written::default(), Arc::new(AtomicU64::new(u64::MAX)));
        let mut appending = Vec::new();
        for n in 0..SESSIONS {
            let session = id(&format!("s{n}"));
            let log = create(&store, &session).await;
            let (written, target) = (Arc::clone(&written), Arc::clone(&target));
            appending.push(tokio::spawn(keep_appending(log, session, written, target)));
        }
        wait_for(&written, fastrand::u64(100..500)).await;
        primary.kill();
        standby.promote();
        target.store(written.load(Ordering::SeqCst) + 200, Ordering::SeqCst);
        for (n, appending) in appending.into_iter().enumerate() {
            let last = within_patience("the last append", appending).await.unwrap();
            let log = store.open(&id(&format!("s{n}"))).await.unwrap();
            let facts = log.read(0..u64::MAX).await.unwrap();
            let numbers: Vec<_> = facts.iter().map(|fact| fact.seq).collect();
            assert_eq!(numbers, (1..=last).collect::<Vec<_>>());
        }

        // It waits for a standby with every commit.
        primary.restart();
        let old = Postgres::connect(&url, &Certificates::default(), &machine("m2")).await;
        let error = old.err().unwrap().to_string();
        assert!(error.contains("did not answer"), "{error}");
        let log = store.own(&id("s0")).await.unwrap();
        let last = log.read(0..u64::MAX).await.unwrap().len() as u64;
        append(&*log, last, &id("s0")).await.unwrap();
    }
}
