//! The store in a PostgreSQL database that several machines share.
//!
//! A session has at most one owner, a machine, and an epoch that grows with each change of its
//! owner. Every statement that writes to a log names the epoch of its owner, so an owner that was
//! replaced can't write. A machine keeps its sessions while its lease lasts, by the clock of the
//! server.

mod connection;
mod lease;
mod machines;
mod notifying;
mod places;
mod reader;
mod rows;
mod schema;
mod writer;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream};
use futures_util::{FutureExt, StreamExt};
use holdpoint_common::{Certificates, Event, Gaps, SessionId, SessionSummary};
use tokio::runtime::Builder;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot, watch};

pub use self::machines::{KnownMachine, Machines, Removal};

use self::connection::Database;
use self::lease::{Lease, LeaseView};
use self::places::Places;
use self::rows::new_home;
use self::writer::{Change, PendingWrite, Write};
use super::reads::{FoundGaps, MAX_WAITING_READS, Past, Read, Reads};
use super::{
    Deadline, Home, NewLog, SavedPage, SavedSession, SavedState, SessionLog, SessionPast,
    SessionStore, StoreChange, StoreError,
};

/// The pause between two reports of changes, and the longest time without one.
const CHANGES_PAUSE: Duration = Duration::from_millis(100);
const CHANGES_LIMIT: Duration = Duration::from_secs(5);

/// A machine, as the other machines know it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    /// The name, which is unique in the database.
    pub name: String,
    /// A random text that only this machine knows. A machine that starts again with it gets its
    /// sessions back at once. With another text, the name is refused.
    pub id: String,
    /// The certificate by which the other machines recognize this one, as PEM.
    pub certificate: String,
    /// The address at which the other machines reach this one; `None` if they can't.
    pub address: Option<String>,
    /// The folders on file systems that it shares with other machines, by the names of these places.
    pub places: BTreeMap<String, String>,
}

/// A machine that shares the database, as this one last saw it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtherMachine {
    /// The name of the machine.
    pub name: String,
    /// Whether the machine has a lease. Until it ends, the sessions of the machine are its own.
    pub has_lease: bool,
    /// Whether it has sent one of its last two heartbeats. Else the lists show that it does not
    /// respond, also before its lease ends.
    pub responds: bool,
    /// The certificate by which it is recognized, as PEM.
    pub certificate: String,
    /// The address at which it is reached; `None` if it can't be.
    pub address: Option<String>,
    /// The names of its places.
    pub places: Vec<String>,
}

/// A store that keeps every log in a PostgreSQL database, from version 15 on.
///
/// One thread talks to the server. Writes of several sessions that arrive together share a commit.
/// A commit is on the server's disk when it is acknowledged; a server without `fsync` or
/// `synchronous_commit` is refused. Every statement has a time limit. A lost connection is made
/// again for the next statement.
#[derive(Clone)]
pub struct Postgres {
    places: Places,
    // The senders bound this queue: a session's actor has at most one write of each kind in
    // progress, and a request at most one in all.
    writes: mpsc::UnboundedSender<PendingWrite>,
    reads: mpsc::Sender<Read>,
    gaps: Arc<FoundGaps>,
    /// Changes when another machine notifies this one.
    notified: watch::Receiver<()>,
    /// The parts of the lease that others see.
    lease: LeaseView,
    /// Closed when the thread has ended.
    running: watch::Sender<()>,
}

impl Postgres {
    /// Connects to a database, brings its schema to the newest version, and takes the lease of this
    /// machine. `url` is a connection string of libpq, such as
    /// `host=/var/run/postgresql user=holdpoint dbname=holdpoint` for a server on this machine, or
    /// `postgres://holdpoint:PASSWORD@db.example.com/holdpoint`. Over the network, TLS is required, and
    /// the server's certificate must be for its name and from one of `authorities`.
    ///
    /// # Errors
    /// [`StoreError::Newer`] if a later version wrote the database. [`StoreError::Io`] if the URL is
    /// not valid, the server can't be reached or is refused, or the name of the machine or of a place
    /// is taken.
    pub async fn connect(
        url: &str,
        authorities: &Certificates,
        machine: &Machine,
    ) -> Result<Self, StoreError> {
        let places = Places::of(machine).await;
        let name = Arc::clone(&places.machine);
        let database = connection::database(url, authorities)?.used_by(name);
        let notified = database.changed_sessions();
        let (writes, pending_writes) = mpsc::unbounded_channel();
        let (reads, pending_reads) = mpsc::channel(MAX_WAITING_READS);
        let running = watch::Sender::default();
        let (started, start) = oneshot::channel();
        let alive = running.subscribe();
        let (machine, read_places) = (machine.clone(), places.clone());
        let runtime = Builder::new_current_thread().enable_all().build()?;
        std::thread::Builder::new().name("holdpoint-postgres".to_owned()).spawn(move || {
            runtime.block_on(run(
                database,
                machine,
                read_places,
                started,
                pending_writes,
                pending_reads,
            ));
            drop(alive);
        })?;
        let lease = start.await.map_err(|_| thread_ended_error())??;
        Ok(Self { places, writes, reads, gaps: Arc::default(), notified, lease, running })
    }

