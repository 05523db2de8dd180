//! Stores, which keep the logs of sessions.

mod copy;
mod deadline;
mod memory;
mod numbers;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod reads;
#[cfg(feature = "sqlite")]
mod sqlite;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod stored_facts;

use std::ops::Range;
use std::sync::Arc;
use std::time::SystemTime;

use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use futures_util::{FutureExt, StreamExt};
use holdpoint_common::api::SessionCursor;
use holdpoint_common::{
    Away, Delta, Event, Fact, Gaps, SessionId, SessionSummary, Timestamp, TurnFact,
};
use thiserror::Error;

pub use copy::{Copied, copy_session};
pub use deadline::Deadline;
pub use memory::Memory;
pub(crate) use numbers::{NUMBER_BLOCK, Numbers};
#[cfg(feature = "postgres")]
pub use postgres::{KnownMachine, Machine, Machines, OtherMachine, Postgres, Removal};
#[cfg(feature = "sqlite")]
pub use sqlite::{Salvaged, Sqlite};

/// A store of the logs of all sessions.
///
/// The returned futures are polled on a session's thread, so they must do their work elsewhere or
/// be ready at once. A future that is dropped half-way, because the session's actor has failed, may
/// or may not have done its work; the log is read again then.
pub trait SessionStore: Send + Sync + 'static {
    /// Whether acknowledged facts outlive the process. If not, nothing is reported as saved.
    fn is_durable(&self) -> bool {
        true
    }

    /// The name of this machine, in a store that several machines share.
    fn machine(&self) -> Option<&str> {
        None
    }

    /// Creates the log of a new session with these contents, all or nothing.
    ///
    /// # Errors
    /// [`StoreError::Taken`] if the session already has a log, [`StoreError::Io`] if the log can't
    /// be created.
    fn create(
        &self,
        session: &SessionId,
        contents: NewLog,
    ) -> BoxFuture<'static, Result<Arc<dyn SessionLog>, StoreError>>;

    /// Opens the log of an existing session to read it. Another owner may write to it meanwhile.
    ///
    /// # Errors
    /// [`StoreError::Unknown`] if there is no such log, [`StoreError::Io`] if it can't be read.
    fn open(
        &self,
        session: &SessionId,
    ) -> BoxFuture<'static, Result<Arc<dyn SessionPast>, StoreError>>;

    /// Opens the log of an existing session to write to it. The caller must be its only owner in this
    /// process. In a store that several machines share, this machine is then the session's owner
    /// until the log is dropped.
    ///
    /// # Errors
    /// [`StoreError::Unknown`] if there is no such log, [`StoreError::Owned`] if another machine has
    /// the session, [`StoreError::Io`] if it can't be read.
    fn own(
        &self,
        session: &SessionId,
    ) -> BoxFuture<'static, Result<Arc<dyn SessionLog>, StoreError>>;

    /// Takes a name for a session that is live on this machine, or about to be. Returns `false` if a live
    /// session of another machine has it. The caller knows the names of its own sessions, so in a store
    /// of one machine nothing is done.
    ///
    /// # Errors
    /// [`StoreError::Io`] if the name can't be taken.
    fn take_name(
        &self,
        _session: &SessionId,
        _name: &str,
    ) -> BoxFuture<'static, Result<bool, StoreError>> {
        std::future::ready(Ok(true)).boxed()
    }

    /// Gives back the names that were taken for a session, except those of `kept`. An owner that drops
    /// its log gives back all.
    ///
    /// # Errors
    /// [`StoreError::Io`] if the names can't be given back.
    fn keep_names(
        &self,
        _session: &SessionId,
        _kept: Vec<String>,
    ) -> BoxFuture<'static, Result<(), StoreError>> {
        std::future::ready(Ok(())).boxed()
    }

    /// Lists the sessions that have a log, in the order of [`SavedSession::cursor`], the greatest
    /// first.
    ///
    /// # Errors
    /// [`StoreError::Io`] if the sessions can't be read.
    fn list_page(
        &self,
        page: SavedPage,
    ) -> BoxFuture<'static, Result<Vec<SavedSession>, StoreError>>;

    /// Lists every session that has a log.
    ///
    /// # Errors
    /// As [`list_page`](Self::list_page).
    fn list(&self) -> BoxFuture<'static, Result<Vec<SavedSession>, StoreError>> {
        self.list_page(SavedPage::ALL)
    }

    /// The changes that other machines make. In a store of one machine, the stream ends at once.
    fn changes(&self) -> BoxStream<'static, StoreChange> {
        futures_util::stream::empty().boxed()
    }

    /// The ranges of a session's log that were found to be unreadable so far.
    fn gaps(&self, _session: &SessionId) -> Gaps {
        Gaps::default()
    }

    /// Reads all logs once in the background, to find their gaps. The future is ready when that is
    /// done. A store that can't lose facts does nothing.
    fn check(&self) -> BoxFuture<'static, ()> {
        std::future::ready(()).boxed()
    }

    /// Deletes a session's log. A log that is still open accepts no more writes (`append`,
    /// `keep_draft` and `reserve` fail with [`StoreError::Unknown`]) and reads as empty.
    ///
    /// # Errors
    /// [`StoreError::Unknown`] if there is no such log, [`StoreError::Io`] if it can't be deleted.
    fn delete(&self, session: &SessionId) -> BoxFuture<'static, Result<(), StoreError>>;
}

