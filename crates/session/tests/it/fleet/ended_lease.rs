//! A machine whose lease has ended, while another machine changes its sessions.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::FutureExt;
use holdpoint_common::{
    Answer, Certificates, Event, PolicyMode, SessionError, SessionId, SessionSummary,
};
use holdpoint_session::store::{Deadline, NewLog, Postgres, SessionLog, SessionStore, StoreError};
use holdpoint_session::testing::{Harness, LogLayer, StoreLayer, Stored, reply, within_patience};
use serde_json::json;

use super::{machine, start};

/// A store that can be cut off from its server: its lease has ended then, and it saves nothing.
struct CutOffStore {
    store: Postgres,
    is_cut_off: Arc<AtomicBool>,
}

struct CutOffLog {
    log: Arc<dyn SessionLog>,
    is_cut_off: Arc<AtomicBool>,
}

impl CutOffStore {
    fn log(&self, log: Stored<Arc<dyn SessionLog>>) -> Stored<Arc<dyn SessionLog>> {
        let is_cut_off = Arc::clone(&self.is_cut_off);
        async move {
            let log: Arc<dyn SessionLog> = Arc::new(CutOffLog { log: log.await?, is_cut_off });
            Ok(log)
        }
        .boxed()
    }
}

impl StoreLayer for CutOffStore {
    fn inner(&self) -> &dyn SessionStore {
        &self.store
    }

    fn create(&self, session: &SessionId, contents: NewLog) -> Stored<Arc<dyn SessionLog>> {
        self.log(self.store.create(session, contents))
    }

    fn own(&self, session: &SessionId) -> Stored<Arc<dyn SessionLog>> {
        self.log(self.store.own(session))
    }
}

impl LogLayer for CutOffLog {
    fn inner(&self) -> &dyn SessionLog {
        &*self.log
    }

    fn until(&self) -> Option<Deadline> {
        match self.is_cut_off.load(Ordering::SeqCst) {
            true => Some(Deadline::after(Duration::ZERO)),
            false => self.log.until(),
        }
    }

    fn append(&self, after: u64, facts: Vec<Arc<Event>>, summary: SessionSummary) -> Stored<()> {
        if self.is_cut_off.load(Ordering::SeqCst) {
            let message = "the server can't be reached".to_owned();
            return std::future::ready(Err(StoreError::Io { message })).boxed();
        }
        self.log.append(after, facts, summary)
    }
}

#[tokio::test]
async fn m_i13_a_machine_that_returns_lists_no_ask_that_was_answered_elsewhere() {
    let server = start();
    let url = server.database("fleet");
    let store = Postgres::connect(&url, &Certificates::default(), &crate::store::machine("m1"))
        .await
        .unwrap();
    let is_cut_off = Arc::<AtomicBool>::default();
    let store = CutOffStore { store, is_cut_off: Arc::clone(&is_cut_off) };
    let (one, two) = (Harness::with(|engine| engine.store(store)), machine(&url, "m2").await);
    one.model.then(reply().call("shell", json!({ "command": "touch made" })));
    let open = one.session().policy(PolicyMode::Ask);
    let session = one.sessions().open(open).await.unwrap();
    let mut events = one.watch(&session).await;
    session.prompt("go").await.unwrap();
    let ask = events.asked().await;
    // One that is not saved.
    is_cut_off.store(true, Ordering::SeqCst);
    session.rename("unsaved").await.unwrap();
    while within_patience("the end", events.next()).await.is_some() {}
    drop(events);
    let denial = Answer::Deny { reason: None, always: false };
    within_patience("the answer", async {
        // Until the first machine has given the log back.
        while let Err(error) = two.sessions().answer(&ask.id, denial.clone()).await {
            assert!(matches!(error, SessionError::NotOwner { .. }), "{error:?}");
        }
    })
    .await;

    is_cut_off.store(false, Ordering::SeqCst);
    let listed = one.sessions().list().await.unwrap().remove(0);
    assert_eq!(listed.asks, 0, "{listed:?}");
    assert_ne!(listed.name, "unsaved");
    assert_eq!(one.sessions().inbox().await.unwrap(), []);
}
