//! The database: its tables, its versions, and how an older one becomes a newer one.

use std::fs::OpenOptions;
use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use super::place::{ROLLBACK_JOURNAL, beside};
use super::{StoreError, place};

/// The newest schema.
pub(super) const VERSION: u32 = 3;

/// What makes schema n + 1 of schema n, from an empty database on.
const STEPS: [&str; VERSION as usize] = [
    // Facts are found by session and number, and lie in that order.
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
    // What a list shows of a session, so that none has to be replayed for it; and what tells a lost row and a flipped bit:
    // the number of the fact before, and a checksum.
    "ALTER TABLE sessions ADD COLUMN summary TEXT;
    ALTER TABLE facts ADD COLUMN after INTEGER;
    ALTER TABLE facts ADD COLUMN check_sum INTEGER;",
    // What has come of answers that are still coming: pieces, dropped when the answer is a fact.
    "CREATE TABLE drafts (
        session TEXT NOT NULL,
        seq INTEGER NOT NULL,
        event TEXT NOT NULL,
        check_sum INTEGER NOT NULL,
        PRIMARY KEY (session, seq)
    ) STRICT, WITHOUT ROWID;",
];

/// Adds a fact: its session, its number, that of the fact before it, its text and the checksum.
pub(super) const INSERT_FACT: &str =
    "INSERT INTO facts (session, seq, after, event, check_sum) VALUES (?1, ?2, ?3, ?4, ?5)";

/// Adds a piece of a draft: its session, its number, its text and the checksum.
pub(super) const INSERT_PIECE: &str = "INSERT INTO drafts (session, seq, event, check_sum) VALUES (?1, ?2, ?3, ?4)";

/// Bytes of the smallest database.
const SMALLEST: u64 = 512;

/// How long another process is waited for.
const BUSY: Duration = Duration::from_secs(10);

/// Opens the database for writing, in whatever state a crash has left it.
pub(super) fn writer(path: &Path) -> Result<Connection, StoreError> {
    // SQLite would take a part of a header for an empty database. With a journal it restores the file instead.
    let length = std::fs::metadata(path)?.len();
    if (1..SMALLEST).contains(&length) && !beside(path, ROLLBACK_JOURNAL).exists() {
        return Err(StoreError::Damaged { message: format!("the database is cut to {length} bytes") });
    }
    // A connection that can only read can't undo a transaction that a crash has cut. This one leaves the database of a
    // newer version alone: it undoes such a transaction, as that version would, and changes nothing more.
    let mut db = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE | FLAGS)?;
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    db.busy_timeout(BUSY)?;
    let found = version(&db)?;
    if found > VERSION {
        return Err(StoreError::Newer { found, known: VERSION });
    }
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false)?;
    if db.is_readonly(rusqlite::MAIN_DB)? {
        // SQLite would go on with what it can read, and every save would fail.
        OpenOptions::new().write(true).open(path)?;
        return Err(StoreError::Damaged { message: "its header says that it can't be written".to_owned() });
    }
    // SQLite goes on with the mode it had where it can't change it.
    let mode: String = db.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))?;
    if mode != "wal" {
        return Err(StoreError::Io {
            message: format!("the database can't be set to journal_mode=wal: it stays {mode}"),
        });
    }
    // A commit that was acknowledged survives a loss of power.
    db.pragma_update(None, "synchronous", "FULL")?;
    migrate(&mut db, path)?;
    if tables(&db)? != tables(&fresh()?)? {
        return Err(StoreError::Damaged { message: "its tables are not those it was made with".to_owned() });
    }
    Ok(db)
}

/// Opens the database for reading.
pub(super) fn reader(path: &Path) -> Result<Connection, StoreError> {
    let db = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY | FLAGS)?;
    db.busy_timeout(BUSY)?;
    Ok(db)
}

const FLAGS: OpenFlags = OpenFlags::SQLITE_OPEN_NO_MUTEX.union(OpenFlags::SQLITE_OPEN_NOFOLLOW);

/// The schema a database has; 0 if it is empty.
fn version(db: &Connection) -> Result<u32, StoreError> {
    Ok(db.pragma_query_value(None, "user_version", |row| row.get(0))?)
}

/// A database as it is made, in memory.
fn fresh() -> Result<Connection, StoreError> {
    let db = Connection::open_in_memory()?;
    STEPS.iter().try_for_each(|step| db.execute_batch(step))?;
    Ok(db)
}

/// How a database's tables were made.
fn tables(db: &Connection) -> Result<Vec<(String, Option<String>)>, StoreError> {
    let mut select = db.prepare("SELECT name, sql FROM sqlite_schema ORDER BY name")?;
    let tables = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(tables.collect::<Result<_, _>>()?)
}

fn migrate(db: &mut Connection, path: &Path) -> Result<(), StoreError> {
    let found = version(db)?;
    if found == VERSION {
        return Ok(());
    }
    if found > 0 {
        // All of it or nothing: a half-written backup is made anew.
        let backup = path.with_extension(format!("schema-{found}.db"));
        let making = path.with_extension("backup-tmp");
        let _ = std::fs::remove_file(&making);
        place::make_file(&making)?;
        db.execute("VACUUM INTO ?1", [making.to_string_lossy()])?;
        std::fs::rename(&making, &backup)?;
        tracing::info!(found, known = VERSION, backup = %backup.display(), "the store's schema is brought up to date");
    }
    // Another process may have been faster.
    let transaction = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let found = version(&transaction)?;
    for step in STEPS.iter().skip(found as usize) {
        transaction.execute_batch(step)?;
    }
    transaction.pragma_update(None, "user_version", VERSION.max(found))?;
    transaction.commit()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t_u11_every_connection_waits_for_another_process() -> Result<(), StoreError> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("sessions.db");
        place::make_file(&path)?;
        for db in [writer(&path)?, reader(&path)?] {
            let waits: u32 = db.pragma_query_value(None, "busy_timeout", |row| row.get(0))?;
            assert!(waits >= 5_000, "{waits} ms");
        }
        Ok(())
    }
}
