//! The one thread that writes: what waits is written together, in one commit.

use std::ops::Range;
use std::sync::Arc;

use crossbeam_channel::Receiver;
use holdpoint_common::{Event, SessionId, SessionSummary, Timestamp};
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};
use tokio::sync::oneshot;

use super::place::Identity;
use super::{Shared, StoreError, rows, schema};
use crate::store::{end_of, end_of_draft};

/// Jobs that share a commit at most.
const GROUP: usize = 256;

/// Something to write. Of each kind, a session has at most one under way, and its sender waits for the answer.
pub(super) struct Job {
    pub(super) what: What,
    pub(super) done: oneshot::Sender<Result<u64, StoreError>>,
}

pub(super) enum What {
    Create {
        session: SessionId,
        opened: Timestamp,
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
    /// Answered with the first of them.
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
    /// A reader has found damage, in the database of this generation or a later one.
    Salvage {
        seen: usize,
    },
}

/// Writes until nobody can send any more.
pub(super) fn run(shared: &Shared, db: Connection, jobs: &Receiver<Job>) {
    let mut writer = Writer { shared, db: Identity::of(&shared.path).map(|file| (file, db)) };
    while let Ok(first) = jobs.recv() {
        let group: Vec<_> = std::iter::once(first).chain(jobs.try_iter().take(GROUP - 1)).collect();
        let results = writer.write(&group).unwrap_or_else(|error| match group.len() {
            1 => vec![Err(error)],
            // One that can't be written takes nobody with it.
            _ => group.iter().map(|job| writer.write_alone(job)).collect(),
        });
        for (job, result) in group.into_iter().zip(results) {
            // Who asked may be gone.
            let _ = job.done.send(result);
        }
    }
}

struct Writer<'a> {
    shared: &'a Shared,
    /// With the file that it writes to.
    db: Option<(Identity, Connection)>,
}

/// How each job of a group ended.
type Results = Vec<Result<u64, StoreError>>;

