//! A store that a test can shut, fill and break.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt;
use holdpoint_common::{Event, SessionId, SessionSummary};
use holdpoint_session::store::{
    Deadline, Memory, NewLog, Page, SessionLog, SessionPast, SessionStore, StoreError,
};
use holdpoint_session::testing::{LogLayer, StoreLayer, Stored, within_patience};
use tokio::sync::watch;

/// The machine that takes the sessions.
const OTHER: &str = "m2";

/// The in-memory store, behind a door that the test shuts.
#[derive(Clone)]
pub(super) struct GatedStore {
    store: Arc<Memory>,
    /// Saves wait while this is false.
    pub(super) open: watch::Sender<bool>,
    /// Saves fail while this is set.
    pub(super) full: Arc<AtomicBool>,
    /// All events that have been saved.
    pub(super) saved: Arc<Mutex<Vec<Arc<Event>>>>,
    /// Saves take a moment instead of completing at once.
    pub(super) yields: Arc<AtomicBool>,
    /// How often a save was tried.
    pub(super) tries: Arc<AtomicUsize>,
    /// Reads fail while this is set.
    pub(super) unreadable: Arc<AtomicBool>,
    /// How often numbers were requested while the store was full.
    pub(super) reserves: Arc<AtomicUsize>,
    /// Saves of drafts fail while this is set.
    pub(super) drafts_fail: Arc<AtomicBool>,
    /// Saves of drafts succeed but report an error while this is set.
    pub(super) drafts_seem_to_fail: Arc<AtomicBool>,
    /// How many pieces of drafts were kept.
    pub(super) drafted: watch::Sender<usize>,
    /// The end of the lease; `None` if the logs have none.
    lease: Arc<Mutex<Option<Deadline>>>,
    lapses: Arc<AtomicU64>,
    /// Another machine owns the sessions while this is set.
    pub(super) taken: Arc<AtomicBool>,
}

struct GatedLog {
    session: SessionId,
    log: Arc<dyn SessionLog>,
    door: GatedStore,
}

impl GatedStore {
    pub(super) fn new() -> Self {
        Self {
            store: Arc::default(),
            open: watch::Sender::new(true),
            full: Arc::default(),
            saved: Arc::default(),
            yields: Arc::default(),
            tries: Arc::default(),
            unreadable: Arc::default(),
            reserves: Arc::default(),
            drafts_fail: Arc::default(),
            drafts_seem_to_fail: Arc::default(),
            drafted: watch::Sender::new(0),
            lease: Arc::default(),
            lapses: Arc::default(),
            taken: Arc::default(),
        }
    }

    /// The logs have a lease that lasts this long.
    pub(super) fn lease(&self, time: Duration) {
        *self.lease.lock().unwrap() = Some(Deadline::after(time));
    }

    /// The lease ends, and is extended before anything has noticed that.
    pub(super) fn lapse(&self) {
        self.lapses.fetch_add(1, Ordering::SeqCst);
    }

    /// Waits until a save is tried after the first `tries`.
    pub(super) async fn asked(&self, tries: usize) {
        within_patience("a save", async {
            while self.tries.load(Ordering::SeqCst) == tries {
                tokio::task::yield_now().await;
            }
        })
        .await;
    }

    fn wrap(&self, session: &SessionId, log: Stored<Arc<dyn SessionLog>>) -> Stored<Arc<GatedLog>> {
        let (door, session) = (self.clone(), session.clone());
        async move { Ok(Arc::new(GatedLog { session, log: log.await?, door })) }.boxed()
    }
}

impl StoreLayer for GatedStore {
    fn inner(&self) -> &dyn SessionStore {
        &*self.store
    }

    fn create(&self, session: &SessionId, contents: NewLog) -> Stored<Arc<dyn SessionLog>> {
        let (door, id) = (self.clone(), session.clone());
        let first = contents.first.as_ref().map(|(event, _)| Arc::clone(event));
        self.tries.fetch_add(1, Ordering::SeqCst);
        let created = async move {
            let mut open = door.open.subscribe();
            let _ = open.wait_for(|open| *open).await;
            if door.full.load(Ordering::SeqCst) {
                return no_space().await;
            }
            let log = door.store.create(&id, contents).await?;
            door.saved.lock().unwrap().extend(first);
            Ok(log)
        };
        let log = self.wrap(session, created.boxed());
        async move { Ok(log.await? as Arc<dyn SessionLog>) }.boxed()
    }

