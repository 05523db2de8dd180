//! The writing thread, which commits all waiting writes together.

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crossbeam_channel::Receiver;
use holdpoint_common::{Event, SessionId, SessionSummary, Timestamp};
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};
use tokio::sync::oneshot;

use super::files::Identity;
use super::{Shared, StoreError, schema};
use crate::store::stored_facts::check_sum;
use crate::store::{NewLog, SavedState, end_of_draft, last_seq_of};

/// The most writes that share a commit.
const MAX_GROUP: usize = 256;

/// How long a [`WriteRequest::GiveBack`] waits for another write that shares its commit. When a
/// session is unloaded to make room, the [`WriteRequest::Create`] of the new one follows directly.
const GIVE_BACK_WAIT: Duration = Duration::from_millis(50);

/// A request to write. A session has at most one of each kind in progress, and its sender waits for
/// the result.
pub(super) struct PendingWrite {
    pub(super) request: WriteRequest,
    /// The number in the result is meaningful only for [`WriteRequest::Reserve`].
    pub(super) done: oneshot::Sender<Result<u64, StoreError>>,
}

pub(super) enum WriteRequest {
    Create {
        session: SessionId,
        opened: Timestamp,
        contents: Box<NewLog>,
    },
    Append {
        session: SessionId,
        after: u64,
        facts: Vec<Arc<Event>>,
        summary: Box<SessionSummary>,
    },
    KeepDraft {
        session: SessionId,
        pieces: Vec<Arc<Event>>,
    },
    KeepState {
        session: SessionId,
        state: SavedState,
    },
    /// The result is the first reserved number.
    Reserve {
        session: SessionId,
        count: u64,
    },
    GiveBack {
        session: SessionId,
        unused: Range<u64>,
    },
    Delete {
        session: SessionId,
    },
    /// Makes the index of the list again.
    Reindex,
    /// A reader has found damage in the database of generation `seen` or a later one.
    Salvage {
        seen: usize,
    },
}

/// Writes until every sender is gone.
pub(super) fn run(shared: &Shared, db: Connection, pending_writes: &Receiver<PendingWrite>) {
    let mut writer = Writer { shared, db: Identity::at_path(&shared.path).map(|file| (file, db)) };
    while let Ok(first) = pending_writes.recv() {
        let group = group(first, pending_writes, GIVE_BACK_WAIT);
        let results = writer.write(&group).unwrap_or_else(|error| match group.len() {
            1 => vec![Err(error)],
            // A write that can't succeed must not fail the others.
            _ => group.iter().map(|pending| writer.write_alone(pending)).collect(),
        });
        for (pending, result) in group.into_iter().zip(results) {
            // The caller may have stopped waiting.
            let _ = pending.done.send(result);
        }
    }
}

/// Collects the writes that share a commit with `first`.
fn group(
    first: PendingWrite,
    pending_writes: &Receiver<PendingWrite>,
    give_back_wait: Duration,
) -> Vec<PendingWrite> {
    let can_wait = |write: &PendingWrite| matches!(write.request, WriteRequest::GiveBack { .. });
    let mut group = vec![first];
    let deadline = Instant::now() + give_back_wait;
    while group.last().is_some_and(can_wait)
        && group.len() < MAX_GROUP
        && let Ok(next) = pending_writes.recv_deadline(deadline)
    {
        group.push(next);
    }
    group.extend(pending_writes.try_iter().take(MAX_GROUP - group.len()));
    group
}

struct Writer<'a> {
    shared: &'a Shared,
    /// The connection and the file that it writes to.
    db: Option<(Identity, Connection)>,
}

/// The result of each write in a group.
type Results = Vec<Result<u64, StoreError>>;

impl Writer<'_> {
    fn write_alone(&mut self, pending: &PendingWrite) -> Result<u64, StoreError> {
        self.write(std::slice::from_ref(pending))?.pop().unwrap_or(Ok(0))
    }

    fn write(&mut self, group: &[PendingWrite]) -> Result<Results, StoreError> {
        // If the database was replaced in the meantime, the damaged one is already gone.
        let now = self.shared.generation();
        if group
            .iter()
            .any(|pending| matches!(pending.request, WriteRequest::Salvage { seen } if seen == now))
            && let Err(error) = self.salvage()
        {
            return Ok(group.iter().map(|_| Err(error.clone())).collect());
        }
        match self.connection().and_then(|db| write(db, group)) {
            Err(StoreError::Damaged { .. }) => match self.salvage() {
                Ok(()) => self.connection().and_then(|db| write(db, group)),
                Err(error) => Ok(group.iter().map(|_| Err(error.clone())).collect()),
            },
            Err(error) => {
                // A new connection may solve the problem: a full disk, or a folder that was moved
                // away.
                self.db = None;
                Err(error)
            }
            written => written,
        }
    }

    fn salvage(&mut self) -> Result<(), StoreError> {
        self.db = None;
        self.shared.salvage()
    }

    fn connection(&mut self) -> Result<&mut Connection, StoreError> {
        let file = Identity::at_path(&self.shared.path);
        let connection = match self.db.take() {
            // Writes to a file that was removed or replaced would be lost.
            Some((known, connection)) if Some(known) == file => (known, connection),
            _ => {
                let connection = schema::open_for_writing(&self.shared.path)?;
                let opened =
                    Identity::at_path(&self.shared.path).filter(|opened| Some(*opened) == file);
                (opened.ok_or_else(replaced_error)?, connection)
            }
        };
        Ok(&mut self.db.insert(connection).1)
    }
}

