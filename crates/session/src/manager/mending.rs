//! Mending: ending the work that a crash cut, in the logs of saved sessions.

use std::rc::Rc;

use futures_util::{StreamExt, stream};
use holdpoint_common::{Hold, SessionError, SessionId, SessionStatus};

use super::lifecycle::{IfSaved, Input};
use super::registry::{Reached, Registry};
use crate::saved::mend;
use crate::store::SavedSession;

/// How many sessions are mended at once. Their logs are read in parallel, and the store commits
/// their new facts together.
const MAX_PARALLEL: usize = 16;

/// Ends mending when it is dropped, even after a panic: actors may start, and saved sessions are
/// shown.
struct MendingGuard(Rc<Registry>);

impl Drop for MendingGuard {
    fn drop(&mut self) {
        self.0.input(Input::Ready);
        self.0.set_mended();
    }
}

impl Registry {
    /// Mends every session that was not at rest when the program ended. No actor starts until these
    /// sessions are known, so that a session that is opened later is not among them.
    pub(super) async fn mend_all(self: &Rc<Self>) {
        let _guard = MendingGuard(Rc::clone(self));
        let engine = &self.engine;
        let saved = engine.store.list().await.unwrap_or_else(|error| {
            tracing::error!(%error, "saved sessions can't be read");
            Vec::new()
        });
        // The guard repeats this, for a panic above.
        self.input(Input::Ready);
        // A hold without waiting work ends with the restart.
        let needs_mending = |saved: &SavedSession| {
            saved.summary.status != SessionStatus::Idle || saved.summary.hold != Hold::Off
        };
        let unfinished = saved.into_iter().filter(needs_mending);
        let mend_one = |saved: SavedSession| async move { self.mend(&saved.summary.id).await };
        stream::iter(unfinished).for_each_concurrent(MAX_PARALLEL, mend_one).await;
    }

    /// Mends sessions of other machines without a lease.
    pub(super) async fn mend_abandoned(self: &Rc<Self>, sessions: Vec<SessionId>) {
        let mend_one = |id: SessionId| async move {
            // Until it is mended, nothing else of this engine uses the session.
            let reached = self.access(&id, 0, IfSaved::Change).await;
            if let Ok(Reached::Saved(_owned)) = reached {
                self.mend(&id).await;
            }
        };
        stream::iter(sessions).for_each_concurrent(MAX_PARALLEL, mend_one).await;
    }

    /// Mends a session, unless another machine has it.
    async fn mend(&self, id: &SessionId) {
        match mend(&self.engine, id).await {
            Ok(0) | Err(SessionError::NotOwner { .. }) => {}
            Ok(facts) => tracing::info!(session = %id, facts, "session mended"),
            Err(error) => tracing::error!(session = %id, %error, "session can't be mended"),
        }
    }
}
