//! The salvage of a damaged database: the damaged file is kept aside, and its readable part is
//! copied into a new one.

use std::ffi::OsStr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};
use std::{fs, io};

use holdpoint_common::{Fact, SessionFact, SessionId};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, params};

use super::files::{SIDE_FILE_SUFFIXES, side_file};
use super::rows::{around_damage, draft};
use super::{StoreError, files, schema};
use crate::store::stored_facts::{check_sum, missing};

/// How many numbers are skipped after the last readable fact, because others may have followed it.
const SKIPPED_NUMBERS: u64 = 1 << 20;

/// The highest number that is believed for a session's last fact if the fact itself can't be read.
/// Sessions stay far below it.
const MAX_BELIEVED_SEQ: u64 = 1 << 48;

/// The prefix of the file name under which a damaged database is kept.
const DAMAGED_PREFIX: &str = "sessions.damaged-";

/// The result of salvaging a damaged database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Salvaged {
    /// The path of the damaged database, which is kept.
    pub kept_at: PathBuf,
    /// The sessions that show no loss.
    pub whole: Vec<SessionId>,
    /// The sessions that the list had lost and that are listed again. Their facts show no loss, but
    /// only the list knew which fact was the last.
    pub relisted: Vec<SessionId>,
    /// The sessions that have lost facts.
    pub damaged: Vec<SessionId>,
}

/// A new database beside a damaged one, with everything that could be read from it.
pub(super) struct Rebuilt {
    at: PathBuf,
    salvaged: Salvaged,
}

/// Builds a new database from the readable data. The damaged one stays unchanged and in place.
pub(super) fn rebuild(path: &Path) -> Result<Rebuilt, StoreError> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis());
    let kept_at = path.with_file_name(format!("{DAMAGED_PREFIX}{now}.db"));
    let rebuilt = Rebuilt {
        at: path.with_extension("salvage-tmp"),
        salvaged: Salvaged {
            kept_at,
            whole: Vec::new(),
            relisted: Vec::new(),
            damaged: Vec::new(),
        },
    };
    rebuilt.remove();
    files::make_file(&rebuilt.at)?;
    fill(path, rebuilt)
}

fn fill(path: &Path, mut rebuilt: Rebuilt) -> Result<Rebuilt, StoreError> {
    let mut copy_all = || -> Result<(), StoreError> {
        let Rebuilt { at, salvaged } = &mut rebuilt;
        let mut new = schema::open_for_writing(at)?;
        // Opened for writing, because SQLite has to replay the WAL.
        if let Ok(old) = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE) {
            // Otherwise SQLite reads no data from a file that is shorter than its header says.
            let _ = old.set_db_config(DbConfig::SQLITE_DBCONFIG_WRITABLE_SCHEMA, true);
            // The last commits stay in the WAL.
            let _ = old.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
            let transaction = new.transaction()?;
            for session in sessions(&old) {
                let copied = copy(&old, &transaction, &session)?;
                copy_draft(&old, &transaction, &session)?;
                let list = match copied {
                    Copied::Whole => &mut salvaged.whole,
                    Copied::Relisted => &mut salvaged.relisted,
                    Copied::Damaged => &mut salvaged.damaged,
                };
                list.push(session);
            }
            transaction.commit()?;
        }
        // All data has to be in the one file that is moved.
        Ok(new.pragma_update(None, "journal_mode", "DELETE")?)
    };
    let copied = copy_all();
    if copied.is_err() {
        rebuilt.remove();
    }
    copied.map(|()| rebuilt)
}

/// Undoes a swap that a crash has cut. In that case the damaged database has two names, and its WAL
/// may already have the name under which the database was to be kept.
pub(super) fn undo_cut_swap(path: &Path) -> io::Result<()> {
    let database = path.metadata()?;
    let Some(folder) = path.parent().filter(|_| database.nlink() > 1) else { return Ok(()) };
    for entry in fs::read_dir(folder)? {
        let kept_at = entry?.path();
        let has_kept_name = |name: &str| name.starts_with(DAMAGED_PREFIX) && name.ends_with(".db");
        let is_kept = kept_at.file_name().and_then(OsStr::to_str).is_some_and(has_kept_name);
        if !is_kept || kept_at.symlink_metadata()?.ino() != database.ino() {
            continue;
        }
        move_side_files(&kept_at, path)?;
        fs::remove_file(kept_at)?;
    }
    Ok(())
}

