//! The store in a PostgreSQL database that several machines share.
//!
//! A session has at most one owner, a machine, and an epoch that grows with each change of its
//! owner. Every statement that writes to a log names the epoch of its owner, so an owner that was
//! replaced can't write. A machine keeps its sessions while its lease lasts, by the clock of the
//! server.

mod connection;
mod lease;
mod reader;
mod schema;
mod writer;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use holdpoint_common::{Delta, Event, Gap, Gaps, SessionId, SessionSummary};
use tokio::runtime::Builder;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot, watch};
use tokio_postgres::Config;

use self::lease::Lease;
use self::reader::Read;
use self::writer::{Change, PendingWrite, Write};
use super::{
    NewLog, Page, SavedSession, SavedState, SessionLog, SessionPast, SessionStore, StoreError,
};

/// The most reads that may wait. One more fails.
const MAX_WAITING_READS: usize = 4_096;

/// A machine, as the other machines know it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    /// The name, which is unique in the database.
    pub name: String,
    /// A random text that only this machine knows. A machine that starts again with it gets its
    /// sessions back at once. With another text, the name is refused.
    pub id: String,
}

/// A store that keeps every log in a PostgreSQL database, from version 15 on.
///
/// One thread talks to the server. Writes of several sessions that arrive together share a commit.
/// A commit is on the server's disk when it is acknowledged; a server without `fsync` or
/// `synchronous_commit` is refused. Every statement has a time limit. A lost connection is made
/// again for the next statement.
#[derive(Clone)]
pub struct Postgres {
    // The senders bound this queue: a session's actor has at most one write of each kind in
    // progress, and a request at most one in all.
    writes: mpsc::UnboundedSender<PendingWrite>,
    reads: mpsc::Sender<Read>,
    shared: Arc<Shared>,
    /// Closed when the thread has ended.
    running: watch::Sender<()>,
}

struct Shared {
    /// The gaps that were found in each session's log. Locked for one entry.
    gaps: Mutex<BTreeMap<SessionId, Gaps>>,
}

impl Shared {
    fn gaps(&self) -> MutexGuard<'_, BTreeMap<SessionId, Gaps>> {
        self.gaps.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Postgres {
    /// Connects to a database, brings its schema to the newest version, and takes the lease of this
    /// machine. `url` is a connection string of libpq, such as
    /// `host=/var/run/postgresql user=holdpoint dbname=holdpoint`. The server is reached over a Unix
    /// socket.
    ///
    /// # Errors
    /// [`StoreError::Newer`] if a later version wrote the database. [`StoreError::Io`] if the URL is
    /// not valid, the server can't be reached or is refused, or the machine's name is taken.
    pub async fn connect(url: &str, machine: &Machine) -> Result<Self, StoreError> {
        let config = connection::config(url)?;
        let (writes, pending_writes) = mpsc::unbounded_channel();
        let (reads, pending_reads) = mpsc::channel(MAX_WAITING_READS);
        let running = watch::Sender::default();
        let (started, start) = oneshot::channel();
        let alive = running.subscribe();
        let machine = machine.clone();
        let runtime = Builder::new_current_thread().enable_all().build()?;
        std::thread::Builder::new().name("holdpoint-postgres".to_owned()).spawn(move || {
            runtime.block_on(run(config, machine, started, pending_writes, pending_reads));
            drop(alive);
        })?;
        start.await.map_err(|_| thread_ended_error())??;
        let shared = Arc::new(Shared { gaps: Mutex::default() });
        Ok(Self { writes, reads, shared, running })
    }

    /// Waits until the store's connections are closed and its lease is given back, which happens once
    /// every other clone of the store is dropped.
    pub async fn close(self) {
        let Self { writes, reads, running, .. } = self;
        drop((writes, reads));
        running.closed().await;
    }

    fn write(&self, write: Write) -> BoxFuture<'static, Result<u64, StoreError>> {
        let (done, result) = oneshot::channel();
        let sent = self.writes.send(PendingWrite { write, done });
        async move {
            sent.map_err(|_| thread_ended_error())?;
            result.await.map_err(|_| thread_ended_error())?
        }
        .boxed()
    }

    fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(oneshot::Sender<Result<T, StoreError>>) -> Read,
    ) -> BoxFuture<'static, Result<T, StoreError>> {
        let (done, result) = oneshot::channel();
        let sent = self.reads.try_send(read(done));
        async move {
            sent.map_err(|error| match error {
                TrySendError::Full(_) => {
                    io_error(format!("too many reads: {MAX_WAITING_READS} are waiting"))
                }
                TrySendError::Closed(_) => thread_ended_error(),
            })?;
            result.await.map_err(|_| thread_ended_error())?
        }
        .boxed()
    }

    fn log(&self, session: &SessionId, epoch: u64) -> Arc<dyn SessionLog> {
        Arc::new(PostgresLog { past: self.past(session), epoch })
    }

    fn past(&self, session: &SessionId) -> PostgresPast {
        PostgresPast { store: self.clone(), session: session.clone() }
    }
}

/// Serves a store until all its clones are dropped.
async fn run(
    config: Config,
    machine: Machine,
    started: oneshot::Sender<Result<(), StoreError>>,
    writes: mpsc::UnboundedReceiver<PendingWrite>,
    reads: mpsc::Receiver<Read>,
) {
    let lease = match Lease::take(&config, &machine).await {
        Ok(lease) => lease,
        Err(error) => {
            // The caller may have stopped waiting.
            let _ = started.send(Err(error));
            return;
        }
    };
    let _ = started.send(Ok(()));
    let writing = writer::run(&config, &machine.name, writes);
    let reading = reader::run(&config, reads);
    Box::pin(lease.keep_during(async { tokio::join!(writing, reading) })).await;
}

impl SessionStore for Postgres {
    fn create(
        &self,
        session: &SessionId,
        contents: NewLog,
    ) -> BoxFuture<'static, Result<Arc<dyn SessionLog>, StoreError>> {
        let opened = SystemTime::now().into();
        let (session, contents) = (session.clone(), Box::new(contents));
        let created = self.write(Write::Create { session: session.clone(), opened, contents });
        let store = self.clone();
        async move { created.await.map(|epoch| store.log(&session, epoch)) }.boxed()
    }

    fn open(
        &self,
        session: &SessionId,
    ) -> BoxFuture<'static, Result<Arc<dyn SessionPast>, StoreError>> {
        let found = self.read(|done| Read::Find { session: session.clone(), done });
        let past: Arc<dyn SessionPast> = Arc::new(self.past(session));
        async move { found.await.map(|()| past) }.boxed()
    }

    fn own(
        &self,
        session: &SessionId,
    ) -> BoxFuture<'static, Result<Arc<dyn SessionLog>, StoreError>> {
        let owned = self.write(Write::Own { session: session.clone() });
        let (store, session) = (self.clone(), session.clone());
        async move { owned.await.map(|epoch| store.log(&session, epoch)) }.boxed()
    }

    fn list(&self) -> BoxFuture<'static, Result<Vec<SavedSession>, StoreError>> {
        self.read(|done| Read::List { done })
    }

    fn gaps(&self, session: &SessionId) -> Gaps {
        self.shared.gaps().get(session).cloned().unwrap_or_default()
    }

    fn delete(&self, session: &SessionId) -> BoxFuture<'static, Result<(), StoreError>> {
        let deleted = self.write(Write::Delete { session: session.clone() });
        let (shared, session) = (Arc::clone(&self.shared), session.clone());
        async move {
            deleted.await?;
            shared.gaps().remove(&session);
            Ok(())
        }
        .boxed()
    }
}

/// The log of a session, for reading.
struct PostgresPast {
    store: Postgres,
    session: SessionId,
}

