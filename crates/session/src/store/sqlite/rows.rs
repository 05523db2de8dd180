//! Reads the rows of facts one by one, around any damage.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use holdpoint_common::{Event, SessionId};
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::StoreError;
use crate::store::stored_facts::{self, PAGE_BYTES, ReadFact, StoredFact, check_sum, signed};
use crate::store::{Page, SavedState};

impl<'row> StoredFact<'row> {
    fn from_row(row: &'row Row<'_>) -> rusqlite::Result<Self> {
        let (seq, after) = (row.get::<_, i64>(0)?.cast_unsigned(), row.get::<_, Option<i64>>(1)?);
        let bytes = row.get_ref(2)?.as_bytes()?;
        let text = std::str::from_utf8(bytes)
            .map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed);
        Ok(Self { seq, after: after.map(i64::cast_unsigned), text, check_sum: row.get(3)? })
    }

    fn into_owned(self) -> StoredFact<'static> {
        StoredFact { text: Cow::Owned(self.text.into_owned()), ..self }
    }
}

const COLUMNS: &str = "seq, after, event, check_sum";

/// The facts of session `?1` with numbers from `?2` on and below `?3`, in order.
const IN_RANGE: &str = "FROM facts WHERE session = ?1 AND seq >= ?2 AND seq < ?3 ORDER BY seq";

/// The first facts in a range, in order: at most `max_facts`, or fewer if they are large. Also
/// returns whether there may be more.
fn select(
    db: &Connection,
    session: &SessionId,
    range: &Range<u64>,
    max_facts: usize,
) -> Result<(Vec<ReadFact>, bool), StoreError> {
    let mut select = db.prepare_cached(&format!("SELECT {COLUMNS} {IN_RANGE}"))?;
    let mut rows =
        select.query(params![session.as_str(), signed(range.start), signed(range.end)])?;
    let (mut facts, mut bytes) = (Vec::new(), 0);
    while let Some(row) = rows.next()? {
        let fact = StoredFact::from_row(row)?;
        bytes += fact.text.len();
        facts.push(fact.read(session));
        if facts.len() >= max_facts || bytes > PAGE_BYTES {
            return Ok((facts, true));
        }
    }
    Ok((facts, false))
}

/// The readable facts in a range of a damaged database, in order: those before the damage and those
/// after it. Also returns the numbers between which the damage lies.
pub(super) fn around_damage(
    db: &Connection,
    session: &SessionId,
    range: &Range<u64>,
) -> (Vec<StoredFact<'static>>, Option<Range<u64>>) {
    let (mut before, whole) = until_error(db, session, range, "ASC");
    if whole {
        return (before, None);
    }
    let from = before.last().map_or(range.start, |fact| fact.seq + 1);
    let (mut after, _) = until_error(db, session, &(from..range.end), "DESC");
    after.reverse();
    let to = after.first().map_or(range.end, |fact| fact.seq);
    before.append(&mut after);
    (before, Some(from..to))
}

/// The facts from one end of a range up to the first error, and whether these are all of them.
fn until_error(
    db: &Connection,
    session: &SessionId,
    range: &Range<u64>,
    order: &str,
) -> (Vec<StoredFact<'static>>, bool) {
    let mut facts = Vec::new();
    let mut read = || -> rusqlite::Result<()> {
        let mut select = db.prepare(&format!("SELECT {COLUMNS} {IN_RANGE} {order}"))?;
        let mut rows =
            select.query(params![session.as_str(), signed(range.start), signed(range.end)])?;
        while let Some(row) = rows.next()? {
            facts.push(StoredFact::from_row(row)?.into_owned());
        }
        Ok(())
    };
    let whole = read().is_ok();
    (facts, whole)
}

/// A page of the facts in a range, with gaps in place of unreadable facts.
pub(super) fn page(
    db: &Connection,
    session: &SessionId,
    range: &Range<u64>,
    max_facts: usize,
) -> Result<Page, StoreError> {
    let (read, more) = select(db, session, range, max_facts).or_else(|error| {
        let (stored, damage) = around_damage(db, session, range);
        tracing::error!(%session, %error, ?damage, "some facts can't be read");
        let read = || stored.iter().map(|fact| fact.read(session)).collect();
        if stored.is_empty() { Err(error) } else { Ok((read(), false)) }
    })?;
    let last = last(db, session);
    let last_before_end = || last_before(db, session, range.end, last);
    Ok(stored_facts::page(session, range, (read, more), last, last_before_end))
}

