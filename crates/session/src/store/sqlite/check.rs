//! The thread that reads all logs through once: what can't be read is found before anyone opens its session.

use std::sync::{Arc, OnceLock, Weak};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use holdpoint_common::{Gap, SessionId};
use tokio::sync::watch;

use super::{Shared, StoreError, reader, rows, spawn};

/// Facts that are read at a time. Between two pages the thread looks whether the store is being closed.
const PAGE: usize = 1_000;

/// The check of a store. Its thread ends early when this is dropped.
#[derive(Default)]
pub(super) struct Check {
    /// Whether it has ended; empty before it is begun.
    ended: OnceLock<watch::Receiver<bool>>,
}

impl Check {
    /// Begins the check if it was not begun; ready when it has ended. `reading` is not closed before that.
    pub(super) fn done(self: &Arc<Self>, shared: &Arc<Shared>, reading: &watch::Sender<()>) -> BoxFuture<'static, ()> {
        let mut ended = self.ended.get_or_init(|| begin(Arc::clone(shared), Arc::downgrade(self), reading)).clone();
        async move {
            // Without a thread, it has ended, too.
            let _ = ended.wait_for(|ended| *ended).await;
        }
        .boxed()
    }
}

fn begin(shared: Arc<Shared>, check: Weak<Check>, reading: &watch::Sender<()>) -> watch::Receiver<bool> {
    let (done, ended) = watch::channel(false);
    let run = move || {
        if let Err(error) = read_all(&shared, &check) {
            tracing::warn!(%error, "not all that is saved could be checked");
        }
        done.send_replace(true);
    };
    if let Err(error) = spawn("holdpoint-check", reading.subscribe(), run) {
        tracing::warn!(%error, "what is saved could not be checked");
    }
    ended
}

fn read_all(shared: &Shared, check: &Weak<Check>) -> Result<(), StoreError> {
    let mut db = None;
    for (session, last) in reader::with(shared, &mut db, |db| Ok(sessions(db)?))? {
        let mut next = Some(0);
        while let Some(from) = next.take() {
            if check.strong_count() == 0 {
                return Ok(());
            }
            match reader::with(shared, &mut db, |db| rows::page(db, &session, &(from..u64::MAX), PAGE)) {
                Ok(page) => {
                    shared.note_gaps(&session, &page.facts);
                    next = page.next;
                }
                // The other sessions may be sound.
                Err(error) => {
                    tracing::error!(%session, from, %error, "the rest of a session can't be read");
                    shared.note_gap(&session, Gap { from: from.max(1), to: last });
                }
            }
        }
    }
    Ok(())
}

/// All sessions, and the number of the last fact of each.
fn sessions(db: &rusqlite::Connection) -> rusqlite::Result<Vec<(SessionId, u64)>> {
    let mut select = db.prepare("SELECT id, last FROM sessions WHERE last > 0")?;
    let rows = select.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?)))?;
    // A row that can't be read is not listed either.
    Ok(rows
        .filter_map(|row| row.ok())
        .filter_map(|(id, last)| Some((id.parse().ok()?, last.cast_unsigned())))
        .collect())
}