impl SessionPast for PostgresPast {
    fn page(
        &self,
        range: Range<u64>,
        max_facts: usize,
    ) -> BoxFuture<'static, Result<Page, StoreError>> {
        let session = self.session.clone();
        let page = self.store.read(|done| Read::Page { session, range, max_facts, done });
        let (shared, session) = (Arc::clone(&self.store.shared), self.session.clone());
        async move {
            let page = page.await?;
            for event in &page.facts {
                if let Some(Delta::Gap { from, to }) = event.delta() {
                    let gap = Gap { from: *from, to: *to };
                    shared.gaps().entry(session.clone()).or_default().add(gap);
                }
            }
            Ok(page)
        }
        .boxed()
    }

    fn newest(
        &self,
        range: Range<u64>,
        count: usize,
    ) -> BoxFuture<'static, Result<u64, StoreError>> {
        let session = self.session.clone();
        self.store.read(|done| Read::Newest { session, range, count, done })
    }

    fn saved(&self) -> BoxFuture<'static, Result<Option<SavedSession>, StoreError>> {
        self.store.read(|done| Read::Saved { session: self.session.clone(), done })
    }

    fn draft(&self) -> BoxFuture<'static, Result<Vec<Arc<Event>>, StoreError>> {
        self.store.read(|done| Read::Draft { session: self.session.clone(), done })
    }

    fn state(&self) -> BoxFuture<'static, Result<Option<SavedState>, StoreError>> {
        self.store.read(|done| Read::State { session: self.session.clone(), done })
    }
}

/// The log of a session, for the owner of this epoch.
struct PostgresLog {
    past: PostgresPast,
    epoch: u64,
}

impl PostgresLog {
    fn change(&self, change: Change) -> BoxFuture<'static, Result<u64, StoreError>> {
        let PostgresPast { store, session } = &self.past;
        store.write(Write::Change { session: session.clone(), epoch: self.epoch, change })
    }

    fn unit(&self, change: Change) -> BoxFuture<'static, Result<(), StoreError>> {
        self.change(change).map(|done| done.map(drop)).boxed()
    }
}

impl SessionPast for PostgresLog {
    fn page(
        &self,
        range: Range<u64>,
        max_facts: usize,
    ) -> BoxFuture<'static, Result<Page, StoreError>> {
        self.past.page(range, max_facts)
    }

    fn newest(
        &self,
        range: Range<u64>,
        count: usize,
    ) -> BoxFuture<'static, Result<u64, StoreError>> {
        self.past.newest(range, count)
    }

    fn saved(&self) -> BoxFuture<'static, Result<Option<SavedSession>, StoreError>> {
        self.past.saved()
    }

    fn draft(&self) -> BoxFuture<'static, Result<Vec<Arc<Event>>, StoreError>> {
        self.past.draft()
    }

    fn state(&self) -> BoxFuture<'static, Result<Option<SavedState>, StoreError>> {
        self.past.state()
    }
}

impl SessionLog for PostgresLog {
    fn append(
        &self,
        after: u64,
        facts: Vec<Arc<Event>>,
        summary: SessionSummary,
    ) -> BoxFuture<'static, Result<(), StoreError>> {
        self.unit(Change::Append { after, facts, summary: Box::new(summary) })
    }

    fn keep_draft(&self, pieces: Vec<Arc<Event>>) -> BoxFuture<'static, Result<(), StoreError>> {
        self.unit(Change::KeepDraft { pieces })
    }

    fn keep_state(&self, state: SavedState) -> BoxFuture<'static, Result<(), StoreError>> {
        self.unit(Change::KeepState { state })
    }

    fn reserve(&self, count: u64) -> BoxFuture<'static, Result<Range<u64>, StoreError>> {
        let first = self.change(Change::Reserve { count });
        async move { first.await.map(|first| first..first + count) }.boxed()
    }

    fn give_back(&self, unused: Range<u64>) -> BoxFuture<'static, Result<(), StoreError>> {
        self.unit(Change::GiveBack { unused })
    }
}

impl Drop for PostgresLog {
    /// Gives up the session, so that another machine can own it at once.
    fn drop(&mut self) {
        drop(self.change(Change::Release));
    }
}

fn thread_ended_error() -> StoreError {
    io_error("the store's thread has ended".to_owned())
}

fn io_error(message: String) -> StoreError {
    StoreError::Io { message }
}