/// The number at which the newest `count` facts of a range begin; the start of the range if it has
/// fewer.
pub(super) fn newest(
    db: &Connection,
    session: &SessionId,
    range: &Range<u64>,
    count: usize,
) -> Result<u64, StoreError> {
    let Some(skipped) = count.checked_sub(1) else { return Ok(range.end) };
    let mut select = db.prepare_cached(&format!("SELECT seq {IN_RANGE} DESC LIMIT 1 OFFSET ?4"))?;
    let skipped = i64::try_from(skipped).unwrap_or(i64::MAX);
    let parameters = params![session.as_str(), signed(range.start), signed(range.end), skipped];
    let first: Option<i64> = select.query_row(parameters, |row| row.get(0)).optional()?;
    Ok(first.map_or(range.start, i64::cast_unsigned))
}

/// The pieces of a draft, up to the first damaged one: later pieces would not continue the text.
pub(super) fn draft(db: &Connection, session: &SessionId) -> Result<Vec<Arc<Event>>, StoreError> {
    let mut select = db.prepare_cached(
        "SELECT seq, 0, event, check_sum FROM drafts WHERE session = ?1 ORDER BY seq",
    )?;
    let mut rows = select.query([session.as_str()])?;
    let mut stored = Vec::new();
    while let Some(row) = rows.next()? {
        stored.push(StoredFact::from_row(row)?.into_owned());
    }
    Ok(stored_facts::draft(session, &stored))
}

/// The saved state of a session; `None` if there is none, if it is damaged, or if the fact that it
/// ends with is not in the log.
pub(super) fn state(
    db: &Connection,
    session: &SessionId,
) -> Result<Option<SavedState>, StoreError> {
    let mut select = db.prepare_cached(
        "SELECT states.seq, state, states.check_sum FROM states JOIN facts USING (session, seq)
        WHERE session = ?1",
    )?;
    let found = select.query_row([session.as_str()], |row| {
        let (upto, text) = (row.get::<_, i64>(0)?.cast_unsigned(), row.get::<_, String>(1)?);
        Ok((SavedState { upto, text }, row.get::<_, i64>(2)?))
    });
    let Some((state, sum)) = found.optional()? else { return Ok(None) };
    let is_whole = check_sum(session, state.upto, 0, &state.text) == sum;
    if !is_whole {
        tracing::error!(%session, "the saved state is damaged; all facts are folded");
    }
    Ok(is_whole.then_some(state))
}

/// The number of the last fact that was saved before `end`: the one that the next fact names, or
/// else `last`, the last fact of the session. `None` if neither can be read.
fn last_before(db: &Connection, session: &SessionId, end: u64, last: Option<u64>) -> Option<u64> {
    match predecessor_of_next(
        db,
        session,
        end..last.map_or(u64::MAX, |last| last.saturating_add(1)),
    ) {
        Ok(Some(after)) => after.map(i64::cast_unsigned),
        // There is no later fact, or it can't be read.
        Ok(None) | Err(_) => last,
    }
}

/// The number that the first fact in a range records for the fact before it; `Some(None)` if an
/// older version wrote that fact.
fn predecessor_of_next(
    db: &Connection,
    session: &SessionId,
    range: Range<u64>,
) -> rusqlite::Result<Option<Option<i64>>> {
    let next = "SELECT after FROM facts WHERE session = ?1 AND seq >= ?2 AND seq < ?3 ORDER BY seq LIMIT 1";
    let range = params![session.as_str(), signed(range.start), signed(range.end)];
    db.prepare_cached(next)?.query_row(range, |row| row.get(0)).optional()
}

/// The number of a session's last fact, if it can be read.
fn last(db: &Connection, session: &SessionId) -> Option<u64> {
    let mut select = db.prepare_cached("SELECT last FROM sessions WHERE id = ?1").ok()?;
    select.query_row([session.as_str()], |row| row.get::<_, i64>(0)).ok().map(i64::cast_unsigned)
}
