//! The reading threads. Each has its own connection, so that reads do not wait for the writer.

use std::cmp::Reverse;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crossbeam_channel::Receiver;
use holdpoint_common::api::SessionCursor;
use holdpoint_common::{Event, SessionId, Timestamp};
use rusqlite::{Connection, OptionalExtension, Row};

use super::files::Identity;
use super::{Shared, StoreError, rows, schema};
use crate::store::reads::Read;
use crate::store::stored_facts::signed;
use crate::store::{SavedPage, SavedSession, summary_of};

/// Reads until every sender is gone.
pub(super) fn run(shared: &Shared, requests: &Receiver<Read>) {
    let mut db = None;
    for request in requests {
        // After any failure the connection is opened again, so a database that was moved back is
        // found.
        match request {
            Read::Page { session, range, max_facts, done } => {
                // The caller may have stopped waiting.
                let _ = done.send(in_transaction(shared, &mut db, |db| {
                    rows::page(db, &session, &range, max_facts)
                }));
            }
            Read::Newest { session, range, count, done } => {
                let _ = done.send(in_transaction(shared, &mut db, |db| {
                    rows::newest(db, &session, &range, count)
                }));
            }
            Read::Draft { session, done } => {
                let _ = done.send(in_transaction(shared, &mut db, |db| rows::draft(db, &session)));
            }
            Read::State { session, done } => {
                let _ = done.send(in_transaction(shared, &mut db, |db| rows::state(db, &session)));
            }
            Read::Find { session, done } => {
                let _ = done.send(in_transaction(shared, &mut db, |db| find(db, &session)));
            }
            Read::Saved { session, done } => {
                let _ = done.send(in_transaction(shared, &mut db, |db| saved(db, &session)));
            }
            Read::List { page, done } => {
                let _ = done.send(in_transaction(shared, &mut db, |db| list(shared, db, &page)));
            }
        }
    }
}

/// The database that a connection reads: how often this process replaced it, and its file.
type DatabaseId = (usize, Option<Identity>);

/// Runs `read` in one transaction, so that all its queries see the database at one moment.
pub(super) fn in_transaction<T>(
    shared: &Shared,
    db: &mut Option<(DatabaseId, Connection)>,
    read: impl FnOnce(&Connection) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    let current = (shared.generation(), Identity::at_path(&shared.path));
    let connection = match db.take() {
        Some((known, connection)) if known == current && current.1.is_some() => connection,
        _ => schema::open_for_reading(&shared.path)?,
    };
    let transaction = connection.unchecked_transaction()?;
    let result = read(&transaction);
    drop(transaction);
    *db = result.is_ok().then_some((current, connection));
    result
}

fn find(db: &Connection, session: &SessionId) -> Result<(), StoreError> {
    let mut select = db.prepare_cached("SELECT 1 FROM sessions WHERE id = ?1")?;
    let found = select.query_row([session.as_str()], |_| Ok(())).optional()?;
    found.ok_or_else(|| StoreError::Unknown { session: session.clone() })
}

/// The saved summary of a session; `None` if it can't be read.
fn saved(db: &Connection, session: &SessionId) -> Result<Option<SavedSession>, StoreError> {
    let mut select = db.prepare_cached("SELECT opened, summary FROM sessions WHERE id = ?1")?;
    let found = select.query_row([session.as_str()], |row| {
        let summary =
            row.get_ref(1)?.as_bytes_or_null()?.and_then(|text| serde_json::from_slice(text).ok());
        let opened = Timestamp(row.get::<_, i64>(0)?.cast_unsigned());
        Ok(summary.map(|summary| SavedSession::of_one_machine(summary, opened)))
    });
    Ok(found.optional()?.flatten())
}

/// All facts of a session.
fn all_facts(db: &Connection, session: &SessionId) -> Result<Vec<Arc<Event>>, StoreError> {
    let (mut facts, mut next) = (Vec::new(), Some(0));
    while let Some(from) = next {
        let mut page = rows::page(db, session, &(from..u64::MAX), usize::MAX)?;
        facts.append(&mut page.facts);
        next = page.next;
    }
    Ok(facts)
}

fn list(
    shared: &Shared,
    db: &Connection,
    page: &SavedPage,
) -> Result<Vec<SavedSession>, StoreError> {
    if *page == SavedPage::ALL {
        return list_all(shared, db);
    }
    // The index has this order, so that only the rows of the page are read.
    let mut select = db.prepare_cached(
        "SELECT id, opened, last, summary FROM sessions INDEXED BY sessions_by_age
        WHERE (opened, id) < (?1, ?2) ORDER BY opened DESC, id DESC",
    )?;
    // No session of a store of one machine is at a live position.
    let after = page.after.as_ref().filter(|after| !after.live);
    let mut rows = select.query(match after {
        Some(SessionCursor { opened, id, .. }) => (signed(opened.0), id.as_str()),
        None => (i64::MAX, ""),
    })?;
    let mut sessions = Vec::new();
    while sessions.len() < page.limit
        && let Some(row) = rows.next()?
    {
        sessions.extend(listed(db, row)?);
    }
    Ok(sessions)
}

/// Lists all sessions without the index, and compares it with them: damage of the index alone would
/// hide sessions from every page, without an error.
fn list_all(shared: &Shared, db: &Connection) -> Result<Vec<SavedSession>, StoreError> {
    let mut select =
        db.prepare_cached("SELECT id, opened, last, summary FROM sessions NOT INDEXED")?;
    let mut rows = select.query([])?;
    let (mut sessions, mut keys) = (Vec::new(), Vec::new());
    while let Some(row) = rows.next()? {
        keys.push(key(row)?);
        sessions.extend(listed(db, row)?);
    }
    keys.sort_unstable();
    let mut select = db.prepare_cached(
        "SELECT id, opened FROM sessions INDEXED BY sessions_by_age ORDER BY opened, id",
    )?;
    let mut indexed = select.query([])?;
    let mut keys = keys.into_iter();
    let is_equal = loop {
        let found = indexed.next()?.map(key).transpose()?;
        if found != keys.next() {
            break false;
        }
        if found.is_none() {
            break true;
        }
    };
    if !is_equal {
        tracing::error!("the index of the saved sessions does not match them, and is made again");
        shared.has_wrong_index.store(true, Ordering::Relaxed);
    }
    sessions.sort_by_cached_key(|saved| Reverse(saved.cursor()));
    Ok(sessions)
}

/// The key of a session in the index.
fn key(row: &Row<'_>) -> rusqlite::Result<(i64, Vec<u8>)> {
    let id = row.get_ref(0)?.as_bytes_or_null()?;
    Ok((row.get(1)?, id.unwrap_or_default().to_owned()))
}

/// The session in a row of the list; `None` if it has no fact yet.
fn listed(db: &Connection, row: &Row<'_>) -> Result<Option<SavedSession>, StoreError> {
    if row.get::<_, i64>(2)? == 0 {
        return Ok(None);
    }
    let summary = row.get_ref(3)?.as_bytes_or_null().map_err(rusqlite::Error::from)?;
    let summary = match summary.and_then(|text| serde_json::from_slice(text).ok()) {
        Some(summary) => Some(summary),
        // A row of an older schema or of a salvaged database lacks its summary, which is folded
        // again.
        None => {
            let id: String = row.get(0)?;
            let Ok(id) = id.parse() else { return Ok(None) };
            summary_of(&all_facts(db, &id)?)
        }
    };
    let opened = Timestamp(row.get::<_, i64>(1)?.cast_unsigned());
    Ok(summary.map(|summary| SavedSession::of_one_machine(summary, opened)))
}
