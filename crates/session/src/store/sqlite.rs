//! The store in one SQLite database, in which acknowledged facts are on disk.

mod check;
mod files;
mod reader;
mod rows;
mod salvage;
mod schema;
mod writer;

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crossbeam_channel::{Sender, TrySendError, bounded, unbounded};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use holdpoint_common::{Event, Gaps, SessionId, SessionSummary};
use tokio::sync::{oneshot, watch};

use super::reads::{FoundGaps, MAX_WAITING_READS, Past, Read, Reads};
use super::{
    NewLog, SavedPage, SavedSession, SavedState, SessionLog, SessionPast, SessionStore, StoreError,
};
pub use salvage::Salvaged;

/// The database file in the folder of the store.
const DATABASE_FILE: &str = "sessions.db";

/// The number of threads that read.
const READER_THREADS: usize = 2;

/// A store that keeps every log in one SQLite database, `sessions.db`, in a folder of its own.
///
/// One thread writes; writes of several sessions that arrive together share a commit. A commit is
/// on disk when it is acknowledged (WAL, `synchronous=FULL`). Other threads and processes may read
/// the database meanwhile.
#[derive(Clone)]
pub struct Sqlite {
    writes: Sender<writer::PendingWrite>,
    reads: Sender<Read>,
    shared: Arc<Shared>,
    /// Closed when the writing thread has ended.
    writing: watch::Sender<()>,
    /// Closed when the reading threads have ended.
    reading: watch::Sender<()>,
    check: Arc<check::Check>,
}

impl Sqlite {
    /// The files that a store has in a folder, whether they exist or not: the database and SQLite's
    /// files beside it.
    #[must_use]
    pub fn files(folder: &Path) -> Vec<PathBuf> {
        let database = folder.join(DATABASE_FILE);
        let beside = files::SIDE_FILE_SUFFIXES.map(|suffix| files::side_file(&database, suffix));
        [database].into_iter().chain(beside).collect()
    }
}

/// The data that the store's threads share.
struct Shared {
    path: PathBuf,
    /// One entry for each salvage. Locked to see whether the database was replaced, and while a new
    /// one takes its place.
    salvaged: Mutex<Vec<Salvaged>>,
    /// Why the last attempt to salvage the database failed, if it did.
    salvage_error: Mutex<Option<String>>,
    /// Whether a reader has found that the index of the list does not match the sessions.
    has_wrong_index: AtomicBool,
    gaps: Arc<FoundGaps>,
}

impl Shared {
    /// How often the database was replaced. A connection to an earlier one is useless.
    fn generation(&self) -> usize {
        self.salvaged().len()
    }

    /// Salvages a damaged database, or leaves everything as it is and fails. Only one thread calls
    /// this at a time.
    fn salvage(&self) -> Result<(), StoreError> {
        let tried = salvage::rebuild(&self.path).and_then(|rebuilt| {
            let mut salvaged = self.salvaged();
            salvaged.push(rebuilt.swap(&self.path)?);
            Ok(())
        });
        let tried = tried.map_err(|error| {
            let database = self.path.display();
            tracing::error!(%database, %error, "the store is damaged, could not be salvaged and is left unchanged");
            io_error(format!("{database} is damaged, could not be salvaged and is left unchanged: {error}"))
        });
        *self.salvage_error.lock().unwrap_or_else(PoisonError::into_inner) =
            tried.as_ref().err().map(ToString::to_string);
        tried
    }

