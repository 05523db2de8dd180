//! The database's schema: created, migrated with a backup, and left alone if it is newer.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use holdpoint_session::folders::Exposed;
use holdpoint_session::store::{NewLog, SessionStore, Sqlite, StoreError};
use holdpoint_session::testing::within_patience;
use rusqlite::Connection;
use tempfile::TempDir;

use super::{id, opened, prompt, summary};

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[tokio::test]
async fn t_h4_the_files_are_private_to_the_user() {
    let folder = TempDir::new().unwrap();
    let state = folder.path().join("a/state");
    let store = Sqlite::open(&state).unwrap();
    store.create(&id("one"), NewLog::default()).await.unwrap();
    assert_eq!((mode(&folder.path().join("a")), mode(&state)), (0o700, 0o700));
    let files: Vec<_> = fs::read_dir(&state).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(files.len() >= 2, "{files:?}");
    for file in files {
        assert_eq!(mode(&file), 0o600, "{}", file.display());
    }
}

#[test]
fn t_h4_files_open_to_others_are_refused() {
    let folder = TempDir::new().unwrap();
    drop(Sqlite::open(folder.path()).unwrap());
    let database = folder.path().join("sessions.db");
    for (path, wide, own) in [(folder.path(), 0o720, 0o700), (&database, 0o604, 0o600)] {
        fs::set_permissions(path, Permissions::from_mode(wide)).unwrap();
        let refused = Sqlite::open(folder.path()).err();
        let Some(StoreError::Exposed(Exposed::Open { path: named, mode, .. })) = refused else {
            panic!("{refused:?}")
        };
        assert_eq!((named.as_path(), mode), (path, wide));
        fs::set_permissions(path, Permissions::from_mode(own)).unwrap();
    }
    drop(Sqlite::open(folder.path()).unwrap());
    // Only root can give a file away.
    let another = rustix::process::geteuid().as_raw() + 1;
    if std::os::unix::fs::chown(&database, Some(another), None).is_ok() {
        let Err(StoreError::Exposed(Exposed::Foreign { uid, .. })) = Sqlite::open(folder.path())
        else {
            panic!("opened")
        };
        assert_eq!(uid, another);
    } else {
        println!("skipped: a store of another user, which only root can make");
    }
}

#[test]
fn t_u11_the_sqlite_version_has_no_known_wal_bug() {
    // Before 3.51.3 a WAL could be reset under a reader; 3.52.0 was withdrawn.
    let version = rusqlite::version_number();
    assert!(version >= 3_051_003 && version != 3_052_000, "{}", rusqlite::version());
}

/// Every writer waits for another process that writes; readers do not wait.
#[tokio::test]
async fn t_u11_a_lock_of_another_process_makes_no_write_fail() {
    let folder = TempDir::new().unwrap();
    let store = Sqlite::open(folder.path()).unwrap();
    let mut logs = Vec::new();
    for name in ["one", "two", "three"] {
        let session = id(name);
        let log = store.create(&session, NewLog::default()).await.unwrap();
        log.append(0, vec![opened(&session, 1)], summary(&session, "t")).await.unwrap();
        logs.push((log, session));
    }
    let another = Connection::open(folder.path().join("sessions.db")).unwrap();
    another.execute_batch("BEGIN IMMEDIATE").unwrap();
    let mut writes: Vec<_> = logs
        .iter()
        .map(|(log, session)| {
            tokio::spawn(log.append(1, vec![prompt(2, "saved")], summary(session, "t")))
        })
        .collect();
    // Long enough for a write that does not wait to have failed.
    for _ in 0..200 {
        assert_eq!(store.list().await.unwrap().len(), logs.len());
        assert!(
            writes.iter().all(|write| !write.is_finished()),
            "a write finished under another process's lock"
        );
    }
    another.execute_batch("COMMIT").unwrap();
    for (write, (log, session)) in writes.drain(..).zip(&logs) {
        write.await.unwrap().unwrap();
        assert_eq!(log.read(0..9).await.unwrap(), [opened(session, 1), prompt(2, "saved")]);
    }
}

/// By the kernel's flags of its descriptors: the other connections are read-only.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn t_u11_only_one_connection_of_a_store_writes() {
    let folder = TempDir::new().unwrap();
    let store = Sqlite::open(folder.path()).unwrap();
    let path = folder.path().join("sessions.db");
    // Each reader has a connection once it has read.
    let all_read = async {
        while descriptors(&path).len() < 3 {
            futures_util::future::join_all((0..8).map(|_| store.list())).await;
        }
    };
    within_patience("three connections", all_read).await;
    let writing = descriptors(&path).into_iter().filter(|flags| flags & 3 != 0).count();
    assert_eq!(writing, 1, "{:?}", descriptors(&path));
}

