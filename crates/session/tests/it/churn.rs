//! Sessions that are opened and closed leave no resources behind.
#![cfg(target_os = "linux")]

use std::fs;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use futures_util::{FutureExt, StreamExt};
use holdpoint_common::{Outcome, Who};
use holdpoint_session::model::{Catalog, Model, ModelEvent, ModelRequest, ModelStream};
use holdpoint_session::store::{SessionStore, Sqlite};
use holdpoint_session::testing::{patience, within_patience};
use holdpoint_session::{AttachFrom, Engine, OpenSession, Sessions};
use holdpoint_tools::testing::{full, in_own_process, rounds};
use tempfile::TempDir;
use tokio::runtime::Handle;

use crate::forgetful_store::Forgetful;
use crate::process::resident_kib;

/// How many threads the models' runtime may have: its own, and some for the sessions that follow
/// each other.
const POOL: usize = 8;

/// The resources of this process.
#[derive(Debug, PartialEq)]
struct Resources {
    threads: usize,
    descriptors: usize,
    tasks: usize,
    kib: u64,
}

impl Resources {
    fn now(runtime: &Handle) -> Self {
        Self {
            threads: threads(),
            descriptors: fs::read_dir("/proc/self/fd").unwrap().count(),
            tasks: runtime.metrics().num_alive_tasks(),
            kib: resident_kib(),
        }
    }

    /// Measures when no thread of a tool and no task is left. Both end without notice, a moment
    /// after their last message.
    fn at_rest(threads: usize, runtime: &Handle) -> Self {
        let by = Instant::now() + patience();
        let rests = || self::threads() == threads && runtime.metrics().num_alive_tasks() == 0;
        while !rests() && Instant::now() < by {
            std::thread::yield_now();
        }
        Self::now(runtime)
    }
}

/// The threads of this process except those of the models' runtime: tokio keeps its idle threads
/// for ten seconds.
fn threads() -> usize {
    let tasks = fs::read_dir("/proc/self/task").unwrap().flatten();
    // A thread that ended meanwhile has no name any more.
    let names = tasks.filter_map(|task| fs::read_to_string(task.path().join("comm")).ok());
    let (pool, others): (Vec<_>, Vec<_>) =
        names.partition(|name| name.starts_with("holdpoint-model"));
    assert!(pool.len() <= POOL, "{pool:?}");
    others.len()
}

/// A model that records the runtime that turns run on.
#[derive(Default)]
struct RuntimeRecorder(Arc<OnceLock<Handle>>);

impl Model for RuntimeRecorder {
    fn name(&self) -> &'static str {
        "test/where"
    }

    fn stream(&self, _: &ModelRequest) -> ModelStream {
        let runtime = Arc::clone(&self.0);
        let says = async move {
            runtime.get_or_init(Handle::current);
            Ok(ModelEvent::Text("here".to_owned()))
        };
        says.into_stream().boxed()
    }
}

#[tokio::test]
async fn t_t8_closed_sessions_leave_no_resources() {
    if !in_own_process() {
        return;
    }
    let rounds = rounds((200, 500), (2_000, 10_000));
    leave_nothing(Forgetful, rounds).await;
    // With SQLite's descriptors and threads. Fewer sessions, because each of their facts is on disk
    // before the next.
    if full() {
        let store = TempDir::new().unwrap();
        leave_nothing(Sqlite::open(store.path()).unwrap(), (500, 1_000)).await;
    }
}

async fn leave_nothing(store: impl SessionStore, (warm, rounds): (usize, usize)) {
    let folder = TempDir::new().unwrap();
    let model = RuntimeRecorder::default();
    let runtime = Arc::clone(&model.0);
    let engine =
        Engine::builder(Catalog::default().with(Arc::new(model))).store(store).start().unwrap();
    let sessions = engine.sessions(Who::named("test"));
    let session =
        sessions.open(OpenSession::in_folder(folder.path()).model("test/where")).await.unwrap();
    session.prompt("Where?").await.unwrap();
    within_patience("the turn", session.settled()).await.unwrap();
    within_patience("closing", session.close()).await.unwrap();
    let runtime = runtime.get().unwrap();
    open_use_and_close(&sessions, &folder).await;
    // A thread that has just started has no name of its own yet, and a tool's thread may still be
    // ending.
    let threads = (0..1_000).map(|_| threads()).min().unwrap();
    for _ in 0..warm {
        open_use_and_close(&sessions, &folder).await;
    }
    let before = Resources::at_rest(threads, runtime);
    for _ in 0..rounds {
        open_use_and_close(&sessions, &folder).await;
    }
    let after = Resources::at_rest(threads, runtime);
    println!("{rounds} sessions: {before:?}, then {after:?}");
    assert_eq!((after.threads, after.descriptors, after.tasks), (threads, before.descriptors, 0));
    let most = before.kib + before.kib / 20;
    assert!(after.kib <= most, "more than {most} KiB: {before:?}, {after:?}");
}

/// A session that works, is watched, and is closed in the middle of a turn.
async fn open_use_and_close(sessions: &Sessions, folder: &TempDir) {
    let open = OpenSession::in_folder(folder.path()).model("rehearsal");
    let session = sessions.open(open).await.unwrap();
    let mut client = session.attach(AttachFrom::start()).await.unwrap();
    session.prompt("call read_file {\"path\": \"nothing\"}\nsay Done.").await.unwrap();
    let settled = within_patience("the turn", session.settled()).await.unwrap();
    assert_eq!(settled.last_turn.as_ref().unwrap().outcome, Outcome::Done);
    session.prompt("hang").await.unwrap();
    within_patience("closing", session.close()).await.unwrap();
    while within_patience("the end", client.next()).await.is_some() {}
}
