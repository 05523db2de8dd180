//! Sessions that come and go. Alone in its program: it looks at the whole process.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, reason = "a test")]
#![cfg(target_os = "linux")]

use std::fs;
use std::time::Instant;

use holdpoint_common::{Outcome, Who};
use holdpoint_session::model::Catalog;
use holdpoint_session::testing::{PATIENCE, soon};
use holdpoint_session::{AttachFrom, Engine, OpenSession, Sessions};
use tempfile::TempDir;

#[path = "support/forgetful.rs"]
mod forgetful;
#[path = "support/process.rs"]
mod process;

use forgetful::Forgetful;
use process::resident_kib;

/// Threads the models' runtime may have: its own, and some for the sessions that come one after the other.
const POOL: usize = 8;

/// What a process has.
#[derive(Debug, PartialEq)]
struct Has {
    threads: usize,
    descriptors: usize,
    kib: u64,
}

impl Has {
    fn now() -> Self {
        Self { threads: threads(), descriptors: fs::read_dir("/proc/self/fd").unwrap().count(), kib: resident_kib() }
    }

    /// When no thread of a tool is left: one that has said its last word still has to end, and nobody tells when.
    fn at_rest(threads: usize) -> Self {
        let by = Instant::now() + PATIENCE;
        while self::threads() != threads && Instant::now() < by {
            std::thread::yield_now();
        }
        Self::now()
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

#[tokio::test]
async fn t_t8_sessions_that_are_closed_leave_nothing() {
    let (warm, rounds) = if std::env::var_os("HOLDPOINT_FULL").is_some() { (2_000, 10_000) } else { (500, 1_000) };
    let folder = TempDir::new().unwrap();
    let engine = Engine::builder(Catalog::default()).store(Forgetful).start().unwrap();
    let sessions = engine.sessions(Who::named("test"));
    come_and_go(&sessions, &folder).await;
    // A thread that has just begun has no name of its own yet, and one of a tool may still be ending.
    let threads = (0..1_000).map(|_| threads()).min().unwrap();
    for _ in 0..warm {
        come_and_go(&sessions, &folder).await;
    }
    let before = Has::at_rest(threads);
    for _ in 0..rounds {
        come_and_go(&sessions, &folder).await;
    }
    let after = Has::at_rest(threads);
    println!("{rounds} sessions: {before:?}, then {after:?}");
    assert_eq!((after.threads, after.descriptors), (threads, before.descriptors));
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
