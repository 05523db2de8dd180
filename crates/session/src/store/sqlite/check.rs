//! The thread that reads all logs once, to find unreadable facts before their session is opened.

use std::sync::{Arc, OnceLock, Weak};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use holdpoint_common::{Gap, SessionId};
use tokio::sync::watch;

use super::{Shared, StoreError, reader, rows, spawn};

/// How many facts are read at a time. Between two pages the thread checks whether the store is
/// closing.
const PAGE_FACTS: usize = 1_000;

/// The check of a store. Its thread ends early when this is dropped.
#[derive(Default)]
pub(super) struct Check {
    /// Whether the check has ended; empty before it has begun.
    ended: OnceLock<watch::Receiver<bool>>,
}

impl Check {
    /// Begins the check if necessary, and waits for its end. `reading` stays open until then.
    pub(super) fn run_once(
        self: &Arc<Self>,
        shared: &Arc<Shared>,
        reading: &watch::Sender<()>,
    ) -> BoxFuture<'static, ()> {
        let mut ended = self
            .ended
            .get_or_init(|| start_thread(Arc::clone(shared), Arc::downgrade(self), reading))
            .clone();
        async move {
            // If the thread could not be started, the check has ended, too.
            let _ = ended.wait_for(|ended| *ended).await;
        }
        .boxed()
    }
}

fn start_thread(
    shared: Arc<Shared>,
    check: Weak<Check>,
    reading: &watch::Sender<()>,
) -> watch::Receiver<bool> {
    let (done, ended) = watch::channel(false);
    let run = move || {
        if let Err(error) = read_all(&shared, &check) {
            tracing::warn!(%error, "the check of the saved sessions is incomplete");
        }
        done.send_replace(true);
    };
    if let Err(error) = spawn("holdpoint-check", reading.subscribe(), run) {
        tracing::warn!(%error, "the check of the saved sessions could not start");
    }
    ended
}

fn read_all(shared: &Shared, check: &Weak<Check>) -> Result<(), StoreError> {
    let mut db = None;
    for (session, last) in reader::in_transaction(shared, &mut db, |db| Ok(sessions(db)?))? {
        let mut next = Some(0);
        while let Some(from) = next.take() {
            if check.strong_count() == 0 {
                return Ok(());
            }
            match reader::in_transaction(shared, &mut db, |db| {
                rows::page(db, &session, &(from..u64::MAX), PAGE_FACTS)
            }) {
                Ok(page) => {
                    shared.gaps.note(&session, &page.facts);
                    next = page.next;
                }
                // The other sessions may be intact.
                Err(error) => {
                    tracing::error!(%session, from, %error, "the rest of a session log can't be read");
                    let from = from.max(1);
                    // Otherwise every fact that the list knows was read.
                    if from <= last {
                        shared.gaps.add(&session, Gap { from, to: last });
                    }
                }
            }
        }
    }
    Ok(())
}

/// All sessions, each with the number of its last fact.
fn sessions(db: &rusqlite::Connection) -> rusqlite::Result<Vec<(SessionId, u64)>> {
    let mut select = db.prepare("SELECT id, last FROM sessions WHERE last > 0")?;
    let rows = select.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?)))?;
    // Lists of sessions skip unreadable rows, too.
    Ok(rows
        .filter_map(|row| row.ok())
        .filter_map(|(id, last)| Some((id.parse().ok()?, last.cast_unsigned())))
        .collect())
}
