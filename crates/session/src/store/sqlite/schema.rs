//! The database schema: its tables, its versions and the migration of older ones.

use std::fs::OpenOptions;
use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};

use super::files::{ROLLBACK_JOURNAL, side_file};
use super::{StoreError, files};

/// The newest schema version.
pub(super) const VERSION: u32 = 5;

/// The statements that turn schema n into schema n + 1, starting from an empty database.
const MIGRATIONS: [&str; VERSION as usize] = [
    // Facts are found by session and number, and are stored in that order.
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
    // The summary that lists show, so that they need no replay. For each fact, the number of the
    // fact before it and a checksum, which reveal lost rows and flipped bits.
    "ALTER TABLE sessions ADD COLUMN summary TEXT;
    ALTER TABLE facts ADD COLUMN after INTEGER;
    ALTER TABLE facts ADD COLUMN check_sum INTEGER;",
    // The pieces of answers that are still streaming, which are dropped once the answer is a fact.
    "CREATE TABLE drafts (
        session TEXT NOT NULL,
        seq INTEGER NOT NULL,
        event TEXT NOT NULL,
        check_sum INTEGER NOT NULL,
        PRIMARY KEY (session, seq)
    ) STRICT, WITHOUT ROWID;",
    // A state of each long session, which includes its facts up to `seq`.
    "CREATE TABLE states (
        session TEXT PRIMARY KEY,
        seq INTEGER NOT NULL,
        state TEXT NOT NULL,
        check_sum INTEGER NOT NULL
    ) STRICT;",
    // The order of the list, so that a page of it reads no other sessions.
    "CREATE INDEX sessions_by_age ON sessions (opened, id);",
];

/// Inserts a fact: its session, its number, that of the fact before it, its text and its checksum.
pub(super) const INSERT_FACT: &str =
    "INSERT INTO facts (session, seq, after, event, check_sum) VALUES (?1, ?2, ?3, ?4, ?5)";

/// Inserts a piece of a draft: its session, its number, its text and its checksum. A piece that was
/// already saved is replaced.
pub(super) const INSERT_PIECE: &str =
    "INSERT OR REPLACE INTO drafts (session, seq, event, check_sum) VALUES (?1, ?2, ?3, ?4)";

/// The size of the smallest database in bytes.
const MIN_DATABASE_BYTES: u64 = 512;

/// How long to wait for the lock of another process.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// The pause between two tries where SQLite itself does not wait.
const BUSY_RETRY: Duration = Duration::from_millis(5);

/// Opens the database for writing, in any state that a crash may have left.
pub(super) fn open_for_writing(path: &Path) -> Result<Connection, StoreError> {
    // SQLite would take a part of a header for an empty database. With a journal it restores the
    // file instead.
    let length = std::fs::metadata(path)?.len();
    if (1..MIN_DATABASE_BYTES).contains(&length) && !side_file(path, ROLLBACK_JOURNAL).exists() {
        return Err(StoreError::Damaged {
            message: format!("the database is truncated to {length} bytes"),
        });
    }
    // A read-only connection can't roll back a transaction that a crash has cut. If a newer version
    // wrote the database, this connection only rolls back such a transaction, as that version
    // would, and changes nothing else.
    let mut db = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE | FLAGS)?;
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    db.busy_timeout(BUSY_TIMEOUT)?;
    let found = version(&db)?;
    if found > VERSION {
        return Err(StoreError::Newer { found, known: VERSION });
    }
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false)?;
    if db.is_readonly(rusqlite::MAIN_DB)? {
        // SQLite has fallen back to read-only, so every save would fail. If the file's permissions
        // are the reason, this open reports it; otherwise its header is.
        OpenOptions::new().write(true).open(path)?;
        return Err(StoreError::Damaged { message: "its header marks it as read-only".to_owned() });
    }
    let mode = set_journal_mode(&db)?;
    if mode != "wal" {
        return Err(StoreError::Io {
            message: format!("the database can't be set to journal_mode=wal; it stays {mode}"),
        });
    }
    // Acknowledged commits survive a loss of power.
    db.pragma_update(None, "synchronous", "FULL")?;
    migrate(&mut db, path)?;
    check_tables(&db, VERSION)?;
    Ok(db)
}

/// Sets the journal mode to WAL and returns the resulting mode: SQLite keeps the old mode if it
/// can't change it.
fn set_journal_mode(db: &Connection) -> Result<String, StoreError> {
    let deadline = Instant::now() + BUSY_TIMEOUT;
    loop {
        // If two connections change the mode of a new database at once, SQLite does not wait.
        match db.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0)) {
            Err(error)
                if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
                    && Instant::now() < deadline =>
            {
                std::thread::sleep(BUSY_RETRY);
            }
            mode => return Ok(mode?),
        }
    }
}

/// Opens the database for reading.
pub(super) fn open_for_reading(path: &Path) -> Result<Connection, StoreError> {
    let db = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY | FLAGS)?;
    db.busy_timeout(BUSY_TIMEOUT)?;
    Ok(db)
}

const FLAGS: OpenFlags = OpenFlags::SQLITE_OPEN_NO_MUTEX.union(OpenFlags::SQLITE_OPEN_NOFOLLOW);

/// The schema version of a database; 0 if it is empty.
fn version(db: &Connection) -> Result<u32, StoreError> {
    Ok(db.pragma_query_value(None, "user_version", |row| row.get(0))?)
}

