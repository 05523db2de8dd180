//! The database's schema: made, brought up to date with a backup, and left alone when it is newer.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use holdpoint_session::folders::Exposed;
use holdpoint_session::store::{SessionStore, Sqlite, StoreError};
use rusqlite::Connection;
use tempfile::TempDir;

use super::{id, opened, prompt, summary};

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[tokio::test]
async fn t_h4_the_files_are_the_users_own() {
    let folder = TempDir::new().unwrap();
    let state = folder.path().join("a/state");
    let store = Sqlite::open(&state).unwrap();
    store.create(&id("one")).await.unwrap();
    assert_eq!((mode(&folder.path().join("a")), mode(&state)), (0o700, 0o700));
    let files: Vec<_> = fs::read_dir(&state).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(files.len() >= 2, "{files:?}");
    for file in files {
        assert_eq!(mode(&file), 0o600, "{}", file.display());
    }
}

#[test]
fn t_h4_what_others_can_get_at_is_refused() {
    let folder = TempDir::new().unwrap();
    drop(Sqlite::open(folder.path()).unwrap());
    let database = folder.path().join("sessions.db");
    for (path, wide, own) in [(folder.path(), 0o720, 0o700), (&database, 0o604, 0o600)] {
        fs::set_permissions(path, Permissions::from_mode(wide)).unwrap();
        let Err(StoreError::Exposed(Exposed::Open { path: named, mode, .. })) = Sqlite::open(folder.path()) else {
            panic!("opened")
        };
        assert_eq!((named.as_path(), mode), (path, wide));
        fs::set_permissions(path, Permissions::from_mode(own)).unwrap();
    }
    drop(Sqlite::open(folder.path()).unwrap());
    // Only root can give a file away.
    if std::os::unix::fs::chown(&database, Some(65_534), None).is_ok() {
        let Err(StoreError::Exposed(Exposed::Foreign { uid, .. })) = Sqlite::open(folder.path()) else {
            panic!("opened")
        };
        assert_eq!(uid, 65_534);
    }
}

#[test]
fn t_u11_the_sqlite_in_use_is_a_sound_one() {
    // Before 3.51.3 a WAL could be reset under a reader; 3.52.0 was withdrawn.
    let version = rusqlite::version_number();
    assert!(version >= 3_051_003 && version != 3_052_000, "{}", rusqlite::version());
}

#[tokio::test]
async fn t_u14_a_store_of_an_older_version_is_brought_up_to_date_with_a_backup() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("sessions.db");
    // As schema 1 had it: no summaries.
    let session = id("old");
    let db = Connection::open(&path).unwrap();
    db.execute_batch(
        "CREATE TABLE sessions (id TEXT PRIMARY KEY, opened INTEGER NOT NULL, last INTEGER NOT NULL DEFAULT 0,
            reserved INTEGER NOT NULL DEFAULT 0) STRICT;
         CREATE TABLE facts (session TEXT NOT NULL, seq INTEGER NOT NULL, event TEXT NOT NULL,
            PRIMARY KEY (session, seq)) STRICT, WITHOUT ROWID;
         INSERT INTO sessions VALUES ('old', 5, 2, 9);
         PRAGMA user_version = 1;",
    )
    .unwrap();
    for fact in [opened(&session, 1), prompt(2, "kept")] {
        let text = serde_json::to_string(&fact).unwrap();
        db.execute("INSERT INTO facts VALUES ('old', ?1, ?2)", (fact.seq.cast_signed(), text)).unwrap();
    }
    drop(db);
    fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();

    let store = Sqlite::open(folder.path()).unwrap();
    let log = store.open(&session).await.unwrap();
    assert_eq!(log.read(0..9).await.unwrap(), [opened(&session, 1), prompt(2, "kept")]);
    log.append(2, vec![prompt(10, "new")], summary(&session, "new")).await.unwrap();
    assert_eq!(store.list().await.unwrap().len(), 1);
    let backup = Connection::open(folder.path().join("sessions.schema-1.db")).unwrap();
    let version: u32 = backup.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
    let facts: u32 = backup.query_row("SELECT count(*) FROM facts", [], |row| row.get(0)).unwrap();
    assert_eq!((version, facts), (1, 2));
    assert_eq!(mode(&folder.path().join("sessions.schema-1.db")), 0o600);
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
    let Err(error) = Sqlite::open(folder.path()) else { panic!("it was opened") };
    assert_eq!(error, StoreError::Newer { found: 4711, known: 3 });
    assert_eq!(fs::read(&path).unwrap(), before);
    let left: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["sessions.db"]);
}
