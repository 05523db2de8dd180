//! Disks that fail: full, read-only, gone. The fault is reported, only saved facts are
//! acknowledged, and saving resumes by itself.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use holdpoint_common::{Delta, Event, Fact, Outcome, TurnFact};
use holdpoint_session::SessionHandle;
use holdpoint_session::store::{SessionStore, Sqlite, StoreError};
use holdpoint_session::testing::{Harness, Recorder, reply, within_patience};
use holdpoint_tests::mounts::Mounted;
use tempfile::TempDir;

/// A small disk of its own, or `None` if it can't be mounted, which takes root.
struct Disk {
    // Unmounted before its folder is removed.
    mounted: Mounted,
    folder: TempDir,
}

impl Disk {
    fn new(mib: u32) -> Option<Self> {
        let folder = TempDir::new().unwrap();
        let mounted = Mounted::disk(folder.path(), mib)?;
        Some(Self { mounted, folder })
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Fills all free space with a file and returns its path.
    fn fill(&self) -> PathBuf {
        let path = self.path().join("ballast");
        let mut file = fs::File::create(&path).unwrap();
        for size in [65_536, 512, 1] {
            while file.write_all(&vec![1; size]).is_ok() {}
        }
        path
    }
}

/// Sends a prompt of this many bytes. Returns whether it was acknowledged as saved.
async fn prompt(
    harness: &Harness,
    session: &SessionHandle,
    events: &mut Recorder,
    bytes: usize,
) -> bool {
    harness.model.then(reply().text("fine"));
    // A full disk stays full until the test makes room: a reply that waited for the save would
    // never arrive.
    let saved =
        within_patience("an answer", session.prompt("x".repeat(bytes))).await.unwrap().saved;
    assert_eq!(events.turn_finished().await.outcome, Outcome::Done, "the session continues");
    saved
}

async fn until_not_saved(events: &mut Recorder) -> String {
    let not_saved = |event: &Event| match event.delta() {
        Some(Delta::NotSaved { reason }) => Some(reason.clone()),
        _ => None,
    };
    events.until("not saved", not_saved).await
}

async fn saved_again(events: &mut Recorder) {
    let again = |event: &Event| matches!(event.delta(), Some(Delta::SavedAgain)).then_some(());
    events.until("saved again", again).await;
}

/// Checks that the database is sound and has every fact that the client received, once, in order.
async fn assert_complete(folder: &Path, session: &SessionHandle, events: &Recorder) {
    let db = rusqlite::Connection::open(folder.join("sessions.db")).unwrap();
    let sound: String = db.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(sound, "ok");
    let store = Sqlite::open(folder).unwrap();
    let saved = store.open(session.id()).await.unwrap().read(0..u64::MAX).await.unwrap();
    let received: Vec<_> =
        events.events().iter().filter(|event| event.fact().is_some()).cloned().collect();
    assert_eq!(saved, received);
    assert!(store.salvaged().is_empty());
}

#[tokio::test]
async fn t_u6_a_full_disk_is_reported_and_saving_resumes_with_space() {
    let Some(disk) = Disk::new(4) else { return };
    let store = Sqlite::open(disk.path()).unwrap();
    let harness = Harness::with(|engine| engine.store(store));
    let session = harness.open().await;
    let mut events = harness.watch(&session).await;
    assert!(prompt(&harness, &session, &mut events, 100).await);
    let ballast = disk.fill();
    // SQLite can still use the space that it has set aside.
    let mut acknowledged = 0;
    while prompt(&harness, &session, &mut events, 100_000).await {
        acknowledged += 1;
        assert!(acknowledged < 50, "the disk is full");
    }
    let reason = until_not_saved(&mut events).await;
    assert!(reason.contains("full"), "{reason}");
    assert!(!session.snapshot().saved);
    assert!(!prompt(&harness, &session, &mut events, 100).await, "still");
    fs::remove_file(ballast).unwrap();
    saved_again(&mut events).await;
    assert!(prompt(&harness, &session, &mut events, 100).await);
    drop(harness);
    while events.next().await.is_some() {}
    assert_complete(disk.path(), &session, &events).await;
}

/// When the disk fills during a turn, its clients are notified while the answer streams, and the
/// turn ends normally.
#[tokio::test]
async fn t_u6_a_disk_that_fills_in_mid_answer_is_reported_and_the_turn_ends_cleanly() {
    let Some(disk) = Disk::new(4) else { return };
    let store = Sqlite::open(disk.path()).unwrap();
    let harness = Harness::with(|engine| engine.store(store));
    let session = harness.open().await;
    let mut events = harness.watch(&session).await;
    let live = harness.model.then_live();
    assert!(session.prompt("go").await.unwrap().saved);
    events.step_started().await;
    let ballast = disk.fill();
    // More than SQLite has set aside.
    assert!(live.text("x".repeat(1_000_000)));
    let reason = until_not_saved(&mut events).await;
    assert!(reason.contains("full"), "{reason}");
    drop(live);
    assert_eq!(events.turn_finished().await.outcome, Outcome::Done);
    assert!(!session.snapshot().saved, "unsaved events are not acknowledged");
    fs::remove_file(ballast).unwrap();
    saved_again(&mut events).await;
    assert!(session.snapshot().saved);
    assert!(prompt(&harness, &session, &mut events, 100).await);
    drop(harness);
    while events.next().await.is_some() {}
    assert_complete(disk.path(), &session, &events).await;
}

#[tokio::test]
async fn t_u9_a_store_that_can_not_be_written_is_refused_at_the_start() {
    let Some(disk) = Disk::new(4) else { return };
    let session = {
        let harness = Harness::with(|engine| engine.store(Sqlite::open(disk.path()).unwrap()));
        let session = harness.open().await;
        let mut events = harness.watch(&session).await;
        assert!(prompt(&harness, &session, &mut events, 100).await);
        session
    };
    disk.mounted.set_read_only(true);
    let message = match Sqlite::open(disk.path()) {
        Err(StoreError::Io { message }) => message,
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("the store was opened"),
    };
    let message = message.to_lowercase();
    assert!(message.contains("read") || message.contains("open"), "{message}");
    disk.mounted.set_read_only(false);
    let store = Sqlite::open(disk.path()).unwrap();
    assert_eq!(store.list().await.unwrap()[0].summary.id, *session.id());
}

#[tokio::test]
async fn t_u9_a_lost_store_folder_is_reported_and_saving_resumes_when_it_returns() {
    let home = TempDir::new().unwrap();
    let (folder, elsewhere) = (home.path().join("store"), home.path().join("elsewhere"));
    let store = Sqlite::open(&folder).unwrap();
    let harness = Harness::with(|engine| engine.store(store));
    let session = harness.open().await;
    let mut events = harness.watch(&session).await;
    assert!(prompt(&harness, &session, &mut events, 100).await);
    fs::rename(&folder, &elsewhere).unwrap();
    assert!(!prompt(&harness, &session, &mut events, 100).await, "the database was moved away");
    until_not_saved(&mut events).await;
    fs::rename(&elsewhere, &folder).unwrap();
    saved_again(&mut events).await;
    assert!(prompt(&harness, &session, &mut events, 100).await);

    // Another store in its place does not have the session and gets none of its facts.
    fs::rename(&folder, &elsewhere).unwrap();
    drop(Sqlite::open(&folder).unwrap());
    assert!(!prompt(&harness, &session, &mut events, 100).await, "the database was replaced");
    fs::remove_dir_all(&folder).unwrap();
    fs::rename(&elsewhere, &folder).unwrap();
    let again = |event: &Event| matches!(event.delta(), Some(Delta::SavedAgain)).then_some(());
    events.until_new("saved again", again).await;

    // Gone for good: the fault is reported, and the session continues.
    fs::remove_dir_all(&folder).unwrap();
    assert!(!prompt(&harness, &session, &mut events, 100).await);
    assert!(!session.snapshot().saved);
    assert!(events.facts().any(|fact| matches!(fact, Fact::Turn(TurnFact::Finished { .. }))));
}

/// On a full disk, a damaged database can't be salvaged: it is left as it is, and the error says
/// so. With space, it is salvaged.
#[tokio::test]
async fn t_u3_a_salvage_without_space_leaves_everything_as_it_was_and_says_so() {
    let Some(disk) = Disk::new(8) else { return };
    let path = disk.path().join("sessions.db");
    {
        let harness = Harness::with(|engine| engine.store(Sqlite::open(disk.path()).unwrap()));
        let session = harness.open().await;
        let mut events = harness.watch(&session).await;
        for _ in 0..3 {
            assert!(prompt(&harness, &session, &mut events, 400_000).await);
        }
    }
    let db = rusqlite::Connection::open(&path).unwrap();
    db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    drop(db);
    let mut bytes = fs::read(&path).unwrap();
    // The header's list of tables.
    bytes[100..200].fill(0xff);
    fs::write(&path, &bytes).unwrap();
    let ballast = disk.fill();
    // SQLite needs a little space to open any database.
    let filled = fs::File::options().write(true).open(&ballast).unwrap();
    filled.set_len(filled.metadata().unwrap().len() - 80 * 1024).unwrap();
    drop(filled);
    for _ in 0..2 {
        let Err(error) = Sqlite::open(disk.path()) else { panic!("the store was opened") };
        let message = error.to_string();
        assert!(
            message.contains(path.to_str().unwrap()) && message.contains("left unchanged"),
            "{message}"
        );
        assert_eq!(fs::read(&path).unwrap(), bytes);
        let left = fs::read_dir(disk.path())
            .unwrap()
            .filter_map(|entry| entry.unwrap().file_name().into_string().ok());
        assert!(!left.into_iter().any(|name| name.contains("damaged") || name.contains("tmp")));
    }
    fs::remove_file(ballast).unwrap();
    let store = Sqlite::open(disk.path()).unwrap();
    assert_eq!(fs::read(&store.salvaged()[0].kept_at).unwrap(), bytes);
}