/// A change by other machines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreChange {
    /// Sessions may have changed: the list has to be read again.
    Sessions,
    /// The owner of these sessions has lost its lease, and with it their work.
    Abandoned(Vec<SessionId>),
    /// The lease of this machine had ended before it was extended: others may own its sessions.
    Lapsed,
}

/// The contents of a log at its creation. The default is an empty log.
#[derive(Debug, Clone, Default)]
pub struct NewLog {
    /// The session's first fact, with number 1, and its summary.
    pub first: Option<(Arc<Event>, SessionSummary)>,
    /// How many numbers are reserved, from 1 on.
    pub reserved: u64,
}

impl NewLog {
    /// When the session was opened. A session that is copied from another store was opened before.
    fn opened(&self) -> Timestamp {
        self.first.as_ref().map_or_else(|| SystemTime::now().into(), |(event, _)| event.at)
    }
}

/// The part of the saved sessions to list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SavedPage {
    /// The sessions whose cursors are less are listed; `None` lists from the first one on.
    pub after: Option<SessionCursor>,
    /// The most sessions to list.
    pub limit: usize,
}

impl SavedPage {
    /// All sessions.
    pub const ALL: Self = Self { after: None, limit: usize::MAX };
}

/// A session as its store lists it.
#[derive(Debug, Clone, PartialEq)]
pub struct SavedSession {
    /// The summary that was saved last. The session may have been running then.
    pub summary: SessionSummary,
    /// When the session was first opened.
    pub opened: Timestamp,
    /// The home of the session.
    pub home: Home,
    /// The other machine that owns the session now. `None` if it has no owner, or this machine owns
    /// it.
    pub owner: Option<String>,
    /// Present if the owner or, without one, the home is another machine that does not respond.
    pub away: Option<Away>,
}

impl SavedSession {
    /// The position of the session in the list: those that other machines own come first, then the
    /// newest.
    #[must_use]
    pub fn cursor(&self) -> SessionCursor {
        let Self { summary, opened, owner, .. } = self;
        SessionCursor { live: owner.is_some(), opened: *opened, id: summary.id.clone() }
    }

    /// A session in a store of one machine.
    #[must_use]
    pub fn of_one_machine(summary: SessionSummary, opened: Timestamp) -> Self {
        Self { summary, opened, home: Home::HERE, owner: None, away: None }
    }
}

