//! The end of a session's actor: the session is only saved from then on, or rebuilt after a
//! failure.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use actix::prelude::*;
use holdpoint_common::SessionId;
use holdpoint_common::limits::ABANDON_AFTER;
use tokio::sync::{mpsc, oneshot};

use super::entries::StartRetrying;
use super::{Life, Manager, start};
use crate::error::SessionError;
use crate::session_env::EngineEnv;

/// How many actors of a session may fail within [`FAILURE_WINDOW`] and be replaced at once. Further
/// ones are replaced after [`RESTART_DELAY`], so that a session that can't run uses few resources.
const MAX_QUICK_RESTARTS: usize = 10;
const FAILURE_WINDOW: Duration = Duration::from_secs(60);
const RESTART_DELAY: Duration = Duration::from_secs(1);

/// A session's actor has ended.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct ActorEnded {
    pub(super) id: SessionId,
    pub(super) panicked: bool,
    /// Whether the session is closed.
    pub(super) closed: bool,
}

impl Handler<ActorEnded> for Manager {
    type Result = ();

    fn handle(&mut self, ActorEnded { id, panicked, closed }: ActorEnded, ctx: &mut Self::Context) {
        // While the engine stops, watchers follow each session to its end.
        if !self.stopping {
            self.roster.changed();
        }
        let Some(entry) = self.sessions.get_mut(&id) else { return };
        let before = match std::mem::replace(&mut entry.life, Life::Saved) {
            Life::Live { alive, .. } => Some(alive),
            Life::Starting { .. } | Life::Saved => None,
        };
        if panicked {
            let now = Instant::now();
            drop_old_failures(&mut entry.failed, now);
            entry.failed.insert(entry.incarnation, now);
            let wait = restart_delay(entry.failed.values(), now);
            entry.life = Life::Starting { waiting: Vec::new() };
            // If the session was being closed, that has failed. Dropping the waiters reports it.
            entry.ends.clear();
            tracing::error!(session = %id, "session actor panicked; rebuilding it from its log");
            rebuild(id, ctx.address(), Arc::clone(&self.engine), before, wait);
            return;
        }
        notify_ended(before, std::mem::take(&mut entry.ends), self.engine.limits.grace() + 2 * ABANDON_AFTER);
        entry.env = None;
        entry.closed = closed;
        let name = entry.name.clone();
        // From now on the store has everything.
        if closed && !self.engine.lacks_saves(&entry.shown.borrow()) {
            self.sessions.remove(&id);
        }
        self.free_name(&name, &id);
        self.remove_unused();
    }
}

/// Drops old failures before a new one is added. The newest failure is always kept, and a caller
/// that waited for an earlier actor has learned of its failure since.
fn drop_old_failures(failed: &mut BTreeMap<u64, Instant>, now: Instant) {
    failed.retain(|_, at| now.saturating_duration_since(*at) < FAILURE_WINDOW);
}

/// The delay before the next actor, after failures at these times. Zero, unless the actors keep
/// failing at once.
fn restart_delay<'a>(failed: impl Iterator<Item = &'a Instant>, now: Instant) -> Duration {
    let lately = failed.filter(|at| now.saturating_duration_since(**at) < FAILURE_WINDOW).count();
    if lately > MAX_QUICK_RESTARTS { RESTART_DELAY } else { Duration::ZERO }
}

/// Starts the next actor of a session after a failure, once everything of the old one has ended.
/// Other starts do not wait for this one, because the session keeps its place and environment.
fn rebuild(
    id: SessionId,
    manager: Addr<Manager>,
    engine: Arc<EngineEnv>,
    before: Option<mpsc::Receiver<()>>,
    wait: Duration,
) {
    actix_rt::spawn(async move {
        if !wait.is_zero() {
            tokio::time::sleep(wait).await;
        }
        all_ended(before, engine.limits.grace() + 2 * ABANDON_AFTER).await;
        while let Err(error) = start::rebuild(&manager, &engine, &id).await {
            tracing::error!(session = %id, %error, "session could not be rebuilt");
            if !matches!(error, SessionError::Store(_)) {
                return start::notify_failure(&manager, id, error).await;
            }
            // The log may become readable again. Until then, the session's state is unknown.
            if manager.send(StartRetrying(id.clone(), error)).await.is_err() {
                return;
            }
            tokio::time::sleep(RESTART_DELAY).await;
        }
    });
}

/// Notifies the callers that wait for an actor's end, once everything of the session has ended.
fn notify_ended(alive: Option<mpsc::Receiver<()>>, ends: Vec<oneshot::Sender<()>>, patience: Duration) {
    actix_rt::spawn(async move {
        // The processes of background jobs may still be ending.
        all_ended(alive, patience).await;
        ends.into_iter().for_each(|ended| {
            // The caller may be gone.
            let _ = ended.send(());
        });
    });
}

/// Waits until everything of a session has ended, for at most `patience`.
async fn all_ended(alive: Option<mpsc::Receiver<()>>, patience: Duration) {
    let Some(mut alive) = alive else { return };
    let _ = tokio::time::timeout(patience, async { while alive.recv().await.is_some() {} }).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_that_keeps_failing_restarts_with_a_delay() {
        let now = Instant::now();
        let failed = [now; MAX_QUICK_RESTARTS];
        assert_eq!(restart_delay(failed.iter(), now), Duration::ZERO);
        assert_eq!(restart_delay([now; MAX_QUICK_RESTARTS + 1].iter(), now), RESTART_DELAY);
        assert_eq!(
            restart_delay([now; MAX_QUICK_RESTARTS + 1].iter(), now + FAILURE_WINDOW),
            Duration::ZERO,
            "old failures do not count"
        );
    }

    #[test]
    fn old_failures_are_dropped() {
        let now = Instant::now();
        let mut failed = BTreeMap::from([(1, now), (2, now + FAILURE_WINDOW / 2)]);
        drop_old_failures(&mut failed, now + FAILURE_WINDOW);
        assert_eq!(failed.into_keys().collect::<Vec<_>>(), [2]);
    }
}
