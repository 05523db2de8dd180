//! The past of a session in a store that reads on threads of its own.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use holdpoint_common::{Delta, Event, Gap, Gaps, SessionId};
use tokio::sync::oneshot;

use super::{Page, SavedPage, SavedSession, SavedState, SessionPast, StoreError};

/// The most reads that may wait. One more fails.
pub(super) const MAX_WAITING_READS: usize = 4_096;

/// A request to read.
pub(super) enum Read {
    Page {
        session: SessionId,
        range: Range<u64>,
        max_facts: usize,
        done: oneshot::Sender<Result<Page, StoreError>>,
    },
    /// The number at which the newest facts begin.
    Newest {
        session: SessionId,
        range: Range<u64>,
        count: usize,
        done: oneshot::Sender<Result<u64, StoreError>>,
    },
    Draft {
        session: SessionId,
        done: oneshot::Sender<Result<Vec<Arc<Event>>, StoreError>>,
    },
    /// The saved state of a session.
    State {
        session: SessionId,
        done: oneshot::Sender<Result<Option<SavedState>, StoreError>>,
    },
    /// Whether the session exists.
    Find {
        session: SessionId,
        done: oneshot::Sender<Result<(), StoreError>>,
    },
    /// The saved summary of a session.
    Saved {
        session: SessionId,
        done: oneshot::Sender<Result<Option<SavedSession>, StoreError>>,
    },
    List {
        page: SavedPage,
        done: oneshot::Sender<Result<Vec<SavedSession>, StoreError>>,
    },
}

/// A store that reads on threads of its own.
pub(super) trait Reads: Send + Sync + 'static {
    /// Makes a request, and waits for its result. It may be made twice.
    fn read<T, F>(&self, request: F) -> BoxFuture<'static, Result<T, StoreError>>
    where
        T: Send + 'static,
        F: Fn(oneshot::Sender<Result<T, StoreError>>) -> Read + Send + 'static;

    /// The gaps that were found so far.
    fn found_gaps(&self) -> Arc<FoundGaps>;
}

/// The past of a session in a store that [`Reads`].
pub(super) struct Past<S> {
    pub(super) store: S,
    pub(super) session: SessionId,
}

impl<S: Reads> SessionPast for Past<S> {
    fn page(
        &self,
        range: Range<u64>,
        max_facts: usize,
    ) -> BoxFuture<'static, Result<Page, StoreError>> {
        let session = self.session.clone();
        let page = self.store.read(move |done| {
            let (session, range) = (session.clone(), range.clone());
            Read::Page { session, range, max_facts, done }
        });
        let (gaps, session) = (self.store.found_gaps(), self.session.clone());
        page.map(move |page| page.inspect(|page| gaps.note(&session, &page.facts))).boxed()
    }

    fn newest(
        &self,
        range: Range<u64>,
        count: usize,
    ) -> BoxFuture<'static, Result<u64, StoreError>> {
        let session = self.session.clone();
        self.store.read(move |done| {
            let (session, range) = (session.clone(), range.clone());
            Read::Newest { session, range, count, done }
        })
    }

    fn saved(&self) -> BoxFuture<'static, Result<Option<SavedSession>, StoreError>> {
        let session = self.session.clone();
        self.store.read(move |done| Read::Saved { session: session.clone(), done })
    }

    fn draft(&self) -> BoxFuture<'static, Result<Vec<Arc<Event>>, StoreError>> {
        let session = self.session.clone();
        self.store.read(move |done| Read::Draft { session: session.clone(), done })
    }

    fn state(&self) -> BoxFuture<'static, Result<Option<SavedState>, StoreError>> {
        let session = self.session.clone();
        self.store.read(move |done| Read::State { session: session.clone(), done })
    }
}

/// The gaps that were found in each session's log.
#[derive(Default)]
pub(super) struct FoundGaps(Mutex<BTreeMap<SessionId, Gaps>>);

impl FoundGaps {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<SessionId, Gaps>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The gaps in the log of a session.
    pub(super) fn of(&self, session: &SessionId) -> Gaps {
        self.lock().get(session).cloned().unwrap_or_default()
    }

    /// Notes the gaps among the facts of a session.
    pub(super) fn note(&self, session: &SessionId, facts: &[Arc<Event>]) {
        for event in facts {
            if let Some(Delta::Gap { from, to }) = event.delta() {
                self.add(session, Gap { from: *from, to: *to });
            }
        }
    }

    pub(super) fn add(&self, session: &SessionId, gap: Gap) {
        self.lock().entry(session.clone()).or_default().add(gap);
    }

    /// Forgets a session that was deleted.
    pub(super) fn forget(&self, session: &SessionId) {
        self.lock().remove(session);
    }
}
