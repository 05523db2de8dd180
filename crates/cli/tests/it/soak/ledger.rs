//! Everything that the people of a round have seen and that was acknowledged, to be compared with
//! the logs.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use holdpoint_common::{AskId, Event, PromptId, SessionId};
use holdpoint_session::{AttachFrom, Sessions};

use super::log;

/// The records about one session.
#[derive(Default)]
pub(crate) struct SessionRecords {
    /// Facts that some client received.
    pub facts: BTreeMap<u64, Arc<Event>>,
    /// Prompts that were acknowledged as saved.
    pub prompts: Vec<PromptId>,
    /// Asks with an answer that was acknowledged as saved.
    pub answers: Vec<AskId>,
    /// True after an acknowledged delete, false after one without a known result.
    pub deleted: Option<bool>,
}

/// The records of a round.
pub(crate) struct Ledger {
    /// The round's description, for messages of failure.
    pub round: String,
    falls: AtomicBool,
    unsaved: AtomicU64,
    sessions: Mutex<BTreeMap<SessionId, SessionRecords>>,
}

impl Ledger {
    pub(crate) fn new(round: String) -> Self {
        Self {
            round,
            falls: AtomicBool::default(),
            unsaved: AtomicU64::default(),
            sessions: Mutex::default(),
        }
    }

    /// From now on the daemon may be gone at any moment.
    pub(crate) fn falls(&self) {
        self.falls.store(true, Ordering::SeqCst);
    }

    pub(crate) fn is_falling(&self) -> bool {
        self.falls.load(Ordering::SeqCst)
    }

    pub(crate) fn note(&self, session: &SessionId, note: impl FnOnce(&mut SessionRecords)) {
        note(self.sessions.lock().unwrap().entry(session.clone()).or_default());
    }

    /// Records an accepted act as promised if it was saved. On a slow disk it may be late, and the
    /// reply says so.
    pub(crate) fn promised(
        &self,
        session: &SessionId,
        saved: bool,
        note: impl FnOnce(&mut SessionRecords),
    ) {
        if saved {
            self.note(session, note);
        } else {
            self.unsaved.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// How many acts were accepted and not saved in time.
    pub(crate) fn unsaved(&self) -> u64 {
        self.unsaved.load(Ordering::SeqCst)
    }

    pub(crate) fn sessions(&self) -> Vec<SessionId> {
        let all = self.sessions.lock().unwrap();
        all.iter()
            .filter(|(_, records)| records.deleted.is_none())
            .map(|(id, _)| id.clone())
            .collect()
    }

    /// Checks that every session exists, that its log keeps the invariants, and that it has
    /// everything recorded here.
    pub(crate) async fn check(&self, sessions: &Sessions, mark: &str) {
        let all = std::mem::take(&mut *self.sessions.lock().unwrap());
        // The number of live sessions is limited.
        for session in sessions.list().await.unwrap().iter().filter(|session| session.live) {
            sessions.get(session.id.as_str()).await.unwrap().close().await.unwrap();
        }
        for (id, records) in all {
            let round = format!("{}, session {id}", self.round);
            let session = match sessions.get(id.as_str()).await {
                Ok(session) => session,
                Err(error) if records.deleted.is_some() && error.code() == "unknownSession" => {
                    continue;
                }
                Err(error) => panic!("{round}: {error}"),
            };
            assert_ne!(records.deleted, Some(true), "{round}: it was deleted, and is there");
            // Closing ends everything that a kill has left open, so that the log is complete.
            session.close().await.unwrap_or_else(|error| panic!("{round}: {error}"));
            let session =
                sessions.get(id.as_str()).await.unwrap_or_else(|error| panic!("{round}: {error}"));
            let mut events = session.attach(AttachFrom::start()).await.unwrap();
            let mut all = Vec::new();
            while events.next_past(&mut all, 1_000).await > 0 {}
            log::check(&all, &round);
            log::has(&all, &records, &round);
            log::nothing_runs(&all, mark, &round);
            events.detach().await;
            session.close().await.unwrap_or_else(|error| panic!("{round}: {error}"));
        }
    }
}