fn replaced_error() -> StoreError {
    StoreError::Io { message: "the database was replaced while it was being opened".to_owned() }
}

/// Writes a group in one commit. A failed commit fails the whole group; an error that concerns a
/// single write fails only that write.
fn write(db: &mut Connection, group: &[PendingWrite]) -> Result<Results, StoreError> {
    let transaction = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let mut results = Vec::with_capacity(group.len());
    for pending in group {
        results.push(match write_one(&transaction, pending) {
            Err(
                error @ (StoreError::Conflict { .. }
                | StoreError::Taken { .. }
                | StoreError::Unknown { .. }),
            ) => Err(error),
            other => Ok(other?),
        });
    }
    transaction.commit()?;
    Ok(results)
}

fn write_one(db: &Transaction<'_>, pending: &PendingWrite) -> Result<u64, StoreError> {
    match &pending.request {
        WriteRequest::Create { session, opened, contents } => {
            create(db, session, *opened, contents)
        }
        WriteRequest::Append { session, after, facts, summary } => {
            append(db, session, *after, facts, summary)
        }
        WriteRequest::KeepDraft { session, pieces } => keep_draft(db, session, pieces),
        WriteRequest::KeepState { session, state } => keep_state(db, session, state),
        WriteRequest::Reserve { session, count } => reserve(db, session, *count),
        WriteRequest::GiveBack { session, unused } => give_back(db, session, unused),
        WriteRequest::Delete { session } => delete(db, session),
        WriteRequest::Reindex => Ok(db.execute_batch("REINDEX sessions_by_age").map(|()| 0)?),
        // `Writer::write` salvages before it writes.
        WriteRequest::Salvage { .. } => Ok(0),
    }
}

fn unknown(session: &SessionId) -> StoreError {
    StoreError::Unknown { session: session.clone() }
}

fn create(
    db: &Transaction<'_>,
    session: &SessionId,
    opened: Timestamp,
    NewLog { first, reserved }: &NewLog,
) -> Result<u64, StoreError> {
    let opened = i64::try_from(opened.0).unwrap_or(i64::MAX);
    let insert =
        "INSERT INTO sessions (id, opened, reserved) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING";
    let row = params![session.as_str(), opened, reserved.cast_signed()];
    if db.prepare_cached(insert)?.execute(row)? == 0 {
        return Err(StoreError::Taken { session: session.clone() });
    }
    match first {
        Some((fact, summary)) => append(db, session, 0, std::slice::from_ref(fact), summary),
        None => Ok(0),
    }
}

/// Adds facts after the last one, and returns the new last number. They replace the draft before
/// them.
fn append(
    db: &Transaction<'_>,
    session: &SessionId,
    after: u64,
    facts: &[Arc<Event>],
    summary: &SessionSummary,
) -> Result<u64, StoreError> {
    let id = session.as_str();
    let mut last = db.prepare_cached("SELECT last FROM sessions WHERE id = ?1")?;
    let last: i64 =
        last.query_row([id], |row| row.get(0)).optional()?.ok_or_else(|| unknown(session))?;
    let mut last = last.cast_unsigned();
    if last != after {
        return Err(StoreError::Conflict { after, last });
    }
    let mut insert = db.prepare_cached(schema::INSERT_FACT)?;
    for fact in facts {
        let text = serde_json::to_string(fact)?;
        let check_sum = check_sum(session, fact.seq, last, &text);
        insert.execute(params![id, fact.seq.cast_signed(), last.cast_signed(), text, check_sum])?;
        last = last_seq_of(fact);
    }
    let mut update =
        db.prepare_cached("UPDATE sessions SET last = ?2, summary = ?3 WHERE id = ?1")?;
    update.execute(params![id, last.cast_signed(), serde_json::to_string(summary)?])?;
    if let Some(end) = end_of_draft(facts) {
        let mut delete = db.prepare_cached("DELETE FROM drafts WHERE session = ?1 AND seq < ?2")?;
        delete.execute(params![id, end.cast_signed()])?;
    }
    Ok(last)
}

