//! The threads that read, each on a connection of its own: they wait for no writer.

use std::ops::Range;
use std::sync::Arc;

use crossbeam_channel::Receiver;
use holdpoint_common::{Event, SessionId, Timestamp};
use rusqlite::{Connection, OptionalExtension};
use tokio::sync::oneshot;

use super::place::Identity;
use super::{Shared, StoreError, rows, schema};
use crate::store::{Page, SavedSession, summary_of};

/// Something to read.
pub(super) enum Job {
    Page {
        session: SessionId,
        range: Range<u64>,
        most: usize,
        done: oneshot::Sender<Result<Page, StoreError>>,
    },
    /// Where so many of the newest facts begin.
    Newest {
        session: SessionId,
        range: Range<u64>,
        newest: usize,
        done: oneshot::Sender<Result<u64, StoreError>>,
    },
    Draft {
        session: SessionId,
        done: oneshot::Sender<Result<Vec<Arc<Event>>, StoreError>>,
    },
    /// Whether there is such a session.
    Find {
        session: SessionId,
        done: oneshot::Sender<Result<(), StoreError>>,
    },
    /// What the list has of a session.
    Saved {
        session: SessionId,
        done: oneshot::Sender<Result<Option<SavedSession>, StoreError>>,
    },
    List {
        done: oneshot::Sender<Result<Vec<SavedSession>, StoreError>>,
    },
}

/// Reads until nobody can send any more.
pub(super) fn run(shared: &Shared, jobs: &Receiver<Job>) {
    let mut db = None;
    for job in jobs {
        // What it reads with is opened anew after any failure, so a database that comes back is found.
        match job {
            Job::Page { session, range, most, done } => {
                let page = with(shared, &mut db, |db| rows::page(db, &session, &range, most));
                if let Ok(page) = &page {
                    shared.note_gaps(&session, &page.facts);
                }
                // Who asked may be gone.
                let _ = done.send(page);
            }
            Job::Newest { session, range, newest, done } => {
                let _ = done.send(with(shared, &mut db, |db| rows::newest(db, &session, &range, newest)));
            }
            Job::Draft { session, done } => {
                let _ = done.send(with(shared, &mut db, |db| rows::draft(db, &session)));
            }
            Job::Find { session, done } => {
                let _ = done.send(with(shared, &mut db, |db| find(db, &session)));
            }
            Job::Saved { session, done } => {
                let _ = done.send(with(shared, &mut db, |db| saved(db, &session)));
            }
            Job::List { done } => {
                let _ = done.send(with(shared, &mut db, list));
            }
        }
    }
}

/// Which database is read: how often it was replaced by us, and which file it is.
type Current = (usize, Option<Identity>);

/// Reads what there is at one moment, however often it looks: what is written meanwhile is neither seen nor missed.
pub(super) fn with<T>(
    shared: &Shared,
    db: &mut Option<(Current, Connection)>,
    read: impl FnOnce(&Connection) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    let current = (shared.generation(), Identity::of(&shared.path));
    let connection = match db.take() {
        Some((known, connection)) if known == current && current.1.is_some() => connection,
        _ => schema::reader(&shared.path)?,
    };
    let moment = connection.unchecked_transaction()?;
    let result = read(&moment);
    drop(moment);
    *db = result.is_ok().then_some((current, connection));
    result
}

fn find(db: &Connection, session: &SessionId) -> Result<(), StoreError> {
    let mut select = db.prepare_cached("SELECT 1 FROM sessions WHERE id = ?1")?;
    let found = select.query_row([session.as_str()], |_| Ok(())).optional()?;
    found.ok_or_else(|| StoreError::Unknown { session: session.clone() })
}

/// What the list has of a session; nothing where that can't be read.
fn saved(db: &Connection, session: &SessionId) -> Result<Option<SavedSession>, StoreError> {
    let mut select = db.prepare_cached("SELECT opened, summary FROM sessions WHERE id = ?1")?;
    let found = select.query_row([session.as_str()], |row| {
        let summary = row.get_ref(1)?.as_bytes_or_null()?.and_then(|text| serde_json::from_slice(text).ok());
        let opened = Timestamp(row.get::<_, i64>(0)?.cast_unsigned());
        Ok(summary.map(|summary| SavedSession { summary, opened }))
    });
    Ok(found.optional()?.flatten())
}

/// All facts of a session.
fn all(db: &Connection, session: &SessionId) -> Result<Vec<Arc<Event>>, StoreError> {
    let (mut facts, mut next) = (Vec::new(), Some(0));
    while let Some(from) = next {
        let mut page = rows::page(db, session, &(from..u64::MAX), usize::MAX)?;
        facts.append(&mut page.facts);
        next = page.next;
    }
    Ok(facts)
}

fn list(db: &Connection) -> Result<Vec<SavedSession>, StoreError> {
    let mut select = db.prepare_cached("SELECT id, opened, summary FROM sessions WHERE last > 0")?;
    let mut rows = select.query([])?;
    let mut sessions = Vec::new();
    while let Some(row) = rows.next()? {
        let opened: i64 = row.get(1)?;
        let summary = row.get_ref(2)?.as_bytes_or_null().map_err(rusqlite::Error::from)?;
        let summary = match summary.and_then(|text| serde_json::from_slice(text).ok()) {
            Some(summary) => Some(summary),
            // Of an older schema, or salvaged: what its facts come to.
            None => {
                let id: String = row.get(0)?;
                let Ok(id) = id.parse() else { continue };
                summary_of(&all(db, &id)?)
            }
        };
        let Some(summary) = summary else { continue };
        sessions.push(SavedSession { summary, opened: Timestamp(opened.cast_unsigned()) });
    }
    Ok(sessions)
}