/// Moves the files that SQLite keeps beside the database `from`, if they exist, to beside `to`.
fn move_side_files(from: &Path, to: &Path) -> io::Result<()> {
    for suffix in SIDE_FILE_SUFFIXES {
        match fs::rename(side_file(from, suffix), side_file(to, suffix)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

impl Rebuilt {
    /// Puts the new database in the place of the damaged one, which is kept aside. On failure the
    /// damaged one is back in its place.
    pub(super) fn swap(self, path: &Path) -> Result<Salvaged, StoreError> {
        let swapped = self.try_swap(path);
        if swapped.is_err() {
            self.remove();
        }
        swapped?;
        let Salvaged { kept_at, whole, relisted, damaged } = &self.salvaged;
        tracing::error!(
            kept_at = %kept_at.display(), whole = whole.len(), relisted = relisted.len(), ?damaged,
            "the store was damaged; its readable part was copied to a new one"
        );
        Ok(self.salvaged)
    }

    fn try_swap(&self, path: &Path) -> io::Result<()> {
        let kept_at = &self.salvaged.kept_at;
        // The path always has a database: a missing one would be taken for a new store.
        fs::hard_link(path, kept_at)?;
        // The WAL may hold the last commits, and a rollback journal would be applied to the new
        // database.
        let moved = move_side_files(path, kept_at).and_then(|()| fs::rename(&self.at, path));
        if moved.is_err() {
            for suffix in SIDE_FILE_SUFFIXES {
                let _ = fs::rename(side_file(kept_at, suffix), side_file(path, suffix));
            }
            let _ = fs::remove_file(kept_at);
        }
        moved
    }

    fn remove(&self) {
        // The files may not exist.
        let _ = fs::remove_file(&self.at);
        for suffix in SIDE_FILE_SUFFIXES {
            let _ = fs::remove_file(side_file(&self.at, suffix));
        }
    }
}

/// Every session that can still be found in either table.
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

/// Copies the readable pieces of a session's draft. A draft is incomplete anyway, so losses are
/// acceptable.
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

/// How completely a session was copied.
enum Copied {
    Whole,
    /// Its facts show no loss, but the list had lost the session.
    Relisted,
    Damaged,
}

/// A session's row in the list.
struct Listed {
    opened: i64,
    last: u64,
    reserved: i64,
    summary: Option<String>,
}

/// Reads a session's row in the list, if that is possible.
fn listed(old: &Connection, session: &SessionId) -> Option<Listed> {
    // Tries the index first, and then without it, in case the index is damaged.
    ["", "NOT INDEXED"].iter().find_map(|how| {
        let query =
            format!("SELECT opened, last, reserved, summary FROM sessions {how} WHERE id = ?1");
        let listed = old.query_row(&query, [session.as_str()], |row| {
            let last = row.get::<_, i64>(1)?.cast_unsigned();
            Ok(Listed { opened: row.get(0)?, last, reserved: row.get(2)?, summary: row.get(3)? })
        });
        listed.ok()
    })
}

/// Copies the readable part of a session.
fn copy(old: &Connection, new: &Connection, session: &SessionId) -> Result<Copied, StoreError> {
    let (facts, damage) = around_damage(old, session, &(0..u64::MAX));
    let mut whole = damage.is_none();
    // A damaged tree can return a row twice.
    let insert = format!("{} ON CONFLICT DO NOTHING", schema::INSERT_FACT);
    let mut insert = new.prepare_cached(&insert)?;
    let mut before = 0;
    for fact in &facts {
        whole &= fact.event(session).is_ok() && missing(before, fact.seq, fact.after).is_none();
        before = fact.seq;
        let after = fact.after.map(u64::cast_signed);
        let inserted = insert.execute(params![
            session.as_str(),
            fact.seq.cast_signed(),
            after,
            fact.text,
            fact.check_sum
        ])?;
        whole &= inserted == 1;
    }
    // A damaged tree may also return rows out of order.
    let first = facts.iter().min_by_key(|fact| fact.seq).and_then(|fact| fact.event(session).ok());
    let last = facts.iter().map(|fact| fact.seq).max().unwrap_or(0);
    let (listed, copied) = match listed(old, session) {
        Some(listed) => {
            let copied = if whole && listed.last == last { Copied::Whole } else { Copied::Damaged };
            // The known end of the log is kept, so that a reader sees a gap instead of a shorter
            // log.
            let known =
                Some(listed.last).filter(|known| *known <= MAX_BELIEVED_SEQ).unwrap_or_default();
            (Listed { last: last.max(known), ..listed }, copied)
        }
        None => {
            let has_opening = first.as_ref().is_some_and(|first| {
                matches!(first.fact(), Some(Fact::Session(SessionFact::Opened { .. })))
            });
            let opened = first.map_or(0, |first| first.at.0.cast_signed());
            let listed = Listed {
                opened,
                last,
                reserved: (last + SKIPPED_NUMBERS).cast_signed(),
                summary: None,
            };
            (listed, if whole && has_opening { Copied::Relisted } else { Copied::Damaged })
        }
    };
    let Listed { opened, last, reserved, summary } = listed;
    new.execute(
        "INSERT INTO sessions (id, opened, last, reserved, summary) VALUES (?1, ?2, ?3, ?4, ?5)",
        params![
            session.as_str(),
            opened,
            last.cast_signed(),
            reserved.max(last.cast_signed()),
            summary
        ],
    )?;
    Ok(copied)
}
