//! Rows of facts: written with a checksum, read one by one, around damage.

use std::ops::Range;
use std::sync::Arc;

use holdpoint_common::{Body, Delta, Event, SessionId, Timestamp};
use rusqlite::{Connection, OptionalExtension, Row, params};
use xxhash_rust::xxh3::Xxh3;

use super::StoreError;
use crate::store::end_of;

/// A fact as it lies in the database.
pub(super) struct Stored {
    pub(super) seq: u64,
    /// The number of the fact before; not known of those that an older version has written.
    pub(super) after: Option<u64>,
    pub(super) text: String,
    pub(super) check_sum: Option<i64>,
}

/// What a row must have come with to be what was written.
pub(super) fn check_sum(session: &SessionId, seq: u64, after: u64, text: &str) -> i64 {
    let mut hash = Xxh3::new();
    hash.update(session.as_str().as_bytes());
    hash.update(&seq.to_le_bytes());
    hash.update(&after.to_le_bytes());
    hash.update(text.as_bytes());
    hash.digest().cast_signed()
}

impl Stored {
    fn of(row: &Row<'_>) -> rusqlite::Result<Self> {
        let (seq, after) = (row.get::<_, i64>(0)?.cast_unsigned(), row.get::<_, Option<i64>>(1)?);
        let text = String::from_utf8_lossy(row.get_ref(2)?.as_bytes()?).into_owned();
        Ok(Self { seq, after: after.map(i64::cast_unsigned), text, check_sum: row.get(3)? })
    }

    /// The fact, if it is as it was written.
    pub(super) fn event(&self, session: &SessionId) -> Result<Event, String> {
        let sum = self.after.map(|after| check_sum(session, self.seq, after, &self.text));
        if sum != self.check_sum {
            return Err("its checksum does not fit".to_owned());
        }
        serde_json::from_str(&self.text).map_err(|error| error.to_string())
    }

    /// The numbers between which facts are missing before this one, if any are.
    pub(super) fn missing_before(&self, before: Option<u64>) -> Option<Range<u64>> {
        let (before, after) = (before?, self.after?);
        (before < after && after < self.seq).then(|| before + 1..after + 1)
    }
}

/// Which of the facts in a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    All,
    /// So many from its start on.
    First(usize),
    /// So many before its end.
    Newest(usize),
}

impl Part {
    /// How many facts that are, at most.
    fn most(self) -> usize {
        match self {
            Self::All => usize::MAX,
            Self::First(most) | Self::Newest(most) => most,
        }
    }

    fn is_newest(self) -> bool {
        matches!(self, Self::Newest(_))
    }
}

const COLUMNS: &str = "seq, after, event, check_sum";

/// The facts in a range, or a part of them, in order.
fn select(db: &Connection, session: &SessionId, range: &Range<u64>, part: Part) -> Result<Vec<Stored>, StoreError> {
    let within = "FROM facts WHERE session = ?1 AND seq >= ?2 AND seq < ?3 ORDER BY seq";
    let most = i64::try_from(part.most()).unwrap_or(i64::MAX);
    let order = if part.is_newest() { "DESC" } else { "ASC" };
    let mut select = db.prepare_cached(&format!("SELECT {COLUMNS} {within} {order} LIMIT ?4"))?;
    let rows = select.query_map(params![session.as_str(), signed(range.start), signed(range.end), most], Stored::of)?;
    let mut facts = rows.collect::<Result<Vec<_>, _>>()?;
    if part.is_newest() {
        facts.reverse();
    }
    Ok(facts)
}

