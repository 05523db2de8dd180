//! Where the facts of sessions are kept.

mod memory;

use std::ops::Range;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use holdpoint_common::{Event, SessionId};
use thiserror::Error;

pub use memory::Memory;

/// The logs of all sessions.
pub trait SessionStore: Send + Sync + 'static {
    /// Makes the log of a new session.
    fn create(&self, session: &SessionId) -> BoxFuture<'static, Result<Arc<dyn SessionLog>, StoreError>>;

    /// Opens the log of a session made before.
    fn open(&self, session: &SessionId) -> BoxFuture<'static, Result<Arc<dyn SessionLog>, StoreError>>;
}

/// The log of one session: its facts, in the order of their numbers.
pub trait SessionLog: Send + Sync + 'static {
    /// Adds facts durably, all or none. `after` is the number of the last fact the caller knows of, so that
    /// two owners of one session can't both write.
    fn append(&self, after: u64, facts: Vec<Arc<Event>>) -> BoxFuture<'static, Result<(), StoreError>>;

    /// The facts with numbers in `range`, in order; with `newest`, only that many of the last ones.
    fn read(&self, range: Range<u64>, newest: Option<usize>)
    -> BoxFuture<'static, Result<Vec<Arc<Event>>, StoreError>>;

    /// Sets `count` numbers aside that were never set aside before, above every fact there is.
    fn reserve(&self, count: u64) -> BoxFuture<'static, Result<Range<u64>, StoreError>>;
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
    /// Someone else wrote to this session.
    #[error("the log ends at {last}, not at {after}: another process has this session open")]
    Conflict {
        /// Where the caller thought it ends.
        after: u64,
        /// Where it ends.
        last: u64,
    },
    /// It could not be read or written.
    #[error("{message}")]
    Io {
        /// What happened.
        message: String,
    },
}