/// An error if the tables of a database are not those of this schema.
fn check_tables(db: &Connection, version: u32) -> Result<(), StoreError> {
    let expected = Connection::open_in_memory()?;
    for step in MIGRATIONS.iter().take(version as usize) {
        expected.execute_batch(step)?;
    }
    if tables(db)? == tables(&expected)? {
        return Ok(());
    }
    let message = format!("its tables do not match its schema, version {version}");
    Err(StoreError::Damaged { message })
}

/// The names and definitions of a database's tables.
fn tables(db: &Connection) -> Result<Vec<(String, Option<String>)>, StoreError> {
    let mut select = db.prepare("SELECT name, sql FROM sqlite_schema ORDER BY name")?;
    let tables = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(tables.collect::<Result<_, _>>()?)
}

/// Brings the database to the newest schema. Before an older one is changed, it is copied to a file
/// beside it.
fn migrate(db: &mut Connection, path: &Path) -> Result<(), StoreError> {
    if version(db)? == VERSION {
        return Ok(());
    }
    // Only one process migrates. Another one may have done so before the lock was taken.
    let transaction = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let found = version(&transaction)?;
    if found > VERSION {
        return Err(StoreError::Newer { found, known: VERSION });
    }
    check_tables(&transaction, found)?;
    if (1..VERSION).contains(&found) {
        let backup = path.with_extension(format!("schema-{found}.db"));
        back_up(path, &backup)?;
        tracing::info!(found, known = VERSION, backup = %backup.display(), "migrating the store to the newest schema");
    }
    for step in MIGRATIONS.iter().skip(found as usize) {
        transaction.execute_batch(step)?;
    }
    transaction.pragma_update(None, "user_version", VERSION)?;
    transaction.commit()?;
    Ok(())
}

/// Copies the database, without changes that are not committed. The copy is complete or absent.
fn back_up(path: &Path, backup: &Path) -> Result<(), StoreError> {
    let unfinished = path.with_extension("backup-tmp");
    let _ = std::fs::remove_file(&unfinished);
    files::make_file(&unfinished)?;
    let name = unfinished.to_str().ok_or_else(|| StoreError::Io {
        message: format!("the store can't be backed up: {} is not UTF-8", unfinished.display()),
    })?;
    open_for_reading(path)?.execute("VACUUM INTO ?1", [name])?;
    Ok(std::fs::rename(&unfinished, backup)?)
}

#[cfg(test)]
mod tests {
    use std::sync::{Barrier, Mutex};

    use holdpoint_tools::testing::rounds;

    use super::*;

    /// SQLite does not wait if two connections change the journal mode of a new database at once.
    #[test]
    fn t_u11_processes_that_open_a_new_database_at_once_wait_for_each_other()
    -> Result<(), StoreError> {
        const OPENING: usize = 8;
        for _ in 0..rounds(30, 1_000) {
            let folder = tempfile::tempdir()?;
            let path = folder.path().join("sessions.db");
            files::make_file(&path)?;
            let start = Barrier::new(OPENING);
            std::thread::scope(|scope| {
                let open = || {
                    start.wait();
                    open_for_writing(&path).map(drop)
                };
                let opening: Vec<_> = (0..OPENING).map(|_| scope.spawn(open)).collect();
                opening.into_iter().try_for_each(|thread| thread.join().unwrap())
            })?;
        }
        Ok(())
    }

    /// While this connection waits for the lock, another process commits in the busy handler.
    #[test]
    fn t_u11_a_migration_by_another_process_is_noticed() -> Result<(), StoreError> {
        static OTHER: Mutex<Option<Connection>> = Mutex::new(None);
        for (other_version, is_newer) in [(VERSION, false), (VERSION + 1, true)] {
            let folder = tempfile::tempdir()?;
            let path = folder.path().join("sessions.db");
            files::make_file(&path)?;
            let open = || Connection::open_with_flags(&path, OpenFlags::SQLITE_OPEN_READ_WRITE);
            let mut db = open()?;
            db.pragma_update(None, "journal_mode", "WAL")?;
            MIGRATIONS[..2].iter().try_for_each(|step| db.execute_batch(step))?;
            db.pragma_update(None, "user_version", 2)?;
            let backup = path.with_extension("schema-2.db");
            std::fs::write(&backup, "the other's")?;
            let other = open()?;
            other.execute_batch("BEGIN IMMEDIATE")?;
            MIGRATIONS[2..].iter().try_for_each(|step| other.execute_batch(step))?;
            other.pragma_update(None, "user_version", other_version)?;
            *OTHER.lock().unwrap() = Some(other);
            db.busy_handler(Some(|_| {
                let other = OTHER.lock().unwrap().take();
                other.is_some_and(|other| other.execute_batch("COMMIT").is_ok())
            }))?;
            let migrated = migrate(&mut db, &path);
            assert!(OTHER.lock().unwrap().is_none(), "the lock was awaited");
            match is_newer {
                true => assert!(matches!(migrated, Err(StoreError::Newer { .. })), "{migrated:?}"),
                false => migrated?,
            }
            assert_eq!(version(&db)?, other_version);
            assert_eq!(std::fs::read_to_string(&backup)?, "the other's");
        }
        Ok(())
    }

    #[test]
    fn t_u11_every_connection_waits_for_another_process() -> Result<(), StoreError> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("sessions.db");
        files::make_file(&path)?;
        for db in [open_for_writing(&path)?, open_for_reading(&path)?] {
            let waits: u32 = db.pragma_query_value(None, "busy_timeout", |row| row.get(0))?;
            assert!(waits >= 5_000, "{waits} ms");
        }
        Ok(())
    }
}