    fn salvaged(&self) -> MutexGuard<'_, Vec<Salvaged>> {
        self.salvaged.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sqlite {
    /// Opens the store in this folder, or creates it: the folder with mode 0700, the database with
    /// 0600.
    ///
    /// # Errors
    /// [`StoreError::Newer`] if a later version wrote the store, which is left untouched.
    /// [`StoreError::Exposed`] if the folder or the database belongs to another user, if others can
    /// write to the folder, or if others can access the database. [`StoreError::Io`] if the store
    /// can't be opened or created.
    pub fn open(folder: &Path) -> Result<Self, StoreError> {
        files::make_folder(folder)?;
        let shared = Arc::new(Shared {
            path: folder.join(DATABASE_FILE),
            salvaged: Mutex::default(),
            salvage_error: Mutex::default(),
            has_wrong_index: AtomicBool::default(),
            gaps: Arc::default(),
        });
        files::make_file(&shared.path)?;
        salvage::undo_cut_swap(&shared.path)?;
        let db = match schema::open_for_writing(&shared.path) {
            Err(StoreError::Damaged { .. }) => {
                shared.salvage()?;
                schema::open_for_writing(&shared.path)?
            }
            db => db?,
        };
        // The senders bound this queue: a session's actor has at most one write of each kind in
        // progress, and a request at most one in all.
        let (writes, pending_writes) = unbounded();
        let (writing, reading) = (watch::Sender::default(), watch::Sender::default());
        let writer_shared = Arc::clone(&shared);
        spawn("holdpoint-store", writing.subscribe(), move || {
            writer::run(&writer_shared, db, &pending_writes)
        })?;
        let (reads, pending_reads) = bounded(MAX_WAITING_READS);
        for _ in 0..READER_THREADS {
            let (shared, pending_reads) = (Arc::clone(&shared), pending_reads.clone());
            spawn("holdpoint-reader", reading.subscribe(), move || {
                reader::run(&shared, &pending_reads)
            })?;
        }
        Ok(Self { writes, reads, shared, writing, reading, check: Arc::default() })
    }

    /// Waits until the store's files are closed, which happens once every other clone of the store
    /// is dropped. The database is one file then, and a copy of that file is complete.
    pub async fn close(self) {
        let Self { writes, reads, writing, reading, check, .. } = self;
        drop((reads, check));
        reading.closed().await;
        // SQLite merges its files when the last connection closes, if that connection can write.
        drop(writes);
        writing.closed().await;
    }

    /// Every salvage of a damaged database since the store was opened.
    #[must_use]
    pub fn salvaged(&self) -> Vec<Salvaged> {
        self.shared.salvaged().clone()
    }

    /// Why the last attempt to salvage the database failed, if it did. The database is left as it
    /// is.
    #[must_use]
    pub fn salvage_error(&self) -> Option<String> {
        self.shared.salvage_error.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn write(&self, request: writer::WriteRequest) -> BoxFuture<'static, Result<u64, StoreError>> {
        let (done, result) = oneshot::channel();
        let sent = self.writes.send(writer::PendingWrite { request, done });
        async move {
            sent.map_err(|_| thread_ended_error())?;
            result.await.map_err(|_| thread_ended_error())?
        }
        .boxed()
    }

    fn read_once<T: Send + 'static>(
        &self,
        request: &impl Fn(oneshot::Sender<Result<T, StoreError>>) -> Read,
    ) -> BoxFuture<'static, Result<T, StoreError>> {
        let (done, result) = oneshot::channel();
        let sent = self.reads.try_send(request(done));
        async move {
            sent.map_err(|error| match error {
                TrySendError::Full(_) => {
                    io_error(format!("too many reads: {MAX_WAITING_READS} are waiting"))
                }
                TrySendError::Disconnected(_) => thread_ended_error(),
            })?;
            result.await.map_err(|_| thread_ended_error())?
        }
        .boxed()
    }

    fn log(&self, session: &SessionId) -> Arc<Past<Self>> {
        Arc::new(Past { store: self.clone(), session: session.clone() })
    }

    /// The log of an existing session.
    fn find(&self, session: &SessionId) -> BoxFuture<'static, Result<Arc<Past<Self>>, StoreError>> {
        let wanted = session.clone();
        let find = move |done| Read::Find { session: wanted.clone(), done };
        let found = self.read(find);
        let log = self.log(session);
        async move { found.await.map(|()| log) }.boxed()
    }
}

impl Reads for Sqlite {
    /// If the database turns out to be damaged, salvages it and reads once more.
    fn read<T, F>(&self, request: F) -> BoxFuture<'static, Result<T, StoreError>>
    where
        T: Send + 'static,
        F: Fn(oneshot::Sender<Result<T, StoreError>>) -> Read + Send + 'static,
    {
        let store = self.clone();
        let seen = store.shared.generation();
        let first = store.read_once(&request);
        async move {
            match first.await {
                Err(StoreError::Damaged { .. }) => {
                    store.write(writer::WriteRequest::Salvage { seen }).await?;
                    store.read_once(&request).await
                }
                read => read,
            }
        }
        .boxed()
    }

    fn found_gaps(&self) -> Arc<FoundGaps> {
        Arc::clone(&self.shared.gaps)
    }
}

