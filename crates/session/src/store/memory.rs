//! The store in memory, which lasts as long as the process.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use holdpoint_common::{Event, SessionId, SessionSummary};

use super::{
    NewLog, Page, SavedPage, SavedSession, SessionLog, SessionPast, SessionStore, StoreError,
    end_of_draft, last_seq_of,
};

/// A store that keeps every log in memory.
#[derive(Default)]
pub struct Memory {
    // Locked only to find, list, add or remove a log.
    logs: Mutex<HashMap<SessionId, Arc<MemoryLog>>>,
}

struct MemoryLog {
    session: SessionId,
    // Locked for one operation on this log: by the session's actor, by readers, or to list or
    // delete it.
    contents: Mutex<LogContents>,
}

#[derive(Default)]
struct LogContents {
    facts: Vec<Arc<Event>>,
    draft: Vec<Arc<Event>>,
    summary: Option<SessionSummary>,
    reserved: u64,
    deleted: bool,
}

impl LogContents {
    fn within(&self, range: Range<u64>) -> impl DoubleEndedIterator<Item = &Arc<Event>> {
        let position = |seq| self.facts.partition_point(|event| event.seq < seq);
        self.facts.get(position(range.start)..position(range.end)).unwrap_or_default().iter()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Every statement leaves the data behind these locks consistent, so a poisoned lock can be
    // used.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Memory {
    fn log(&self, session: &SessionId) -> Result<Arc<MemoryLog>, StoreError> {
        let log = lock(&self.logs).get(session).cloned();
        log.ok_or_else(|| StoreError::Unknown { session: session.clone() })
    }
}

impl SessionStore for Memory {
    fn is_durable(&self) -> bool {
        false
    }

    fn create(
        &self,
        session: &SessionId,
        NewLog { first, reserved }: NewLog,
    ) -> BoxFuture<'static, Result<Arc<dyn SessionLog>, StoreError>> {
        let (first, summary) = first.unzip();
        let contents = LogContents {
            facts: first.into_iter().collect(),
            summary,
            reserved,
            ..LogContents::default()
        };
        let made = match lock(&self.logs).entry(session.clone()) {
            Entry::Occupied(_) => Err(StoreError::Taken { session: session.clone() }),
            Entry::Vacant(entry) => {
                let log = MemoryLog { session: session.clone(), contents: Mutex::new(contents) };
                let log = Arc::new(log);
                Ok(Arc::clone(entry.insert(log)) as Arc<dyn SessionLog>)
            }
        };
        ready(made).boxed()
    }

    fn open(
        &self,
        session: &SessionId,
    ) -> BoxFuture<'static, Result<Arc<dyn SessionPast>, StoreError>> {
        ready(self.log(session).map(|log| log as Arc<dyn SessionPast>)).boxed()
    }

    fn own(
        &self,
        session: &SessionId,
    ) -> BoxFuture<'static, Result<Arc<dyn SessionLog>, StoreError>> {
        ready(self.log(session).map(|log| log as Arc<dyn SessionLog>)).boxed()
    }

    fn list_page(
        &self,
        page: SavedPage,
    ) -> BoxFuture<'static, Result<Vec<SavedSession>, StoreError>> {
        let saved = |log: &Arc<MemoryLog>| {
            let contents = lock(&log.contents);
            let (summary, opened) = (contents.summary.clone()?, contents.facts.first()?.at);
            Some(SavedSession::of_one_machine(summary, opened))
        };
        let is_after =
            |saved: &SavedSession| page.after.as_ref().is_none_or(|after| saved.cursor() < *after);
        let mut listed: Vec<_> =
            lock(&self.logs).values().filter_map(saved).filter(is_after).collect();
        listed.sort_by_cached_key(|saved| Reverse(saved.cursor()));
        listed.truncate(page.limit);
        ready(Ok(listed)).boxed()
    }

    fn delete(&self, session: &SessionId) -> BoxFuture<'static, Result<(), StoreError>> {
        let log = lock(&self.logs).remove(session);
        let unknown = || StoreError::Unknown { session: session.clone() };
        let forget = |log: Arc<MemoryLog>| {
            *lock(&log.contents) = LogContents { deleted: true, ..LogContents::default() }
        };
        ready(log.map(forget).ok_or_else(unknown)).boxed()
    }
}

