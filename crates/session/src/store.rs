//! Where the facts of sessions are kept.

mod memory;
mod numbers;
#[cfg(feature = "sqlite")]
mod sqlite;

use std::ops::Range;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use holdpoint_common::{Delta, Event, Fact, Gaps, SessionId, SessionSummary, Timestamp};
use thiserror::Error;

pub use memory::Memory;
pub(crate) use numbers::{NUMBERS, Numbers};
#[cfg(feature = "sqlite")]
pub use sqlite::{Salvaged, Sqlite};

/// The logs of all sessions.
///
/// What these return is polled on a session's thread: it does its work elsewhere, or is ready at once. If it is dropped
/// half-way (the session's actor has failed), it may have done its work or not: the log is read anew then.
pub trait SessionStore: Send + Sync + 'static {
    /// Whether acknowledged facts outlive the process. If not, nothing is reported as saved.
    fn is_durable(&self) -> bool {
        true
    }

    /// Makes the log of a new session.
    ///
    /// # Errors
    /// [`StoreError::Taken`] if there is one, [`StoreError::Io`] if it can't be made.
    fn create(&self, session: &SessionId) -> BoxFuture<'static, Result<Arc<dyn SessionLog>, StoreError>>;

    /// Opens the log of a session made before.
    ///
    /// # Errors
    /// [`StoreError::Unknown`] if there is none, [`StoreError::Io`] if it can't be read.
    fn open(&self, session: &SessionId) -> BoxFuture<'static, Result<Arc<dyn SessionLog>, StoreError>>;

    /// Every session that has a log, in no order.
    ///
    /// # Errors
    /// [`StoreError::Io`] if they can't be read.
    fn list(&self) -> BoxFuture<'static, Result<Vec<SavedSession>, StoreError>>;

    /// Which events of a session's log can't be read, as far as that was found yet.
    fn gaps(&self, _session: &SessionId) -> Gaps {
        Gaps::default()
    }

    /// Reads all logs through in the background, once, to find their gaps. Ready when that is done. A store that can't lose
    /// a fact has nothing to do.
    fn check(&self) -> BoxFuture<'static, ()> {
        std::future::ready(()).boxed()
    }

    /// Deletes a session's log. One that is open takes nothing from then on (`append`, `keep_draft` and `reserve` fail as
    /// unknown), and what is read of it is nothing.
    ///
    /// # Errors
    /// [`StoreError::Unknown`] if there is none, [`StoreError::Io`] if it can't be deleted.
    fn delete(&self, session: &SessionId) -> BoxFuture<'static, Result<(), StoreError>>;
}

/// A session as its store lists it.
#[derive(Debug, Clone, PartialEq)]
pub struct SavedSession {
    /// What was true of it when it was saved last. It may have been running then.
    pub summary: SessionSummary,
    /// When it was first opened.
    pub opened: Timestamp,
}

/// The log of one session: its facts, in the order of their numbers.
pub trait SessionLog: Send + Sync + 'static {
    /// Adds facts durably, all or none, and what the session comes to with them, for lists. `after` is the number of the last fact the caller knows of, so that
    /// two owners of one session can't both write.
    ///
    /// One at a time is under way for a session. After an error the same facts come again, with those that happened
    /// since: a log that had written them after all answers [`StoreError::Conflict`] with the last of them, which is
    /// taken as success.
    ///
    /// # Errors
    /// [`StoreError`]: nothing is acknowledged, and the session is told as not saved.
    fn append(
        &self,
        after: u64,
        facts: Vec<Arc<Event>>,
        summary: SessionSummary,
    ) -> BoxFuture<'static, Result<(), StoreError>>;

    /// The first facts with numbers in `range`, in order: at most `most`, and no more once they come to a megabyte. In
    /// the place of one that can't be read stands a [`Delta::Gap`] of its number. Around damage it may be more.
    ///
    /// # Errors
    /// [`StoreError::Io`] if they can't be read; the reader is told of a gap.
    fn page(&self, range: Range<u64>, most: usize) -> BoxFuture<'static, Result<Page, StoreError>>;

    /// What was saved of it last for lists: by that it is known what it is where its first fact can't be read. `None` if
    /// that is not known either, or the store can't lose a fact.
    ///
    /// # Errors
    /// [`StoreError::Io`] if that can't be read.
    fn saved(&self) -> BoxFuture<'static, Result<Option<SavedSession>, StoreError>> {
        std::future::ready(Ok(None)).boxed()
    }

    /// The number from which on `range` has `newest` facts; its start if it has fewer, its end if none are wanted.
    ///
    /// # Errors
    /// [`StoreError::Io`] if that can't be read.
    fn newest(&self, range: Range<u64>, newest: usize) -> BoxFuture<'static, Result<u64, StoreError>>;

    /// Keeps pieces of the answer that a model is giving, durably: deltas, each of which goes on where the one before
    /// ended. They are no facts: an append that has the answer, or the end of its turn, drops them.
    ///
    /// # Errors
    /// [`StoreError`]: the same pieces come again, with those that came since.
    fn keep_draft(&self, pieces: Vec<Arc<Event>>) -> BoxFuture<'static, Result<(), StoreError>>;

    /// What is kept of an answer that did not become a fact, in order.
    ///
    /// # Errors
    /// [`StoreError::Io`] if it can't be read.
    fn draft(&self) -> BoxFuture<'static, Result<Vec<Arc<Event>>, StoreError>>;

    /// Sets `count` numbers aside that were never set aside before, above every fact there is. Durable: they are not
    /// given again after a restart. With a count of 0, the start says which would be the first, when all that was begun
    /// before is written.
    ///
    /// # Errors
    /// [`StoreError::Unknown`] if the log was deleted; [`StoreError::Io`]: it is asked again.
    fn reserve(&self, count: u64) -> BoxFuture<'static, Result<Range<u64>, StoreError>>;

    /// Gives back the numbers of `unused`, the last part of all that were set aside: the next that are set aside begin
    /// with them. Nothing happens if more were set aside since. The call begins it; a session that ends does not wait for
    /// the answer.
    ///
    /// # Errors
    /// [`StoreError`]: the numbers stay set aside, and are never used.
    fn give_back(&self, unused: Range<u64>) -> BoxFuture<'static, Result<(), StoreError>>;
}

