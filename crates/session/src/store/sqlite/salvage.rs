//! A damaged database: kept aside, and what can be read of it written into a new one.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use holdpoint_common::SessionId;
use rusqlite::{Connection, OpenFlags, params};

use super::rows::{around_damage, check_sum, draft};
use super::{StoreError, place, schema};

/// Numbers that are skipped behind the last one that can be read: there may have been more.
const SKIPPED: u64 = 1 << 20;

/// What became of a damaged database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Salvaged {
    /// Where the damaged one is kept.
    pub kept_at: PathBuf,
    /// The sessions that are whole, or as far as can be told.
    pub whole: Vec<SessionId>,
    /// The sessions of which facts are lost.
    pub damaged: Vec<SessionId>,
}

/// Moves the database aside and makes a new one with all that can be read.
pub(super) fn salvage(path: &Path) -> Result<Salvaged, StoreError> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis());
    let kept_at = path.with_extension(format!("damaged-{now}.db"));
    fs::rename(path, &kept_at)?;
    // What was committed last may still be in the log beside it.
    for log in ["-wal", "-shm"] {
        let beside = |path: &Path| PathBuf::from(format!("{}{log}", path.display()));
        match fs::rename(beside(path), beside(&kept_at)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
    }
    place::make_file(path)?;
    let mut new = schema::writer(path)?;
    let mut salvaged = Salvaged { kept_at, whole: Vec::new(), damaged: Vec::new() };
    // Read and write: the log beside it has to be gone through.
    let old = Connection::open_with_flags(&salvaged.kept_at, OpenFlags::SQLITE_OPEN_READ_WRITE);
    if let Ok(old) = old {
        let transaction = new.transaction()?;
        for session in sessions(&old) {
            let whole = copy(&old, &transaction, &session)?;
            copy_draft(&old, &transaction, &session)?;
            let list = if whole { &mut salvaged.whole } else { &mut salvaged.damaged };
            list.push(session);
        }
        transaction.commit()?;
    }
    let Salvaged { kept_at, whole, damaged } = &salvaged;
    tracing::error!(
        kept_at = %kept_at.display(), whole = whole.len(), ?damaged,
        "the store was damaged: what could be read was taken over"
    );
    Ok(salvaged)
}

/// Every session that can still be found, by either table.
fn sessions(db: &Connection) -> Vec<SessionId> {
    let mut found = Vec::new();
    for query in [
        "SELECT id FROM sessions ORDER BY rowid",
        "SELECT id FROM sessions ORDER BY rowid DESC",
        "SELECT DISTINCT session FROM facts ORDER BY session",
        "SELECT DISTINCT session FROM facts ORDER BY session DESC",
    ] {
        let Ok(mut select) = db.prepare(query) else { continue };
        let Ok(mut rows) = select.query([]) else { continue };
        while let Ok(Some(row)) = rows.next() {
            let id = row.get::<_, String>(0).ok().and_then(|text| text.parse::<SessionId>().ok());
            found.extend(id);
        }
    }
    found.sort();
    found.dedup();
    found
}

/// Copies what can be read of a session's draft. Of an answer that was not whole, something may be missing.
fn copy_draft(old: &Connection, new: &Connection, session: &SessionId) -> Result<(), StoreError> {
    let Ok(pieces) = draft(old, session) else { return Ok(()) };
    let mut insert = new.prepare_cached(schema::INSERT_PIECE)?;
    for piece in pieces {
        let text = serde_json::to_string(&piece)?;
        let check_sum = check_sum(session, piece.seq, 0, &text);
        insert.execute(params![session.as_str(), piece.seq.cast_signed(), text, check_sum])?;
    }
    Ok(())
}

/// Copies a session; `false` if something of it is lost.
fn copy(old: &Connection, new: &Connection, session: &SessionId) -> Result<bool, StoreError> {
    let id = session.as_str();
    let kept = old.query_row("SELECT opened, last, reserved, summary FROM sessions WHERE id = ?1", [id], |row| {
        Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, row.get::<_, i64>(2)?, row.get::<_, Option<String>>(3)?))
    });
    let (facts, damage) = around_damage(old, session, &(0..u64::MAX));
    let mut whole = damage.is_none();
    let mut insert = new.prepare_cached(schema::INSERT_FACT)?;
    let mut before = 0;
    for fact in &facts {
        whole &= fact.event(session).is_ok() && fact.missing_before(Some(before)).is_none();
        before = fact.seq;
        let after = fact.after.map(u64::cast_signed);
        insert.execute(params![id, fact.seq.cast_signed(), after, fact.text, fact.check_sum])?;
    }
    let last = facts.last().map_or(0, |fact| fact.seq);
    let (opened, summary) = match kept {
        Ok((opened, known, reserved, summary)) => {
            whole &= known.cast_unsigned() == last;
            new.execute(
                "INSERT INTO sessions (id, opened, last, reserved, summary) VALUES (?1, ?2, ?3, ?4, ?5)",
                params![id, opened, last.cast_signed(), reserved.max(last.cast_signed()), summary],
            )?;
            return Ok(whole);
        }
        Err(_) => {
            (facts.first().and_then(|fact| fact.event(session).ok()).map_or(0, |event| event.at.0), None::<String>)
        }
    };
    new.execute(
        "INSERT INTO sessions (id, opened, last, reserved, summary) VALUES (?1, ?2, ?3, ?4, ?5)",
        params![id, opened.cast_signed(), last.cast_signed(), (last + SKIPPED).cast_signed(), summary],
    )?;
    Ok(false)
}