/// The facts in a range that can be read although the database is damaged: those before the damage and those after
/// it, in order, and the numbers between which it lies.
pub(super) fn around_damage(
    db: &Connection,
    session: &SessionId,
    range: &Range<u64>,
) -> (Vec<Stored>, Option<Range<u64>>) {
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

/// The facts from one end of a range on, as far as they can be read; and whether that is all of them.
fn until_error(db: &Connection, session: &SessionId, range: &Range<u64>, order: &str) -> (Vec<Stored>, bool) {
    let mut facts = Vec::new();
    let mut read = || -> rusqlite::Result<()> {
        let within = "FROM facts WHERE session = ?1 AND seq >= ?2 AND seq < ?3 ORDER BY seq";
        let mut select = db.prepare(&format!("SELECT {COLUMNS} {within} {order}"))?;
        let mut rows = select.query(params![session.as_str(), signed(range.start), signed(range.end)])?;
        while let Some(row) = rows.next()? {
            facts.push(Stored::of(row)?);
        }
        Ok(())
    };
    let whole = read().is_ok();
    (facts, whole)
}

/// The facts in a range, or a part of them; what can't be read is a gap.
pub(super) fn read(
    db: &Connection,
    session: &SessionId,
    range: &Range<u64>,
    part: Part,
) -> Result<Vec<Arc<Event>>, StoreError> {
    let stored = select(db, session, range, part).or_else(|error| {
        let (stored, damage) = around_damage(db, session, range);
        tracing::error!(%session, %error, ?damage, "some facts can't be read");
        if stored.is_empty() { Err(error) } else { Ok(stored) }
    })?;
    let mut facts: Vec<Arc<Event>> = Vec::with_capacity(stored.len());
    let mut before = (!part.is_newest()).then_some(range.start.saturating_sub(1));
    // What is behind a part of so many is not looked at.
    let mut to_the_end = !matches!(part, Part::First(most) if stored.len() >= most);
    let last = last(db, session);
    for row in stored {
        let at = facts.last().map_or_else(Timestamp::default, |before| before.at);
        facts.extend(row.missing_before(before).map(|missing| Arc::new(gap(session, missing, at, "lost"))));
        let event = match row.event(session) {
            Ok(event) => event,
            // Whatever it was, its number is none that was ever given.
            Err(error) if last.is_some_and(|last| last < row.seq) => {
                tracing::error!(%session, seq = row.seq, error, "a row behind the last fact can't be read");
                to_the_end = true;
                continue;
            }
            Err(error) => gap(session, row.seq..row.seq + 1, at, &error),
        };
        before = Some(end_of(&event));
        facts.push(Arc::new(event));
    }
    let due = to_the_end.then(|| last_before(db, session, range.end, last)).flatten();
    if let Some(last) = due.filter(|last| range.contains(last) && before.is_some_and(|seq| seq < *last)) {
        let (from, at) = (before.unwrap_or_default() + 1, facts.last().map_or_else(Timestamp::default, |fact| fact.at));
        facts.push(Arc::new(gap(session, from..last + 1, at, "lost")));
    }
    if let Part::Newest(newest) = part {
        facts.drain(..facts.len().saturating_sub(newest));
    }
    Ok(facts)
}

/// The pieces of a draft, up to the first that is not as it was written: what comes behind would not go on there.
pub(super) fn draft(db: &Connection, session: &SessionId) -> Result<Vec<Arc<Event>>, StoreError> {
    let mut select =
        db.prepare_cached("SELECT seq, 0, event, check_sum FROM drafts WHERE session = ?1 ORDER BY seq")?;
    let rows = select.query_map([session.as_str()], Stored::of)?;
    let mut pieces = Vec::new();
    for row in rows {
        match row?.event(session) {
            Ok(piece) => pieces.push(Arc::new(piece)),
            Err(error) => {
                tracing::error!(%session, error, "a piece of a draft can't be read");
                break;
            }
        }
    }
    Ok(pieces)
}

/// The number of the last fact before `end` that there was: what the one behind it says, or else the session, whose
/// last is `last`. `None`: that can't be read.
fn last_before(db: &Connection, session: &SessionId, end: u64, last: Option<u64>) -> Option<u64> {
    match after_of_next(db, session, end..last.map_or(u64::MAX, |last| last.saturating_add(1))) {
        Ok(Some(after)) => after.map(i64::cast_unsigned),
        // There is none behind it, or that can't be read.
        Ok(None) | Err(_) => last,
    }
}

/// What the first fact in a range says of the one before it.
fn after_of_next(db: &Connection, session: &SessionId, range: Range<u64>) -> rusqlite::Result<Option<Option<i64>>> {
    let next = "SELECT after FROM facts WHERE session = ?1 AND seq >= ?2 AND seq < ?3 ORDER BY seq LIMIT 1";
    let range = params![session.as_str(), signed(range.start), signed(range.end)];
    db.prepare_cached(next)?.query_row(range, |row| row.get(0)).optional()
}

/// The number of a session's last fact, if that can be read.
fn last(db: &Connection, session: &SessionId) -> Option<u64> {
    let mut select = db.prepare_cached("SELECT last FROM sessions WHERE id = ?1").ok()?;
    select.query_row([session.as_str()], |row| row.get::<_, i64>(0)).ok().map(i64::cast_unsigned)
}

/// Stands for facts that can't be read: the others still can.
fn gap(session: &SessionId, numbers: Range<u64>, at: Timestamp, why: &str) -> Event {
    let (from, to) = (numbers.start, numbers.end - 1);
    tracing::error!(%session, from, to, why, "facts can't be read");
    Event { seq: from, at, turn: None, step: None, body: Body::Delta(Delta::Gap { from, to }) }
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
