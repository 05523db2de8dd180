//! A store in one SQLite database: what was acknowledged is on disk.

mod check;
mod place;
mod reader;
mod rows;
mod salvage;
mod schema;
mod writer;

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use crossbeam_channel::{Sender, bounded, unbounded};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use holdpoint_common::{Delta, Event, Gap, Gaps, SessionId, SessionSummary};
use tokio::sync::{oneshot, watch};

use super::{Page, SavedSession, SessionLog, SessionStore, StoreError};
pub use salvage::Salvaged;

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
    shared: Arc<Shared>,
    /// Closed when the thread that writes has ended.
    writing: watch::Sender<()>,
    /// Closed when those that read have.
    reading: watch::Sender<()>,
    check: Arc<check::Check>,
}

impl Sqlite {
    /// The files that it has in a folder, there or not: the database, and what SQLite writes beside it.
    #[must_use]
    pub fn files(folder: &Path) -> Vec<PathBuf> {
        let database = folder.join(FILE);
        let beside = place::BESIDE.map(|suffix| place::beside(&database, suffix));
        [database].into_iter().chain(beside).collect()
    }
}

/// What the store's threads share.
struct Shared {
    path: PathBuf,
    /// Taken to look whether something was damaged, and while a new database is put in its place.
    salvaged: Mutex<Vec<Salvaged>>,
    /// Why what is damaged could not be salvaged when that was tried last.
    unsalvaged: Mutex<Option<String>>,
    /// The gaps that were found in the logs of sessions. Taken for an entry, or for a copy of all.
    gaps: Mutex<BTreeMap<SessionId, Gaps>>,
}

impl Shared {
    /// How often the database was replaced: connections to one before it are of no use.
    fn generation(&self) -> usize {
        self.salvaged().len()
    }

    /// Salvages what is damaged; or leaves everything as it is, and says so. One thread at a time.
    fn salvage(&self) -> Result<(), StoreError> {
        let tried = salvage::rebuild(&self.path).and_then(|rebuilt| {
            let mut salvaged = self.salvaged();
            salvaged.push(rebuilt.swap(&self.path)?);
            Ok(())
        });
        let tried = tried.map_err(|error| {
            let database = self.path.display();
            tracing::error!(%database, %error, "the store is damaged, and could not be salvaged: it is left as it is");
            io_error(format!("{database} is damaged, could not be salvaged, and is left as it is: {error}"))
        });
        *self.unsalvaged.lock().unwrap_or_else(PoisonError::into_inner) = tried.as_ref().err().map(ToString::to_string);
        tried
    }

    fn gaps(&self) -> MutexGuard<'_, BTreeMap<SessionId, Gaps>> {
        self.gaps.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes which of a session's facts can't be read.
    fn note_gaps(&self, session: &SessionId, facts: &[Arc<Event>]) {
        for event in facts {
            if let Some(Delta::Gap { from, to }) = event.delta() {
                self.note_gap(session, Gap { from: *from, to: *to });
            }
        }
    }

    fn note_gap(&self, session: &SessionId, gap: Gap) {
        self.gaps().entry(session.clone()).or_default().add(gap);
    }