/// The flags of this process's descriptors of a file.
#[cfg(target_os = "linux")]
fn descriptors(path: &Path) -> Vec<u32> {
    let open = fs::read_dir("/proc/self/fd").unwrap().flatten();
    let ours = open.filter(|entry| fs::read_link(entry.path()).is_ok_and(|target| target == path));
    let flags = ours.filter_map(|entry| {
        let info =
            fs::read_to_string(Path::new("/proc/self/fdinfo").join(entry.file_name())).ok()?;
        let flags = info.lines().find_map(|line| line.strip_prefix("flags:"))?;
        u32::from_str_radix(flags.trim(), 8).ok()
    });
    flags.collect()
}

/// The statements that made schema 1, and then the next ones from it.
pub(super) const OLDER: [&str; 4] = [
    "CREATE TABLE sessions (
        id TEXT PRIMARY KEY,
        opened INTEGER NOT NULL,
        last INTEGER NOT NULL DEFAULT 0,
        reserved INTEGER NOT NULL DEFAULT 0
    ) STRICT;
    CREATE TABLE facts (
        session TEXT NOT NULL,
        seq INTEGER NOT NULL,
        event TEXT NOT NULL,
        PRIMARY KEY (session, seq)
    ) STRICT, WITHOUT ROWID;",
    "ALTER TABLE sessions ADD COLUMN summary TEXT;
    ALTER TABLE facts ADD COLUMN after INTEGER;
    ALTER TABLE facts ADD COLUMN check_sum INTEGER;",
    "CREATE TABLE drafts (
        session TEXT NOT NULL,
        seq INTEGER NOT NULL,
        event TEXT NOT NULL,
        check_sum INTEGER NOT NULL,
        PRIMARY KEY (session, seq)
    ) STRICT, WITHOUT ROWID;",
    "CREATE TABLE states (
        session TEXT PRIMARY KEY,
        seq INTEGER NOT NULL,
        state TEXT NOT NULL,
        check_sum INTEGER NOT NULL
    ) STRICT;",
];

#[tokio::test]
async fn t_u14_an_older_store_is_migrated_with_a_backup() {
    for older in 1..=4_u32 {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("sessions.db");
        let session = id("old");
        let db = Connection::open(&path).unwrap();
        OLDER.iter().take(older as usize).for_each(|step| db.execute_batch(step).unwrap());
        db.pragma_update(None, "user_version", older).unwrap();
        // As in schema 1: no summaries, no checksums.
        db.execute("INSERT INTO sessions (id, opened, last, reserved) VALUES ('old', 5, 2, 9)", [])
            .unwrap();
        for fact in [opened(&session, 1), prompt(2, "kept")] {
            let text = serde_json::to_string(&fact).unwrap();
            let insert = "INSERT INTO facts (session, seq, event) VALUES ('old', ?1, ?2)";
            db.execute(insert, (fact.seq.cast_signed(), text)).unwrap();
        }
        drop(db);
        fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();

        let store = Sqlite::open(folder.path()).unwrap();
        let log = store.own(&session).await.unwrap();
        assert_eq!(
            log.read(0..9).await.unwrap(),
            [opened(&session, 1), prompt(2, "kept")],
            "schema {older}"
        );
        log.append(2, vec![prompt(10, "new")], summary(&session, "new")).await.unwrap();
        assert_eq!(store.list().await.unwrap().len(), 1);
        let kept = folder.path().join(format!("sessions.schema-{older}.db"));
        let backup = Connection::open(&kept).unwrap();
        let version: u32 =
            backup.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
        let facts: u32 =
            backup.query_row("SELECT count(*) FROM facts", [], |row| row.get(0)).unwrap();
        assert_eq!((version, facts), (older, 2));
        assert_eq!(mode(&kept), 0o600);
    }
}

#[test]
fn t_u14_a_store_of_a_newer_version_is_refused_and_left_untouched() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("sessions.db");
    let db = Connection::open(&path).unwrap();
    db.execute_batch("CREATE TABLE from_the_future (x); PRAGMA user_version = 4711;").unwrap();
    drop(db);
    fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
    let before = fs::read(&path).unwrap();
    let Err(error) = Sqlite::open(folder.path()) else { panic!("the store was opened") };
    assert_eq!(error, StoreError::Newer { found: 4711, known: 5 });
    assert_eq!(fs::read(&path).unwrap(), before);
    let left: Vec<_> =
        fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["sessions.db"]);
}
