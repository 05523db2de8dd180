//! What becomes of a session whose actor has ended: it is only saved, or rebuilt if that failed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use actix::prelude::*;
use holdpoint_common::SessionId;
use holdpoint_common::limits::LEAVE_AFTER;
use tokio::sync::{mpsc, oneshot};

use super::entries::NotYet;
use super::{Life, Manager, start};
use crate::error::SessionError;
use crate::outfit::Base;

/// So many actors of a session that fail within so long are each followed by the next at once, later ones after a wait:
/// one that can't live takes no more of the machine than that.
const AT_ONCE: usize = 10;
const LATELY: Duration = Duration::from_secs(60);
const WAIT: Duration = Duration::from_secs(1);

/// A session's actor has ended.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct ActorEnded {
    pub(super) id: SessionId,
    pub(super) panicked: bool,
    /// The session is closed: what it was asked for is done.
    pub(super) closed: bool,
}

impl Handler<ActorEnded> for Manager {
    type Result = ();

    fn handle(&mut self, ActorEnded { id, panicked, closed }: ActorEnded, ctx: &mut Self::Context) {
        // Who watches an engine that stops sees each session to its end.
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
            forget(&mut entry.failed, now);
            entry.failed.insert(entry.incarnation, now);
            let wait = wait(entry.failed.values(), now);
            entry.life = Life::Starting { waiting: Vec::new() };
            // If it was being closed, that has not come to pass yet, and who waits for it is told so by this.
            entry.ends.clear();
            tracing::error!(session = %id, "the session's actor panicked and is rebuilt from its log");
            rebuild(id, ctx.address(), Arc::clone(&self.base), before, wait);
            return;
        }
        tell_ended(before, std::mem::take(&mut entry.ends), self.base.limits.grace() + 2 * LEAVE_AFTER);
        entry.outfit = None;
        entry.closed = closed;
        let name = entry.name.clone();
        // From now on the store knows all there is to know.
        if closed && !self.base.lacks_saves(&entry.shown.borrow()) {
            self.sessions.remove(&id);
        }
        self.free_name(&name, &id);
        self.forget_unused();
    }
}

/// Forgets those that failed long before another one does. The newest is always known; who has waited for an answer of one
/// before has come back since, and was told.
fn forget(failed: &mut BTreeMap<u64, Instant>, now: Instant) {
    failed.retain(|_, at| now.saturating_duration_since(*at) < LATELY);
}

/// How long before the next actor is started, after those that failed then: not at all, but for one whose actors fail
/// as soon as they are there.
fn wait<'a>(failed: impl Iterator<Item = &'a Instant>, now: Instant) -> Duration {
    let lately = failed.filter(|at| now.saturating_duration_since(**at) < LATELY).count();
    if lately > AT_ONCE { WAIT } else { Duration::ZERO }
}

/// Gives a session whose actor has failed the next one, when nothing of that one runs any more: beside the new one nothing
/// may. Nobody else waits for it: it is given nothing but what it has.
fn rebuild(id: SessionId, manager: Addr<Manager>, base: Arc<Base>, before: Option<mpsc::Receiver<()>>, wait: Duration) {
    actix_rt::spawn(async move {
        if !wait.is_zero() {
            tokio::time::sleep(wait).await;
        }
        all_ended(before, base.limits.grace() + 2 * LEAVE_AFTER).await;
        while let Err(error) = start::rebuild(&manager, &base, &id).await {
            tracing::error!(session = %id, %error, "the session could not be rebuilt");
            if !matches!(error, SessionError::Store(_)) {
                return start::failed(&manager, id, error).await;
            }
            // Its log may be there again later, and until then nobody can say what it is at.
            if manager.send(NotYet(id.clone(), error)).await.is_err() {
                return;
            }
            tokio::time::sleep(WAIT).await;
        }
    });
}

/// Tells those who wait for an actor's end of it, once nothing of the session runs any more.
fn tell_ended(alive: Option<mpsc::Receiver<()>>, ends: Vec<oneshot::Sender<()>>, patience: Duration) {
    actix_rt::spawn(async move {
        // What its background jobs have started is ending.
        all_ended(alive, patience).await;
        ends.into_iter().for_each(|ended| {
            // Who waited may be gone.
            let _ = ended.send(());
        });
    });
}

/// Waits until nothing of a session runs any more. What can't be ended is left.
async fn all_ended(alive: Option<mpsc::Receiver<()>>, patience: Duration) {
    let Some(mut alive) = alive else { return };
    let _ = tokio::time::timeout(patience, async { while alive.recv().await.is_some() {} }).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_fails_again_and_again_is_waited_with() {
        let now = Instant::now();
        let failed = [now; AT_ONCE];
        assert_eq!(wait(failed.iter(), now), Duration::ZERO);
        assert_eq!(wait([now; AT_ONCE + 1].iter(), now), WAIT);
        assert_eq!(wait([now; AT_ONCE + 1].iter(), now + LATELY), Duration::ZERO, "it lives for a while in between");
    }

    #[test]
    fn what_failed_long_ago_is_forgotten() {
        let now = Instant::now();
        let mut failed = BTreeMap::from([(1, now), (2, now + LATELY / 2)]);
        forget(&mut failed, now + LATELY);
        assert_eq!(failed.into_keys().collect::<Vec<_>>(), [2]);
    }
}
