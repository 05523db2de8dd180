//! The store in memory, which lasts as long as the process.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use holdpoint_common::{Event, SessionId, SessionSummary};

use super::{Page, SavedSession, SessionLog, SessionStore, StoreError, end_of_draft, last_seq_of};

/// A store that keeps every log in memory.
#[derive(Default)]
pub struct Memory {
    // Locked by the manager alone, when a session is opened.
    logs: Mutex<HashMap<SessionId, Arc<MemoryLog>>>,
}

struct MemoryLog {
    session: SessionId,
    // Shared between a session's actor and the readers of its past, never between two sessions.
    kept: Mutex<KeptFacts>,
}

#[derive(Default)]
struct KeptFacts {
    facts: Vec<Arc<Event>>,
    draft: Vec<Arc<Event>>,
    summary: Option<SessionSummary>,
    reserved: u64,
    deleted: bool,
}

impl KeptFacts {
    fn within(&self, range: Range<u64>) -> impl DoubleEndedIterator<Item = &Arc<Event>> {
        let at = |seq| self.facts.partition_point(|event| event.seq < seq);
        self.facts.get(at(range.start)..at(range.end)).unwrap_or_default().iter()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Every statement leaves the data behind these locks consistent, so a poisoned lock can be
    // used.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl SessionStore for Memory {
    fn is_durable(&self) -> bool {
        false
    }

    fn create(
        &self,
        session: &SessionId,
    ) -> BoxFuture<'static, Result<Arc<dyn SessionLog>, StoreError>> {
        let made = match lock(&self.logs).entry(session.clone()) {
            Entry::Occupied(_) => Err(StoreError::Taken { session: session.clone() }),
            Entry::Vacant(place) => {
                let log = Arc::new(MemoryLog { session: session.clone(), kept: Mutex::default() });
                Ok(Arc::clone(place.insert(log)) as Arc<dyn SessionLog>)
            }
        };
        ready(made).boxed()
    }

    fn open(
        &self,
        session: &SessionId,
    ) -> BoxFuture<'static, Result<Arc<dyn SessionLog>, StoreError>> {
        let log = lock(&self.logs).get(session).cloned();
        let log = log.map(|log| log as Arc<dyn SessionLog>);
        ready(log.ok_or_else(|| StoreError::Unknown { session: session.clone() })).boxed()
    }

    fn list(&self) -> BoxFuture<'static, Result<Vec<SavedSession>, StoreError>> {
        let saved = |log: &Arc<MemoryLog>| {
            let kept = lock(&log.kept);
            Some(SavedSession { summary: kept.summary.clone()?, opened: kept.facts.first()?.at })
        };
        ready(Ok(lock(&self.logs).values().filter_map(saved).collect())).boxed()
    }

    fn delete(&self, session: &SessionId) -> BoxFuture<'static, Result<(), StoreError>> {
        let log = lock(&self.logs).remove(session);
        let unknown = || StoreError::Unknown { session: session.clone() };
        let forget = |log: Arc<MemoryLog>| {
            *lock(&log.kept) = KeptFacts { deleted: true, ..KeptFacts::default() }
        };
        ready(log.map(forget).ok_or_else(unknown)).boxed()
    }
}

impl MemoryLog {
    /// Locks the facts for writing, unless the log was deleted.
    fn to_write(&self) -> Result<MutexGuard<'_, KeptFacts>, StoreError> {
        let kept = lock(&self.kept);
        if kept.deleted {
            Err(StoreError::Unknown { session: self.session.clone() })
        } else {
            Ok(kept)
        }
    }
}

impl SessionLog for MemoryLog {
    fn append(
        &self,
        after: u64,
        facts: Vec<Arc<Event>>,
        summary: SessionSummary,
    ) -> BoxFuture<'static, Result<(), StoreError>> {
        let mut kept = match self.to_write() {
            Ok(kept) => kept,
            Err(error) => return ready(Err(error)).boxed(),
        };
        let last = kept.facts.last().map_or(0, |event| last_seq_of(event));
        if last != after {
            return ready(Err(StoreError::Conflict { after, last })).boxed();
        }
        if let Some(end) = end_of_draft(&facts) {
            kept.draft.retain(|piece| piece.seq > end);
        }
        kept.facts.extend(facts);
        kept.summary = Some(summary);
        ready(Ok(())).boxed()
    }

    fn page(&self, range: Range<u64>, most: usize) -> BoxFuture<'static, Result<Page, StoreError>> {
        let kept = lock(&self.kept);
        let facts: Vec<_> = kept.within(range).take(most.saturating_add(1)).cloned().collect();
        // The facts are shared, not copied, so their size does not matter.
        ready(Ok(Page::up_to(facts, most))).boxed()
    }

    fn newest(
        &self,
        range: Range<u64>,
        newest: usize,
    ) -> BoxFuture<'static, Result<u64, StoreError>> {
        let kept = lock(&self.kept);
        let from = match newest.checked_sub(1) {
            Some(skipped) => {
                kept.within(range.clone()).nth_back(skipped).map_or(range.start, |event| event.seq)
            }
            None => range.end,
        };
        ready(Ok(from)).boxed()
    }

    fn keep_draft(&self, pieces: Vec<Arc<Event>>) -> BoxFuture<'static, Result<(), StoreError>> {
        ready(self.to_write().map(|mut kept| kept.draft.extend(pieces))).boxed()
    }

    fn draft(&self) -> BoxFuture<'static, Result<Vec<Arc<Event>>, StoreError>> {
        ready(Ok(lock(&self.kept).draft.clone())).boxed()
    }

    fn reserve(&self, count: u64) -> BoxFuture<'static, Result<Range<u64>, StoreError>> {
        let reserved = self.to_write().map(|mut kept| {
            let last = kept.facts.last().map_or(0, |event| last_seq_of(event));
            let start = kept.reserved.max(last) + 1;
            kept.reserved = start + count - 1;
            start..start + count
        });
        ready(reserved).boxed()
    }

    fn give_back(&self, unused: Range<u64>) -> BoxFuture<'static, Result<(), StoreError>> {
        let given_back = self.to_write().map(|mut kept| {
            if kept.reserved + 1 == unused.end {
                kept.reserved = unused.start - 1;
            }
        });
        ready(given_back).boxed()
    }
}
