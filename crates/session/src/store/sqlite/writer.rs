//! The one thread that writes: what waits is written together, in one commit.

use std::path::PathBuf;
use std::sync::Arc;

use crossbeam_channel::Receiver;
use holdpoint_common::{Event, SessionId, SessionSummary, Timestamp};
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};
use tokio::sync::oneshot;

use super::StoreError;
use super::schema;

/// Jobs that share a commit at most.
const GROUP: usize = 256;

/// Something to write. Each session has at most one under way, and its sender waits for the answer.
pub(super) struct Job {
    pub(super) session: SessionId,
    pub(super) what: What,
    pub(super) done: oneshot::Sender<Result<u64, StoreError>>,
}

pub(super) enum What {
    Create {
        opened: Timestamp,
    },
    Append {
        after: u64,
        facts: Vec<Arc<Event>>,
        summary: Box<SessionSummary>,
    },
    /// Answered with the first of them.
    Reserve {
        count: u64,
    },
    Delete,
}

/// Writes until nobody can send any more.
pub(super) fn run(path: PathBuf, mut db: Option<Connection>, jobs: &Receiver<Job>) {
    while let Ok(first) = jobs.recv() {
        let group: Vec<_> = std::iter::once(first).chain(jobs.try_iter().take(GROUP - 1)).collect();
        let written = connected(&path, &mut db).and_then(|db| write(db, &group));
        let results = match written {
            Ok(results) => results,
            // One that can't be written takes nobody with it.
            Err(_) if group.len() > 1 => group.iter().map(|job| alone(&path, &mut db, job)).collect(),
            Err(error) => {
                // What was wrong may be gone with a fresh start: a full disk, a folder that was moved away.
                db = None;
                vec![Err(error)]
            }
        };
        for (job, result) in group.into_iter().zip(results) {
            // Who asked may be gone.
            let _ = job.done.send(result);
        }
    }
}

fn alone(path: &PathBuf, db: &mut Option<Connection>, job: &Job) -> Result<u64, StoreError> {
    let result = connected(path, db).and_then(|db| write(db, std::slice::from_ref(job)));
    match result {
        Ok(mut results) => results.pop().unwrap_or(Ok(0)),
        Err(error) => {
            *db = None;
            Err(error)
        }
    }
}

fn connected<'a>(path: &PathBuf, db: &'a mut Option<Connection>) -> Result<&'a mut Connection, StoreError> {
    let connection = match db.take() {
        // A file that was removed under us would take what is written with it.
        Some(connection) if path.exists() => connection,
        _ => schema::writer(path)?,
    };
    Ok(db.insert(connection))
}

/// Writes a group in one commit. An error of the commit is one of all; one that concerns a single job is its own.
fn write(db: &mut Connection, group: &[Job]) -> Result<Vec<Result<u64, StoreError>>, StoreError> {
    let transaction = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let mut results = Vec::with_capacity(group.len());
    for job in group {
        results.push(match write_one(&transaction, job) {
            Err(error @ (StoreError::Conflict { .. } | StoreError::Unknown { .. })) => Err(error),
            other => Ok(other?),
        });
    }
    transaction.commit()?;
    Ok(results)
}

fn write_one(db: &Transaction<'_>, job: &Job) -> Result<u64, StoreError> {
    let id = job.session.as_str();
    let unknown = || StoreError::Unknown { session: job.session.clone() };
    match &job.what {
        What::Create { opened } => {
            let opened = i64::try_from(opened.0).unwrap_or(i64::MAX);
            db.prepare_cached("INSERT INTO sessions (id, opened) VALUES (?1, ?2)")?.execute(params![id, opened])?;
            Ok(0)
        }
        What::Append { after, facts, summary } => {
            let mut last = db.prepare_cached("SELECT last FROM sessions WHERE id = ?1")?;
            let last: i64 = last.query_row([id], |row| row.get(0)).optional()?.ok_or_else(unknown)?;
            let last = last.cast_unsigned();
            if last != *after {
                return Err(StoreError::Conflict { after: *after, last });
            }
            let mut insert = db.prepare_cached("INSERT INTO facts (session, seq, event) VALUES (?1, ?2, ?3)")?;
            for fact in facts {
                insert.execute(params![id, fact.seq.cast_signed(), serde_json::to_string(fact)?])?;
            }
            let last = facts.last().map_or(last, |fact| fact.seq);
            let mut update = db.prepare_cached("UPDATE sessions SET last = ?2, summary = ?3 WHERE id = ?1")?;
            update.execute(params![id, last.cast_signed(), serde_json::to_string(summary)?])?;
            Ok(last)
        }
        What::Reserve { count } => {
            let mut reserve = db.prepare_cached(
                "UPDATE sessions SET reserved = max(reserved, last) + ?2 WHERE id = ?1 RETURNING reserved",
            )?;
            let end: i64 = reserve
                .query_row(params![id, count.cast_signed()], |row| row.get(0))
                .optional()?
                .ok_or_else(unknown)?;
            Ok(end.cast_unsigned() + 1 - count)
        }
        What::Delete => {
            let known = db.prepare_cached("DELETE FROM sessions WHERE id = ?1")?.execute([id])?;
            db.prepare_cached("DELETE FROM facts WHERE session = ?1")?.execute([id])?;
            if known == 0 { Err(unknown()) } else { Ok(0) }
        }
    }
}