/// The place of a session's folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Home {
    /// The folder is on this machine.
    Here {
        /// The path that the folder has here, if several machines share it. The log may have the path
        /// on another machine.
        shared: Option<String>,
    },
    /// The folder is on the other machine with this name, or in a place with this name that this
    /// machine does not have.
    Elsewhere(String),
}

impl Home {
    /// The home of sessions in a store of one machine.
    pub(crate) const HERE: Self = Self::Here { shared: None };
}

/// A state of a session as its log keeps it, so that opening the session need not fold all facts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SavedState {
    /// The number of the last fact that the state includes.
    pub upto: u64,
    /// The state: see [`State::to_saved`](crate::state::State::to_saved).
    pub text: String,
}

/// The past of one session: its facts, in the order of their numbers.
pub trait SessionPast: Send + Sync + 'static {
    /// The first facts with numbers in `range`, in order: at most `max_facts`, and no more once a
    /// megabyte is reached. A [`Delta::Gap`] takes the place of a fact that can't be read; near
    /// damage it may cover more than one number.
    ///
    /// # Errors
    /// [`StoreError::Io`] if the facts can't be read; clients receive a gap instead.
    fn page(
        &self,
        range: Range<u64>,
        max_facts: usize,
    ) -> BoxFuture<'static, Result<Page, StoreError>>;

    /// The number at which the newest `count` facts in `range` begin: the start of `range` if it
    /// has fewer facts, and its end if `count` is 0.
    ///
    /// # Errors
    /// [`StoreError::Io`] if the log can't be read.
    fn newest(
        &self,
        range: Range<u64>,
        count: usize,
    ) -> BoxFuture<'static, Result<u64, StoreError>>;

    /// The session's saved entry in lists, which describes the session if its first fact can't be
    /// read. `None` if the entry is lost, too, or if the store can't lose facts.
    ///
    /// # Errors
    /// [`StoreError::Io`] if the session can't be read.
    fn saved(&self) -> BoxFuture<'static, Result<Option<SavedSession>, StoreError>> {
        std::future::ready(Ok(None)).boxed()
    }

    /// The saved pieces of an answer that did not become a fact, in order.
    ///
    /// # Errors
    /// [`StoreError::Io`] if the pieces can't be read.
    fn draft(&self) -> BoxFuture<'static, Result<Vec<Arc<Event>>, StoreError>>;

    /// The saved state; `None` if there is none, or if it is damaged.
    ///
    /// # Errors
    /// [`StoreError::Io`] if it can't be read.
    fn state(&self) -> BoxFuture<'static, Result<Option<SavedState>, StoreError>> {
        std::future::ready(Ok(None)).boxed()
    }
}

/// The log of one session, as its owner writes it.
pub trait SessionLog: SessionPast {
    /// The past of the session, for readers. They may keep it: it does not make this machine the owner.
    fn past(self: Arc<Self>) -> Arc<dyn SessionPast>;

    /// Until when no other machine can own the session; later, if the lease of this machine is
    /// extended meanwhile. `None` in a store of one machine, whose sessions have no other owner.
    fn until(&self) -> Option<Deadline> {
        None
    }

    /// How often the lease has ended before it was extended. Another machine may have owned the session
    /// each time.
    fn lapses(&self) -> u64 {
        0
    }

    /// The home of the session when the log was opened. Without it, the session has no actor here.
    fn home(&self) -> Home {
        Home::HERE
    }

    /// Appends facts durably, all or none, and saves the session's new summary. `after` is the
    /// number of the last fact that the caller knows, so that two owners of a session can't both
    /// write.
    ///
    /// A session has at most one append in progress. After an error the caller sends the same facts
    /// again, with newer ones. A log that did write them in spite of the error returns
    /// [`StoreError::Conflict`] with the number of the last of them, which the caller treats as
    /// success.
    ///
    /// # Errors
    /// [`StoreError`]: no fact is acknowledged, and clients see the session as not saved.
    fn append(
        &self,
        after: u64,
        facts: Vec<Arc<Event>>,
        summary: SessionSummary,
    ) -> BoxFuture<'static, Result<(), StoreError>>;