    /// Waits until the store's connections are closed and its lease is given back, which happens once
    /// every other clone of the store is dropped.
    pub async fn close(self) {
        let Self { writes, reads, running, .. } = self;
        drop((writes, reads));
        running.closed().await;
    }

    /// The other machines, which are read every second while the database can be reached.
    #[must_use]
    pub fn other_machines(&self) -> watch::Receiver<Arc<[OtherMachine]>> {
        self.lease.others.clone()
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

    fn log(&self, session: &SessionId, epoch: u64) -> Past<Owner> {
        let (store, session_id) = (self.clone(), session.clone());
        let store = Owner { store, session: session_id, epoch, home: Home::HERE };
        Past { store, session: session.clone() }
    }
}

impl Reads for Postgres {
    fn read<T, F>(&self, request: F) -> BoxFuture<'static, Result<T, StoreError>>
    where
        T: Send + 'static,
        F: Fn(oneshot::Sender<Result<T, StoreError>>) -> Read + Send + 'static,
    {
        let (done, result) = oneshot::channel();
        let sent = self.reads.try_send(request(done));
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

    fn found_gaps(&self) -> Arc<FoundGaps> {
        Arc::clone(&self.gaps)
    }
}

/// Serves a store until all its clones are dropped.
async fn run(
    database: Database,
    machine: Machine,
    places: Places,
    started: oneshot::Sender<Result<LeaseView, StoreError>>,
    writes: mpsc::UnboundedReceiver<PendingWrite>,
    reads: mpsc::Receiver<Read>,
) {
    let lease = match Lease::take(&database, &machine).await {
        Ok(lease) => lease,
        Err(error) => {
            // The caller may have stopped waiting.
            let _ = started.send(Err(error));
            return;
        }
    };
    let _ = started.send(Ok(lease.view()));
    let incarnation = lease.incarnation();
    let writing = writer::run(&database, &incarnation, writes);
    let reading = reader::run(&database, &places, reads);
    Box::pin(lease.keep_during(async { tokio::join!(writing, reading) })).await;
}

impl SessionStore for Postgres {
    fn machine(&self) -> Option<&str> {
        Some(&self.places.machine)
    }

    fn create(
        &self,
        session: &SessionId,
        contents: NewLog,
    ) -> BoxFuture<'static, Result<Arc<dyn SessionLog>, StoreError>> {
        let opened = contents.opened();
        let home = match &contents.first {
            Some((_, summary)) => self.places.home_of(&summary.workspace),
            None => self.places.machine.as_ref().to_owned(),
        };
        let (id, contents) = (session.clone(), Box::new(contents));
        let created = self.write(Write::Create { session: id, opened, home, contents });
        let session = session.clone();
        let store = self.clone();
        async move {
            let log: Arc<dyn SessionLog> = Arc::new(store.log(&session, created.await?));
            Ok(log)
        }
        .boxed()
    }

    fn open(
        &self,
        session: &SessionId,
    ) -> BoxFuture<'static, Result<Arc<dyn SessionPast>, StoreError>> {
        let wanted = session.clone();
        let found = self.read(move |done| Read::Find { session: wanted.clone(), done });
        let past: Arc<dyn SessionPast> =
            Arc::new(Past { store: self.clone(), session: session.clone() });
        async move { found.await.map(|()| past) }.boxed()
    }