impl MemoryLog {
    /// Locks the contents for writing, unless the log was deleted.
    fn lock_for_writing(&self) -> Result<MutexGuard<'_, LogContents>, StoreError> {
        let contents = lock(&self.contents);
        if contents.deleted {
            Err(StoreError::Unknown { session: self.session.clone() })
        } else {
            Ok(contents)
        }
    }
}

impl SessionPast for MemoryLog {
    fn page(
        &self,
        range: Range<u64>,
        max_facts: usize,
    ) -> BoxFuture<'static, Result<Page, StoreError>> {
        let contents = lock(&self.contents);
        let facts: Vec<_> =
            contents.within(range).take(max_facts.saturating_add(1)).cloned().collect();
        // The facts are shared, not copied, so their size does not matter.
        ready(Ok(Page::up_to(facts, max_facts))).boxed()
    }

    fn newest(
        &self,
        range: Range<u64>,
        count: usize,
    ) -> BoxFuture<'static, Result<u64, StoreError>> {
        let contents = lock(&self.contents);
        let from = match count.checked_sub(1) {
            Some(skipped) => contents
                .within(range.clone())
                .nth_back(skipped)
                .map_or(range.start, |event| event.seq),
            None => range.end,
        };
        ready(Ok(from)).boxed()
    }

    fn draft(&self) -> BoxFuture<'static, Result<Vec<Arc<Event>>, StoreError>> {
        ready(Ok(lock(&self.contents).draft.clone())).boxed()
    }
}

impl SessionLog for MemoryLog {
    fn past(self: Arc<Self>) -> Arc<dyn SessionPast> {
        self
    }

    fn append(
        &self,
        after: u64,
        facts: Vec<Arc<Event>>,
        summary: SessionSummary,
    ) -> BoxFuture<'static, Result<(), StoreError>> {
        let mut contents = match self.lock_for_writing() {
            Ok(contents) => contents,
            Err(error) => return ready(Err(error)).boxed(),
        };
        let last = contents.facts.last().map_or(0, |event| last_seq_of(event));
        if last != after {
            return ready(Err(StoreError::Conflict { after, last })).boxed();
        }
        if let Some(end) = end_of_draft(&facts) {
            contents.draft.retain(|piece| piece.seq > end);
        }
        contents.facts.extend(facts);
        contents.summary = Some(summary);
        ready(Ok(())).boxed()
    }

    fn keep_draft(&self, pieces: Vec<Arc<Event>>) -> BoxFuture<'static, Result<(), StoreError>> {
        let kept = self.lock_for_writing().map(|mut contents| {
            // Pieces that are sent again replace themselves.
            let first = pieces.first().map_or(u64::MAX, |piece| piece.seq);
            contents.draft.retain(|piece| piece.seq < first);
            contents.draft.extend(pieces);
        });
        ready(kept).boxed()
    }

    fn reserve(&self, count: u64) -> BoxFuture<'static, Result<Range<u64>, StoreError>> {
        let reserved = self.lock_for_writing().map(|mut contents| {
            let last = contents.facts.last().map_or(0, |event| last_seq_of(event));
            let start = contents.reserved.max(last) + 1;
            contents.reserved = start + count - 1;
            start..start + count
        });
        ready(reserved).boxed()
    }

    fn give_back(&self, unused: Range<u64>) -> BoxFuture<'static, Result<(), StoreError>> {
        let given_back = self.lock_for_writing().map(|mut contents| {
            if contents.reserved + 1 == unused.end {
                contents.reserved = unused.start - 1;
            }
        });
        ready(given_back).boxed()
    }
}