    /// Saves pieces of a streaming answer durably: deltas, each of which continues the one before.
    /// They are not facts: an append with the answer, or with the end of its turn, drops them.
    ///
    /// # Errors
    /// [`StoreError`]: the caller sends the same pieces again, with newer ones. Pieces that were
    /// saved in spite of the error are replaced.
    fn keep_draft(&self, pieces: Vec<Arc<Event>>) -> BoxFuture<'static, Result<(), StoreError>>;

    /// Saves a state in place of the one before. The facts up to its number are saved already. It
    /// only makes the next opening faster, so the caller need not wait, and a store need not keep it.
    ///
    /// # Errors
    /// [`StoreError`]: the state is not saved.
    fn keep_state(&self, _state: SavedState) -> BoxFuture<'static, Result<(), StoreError>> {
        std::future::ready(Ok(())).boxed()
    }

    /// Reserves `count` numbers that were never reserved before, above every existing fact. The
    /// reservation is durable: a restart does not give them out again. With a count of 0, the start
    /// of the range is the number that the next reservation would begin with, once all earlier
    /// writes are done.
    ///
    /// # Errors
    /// [`StoreError::Unknown`] if the log was deleted; [`StoreError::Io`] otherwise, and the caller
    /// tries again.
    fn reserve(&self, count: u64) -> BoxFuture<'static, Result<Range<u64>, StoreError>>;

    /// Gives back the numbers of `unused`, the last part of the reserved numbers: the next
    /// reservation begins with them. Does nothing if more were reserved since. The call itself
    /// starts the work, so a session that ends need not wait for the future.
    ///
    /// # Errors
    /// [`StoreError`]: the numbers stay reserved, and are never used.
    fn give_back(&self, unused: Range<u64>) -> BoxFuture<'static, Result<(), StoreError>>;
}

/// The reason why a log could not be read or written.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum StoreError {
    /// No such session exists.
    #[error("there is no session {session}")]
    Unknown {
        /// The session that was requested.
        session: SessionId,
    },
    /// The session already has a log.
    #[error("session {session} already exists")]
    Taken {
        /// The session that was to be created.
        session: SessionId,
    },
    /// Another process wrote to this session.
    #[error("the log ends at {last}, not at {after}: another process has this session open")]
    Conflict {
        /// The last number that the caller assumed.
        after: u64,
        /// The last number in the log.
        last: u64,
    },
    /// Another machine owns the session.
    #[error("the machine {by} has session {session}")]
    Owned {
        /// The session that was to be owned or deleted.
        session: SessionId,
        /// The name of the machine.
        by: String,
    },
    /// The caller no longer owns the session.
    #[error("the machine {by} has taken session {session} over")]
    Fenced {
        /// The session of the log.
        session: SessionId,
        /// The name of the new owner.
        by: String,
    },
    /// A later version of this program wrote the store, which is left as it is.
    #[error("the store has schema {found}; this version supports schemas up to {known}")]
    Newer {
        /// The schema of the store.
        found: u32,
        /// The newest schema that this version knows.
        known: u32,
    },
    /// Other users can access the store, so it is neither read nor written.
    #[cfg(feature = "folders")]
    #[error("{0}; the session store must be private to its user")]
    Exposed(#[from] crate::folders::Exposed),
    /// The stored data is not in the form in which it was written.
    #[error("the store is damaged: {message}")]
    Damaged {
        /// A description of the damage.
        message: String,
    },
    /// The store could not be read or written.
    #[error("{message}")]
    Io {
        /// A description of the failure.
        message: String,
    },
}

#[cfg(any(feature = "postgres", feature = "sqlite"))]
impl From<std::io::Error> for StoreError {
    fn from(error: std::io::Error) -> Self {
        Self::Io { message: error.to_string() }
    }
}

