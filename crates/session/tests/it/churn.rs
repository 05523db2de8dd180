//! Sessions that come and go.
#![cfg(target_os = "linux")]

use std::fs;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use futures_util::{FutureExt, StreamExt};
use holdpoint_common::{Outcome, Who};
use holdpoint_session::model::{Catalog, Model, ModelEvent, ModelRequest, ModelStream};
use holdpoint_session::store::{SessionStore, Sqlite};
use holdpoint_session::testing::{patience, soon};
use holdpoint_session::{AttachFrom, Engine, OpenSession, Sessions};
use holdpoint_tools::testing::{full, in_own_process, rounds};
use tempfile::TempDir;
use tokio::runtime::Handle;

use crate::forgetful::Forgetful;
use crate::process::resident_kib;

/// Threads the models' runtime may have: its own, and some for the sessions that come one after the other.
const POOL: usize = 8;

/// What a process has.
#[derive(Debug, PartialEq)]
struct Has {
    threads: usize,
    descriptors: usize,
    tasks: usize,
    kib: u64,
}

impl Has {
    fn now(runtime: &Handle) -> Self {
        Self {
            threads: threads(),
            descriptors: fs::read_dir("/proc/self/fd").unwrap().count(),
            tasks: runtime.metrics().num_alive_tasks(),
            kib: resident_kib(),
        }
    }

    /// When no thread of a tool is left, and no task: one that has said its last word still has to end, and nobody
    /// tells when.
    fn at_rest(threads: usize, runtime: &Handle) -> Self {
        let by = Instant::now() + patience();
        let rests = || self::threads() == threads && runtime.metrics().num_alive_tasks() == 0;
        while !rests() && Instant::now() < by {
            std::thread::yield_now();
        }
        Self::now(runtime)
    }
}

/// The threads of this process, less those of the models' runtime: tokio keeps its idle ones for ten seconds.
fn threads() -> usize {
    let tasks = fs::read_dir("/proc/self/task").unwrap().flatten();
    // One that ended meanwhile has no name any more.
    let names = tasks.filter_map(|task| fs::read_to_string(task.path().join("comm")).ok());
    let (pool, others): (Vec<_>, Vec<_>) = names.partition(|name| name.starts_with("holdpoint-model"));
    assert!(pool.len() <= POOL, "{pool:?}");
    others.len()
}

/// A model that says on which runtime it is asked: the one that turns run on.
#[derive(Default)]
struct Where(Arc<OnceLock<Handle>>);

impl Model for Where {
    fn name(&self) -> &'static str {
        "test/where"
    }

    fn stream(&self, _: &ModelRequest) -> ModelStream {
        let told = Arc::clone(&self.0);
        let says = async move {
            told.get_or_init(Handle::current);
            Ok(ModelEvent::Text("here".to_owned()))
        };
        says.into_stream().boxed()
    }
}

#[tokio::test]
async fn t_t8_sessions_that_are_closed_leave_nothing() {
    if !in_own_process() {
        return;
    }
    let rounds = rounds((200, 500), (2_000, 10_000));
    leave_nothing(Forgetful, rounds).await;
    // With SQLite's descriptors and threads: fewer, for each of their facts is on disk before the next.
    if full() {
        let store = TempDir::new().unwrap();
        leave_nothing(Sqlite::open(store.path()).unwrap(), (500, 1_000)).await;
    }
}

async fn leave_nothing(store: impl SessionStore, (warm, rounds): (usize, usize)) {
    let folder = TempDir::new().unwrap();
    let model = Where::default();
    let runtime = Arc::clone(&model.0);
    let engine = Engine::builder(Catalog::default().with(Arc::new(model))).store(store).start().unwrap();
    let sessions = engine.sessions(Who::named("test"));
    let session = sessions.open(OpenSession::in_folder(folder.path()).model("test/where")).await.unwrap();
    session.prompt("Where?").await.unwrap();
    soon("the turn", session.settled()).await.unwrap();
    soon("closing", session.close()).await.unwrap();
    let runtime = runtime.get().unwrap();
    come_and_go(&sessions, &folder).await;
    // A thread that has just begun has no name of its own yet, and one of a tool may still be ending.
    let threads = (0..1_000).map(|_| threads()).min().unwrap();
    for _ in 0..warm {
        come_and_go(&sessions, &folder).await;
    }
    let before = Has::at_rest(threads, runtime);
    for _ in 0..rounds {
        come_and_go(&sessions, &folder).await;
    }
    let after = Has::at_rest(threads, runtime);
    println!("{rounds} sessions: {before:?}, then {after:?}");
    assert_eq!((after.threads, after.descriptors, after.tasks), (threads, before.descriptors, 0));
    let most = before.kib + before.kib / 20;
    assert!(after.kib <= most, "more than {most} KiB: {before:?}, {after:?}");
}

/// A session that works, is watched, and is closed: in the middle of a turn.
async fn come_and_go(sessions: &Sessions, folder: &TempDir) {
    let open = OpenSession::in_folder(folder.path()).model("rehearsal");
    let session = sessions.open(open).await.unwrap();
    let mut client = session.attach(AttachFrom::start()).await.unwrap();
    session.prompt("call read_file {\"path\": \"nothing\"}\nsay Done.").await.unwrap();
    let settled = soon("the turn", session.settled()).await.unwrap();
    assert_eq!(settled.last_turn.as_ref().unwrap().outcome, Outcome::Done);
    session.prompt("hang").await.unwrap();
    soon("closing", session.close()).await.unwrap();
    while soon("the end", client.next()).await.is_some() {}
}