    fn salvaged(&self) -> MutexGuard<'_, Vec<Salvaged>> {
        self.salvaged.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sqlite {
    /// Opens the store in this folder, or makes it. The folder is made with mode 0700, the database with 0600.
    ///
    /// # Errors
    /// [`StoreError::Newer`] if a later version has written it: it is left untouched. [`StoreError::Exposed`] if the
    /// folder or the database is another user's, the folder can be written by others, or the database be read. [`StoreError::Io`] if it can't be opened or made.
    pub fn open(folder: &Path) -> Result<Self, StoreError> {
        place::make_folder(folder)?;
        let shared = Arc::new(Shared {
            path: folder.join(FILE),
            salvaged: Mutex::default(),
            unsalvaged: Mutex::default(),
            gaps: Mutex::default(),
        });
        place::make_file(&shared.path)?;
        salvage::undo_cut_swap(&shared.path)?;
        let db = match schema::writer(&shared.path) {
            Err(StoreError::Damaged { .. }) => {
                shared.salvage()?;
                schema::writer(&shared.path)?
            }
            db => db?,
        };
        // Bounded by who writes: a session's actor has of each kind one write under way, a request one at all.
        let (writes, jobs) = unbounded();
        let (writing, reading) = (watch::Sender::default(), watch::Sender::default());
        let written = Arc::clone(&shared);
        spawn("holdpoint-store", writing.subscribe(), move || writer::run(&written, db, &jobs))?;
        let (reads, jobs) = bounded(WAITING_READS);
        for _ in 0..READERS {
            let (shared, jobs) = (Arc::clone(&shared), jobs.clone());
            spawn("holdpoint-reader", reading.subscribe(), move || reader::run(&shared, &jobs))?;
        }
        Ok(Self { writes, reads, shared, writing, reading, check: Arc::default() })
    }

    /// Waits until its files are closed, which is once nobody else has it any more: then the database is one file, and
    /// whoever copies that has all of it.
    pub async fn close(self) {
        let Self { writes, reads, writing, reading, check, .. } = self;
        drop((reads, check));
        reading.closed().await;
        // SQLite puts the files together when the last connection is closed, if that one may write.
        drop(writes);
        writing.closed().await;
    }

    /// What was damaged since it was opened, and what became of it.
    #[must_use]
    pub fn salvaged(&self) -> Vec<Salvaged> {
        self.shared.salvaged().clone()
    }

    /// Why what is damaged could not be salvaged, if that is so: it is left as it is.
    #[must_use]
    pub fn unsalvaged(&self) -> Option<String> {
        self.shared.unsalvaged.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn write(&self, what: writer::What) -> BoxFuture<'static, Result<u64, StoreError>> {
        let (done, result) = oneshot::channel();
        let sent = self.writes.send(writer::Job { what, done });
        async move {
            sent.map_err(|_| gone())?;
            result.await.map_err(|_| gone())?
        }
        .boxed()
    }

    /// Reads; where the store turns out to be damaged, once more when what can be is salvaged.
    fn read<T: Send + 'static>(
        &self,
        job: impl Fn(oneshot::Sender<Result<T, StoreError>>) -> reader::Job + Send + 'static,
    ) -> BoxFuture<'static, Result<T, StoreError>> {
        let store = self.clone();
        let seen = store.shared.generation();
        let first = store.read_once(&job);
        async move {
            match first.await {
                Err(StoreError::Damaged { .. }) => {
                    store.write(writer::What::Salvage { seen }).await?;
                    store.read_once(&job).await
                }
                read => read,
            }
        }
        .boxed()
    }

    fn read_once<T: Send + 'static>(
        &self,
        job: &impl Fn(oneshot::Sender<Result<T, StoreError>>) -> reader::Job,
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
        let made = self.write(writer::What::Create { session: session.clone(), opened: SystemTime::now().into() });
        let log = self.log(session);
        async move { made.await.map(|_| log) }.boxed()
    }

    fn open(&self, session: &SessionId) -> BoxFuture<'static, Result<Arc<dyn SessionLog>, StoreError>> {
        let wanted = session.clone();
        let find = move |done| reader::Job::Find { session: wanted.clone(), done };
        let found = self.read(find);
        let log = self.log(session);
        async move { found.await.map(|()| log) }.boxed()
    }

    fn list(&self) -> BoxFuture<'static, Result<Vec<SavedSession>, StoreError>> {
        self.read(|done| reader::Job::List { done })
    }

    fn gaps(&self, session: &SessionId) -> Gaps {
        self.shared.gaps().get(session).cloned().unwrap_or_default()
    }

    fn check(&self) -> BoxFuture<'static, ()> {
        self.check.done(&self.shared, &self.reading)
    }

    fn delete(&self, session: &SessionId) -> BoxFuture<'static, Result<(), StoreError>> {
        let deleted = self.write(writer::What::Delete { session: session.clone() });
        let (shared, session) = (Arc::clone(&self.shared), session.clone());
        async move {
            deleted.await?;
            shared.gaps().remove(&session);
            Ok(())
        }
        .boxed()
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
        let what = writer::What::Append { session: self.session.clone(), after, facts, summary: Box::new(summary) };
        self.store.write(what).map(|done| done.map(|_| ())).boxed()
    }

    fn page(&self, range: Range<u64>, most: usize) -> BoxFuture<'static, Result<Page, StoreError>> {
        let session = self.session.clone();
        self.store.read(move |done| reader::Job::Page { session: session.clone(), range: range.clone(), most, done })
    }

    fn newest(&self, range: Range<u64>, newest: usize) -> BoxFuture<'static, Result<u64, StoreError>> {
        let session = self.session.clone();
        self.store.read(move |done| {
            let (session, range) = (session.clone(), range.clone());
            reader::Job::Newest { session, range, newest, done }
        })
    }

    fn saved(&self) -> BoxFuture<'static, Result<Option<SavedSession>, StoreError>> {
        let session = self.session.clone();
        self.store.read(move |done| reader::Job::Saved { session: session.clone(), done })
    }

    fn keep_draft(&self, pieces: Vec<Arc<Event>>) -> BoxFuture<'static, Result<(), StoreError>> {
        let what = writer::What::KeepDraft { session: self.session.clone(), pieces };
        self.store.write(what).map(|done| done.map(|_| ())).boxed()
    }

    fn draft(&self) -> BoxFuture<'static, Result<Vec<Arc<Event>>, StoreError>> {
        let session = self.session.clone();
        self.store.read(move |done| reader::Job::Draft { session: session.clone(), done })
    }

    fn reserve(&self, count: u64) -> BoxFuture<'static, Result<Range<u64>, StoreError>> {
        let first = self.store.write(writer::What::Reserve { session: self.session.clone(), count });
        async move { first.await.map(|first| first..first + count) }.boxed()
    }

    fn give_back(&self, unused: Range<u64>) -> BoxFuture<'static, Result<(), StoreError>> {
        let what = writer::What::GiveBack { session: self.session.clone(), unused };
        self.store.write(what).map(|done| done.map(|_| ())).boxed()
    }
}

/// `alive` is dropped when it has run.
fn spawn(name: &str, alive: watch::Receiver<()>, run: impl FnOnce() + Send + 'static) -> Result<(), StoreError> {
    let run = move || {
        run();
        drop(alive);
    };
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
        use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase};
        match error.sqlite_error_code() {
            Some(DatabaseCorrupt | NotADatabase) => Self::Damaged { message: error.to_string() },
            _ => io_error(error.to_string()),
        }
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
