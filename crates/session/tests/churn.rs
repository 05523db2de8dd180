//! Sessions that come and go. Alone in its program: it looks at the whole process.
#![cfg(target_os = "linux")]

use std::fs;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use holdpoint_common::{Outcome, SessionId, Who};
use holdpoint_session::model::Catalog;
use holdpoint_session::store::{Memory, SessionLog, SessionStore, StoreError};
use holdpoint_session::testing::soon;
use holdpoint_session::{AttachFrom, Engine, OpenSession, Sessions};
use tempfile::TempDir;

/// A store that forgets a session when nobody has it open: what is saved is not what is looked at here.
struct Forgetful;

impl SessionStore for Forgetful {
    fn create(&self, session: &SessionId) -> BoxFuture<'static, Result<Arc<dyn SessionLog>, StoreError>> {
        Memory::default().create(session)
    }

    fn open(&self, session: &SessionId) -> BoxFuture<'static, Result<Arc<dyn SessionLog>, StoreError>> {
        Memory::default().open(session)
    }
}

/// What a process has.
#[derive(Debug, PartialEq)]
struct Has {
    threads: usize,
    descriptors: usize,
    kib: u64,
}

impl Has {
    fn now() -> Self {
        let status = fs::read_to_string("/proc/self/status").unwrap();
        let rss = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        Self {
            threads: fs::read_dir("/proc/self/task").unwrap().count(),
            descriptors: fs::read_dir("/proc/self/fd").unwrap().count(),
            kib: rss.trim().trim_end_matches(" kB").parse().unwrap(),
        }
    }
}

#[tokio::test]
async fn t_t8_sessions_that_are_closed_leave_nothing() {
    let (warm, rounds) = if std::env::var_os("HOLDPOINT_FULL").is_some() { (2_000, 10_000) } else { (500, 1_000) };
    let folder = TempDir::new().unwrap();
    let engine = Engine::builder(Catalog::default()).store(Forgetful).start().unwrap();
    let sessions = engine.sessions(Who::named("test"));
    for _ in 0..warm {
        come_and_go(&sessions, &folder).await;
    }
    let before = Has::now();
    for _ in 0..rounds {
        come_and_go(&sessions, &folder).await;
    }
    let after = Has::now();
    println!("{rounds} sessions: {before:?}, then {after:?}");
    // A thread of a tool that has told its end may still be on its way out.
    assert_eq!((after.threads, after.descriptors), (before.threads, before.descriptors));
    assert!(after.kib * 10 <= before.kib * 12, "grown by more than a fifth: {before:?}, {after:?}");
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