fn keep_draft(
    db: &Transaction<'_>,
    session: &SessionId,
    pieces: &[Arc<Event>],
) -> Result<u64, StoreError> {
    let id = session.as_str();
    if !db.prepare_cached("SELECT 1 FROM sessions WHERE id = ?1")?.exists([id])? {
        return Err(unknown(session));
    }
    let mut insert = db.prepare_cached(schema::INSERT_PIECE)?;
    for piece in pieces {
        let text = serde_json::to_string(piece)?;
        let check_sum = check_sum(session, piece.seq, 0, &text);
        insert.execute(params![id, piece.seq.cast_signed(), text, check_sum])?;
    }
    Ok(0)
}

/// Saves a state, unless a newer one is saved.
fn keep_state(
    db: &Transaction<'_>,
    session: &SessionId,
    SavedState { upto, text }: &SavedState,
) -> Result<u64, StoreError> {
    let id = session.as_str();
    let mut insert = db.prepare_cached(
        "INSERT INTO states (session, seq, state, check_sum)
        SELECT id, ?2, ?3, ?4 FROM sessions WHERE id = ?1
        ON CONFLICT DO UPDATE SET seq = ?2, state = ?3, check_sum = ?4 WHERE seq < ?2",
    )?;
    let check_sum = check_sum(session, *upto, 0, text);
    insert.execute(params![id, upto.cast_signed(), text, check_sum])?;
    Ok(0)
}

/// Reserves numbers, and returns the first.
fn reserve(db: &Transaction<'_>, session: &SessionId, count: u64) -> Result<u64, StoreError> {
    let mut reserve = db.prepare_cached(
        "UPDATE sessions SET reserved = max(reserved, last) + ?2 WHERE id = ?1 RETURNING reserved",
    )?;
    let end: i64 = reserve
        .query_row(params![session.as_str(), count.cast_signed()], |row| row.get(0))
        .optional()?
        .ok_or_else(|| unknown(session))?;
    Ok(end.cast_unsigned() + 1 - count)
}

/// Gives back reserved numbers, if no others were reserved after them.
fn give_back(
    db: &Transaction<'_>,
    session: &SessionId,
    unused: &Range<u64>,
) -> Result<u64, StoreError> {
    let mut update = db.prepare_cached(
        "UPDATE sessions SET reserved = ?2 - 1 WHERE id = ?1 AND reserved = ?3 - 1",
    )?;
    let (start, end) = (unused.start.cast_signed(), unused.end.cast_signed());
    update.execute(params![session.as_str(), start, end])?;
    Ok(0)
}

fn delete(db: &Transaction<'_>, session: &SessionId) -> Result<u64, StoreError> {
    let id = session.as_str();
    let deleted = db.prepare_cached("DELETE FROM sessions WHERE id = ?1")?.execute([id])?;
    db.prepare_cached("DELETE FROM facts WHERE session = ?1")?.execute([id])?;
    db.prepare_cached("DELETE FROM drafts WHERE session = ?1")?.execute([id])?;
    db.prepare_cached("DELETE FROM states WHERE session = ?1")?.execute([id])?;
    if deleted == 0 { Err(unknown(session)) } else { Ok(0) }
}

#[cfg(test)]
mod tests {
    use std::str::FromStr;

    use super::*;

    fn pending(request: WriteRequest) -> PendingWrite {
        let (done, _) = oneshot::channel();
        PendingWrite { request, done }
    }

    fn session() -> SessionId {
        SessionId::from_str("abcdefghjk").unwrap()
    }

    fn give_back() -> PendingWrite {
        pending(WriteRequest::GiveBack { session: session(), unused: 2..9 })
    }

    /// Longer than any test takes.
    const WAIT: Duration = Duration::from_secs(3600);

    #[test]
    fn numbers_that_are_given_back_share_the_next_commit() {
        // Without a buffer, a write can be sent only to a group that waits for it.
        let (sender, receiver) = crossbeam_channel::bounded(0);
        let group = std::thread::spawn(move || group(give_back(), &receiver, WAIT).len());
        sender.send(give_back()).unwrap();
        sender.send(pending(WriteRequest::Delete { session: session() })).unwrap();
        assert_eq!(group.join().unwrap(), 3);
    }

    #[test]
    fn other_writes_wait_for_none() {
        let (_sender, receiver) = crossbeam_channel::unbounded();
        assert_eq!(group(pending(WriteRequest::Reindex), &receiver, WAIT).len(), 1);
    }

    #[test]
    fn a_group_has_a_bound_and_ends_with_its_senders() {
        let (sender, receiver) = crossbeam_channel::unbounded();
        (0..MAX_GROUP).for_each(|_| sender.send(give_back()).unwrap());
        drop(sender);
        assert_eq!(group(give_back(), &receiver, WAIT).len(), MAX_GROUP);
        // Nothing else can come.
        assert_eq!(group(give_back(), &receiver, WAIT).len(), 2);
    }
}
