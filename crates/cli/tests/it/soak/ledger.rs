//! What the people of a round have seen and were told, to be held against the logs afterwards.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use holdpoint_common::{AskId, Event, PromptId, SessionId};
use holdpoint_session::{AttachFrom, Sessions};

use super::log;

/// All that is known of one session.
#[derive(Default)]
pub(crate) struct Told {
    /// Facts that some client was given.
    pub facts: BTreeMap<u64, Arc<Event>>,
    /// Prompts that were accepted and saved.
    pub prompts: Vec<PromptId>,
    /// Asks that were answered, the answer saved.
    pub answers: Vec<AskId>,
    /// Somebody was told that it is deleted, or asked for it and was not told how that went.
    pub deleted: Option<bool>,
}

/// What a round has come to.
pub(crate) struct Ledger {
    /// Which one, for whoever reads that it failed.
    pub round: String,
    falls: AtomicBool,
    unsaved: AtomicU64,
    sessions: Mutex<BTreeMap<SessionId, Told>>,
}

impl Ledger {
    pub(crate) fn new(round: String) -> Self {
        Self { round, falls: AtomicBool::default(), unsaved: AtomicU64::default(), sessions: Mutex::default() }
    }

    /// From now on the daemon may be gone at any moment.
    pub(crate) fn falls(&self) {
        self.falls.store(true, Ordering::SeqCst);
    }

    pub(crate) fn is_falling(&self) -> bool {
        self.falls.load(Ordering::SeqCst)
    }

    pub(crate) fn note(&self, session: &SessionId, note: impl FnOnce(&mut Told)) {
        note(self.sessions.lock().unwrap().entry(session.clone()).or_default());
    }

    /// Notes what was taken: as promised if it was saved. The disk may be too slow for that, and what takes it says so.
    pub(crate) fn promised(&self, session: &SessionId, saved: bool, note: impl FnOnce(&mut Told)) {
        if saved {
            self.note(session, note);
        } else {
            self.unsaved.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// How much was taken and not saved in time.
    pub(crate) fn unsaved(&self) -> u64 {
        self.unsaved.load(Ordering::SeqCst)
    }

    pub(crate) fn sessions(&self) -> Vec<SessionId> {
        let all = self.sessions.lock().unwrap();
        all.iter().filter(|(_, told)| told.deleted.is_none()).map(|(id, _)| id.clone()).collect()
    }

    /// That every session is there, that its log keeps the invariants, and that it has all that anybody was told.
    pub(crate) async fn check(&self, sessions: &Sessions, mark: &str) {
        let all = std::mem::take(&mut *self.sessions.lock().unwrap());
        // There is room for as many as may live only.
        for session in sessions.list().await.unwrap().iter().filter(|session| session.live) {
            sessions.get(session.id.as_str()).await.unwrap().close().await.unwrap();
        }
        for (id, told) in all {
            let round = format!("{}, session {id}", self.round);
            let session = match sessions.get(id.as_str()).await {
                Ok(session) => session,
                Err(error) if told.deleted.is_some() && error.code() == "unknownSession" => continue,
                Err(error) => panic!("{round}: {error}"),
            };
            assert_ne!(told.deleted, Some(true), "{round}: it was deleted, and is there");
            // Whatever a kill has left it with ends, so that the log has an end to everything.
            session.close().await.unwrap_or_else(|error| panic!("{round}: {error}"));
            let session = sessions.get(id.as_str()).await.unwrap_or_else(|error| panic!("{round}: {error}"));
            let mut events = session.attach(AttachFrom::start()).await.unwrap();
            let mut all = Vec::new();
            while events.next_past(&mut all, 1_000).await > 0 {}
            log::check(&all, &round);
            log::has(&all, &told, &round);
            log::nothing_runs(&all, mark, &round);
            events.detach().await;
            session.close().await.unwrap_or_else(|error| panic!("{round}: {error}"));
        }
    }
}
