//! The database: its tables, its versions, and how an older one becomes a newer one.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use super::StoreError;

/// The newest schema.
pub(super) const VERSION: u32 = 2;

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
    // What a list shows of a session, so that none has to be replayed for it.
    "ALTER TABLE sessions ADD COLUMN summary TEXT;",
];

/// How long another process is waited for.
const BUSY: Duration = Duration::from_secs(10);

/// Opens the database for writing.
pub(super) fn writer(path: &Path) -> Result<Connection, StoreError> {
    // Looked at without a chance to change it.
    let found = version(&reader(path)?)?;
    if found > VERSION {
        return Err(StoreError::Newer { found, known: VERSION });
    }
    let mut db = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE | FLAGS)?;
    db.busy_timeout(BUSY)?;
    db.pragma_update(None, "journal_mode", "WAL")?;
    // A commit that was acknowledged survives a loss of power.
    db.pragma_update(None, "synchronous", "FULL")?;
    migrate(&mut db, path)?;
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