/// Why a log could not be read or written.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum StoreError {
    /// There is no such session.
    #[error("there is no session {session}")]
    Unknown {
        /// What was named.
        session: SessionId,
    },
    /// There is such a session already.
    #[error("there is a session {session} already")]
    Taken {
        /// What was to be made.
        session: SessionId,
    },
    /// Someone else wrote to this session.
    #[error("the log ends at {last}, not at {after}: another process has this session open")]
    Conflict {
        /// Where the caller thought it ends.
        after: u64,
        /// Where it ends.
        last: u64,
    },
    /// The store was written by a later version of this program, and is left as it is.
    #[error("the store has schema {found}, and this version knows schemas up to {known}")]
    Newer {
        /// The store's schema.
        found: u32,
        /// The newest that is known here.
        known: u32,
    },
    /// Others can get at what is kept: it is neither read nor written.
    #[cfg(feature = "folders")]
    #[error("{0}; what is kept there has to be this user's alone")]
    Exposed(#[from] crate::folders::Exposed),
    /// What is kept can't be read as what it was written as.
    #[error("the store is damaged: {message}")]
    Damaged {
        /// What was found.
        message: String,
    },
    /// It could not be read or written.
    #[error("{message}")]
    Io {
        /// What happened.
        message: String,
    },
}

/// Some facts of a log, one after the other.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Page {
    /// They, and gaps.
    pub facts: Vec<Arc<Event>>,
    /// Where the next page begins; `None`: there are no more.
    pub next: Option<u64>,
}

impl Page {
    /// The first `most` of these facts; if there are more, it is not the last page.
    fn of(mut facts: Vec<Arc<Event>>, most: usize) -> Self {
        let next = facts.get(most).map(|event| event.seq);
        facts.truncate(most);
        Self { facts, next }
    }
}

impl dyn SessionLog {
    /// All facts with numbers in `range`, in order, and gaps. It may be much: where one fact after the other will do, read
    /// pages.
    ///
    /// # Errors
    /// [`StoreError::Io`] if they can't be read.
    pub async fn read(&self, range: Range<u64>) -> Result<Vec<Arc<Event>>, StoreError> {
        let (mut facts, mut pages) = (Vec::new(), Pages::within(self, range));
        while let Some(mut page) = pages.next().await? {
            facts.append(&mut page);
        }
        Ok(facts)
    }
}

/// Facts that are read at a time, where a whole log is read.
const PAGE: usize = 16_384;

/// The facts of a log, a page at a time: they may be more than one wants to have at once. By facts, not by numbers, of
/// which a damaged row can have any.
pub(crate) struct Pages<'a> {
    log: &'a dyn SessionLog,
    /// What is still to be read; `None` behind the last page.
    range: Option<Range<u64>>,
}

impl<'a> Pages<'a> {
    /// All there are.
    pub(crate) fn of(log: &'a dyn SessionLog) -> Self {
        Self::within(log, 0..u64::MAX)
    }

    fn within(log: &'a dyn SessionLog, range: Range<u64>) -> Self {
        Self { log, range: Some(range) }
    }

    /// The next page; `None` behind the last.
    pub(crate) async fn next(&mut self) -> Result<Option<Vec<Arc<Event>>>, StoreError> {
        let Some(range) = self.range.clone() else { return Ok(None) };
        let page = self.log.page(range.clone(), PAGE).await?;
        self.range = page.next.map(|next| next..range.end);
        Ok(Some(page.facts))
    }
}

/// The last number that an event of a log stands for.
pub(crate) fn end_of(event: &Event) -> u64 {
    match event.delta() {
        Some(Delta::Gap { to, .. }) => *to,
        _ => event.seq,
    }
}

/// Where these facts end the answer that a draft is of: of pieces that come after it, another answer is made.
fn end_of_draft(facts: &[Arc<Event>]) -> Option<u64> {
    let ends = |fact: &Fact| matches!(fact, Fact::AssistantMessage(_) | Fact::TurnFinished { .. });
    facts.iter().rfind(|event| event.fact().is_some_and(ends)).map(|event| event.seq)
}

/// What facts come to, for a list; nothing if they do not begin with a session's opening.
#[cfg(feature = "sqlite")]
fn summary_of(facts: &[Arc<Event>]) -> Option<SessionSummary> {
    Some(crate::state::State::fold(facts)?.summary())
}