#[cfg(any(feature = "postgres", feature = "sqlite"))]
impl From<serde_json::Error> for StoreError {
    fn from(error: serde_json::Error) -> Self {
        Self::Io { message: format!("a fact can't be written as JSON: {error}") }
    }
}

/// Consecutive facts of a log that were read at once.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Page {
    /// The facts, and gaps for those that can't be read.
    pub facts: Vec<Arc<Event>>,
    /// The number that the next page begins with; `None` after the last page.
    pub next: Option<u64>,
}

impl Page {
    /// A page of the first `max_facts` of these facts. If there are more, it is not the last page.
    fn up_to(mut facts: Vec<Arc<Event>>, max_facts: usize) -> Self {
        let next = facts.get(max_facts).map(|event| event.seq);
        facts.truncate(max_facts);
        Self { facts, next }
    }
}

impl dyn SessionPast {
    /// All facts with numbers in `range`, in order, with gaps. The result can be large; read pages
    /// where facts can be handled one by one.
    ///
    /// # Errors
    /// [`StoreError::Io`] if they can't be read.
    pub async fn read(&self, range: Range<u64>) -> Result<Vec<Arc<Event>>, StoreError> {
        let mut facts = Vec::new();
        let mut pages = Pages::within(self, range);
        while let Some(mut page) = pages.next().await? {
            facts.append(&mut page);
        }
        Ok(facts)
    }
}

impl dyn SessionLog {
    /// All facts with numbers in `range`, as `read` of [`SessionPast`] returns them.
    ///
    /// # Errors
    /// [`StoreError::Io`] if they can't be read.
    pub async fn read(&self, range: Range<u64>) -> Result<Vec<Arc<Event>>, StoreError> {
        let past: &dyn SessionPast = self;
        past.read(range).await
    }
}

/// How many facts are read at a time from a whole log.
const PAGE_FACTS: usize = 16_384;

/// The facts of a log, page by page, because a whole log may not fit into memory. Pages are counted
/// in facts, not in numbers, because a damaged row can have any number.
pub(crate) struct Pages<'a> {
    log: &'a dyn SessionPast,
    /// The numbers still to be read; `None` after the last page.
    range: Option<Range<u64>>,
}

impl<'a> Pages<'a> {
    /// Reads the whole log.
    pub(crate) fn whole_log(log: &'a dyn SessionPast) -> Self {
        Self::within(log, 0..u64::MAX)
    }

    /// Reads the facts with numbers in this range.
    pub(crate) fn within(log: &'a dyn SessionPast, range: Range<u64>) -> Self {
        Self { log, range: Some(range) }
    }

    /// The next page; `None` after the last.
    pub(crate) async fn next(&mut self) -> Result<Option<Vec<Arc<Event>>>, StoreError> {
        let Some(range) = self.range.clone() else { return Ok(None) };
        let page = self.log.page(range.clone(), PAGE_FACTS).await?;
        self.range = page.next.map(|next| next..range.end);
        Ok(Some(page.facts))
    }
}

/// The last number that an event of a log covers.
pub(crate) fn last_seq_of(event: &Event) -> u64 {
    match event.delta() {
        Some(Delta::Gap { to, .. }) => *to,
        _ => event.seq,
    }
}

/// The number of the last fact that ends a draft. Pieces after it belong to another answer.
fn end_of_draft(facts: &[Arc<Event>]) -> Option<u64> {
    let ends = |fact: &Fact| {
        matches!(fact, Fact::Turn(TurnFact::AssistantMessage(_) | TurnFact::Finished { .. }))
    };
    facts.iter().rfind(|event| event.fact().is_some_and(ends)).map(|event| event.seq)
}

/// The summary of a log; `None` if its facts do not begin with [`SessionFact::Opened`].
#[cfg(feature = "sqlite")]
fn summary_of(facts: &[Arc<Event>]) -> Option<SessionSummary> {
    Some(crate::state::State::fold(facts)?.summary())
}
