//! The threads that read, each on a connection of its own: they wait for no writer.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use crossbeam_channel::Receiver;
use holdpoint_common::{Body, Delta, Event, SessionId, Timestamp};
use rusqlite::{Connection, OptionalExtension, params};
use tokio::sync::oneshot;

use super::StoreError;
use super::schema;
use crate::store::SavedSession;

/// Something to read.
pub(super) enum Job {
    Facts {
        session: SessionId,
        range: Range<u64>,
        newest: Option<usize>,
        done: oneshot::Sender<Result<Vec<Arc<Event>>, StoreError>>,
    },
    /// Whether there is such a session.
    Find {
        session: SessionId,
        done: oneshot::Sender<Result<(), StoreError>>,
    },
    List {
        done: oneshot::Sender<Result<Vec<SavedSession>, StoreError>>,
    },
}

/// Reads until nobody can send any more.
pub(super) fn run(path: &PathBuf, jobs: &Receiver<Job>) {
    let mut db: Option<Connection> = None;
    for job in jobs {
        // What it reads with is opened anew after any failure, so a database that comes back is found.
        match job {
            Job::Facts { session, range, newest, done } => {
                let read = with(path, &mut db, |db| facts(db, &session, &range, newest));
                // Who asked may be gone.
                let _ = done.send(read);
            }
            Job::Find { session, done } => {
                let _ = done.send(with(path, &mut db, |db| find(db, &session)));
            }
            Job::List { done } => {
                let _ = done.send(with(path, &mut db, list));
            }
        }
    }
}

fn with<T>(
    path: &PathBuf,
    db: &mut Option<Connection>,
    read: impl FnOnce(&Connection) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    let connection = match db.take() {
        Some(connection) if path.exists() => connection,
        _ => schema::reader(path)?,
    };
    let result = read(&connection);
    *db = result.is_ok().then_some(connection);
    result
}

fn facts(
    db: &Connection,
    session: &SessionId,
    range: &Range<u64>,
    newest: Option<usize>,
) -> Result<Vec<Arc<Event>>, StoreError> {
    let id = session.as_str();
    let (from, to) = (signed(range.start), signed(range.end));
    let most = newest.map_or(i64::MAX, |newest| i64::try_from(newest).unwrap_or(i64::MAX));
    let mut select = db.prepare_cached(match newest {
        Some(_) => {
            "SELECT seq, event FROM (SELECT seq, event FROM facts WHERE session = ?1 AND seq >= ?2 AND seq < ?3
             ORDER BY seq DESC LIMIT ?4) ORDER BY seq"
        }
        None => "SELECT seq, event FROM facts WHERE session = ?1 AND seq >= ?2 AND seq < ?3 ORDER BY seq LIMIT ?4",
    })?;
    let mut rows = select.query(params![id, from, to, most])?;
    let mut facts = Vec::new();
    while let Some(row) = rows.next()? {
        let seq: i64 = row.get(0)?;
        let text = row.get_ref(1)?.as_bytes().map_err(rusqlite::Error::from)?;
        let event = serde_json::from_slice(text).unwrap_or_else(|error| {
            tracing::error!(%session, seq, %error, "a fact can't be read");
            let at = facts.last().map_or_else(Timestamp::default, |before: &Arc<Event>| before.at);
            gap(seq.cast_unsigned(), at)
        });
        facts.push(Arc::new(event));
    }
    Ok(facts)
}

/// Stands for a fact that can't be read: the others still can.
fn gap(seq: u64, at: Timestamp) -> Event {
    Event { seq, at, turn: None, step: None, body: Body::Delta(Delta::Gap { from: seq, to: seq }) }
}

fn find(db: &Connection, session: &SessionId) -> Result<(), StoreError> {
    let mut select = db.prepare_cached("SELECT 1 FROM sessions WHERE id = ?1")?;
    let found = select.query_row([session.as_str()], |_| Ok(())).optional()?;
    found.ok_or_else(|| StoreError::Unknown { session: session.clone() })
}

fn list(db: &Connection) -> Result<Vec<SavedSession>, StoreError> {
    let mut select = db.prepare_cached("SELECT opened, summary FROM sessions WHERE summary IS NOT NULL")?;
    let mut rows = select.query([])?;
    let mut sessions = Vec::new();
    while let Some(row) = rows.next()? {
        let opened: i64 = row.get(0)?;
        let summary = serde_json::from_slice(row.get_ref(1)?.as_bytes().map_err(rusqlite::Error::from)?)?;
        sessions.push(SavedSession { summary, opened: Timestamp(opened.cast_unsigned()) });
    }
    Ok(sessions)
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
