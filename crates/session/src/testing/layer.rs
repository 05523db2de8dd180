//! Stores and logs that change single operations of others.

use std::ops::Range;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use holdpoint_common::{Event, Gaps, SessionId, SessionSummary};

use crate::store::{
    Deadline, Home, NewLog, Page, SavedPage, SavedSession, SavedState, SessionLog, SessionPast,
    SessionStore, StoreChange, StoreError,
};

/// The result of an operation of a store.
pub type Stored<T> = BoxFuture<'static, Result<T, StoreError>>;

/// A store that passes every operation on to another store, apart from those that it implements. It
/// counts as durable.
pub trait StoreLayer: Send + Sync + 'static {
    /// The other store.
    fn inner(&self) -> &dyn SessionStore;

    /// See [`SessionStore::create`].
    fn create(&self, session: &SessionId, contents: NewLog) -> Stored<Arc<dyn SessionLog>> {
        self.inner().create(session, contents)
    }

    /// See [`SessionStore::open`].
    fn open(&self, session: &SessionId) -> Stored<Arc<dyn SessionPast>> {
        self.inner().open(session)
    }

    /// See [`SessionStore::own`].
    fn own(&self, session: &SessionId) -> Stored<Arc<dyn SessionLog>> {
        self.inner().own(session)
    }

    /// See [`SessionStore::list_page`].
    fn list_page(&self, page: SavedPage) -> Stored<Vec<SavedSession>> {
        self.inner().list_page(page)
    }
}

impl<L: StoreLayer> SessionStore for L {
    fn create(&self, session: &SessionId, contents: NewLog) -> Stored<Arc<dyn SessionLog>> {
        StoreLayer::create(self, session, contents)
    }

    fn open(&self, session: &SessionId) -> Stored<Arc<dyn SessionPast>> {
        StoreLayer::open(self, session)
    }

    fn own(&self, session: &SessionId) -> Stored<Arc<dyn SessionLog>> {
        StoreLayer::own(self, session)
    }

    fn list_page(&self, page: SavedPage) -> Stored<Vec<SavedSession>> {
        StoreLayer::list_page(self, page)
    }

    fn machine(&self) -> Option<&str> {
        self.inner().machine()
    }

    fn take_name(&self, session: &SessionId, name: &str) -> Stored<bool> {
        self.inner().take_name(session, name)
    }

    fn keep_names(&self, session: &SessionId, kept: Vec<String>) -> Stored<()> {
        self.inner().keep_names(session, kept)
    }

    fn changes(&self) -> BoxStream<'static, StoreChange> {
        self.inner().changes()
    }

    fn gaps(&self, session: &SessionId) -> Gaps {
        self.inner().gaps(session)
    }

    fn check(&self) -> BoxFuture<'static, ()> {
        self.inner().check()
    }

    fn delete(&self, session: &SessionId) -> Stored<()> {
        self.inner().delete(session)
    }
}

/// A log that passes every operation on to another log, apart from those that it implements.
pub trait LogLayer: Send + Sync + 'static {
    /// The other log.
    fn inner(&self) -> &dyn SessionLog;

    /// See [`SessionPast::page`].
    fn page(&self, range: Range<u64>, max_facts: usize) -> Stored<Page> {
        self.inner().page(range, max_facts)
    }

    /// See [`SessionLog::until`].
    fn until(&self) -> Option<Deadline> {
        self.inner().until()
    }

    /// See [`SessionLog::lapses`].
    fn lapses(&self) -> u64 {
        self.inner().lapses()
    }

    /// See [`SessionLog::append`].
    fn append(&self, after: u64, facts: Vec<Arc<Event>>, summary: SessionSummary) -> Stored<()> {
        self.inner().append(after, facts, summary)
    }

    /// See [`SessionLog::keep_draft`].
    fn keep_draft(&self, pieces: Vec<Arc<Event>>) -> Stored<()> {
        self.inner().keep_draft(pieces)
    }

    /// See [`SessionLog::reserve`].
    fn reserve(&self, count: u64) -> Stored<Range<u64>> {
        self.inner().reserve(count)
    }

    /// See [`SessionLog::give_back`].
    fn give_back(&self, unused: Range<u64>) -> Stored<()> {
        self.inner().give_back(unused)
    }
}

impl<L: LogLayer> SessionPast for L {
    fn page(&self, range: Range<u64>, max_facts: usize) -> Stored<Page> {
        LogLayer::page(self, range, max_facts)
    }

    fn newest(&self, range: Range<u64>, count: usize) -> Stored<u64> {
        self.inner().newest(range, count)
    }

    fn saved(&self) -> Stored<Option<SavedSession>> {
        self.inner().saved()
    }

    fn draft(&self) -> Stored<Vec<Arc<Event>>> {
        self.inner().draft()
    }

    fn state(&self) -> Stored<Option<SavedState>> {
        self.inner().state()
    }
}

impl<L: LogLayer> SessionLog for L {
    fn past(self: Arc<Self>) -> Arc<dyn SessionPast> {
        self
    }

    fn until(&self) -> Option<Deadline> {
        LogLayer::until(self)
    }

    fn lapses(&self) -> u64 {
        LogLayer::lapses(self)
    }

    fn home(&self) -> Home {
        self.inner().home()
    }

    fn append(&self, after: u64, facts: Vec<Arc<Event>>, summary: SessionSummary) -> Stored<()> {
        LogLayer::append(self, after, facts, summary)
    }

    fn keep_draft(&self, pieces: Vec<Arc<Event>>) -> Stored<()> {
        LogLayer::keep_draft(self, pieces)
    }

    fn keep_state(&self, state: SavedState) -> Stored<()> {
        self.inner().keep_state(state)
    }

    fn reserve(&self, count: u64) -> Stored<Range<u64>> {
        LogLayer::reserve(self, count)
    }

    fn give_back(&self, unused: Range<u64>) -> Stored<()> {
        LogLayer::give_back(self, unused)
    }
}