impl Writer<'_> {
    fn write_alone(&mut self, job: &Job) -> Result<u64, StoreError> {
        self.write(std::slice::from_ref(job))?.pop().unwrap_or(Ok(0))
    }

    fn write(&mut self, group: &[Job]) -> Result<Results, StoreError> {
        // One that is replaced since is not the one that was found damaged.
        let now = self.shared.generation();
        if group.iter().any(|job| matches!(job.what, What::Salvage { seen } if seen == now))
            && let Err(error) = self.salvage()
        {
            return Ok(group.iter().map(|_| Err(error.clone())).collect());
        }
        match self.connected().and_then(|db| write(db, group)) {
            Err(StoreError::Damaged { .. }) => match self.salvage() {
                Ok(()) => self.connected().and_then(|db| write(db, group)),
                Err(error) => Ok(group.iter().map(|_| Err(error.clone())).collect()),
            },
            Err(error) => {
                // What was wrong may be gone with a fresh start: a full disk, a folder that was moved away.
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

    fn connected(&mut self) -> Result<&mut Connection, StoreError> {
        let file = Identity::of(&self.shared.path);
        let connection = match self.db.take() {
            // A file that was removed or replaced under us would take what is written with it.
            Some((known, connection)) if Some(known) == file => (known, connection),
            _ => {
                let connection = schema::writer(&self.shared.path)?;
                let opened = Identity::of(&self.shared.path).filter(|opened| Some(*opened) == file);
                (opened.ok_or_else(moved)?, connection)
            }
        };
        Ok(&mut self.db.insert(connection).1)
    }
}

fn moved() -> StoreError {
    StoreError::Io { message: "the database was replaced while it was opened".to_owned() }
}

/// Writes a group in one commit. An error of the commit is one of all; one that concerns a single job is its own.
fn write(db: &mut Connection, group: &[Job]) -> Result<Results, StoreError> {
    let transaction = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let mut results = Vec::with_capacity(group.len());
    for job in group {
        results.push(match write_one(&transaction, job) {
            Err(error @ (StoreError::Conflict { .. } | StoreError::Taken { .. } | StoreError::Unknown { .. })) => {
                Err(error)
            }
            other => Ok(other?),
        });
    }
    transaction.commit()?;
    Ok(results)
}

fn write_one(db: &Transaction<'_>, job: &Job) -> Result<u64, StoreError> {
    let unknown = |session: &SessionId| StoreError::Unknown { session: session.clone() };
    match &job.what {
        What::Create { session, opened } => {
            let id = session.as_str();
            let opened = i64::try_from(opened.0).unwrap_or(i64::MAX);
            let insert = "INSERT INTO sessions (id, opened) VALUES (?1, ?2) ON CONFLICT DO NOTHING";
            match db.prepare_cached(insert)?.execute(params![id, opened])? {
                0 => Err(StoreError::Taken { session: session.clone() }),
                _ => Ok(0),
            }
        }
        What::Append { session, after, facts, summary } => {
            let id = session.as_str();
            let mut last = db.prepare_cached("SELECT last FROM sessions WHERE id = ?1")?;
            let last: i64 = last.query_row([id], |row| row.get(0)).optional()?.ok_or_else(|| unknown(session))?;
            let last = last.cast_unsigned();
            if last != *after {
                return Err(StoreError::Conflict { after: *after, last });
            }
            let mut insert = db.prepare_cached(schema::INSERT_FACT)?;
            let mut last = last;
            for fact in facts {
                let text = serde_json::to_string(fact)?;
                let check_sum = rows::check_sum(session, fact.seq, last, &text);
                insert.execute(params![id, fact.seq.cast_signed(), last.cast_signed(), text, check_sum])?;
                last = end_of(fact);
            }
            let mut update = db.prepare_cached("UPDATE sessions SET last = ?2, summary = ?3 WHERE id = ?1")?;
            update.execute(params![id, last.cast_signed(), serde_json::to_string(summary)?])?;
            if let Some(end) = end_of_draft(facts) {
                let mut delete = db.prepare_cached("DELETE FROM drafts WHERE session = ?1 AND seq < ?2")?;
                delete.execute(params![id, end.cast_signed()])?;
            }
            Ok(last)
        }
        What::KeepDraft { session, pieces } => {
            let id = session.as_str();
            let known = db.prepare_cached("SELECT 1 FROM sessions WHERE id = ?1")?.exists([id])?;
            let mut insert = db.prepare_cached(schema::INSERT_PIECE)?;
            for piece in pieces.iter().filter(|_| known) {
                let text = serde_json::to_string(piece)?;
                let check_sum = rows::check_sum(session, piece.seq, 0, &text);
                insert.execute(params![id, piece.seq.cast_signed(), text, check_sum])?;
            }
            if known { Ok(0) } else { Err(unknown(session)) }
        }
        What::Reserve { session, count } => {
            let id = session.as_str();
            let mut reserve = db.prepare_cached(
                "UPDATE sessions SET reserved = max(reserved, last) + ?2 WHERE id = ?1 RETURNING reserved",
            )?;
            let end: i64 = reserve
                .query_row(params![id, count.cast_signed()], |row| row.get(0))
                .optional()?
                .ok_or_else(|| unknown(session))?;
            Ok(end.cast_unsigned() + 1 - count)
        }
        What::GiveBack { session, unused } => {
            let mut update =
                db.prepare_cached("UPDATE sessions SET reserved = ?2 - 1 WHERE id = ?1 AND reserved = ?3 - 1")?;
            update.execute(params![session.as_str(), unused.start.cast_signed(), unused.end.cast_signed()])?;
            Ok(0)
        }
        What::Delete { session } => {
            let id = session.as_str();
            let known = db.prepare_cached("DELETE FROM sessions WHERE id = ?1")?.execute([id])?;
            db.prepare_cached("DELETE FROM facts WHERE session = ?1")?.execute([id])?;
            db.prepare_cached("DELETE FROM drafts WHERE session = ?1")?.execute([id])?;
            if known == 0 { Err(unknown(session)) } else { Ok(0) }
        }
        // Done before anything is written.
        What::Salvage { .. } => Ok(0),
    }
}