impl SessionStore for Sqlite {
    fn create(
        &self,
        session: &SessionId,
        contents: NewLog,
    ) -> BoxFuture<'static, Result<Arc<dyn SessionLog>, StoreError>> {
        let made = self.write(writer::WriteRequest::Create {
            session: session.clone(),
            opened: contents.opened(),
            contents: Box::new(contents),
        });
        let log = self.log(session);
        async move { made.await.map(|_| log as Arc<dyn SessionLog>) }.boxed()
    }

    fn open(
        &self,
        session: &SessionId,
    ) -> BoxFuture<'static, Result<Arc<dyn SessionPast>, StoreError>> {
        self.find(session).map(|found| found.map(|log| log as Arc<dyn SessionPast>)).boxed()
    }

    fn own(
        &self,
        session: &SessionId,
    ) -> BoxFuture<'static, Result<Arc<dyn SessionLog>, StoreError>> {
        self.find(session).map(|found| found.map(|log| log as Arc<dyn SessionLog>)).boxed()
    }

    fn list_page(
        &self,
        page: SavedPage,
    ) -> BoxFuture<'static, Result<Vec<SavedSession>, StoreError>> {
        let listed = self.read(move |done| Read::List { page: page.clone(), done });
        let store = self.clone();
        async move {
            let listed = listed.await?;
            if store.shared.has_wrong_index.swap(false, Ordering::Relaxed) {
                // The list has all sessions already.
                drop(store.write(writer::WriteRequest::Reindex));
            }
            Ok(listed)
        }
        .boxed()
    }

    fn gaps(&self, session: &SessionId) -> Gaps {
        self.shared.gaps.of(session)
    }

    fn check(&self) -> BoxFuture<'static, ()> {
        self.check.run_once(&self.shared, &self.reading)
    }

    fn delete(&self, session: &SessionId) -> BoxFuture<'static, Result<(), StoreError>> {
        let deleted = self.write(writer::WriteRequest::Delete { session: session.clone() });
        let (shared, session) = (Arc::clone(&self.shared), session.clone());
        async move {
            deleted.await?;
            shared.gaps.forget(&session);
            Ok(())
        }
        .boxed()
    }
}

impl SessionLog for Past<Sqlite> {
    fn past(self: Arc<Self>) -> Arc<dyn SessionPast> {
        self
    }

    fn append(
        &self,
        after: u64,
        facts: Vec<Arc<Event>>,
        summary: SessionSummary,
    ) -> BoxFuture<'static, Result<(), StoreError>> {
        let request = writer::WriteRequest::Append {
            session: self.session.clone(),
            after,
            facts,
            summary: Box::new(summary),
        };
        self.store.write(request).map(|done| done.map(|_| ())).boxed()
    }

    fn keep_draft(&self, pieces: Vec<Arc<Event>>) -> BoxFuture<'static, Result<(), StoreError>> {
        let request = writer::WriteRequest::KeepDraft { session: self.session.clone(), pieces };
        self.store.write(request).map(|done| done.map(|_| ())).boxed()
    }

    fn keep_state(&self, state: SavedState) -> BoxFuture<'static, Result<(), StoreError>> {
        let request = writer::WriteRequest::KeepState { session: self.session.clone(), state };
        self.store.write(request).map(|done| done.map(|_| ())).boxed()
    }

    fn reserve(&self, count: u64) -> BoxFuture<'static, Result<Range<u64>, StoreError>> {
        let first = self
            .store
            .write(writer::WriteRequest::Reserve { session: self.session.clone(), count });
        async move { first.await.map(|first| first..first + count) }.boxed()
    }

    fn give_back(&self, unused: Range<u64>) -> BoxFuture<'static, Result<(), StoreError>> {
        let request = writer::WriteRequest::GiveBack { session: self.session.clone(), unused };
        self.store.write(request).map(|done| done.map(|_| ())).boxed()
    }
}

/// Starts a thread that holds `alive` until `run` has returned.
fn spawn(
    name: &str,
    alive: watch::Receiver<()>,
    run: impl FnOnce() + Send + 'static,
) -> Result<(), StoreError> {
    let run = move || {
        run();
        drop(alive);
    };
    std::thread::Builder::new().name(name.to_owned()).spawn(run)?;
    Ok(())
}

fn thread_ended_error() -> StoreError {
    io_error("the store's thread has ended".to_owned())
}

fn io_error(message: String) -> StoreError {
    StoreError::Io { message }
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        use rusqlite::Error;
        use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase};
        let is_damage = match &error {
            // All tables are strict: only damage changes the type of a value, or its range.
            Error::InvalidColumnType(..)
            | Error::IntegralValueOutOfRange(..)
            | Error::Utf8Error(..)
            | Error::FromSqlConversionFailure(..) => true,
            _ => matches!(error.sqlite_error_code(), Some(DatabaseCorrupt | NotADatabase)),
        };
        let message = error.to_string();
        if is_damage { Self::Damaged { message } } else { io_error(message) }
    }
}