    fn own(
        &self,
        session: &SessionId,
    ) -> BoxFuture<'static, Result<Arc<dyn SessionLog>, StoreError>> {
        let owned = self.write(Write::Own { session: session.clone() });
        let (store, session) = (self.clone(), session.clone());
        async move {
            let mut log = store.log(&session, owned.await?);
            if let Some(SavedSession { home, summary, .. }) = log.saved().await? {
                log.store.home = home;
                log.store.use_place(&summary.workspace).await?;
            }
            let log: Arc<dyn SessionLog> = Arc::new(log);
            Ok(log)
        }
        .boxed()
    }

    fn take_name(
        &self,
        session: &SessionId,
        name: &str,
    ) -> BoxFuture<'static, Result<bool, StoreError>> {
        let (session, name) = (session.clone(), name.to_owned());
        self.write(Write::TakeName { session, name }).map(|taken| Ok(taken? == 1)).boxed()
    }

    fn keep_names(
        &self,
        session: &SessionId,
        kept: Vec<String>,
    ) -> BoxFuture<'static, Result<(), StoreError>> {
        let session = session.clone();
        self.write(Write::KeepNames { session, kept }).map(|done| done.map(drop)).boxed()
    }

    fn list_page(
        &self,
        page: SavedPage,
    ) -> BoxFuture<'static, Result<Vec<SavedSession>, StoreError>> {
        self.read(move |done| Read::List { page: page.clone(), done })
    }

    /// Also when another machine stops or starts to respond, and every few seconds: a notification can
    /// be lost.
    fn changes(&self) -> BoxStream<'static, StoreChange> {
        let LeaseView { abandoned, others, lapses, .. } = self.lease.clone();
        let seen = (self.notified.clone(), abandoned, others, lapses);
        stream::unfold(seen, |(mut notified, mut abandoned, mut others, mut lapses)| async {
            tokio::time::sleep(CHANGES_PAUSE).await;
            let change = tokio::select! {
                changed = abandoned.changed() => {
                    changed.ok()?;
                    StoreChange::Abandoned(abandoned.borrow_and_update().clone())
                }
                changed = lapses.changed() => {
                    changed.ok()?;
                    StoreChange::Lapsed
                }
                changed = notified.changed() => {
                    changed.ok()?;
                    StoreChange::Sessions
                }
                changed = others.changed() => {
                    changed.ok()?;
                    StoreChange::Sessions
                }
                () = tokio::time::sleep(CHANGES_LIMIT) => StoreChange::Sessions,
            };
            Some((change, (notified, abandoned, others, lapses)))
        })
        .boxed()
    }

    fn gaps(&self, session: &SessionId) -> Gaps {
        self.gaps.of(session)
    }

    fn delete(&self, session: &SessionId) -> BoxFuture<'static, Result<(), StoreError>> {
        let deleted = self.write(Write::Delete { session: session.clone() });
        let (gaps, session) = (self.found_gaps(), session.clone());
        async move {
            deleted.await?;
            gaps.forget(&session);
            Ok(())
        }
        .boxed()
    }
}

/// The owner of a session since this epoch. Gives the session up when it is dropped, so that another
/// machine can own it at once.
struct Owner {
    store: Postgres,
    session: SessionId,
    epoch: u64,
    /// The home of the session when it was owned.
    home: Home,
}

impl Owner {
    fn change(&self, change: Change) -> BoxFuture<'static, Result<u64, StoreError>> {
        let (session, epoch) = (self.session.clone(), self.epoch);
        self.store.write(Write::Change { session, epoch, change })
    }

    /// Makes the place with this folder of the session its home, if this machine is.
    async fn use_place(&mut self, folder: &str) -> Result<(), StoreError> {
        let places = &self.store.places;
        let home = places.home_of(folder);
        if self.home == Home::HERE && *home != *places.machine {
            self.home = places.read_home(&home);
            self.unit(Change::SetHome { home }).await?;
        }
        Ok(())
    }

    fn unit(&self, change: Change) -> BoxFuture<'static, Result<(), StoreError>> {
        self.change(change).map(|done| done.map(drop)).boxed()
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        drop(self.change(Change::Release));
    }
}

impl Reads for Owner {
    fn read<T, F>(&self, request: F) -> BoxFuture<'static, Result<T, StoreError>>
    where
        T: Send + 'static,
        F: Fn(oneshot::Sender<Result<T, StoreError>>) -> Read + Send + 'static,
    {
        self.store.read(request)
    }

    fn found_gaps(&self) -> Arc<FoundGaps> {
        self.store.found_gaps()
    }
}

impl SessionLog for Past<Owner> {
    fn past(self: Arc<Self>) -> Arc<dyn SessionPast> {
        Arc::new(Past { store: self.store.store.clone(), session: self.session.clone() })
    }

    fn until(&self) -> Option<Deadline> {
        Some(*self.store.store.lease.until.borrow())
    }

    fn lapses(&self) -> u64 {
        *self.store.store.lease.lapses.borrow()
    }

    fn home(&self) -> Home {
        self.store.home.clone()
    }

    fn append(
        &self,
        after: u64,
        facts: Vec<Arc<Event>>,
        summary: SessionSummary,
    ) -> BoxFuture<'static, Result<(), StoreError>> {
        let home = new_home(&facts, &self.store.store.places);
        self.store.unit(Change::Append { after, facts, summary: Box::new(summary), home })
    }

    fn keep_draft(&self, pieces: Vec<Arc<Event>>) -> BoxFuture<'static, Result<(), StoreError>> {
        self.store.unit(Change::KeepDraft { pieces })
    }

    fn keep_state(&self, state: SavedState) -> BoxFuture<'static, Result<(), StoreError>> {
        self.store.unit(Change::KeepState { state })
    }

    fn reserve(&self, count: u64) -> BoxFuture<'static, Result<Range<u64>, StoreError>> {
        let first = self.store.change(Change::Reserve { count });
        async move { first.await.map(|first| first..first + count) }.boxed()
    }

    fn give_back(&self, unused: Range<u64>) -> BoxFuture<'static, Result<(), StoreError>> {
        self.store.unit(Change::GiveBack { unused })
    }
}

fn thread_ended_error() -> StoreError {
    io_error("the store's thread has ended".to_owned())
}

fn io_error(message: String) -> StoreError {
    StoreError::Io { message }
}