    fn open(&self, session: &SessionId) -> Stored<Arc<dyn SessionPast>> {
        let log = self.wrap(session, self.store.own(session));
        async move { Ok(log.await? as Arc<dyn SessionPast>) }.boxed()
    }

    fn own(&self, session: &SessionId) -> Stored<Arc<dyn SessionLog>> {
        if self.taken.load(Ordering::SeqCst) {
            let owned = StoreError::Owned { session: session.clone(), by: OTHER.to_owned() };
            return std::future::ready(Err(owned)).boxed();
        }
        let log = self.wrap(session, self.store.own(session));
        async move { Ok(log.await? as Arc<dyn SessionLog>) }.boxed()
    }
}

impl GatedLog {
    /// The error of a write, if another machine has the session.
    fn fenced<T: Send + 'static>(&self) -> Option<Stored<T>> {
        let (session, by) = (self.session.clone(), OTHER.to_owned());
        let fenced = || std::future::ready(Err(StoreError::Fenced { session, by })).boxed();
        self.door.taken.load(Ordering::SeqCst).then(fenced)
    }
}

impl LogLayer for GatedLog {
    fn inner(&self) -> &dyn SessionLog {
        &*self.log
    }

    fn until(&self) -> Option<Deadline> {
        *self.door.lease.lock().unwrap()
    }

    fn lapses(&self) -> u64 {
        self.door.lapses.load(Ordering::SeqCst)
    }

    fn append(&self, after: u64, facts: Vec<Arc<Event>>, summary: SessionSummary) -> Stored<()> {
        if let Some(fenced) = self.fenced() {
            return fenced;
        }
        let (door, log) = (self.door.clone(), Arc::clone(&self.log));
        door.tries.fetch_add(1, Ordering::SeqCst);
        async move {
            let mut open = door.open.subscribe();
            let _ = open.wait_for(|open| *open).await;
            if door.yields.load(Ordering::SeqCst) {
                tokio::task::yield_now().await;
            }
            if door.full.load(Ordering::SeqCst) {
                return Err(StoreError::Io { message: "no space left on device".into() });
            }
            log.append(after, facts.clone(), summary).await?;
            door.saved.lock().unwrap().extend(facts);
            Ok(())
        }
        .boxed()
    }

    fn page(&self, range: Range<u64>, most: usize) -> Stored<Page> {
        if self.door.unreadable.load(Ordering::SeqCst) {
            return std::future::ready(Err(StoreError::Io {
                message: "input/output error".into(),
            }))
            .boxed();
        }
        self.log.page(range, most)
    }

    fn keep_draft(&self, pieces: Vec<Arc<Event>>) -> Stored<()> {
        if let Some(fenced) = self.fenced() {
            return fenced;
        }
        if self.door.full.load(Ordering::SeqCst) || self.door.drafts_fail.load(Ordering::SeqCst) {
            return no_space();
        }
        let seems_to_fail = self.door.drafts_seem_to_fail.load(Ordering::SeqCst);
        let (drafted, count) = (self.door.drafted.clone(), pieces.len());
        let keep = self.log.keep_draft(pieces);
        async move {
            keep.await?;
            drafted.send_modify(|kept| *kept += count);
            if seems_to_fail { no_space().await } else { Ok(()) }
        }
        .boxed()
    }

    fn reserve(&self, count: u64) -> Stored<Range<u64>> {
        if self.door.full.load(Ordering::SeqCst) {
            self.door.reserves.fetch_add(1, Ordering::SeqCst);
            return no_space();
        }
        self.log.reserve(count)
    }

    fn give_back(&self, unused: Range<u64>) -> Stored<()> {
        if self.door.full.load(Ordering::SeqCst) {
            return no_space();
        }
        self.log.give_back(unused)
    }
}

fn no_space<T: Send + 'static>() -> Stored<T> {
    std::future::ready(Err(StoreError::Io { message: "no space left on device".into() })).boxed()
}
