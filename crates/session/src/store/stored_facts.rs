//! The facts of a log as databases store them: with checksums, and each with the number of the fact
//! before it, which reveals lost rows.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use holdpoint_common::{Body, Delta, Event, SessionId, Timestamp};
use xxhash_rust::xxh3::Xxh3;

use super::{Page, last_seq_of};

/// How many bytes of facts are read at a time. The fact that exceeds this is still included.
pub(super) const PAGE_BYTES: usize = 1 << 20;

/// A fact as the database stores it.
pub(super) struct StoredFact<'row> {
    pub(super) seq: u64,
    /// The number of the fact before; `None` if an older version wrote the row.
    pub(super) after: Option<u64>,
    pub(super) text: Cow<'row, str>,
    pub(super) check_sum: Option<i64>,
}

/// The result of reading one row.
pub(super) struct ReadFact {
    pub(super) seq: u64,
    after: Option<u64>,
    /// The fact, or the reason why it can't be read.
    event: Result<Arc<Event>, String>,
}

/// The checksum of a row, over its session, its two numbers and its text.
pub(super) fn check_sum(session: &SessionId, seq: u64, after: u64, text: &str) -> i64 {
    let mut hash = Xxh3::new();
    hash.update(session.as_str().as_bytes());
    hash.update(&seq.to_le_bytes());
    hash.update(&after.to_le_bytes());
    hash.update(text.as_bytes());
    hash.digest().cast_signed()
}

impl StoredFact<'_> {
    pub(super) fn read(&self, session: &SessionId) -> ReadFact {
        ReadFact { seq: self.seq, after: self.after, event: self.event(session).map(Arc::new) }
    }

    /// Decodes the fact, if its checksum is correct.
    pub(super) fn event(&self, session: &SessionId) -> Result<Event, String> {
        let sum = self.after.map(|after| check_sum(session, self.seq, after, &self.text));
        if sum != self.check_sum {
            return Err("its checksum is wrong".to_owned());
        }
        serde_json::from_str(&self.text).map_err(|error| error.to_string())
    }
}

/// The numbers of missing facts between `before`, the last fact that was found, and `seq`, which
/// follows `after` according to its row.
pub(super) fn missing(before: u64, seq: u64, after: Option<u64>) -> Option<Range<u64>> {
    let after = after?;
    (before < after && after < seq).then(|| before + 1..after + 1)
}

/// A page of the facts that were read from a range, with gaps in place of unreadable facts. `more`
/// says whether there may be more. `last` is the last fact of the session, and `last_before_end` the
/// one before the end of the range.
pub(super) fn page(
    session: &SessionId,
    range: &Range<u64>,
    (read, more): (Vec<ReadFact>, bool),
    last: Option<u64>,
    last_before_end: impl FnOnce() -> Option<u64>,
) -> Page {
    let mut facts: Vec<Arc<Event>> = Vec::with_capacity(read.len());
    let mut before = range.start.saturating_sub(1);
    // Facts that are missing after a full page belong to the next page.
    let mut reaches_end = !more;
    let next = read.last().filter(|_| more).map(|last| last.seq.saturating_add(1));
    for ReadFact { seq, after, event } in read {
        let at = facts.last().map_or_else(Timestamp::default, |before| before.at);
        facts.extend(
            missing(before, seq, after).map(|missing| Arc::new(gap(session, missing, at, "lost"))),
        );
        let event = match event {
            Ok(event) => event,
            // The row is not a fact: its number is above that of the last fact.
            Err(error) if last.is_some_and(|last| last < seq) => {
                tracing::error!(%session, seq, error, "a row after the last fact can't be read");
                reaches_end = true;
                continue;
            }
            Err(error) => Arc::new(gap(session, seq..seq + 1, at, &error)),
        };
        before = last_seq_of(&event);
        facts.push(event);
    }
    let expected_last = reaches_end.then(last_before_end).flatten();
    // If facts after the range are lost, too, some of them may have been in the range.
    let lost = expected_last.map(|last| before + 1..range.end.min(last.saturating_add(1)));
    if let Some(lost) = lost.filter(|lost| !lost.is_empty()) {
        let at = facts.last().map_or_else(Timestamp::default, |fact| fact.at);
        facts.push(Arc::new(gap(session, lost, at, "lost")));
    }
    // The row of an imported gap covers more numbers than its own.
    Page { next: next.map(|next| next.max(before.saturating_add(1))), facts }
}

/// The pieces of a draft, up to the first damaged one: later pieces would not continue the text.
pub(super) fn draft(session: &SessionId, stored: &[StoredFact<'_>]) -> Vec<Arc<Event>> {
    let mut pieces = Vec::with_capacity(stored.len());
    for piece in stored {
        match piece.event(session) {
            Ok(piece) => pieces.push(Arc::new(piece)),
            Err(error) => {
                tracing::error!(%session, error, "a piece of a draft can't be read");
                break;
            }
        }
    }
    pieces
}

/// Logs that facts can't be read, and returns a gap in their place.
fn gap(session: &SessionId, numbers: Range<u64>, at: Timestamp, why: &str) -> Event {
    let (from, to) = (numbers.start, numbers.end - 1);
    tracing::error!(%session, from, to, why, "facts can't be read");
    Event { seq: from, at, turn: None, step: None, body: Body::Delta(Delta::Gap { from, to }) }
}

/// A number as databases store it.
pub(super) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
