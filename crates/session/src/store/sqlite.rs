//! A store in one SQLite database: what was acknowledged is on disk.

mod reader;
mod schema;
mod writer;

use std::fs::{DirBuilder, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use crossbeam_channel::{Sender, bounded, unbounded};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use holdpoint_common::{Event, SessionId, SessionSummary};
use tokio::sync::oneshot;

use super::{SavedSession, SessionLog, SessionStore, StoreError};

/// The database, in the folder of the store.
const FILE: &str = "sessions.db";

/// Threads that read.
const READERS: usize = 2;

/// Reads that wait at most. One more fails.
const WAITING_READS: usize = 4_096;

/// Keeps every log in one SQLite database, `sessions.db` in a folder of its own.
///
/// One thread writes: what several sessions want written at once shares a commit. A commit is on disk when it is
/// acknowledged (WAL, `synchronous=FULL`). Others may read the database meanwhile, other processes too.
#[derive(Clone)]
pub struct Sqlite {
    writes: Sender<writer::Job>,
    reads: Sender<reader::Job>,
}

impl Sqlite {
    /// Opens the store in this folder, or makes it. The folder is made with mode 0700, the database with 0600.
    ///
    /// # Errors
    /// [`StoreError::Newer`] if a later version has written it: it is left untouched. [`StoreError::Io`] if it can't be
    /// opened or made.
    pub fn open(folder: &Path) -> Result<Self, StoreError> {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let path = folder.join(FILE);
        // Made before SQLite does, for its mode; what SQLite makes beside it gets the same.
        match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error.into()),
        }
        let db = schema::writer(&path)?;
        // Bounded: each session has at most one write under way.
        let (writes, jobs) = unbounded();
        let writing = path.clone();
        spawn("holdpoint-store", move || writer::run(writing, Some(db), &jobs))?;
        let (reads, jobs) = bounded(WAITING_READS);
        for _ in 0..READERS {
            let (path, jobs) = (path.clone(), jobs.clone());
            spawn("holdpoint-reader", move || reader::run(&path, &jobs))?;
        }
        Ok(Self { writes, reads })
    }

    fn write(&self, session: &SessionId, what: writer::What) -> BoxFuture<'static, Result<u64, StoreError>> {
        let (done, result) = oneshot::channel();
        let sent = self.writes.send(writer::Job { session: session.clone(), what, done });
        async move {
            sent.map_err(|_| gone())?;
            result.await.map_err(|_| gone())?
        }
        .boxed()
    }

    fn read<T: Send + 'static>(
        &self,
        job: impl FnOnce(oneshot::Sender<Result<T, StoreError>>) -> reader::Job,
    ) -> BoxFuture<'static, Result<T, StoreError>> {
        let (done, result) = oneshot::channel();
        let sent = self.reads.try_send(job(done));
        async move {
            sent.map_err(|_| io_error(format!("{WAITING_READS} reads wait already")))?;
            result.await.map_err(|_| gone())?
        }
        .boxed()
    }

    fn log(&self, session: &SessionId) -> Arc<dyn SessionLog> {
        Arc::new(SqliteLog { store: self.clone(), session: session.clone() })
    }
}

impl SessionStore for Sqlite {
    fn create(&self, session: &SessionId) -> BoxFuture<'static, Result<Arc<dyn SessionLog>, StoreError>> {
        let made = self.write(session, writer::What::Create { opened: SystemTime::now().into() });
        let log = self.log(session);
        async move { made.await.map(|_| log) }.boxed()
    }

    fn open(&self, session: &SessionId) -> BoxFuture<'static, Result<Arc<dyn SessionLog>, StoreError>> {
        let found = self.read(|done| reader::Job::Find { session: session.clone(), done });
        let log = self.log(session);
        async move { found.await.map(|()| log) }.boxed()
    }

    fn list(&self) -> BoxFuture<'static, Result<Vec<SavedSession>, StoreError>> {
        self.read(|done| reader::Job::List { done })
    }

    fn delete(&self, session: &SessionId) -> BoxFuture<'static, Result<(), StoreError>> {
        self.write(session, writer::What::Delete).map(|done| done.map(|_| ())).boxed()
    }
}

/// The log of one session.
struct SqliteLog {
    store: Sqlite,
    session: SessionId,
}

impl SessionLog for SqliteLog {
    fn append(
        &self,
        after: u64,
        facts: Vec<Arc<Event>>,
        summary: SessionSummary,
    ) -> BoxFuture<'static, Result<(), StoreError>> {
        let what = writer::What::Append { after, facts, summary: Box::new(summary) };
        self.store.write(&self.session, what).map(|done| done.map(|_| ())).boxed()
    }

    fn read(
        &self,
        range: Range<u64>,
        newest: Option<usize>,
    ) -> BoxFuture<'static, Result<Vec<Arc<Event>>, StoreError>> {
        let session = self.session.clone();
        self.store.read(|done| reader::Job::Facts { session, range, newest, done })
    }

    fn reserve(&self, count: u64) -> BoxFuture<'static, Result<Range<u64>, StoreError>> {
        let first = self.store.write(&self.session, writer::What::Reserve { count });
        async move { first.await.map(|first| first..first + count) }.boxed()
    }
}

fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> Result<(), StoreError> {
    std::thread::Builder::new().name(name.to_owned()).spawn(run)?;
    Ok(())
}

fn gone() -> StoreError {
    io_error("the store's thread is gone".to_owned())
}

fn io_error(message: String) -> StoreError {
    StoreError::Io { message }
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        io_error(error.to_string())
    }
}

impl From<io::Error> for StoreError {
    fn from(error: io::Error) -> Self {
        io_error(error.to_string())
    }
}

impl From<serde_json::Error> for StoreError {
    fn from(error: serde_json::Error) -> Self {
        io_error(format!("a fact can't be read: {error}"))
    }
}
