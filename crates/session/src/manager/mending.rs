//! Mending: ending the work that a crash cut, in the logs of saved sessions.

use std::rc::Rc;

use futures_util::{StreamExt, stream};
use holdpoint_common::{Hold, SessionError, SessionStatus};

use super::lifecycle::Input;
use super::registry::Registry;
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
        let mend_one = |SavedSession { summary, .. }| async move {
            let id = summary.id;
            match mend(engine, &id).await {
                Ok(0) => {}
                Ok(facts) => tracing::info!(session = %id, facts, "session mended after a restart"),
                // Another machine runs it.
                Err(SessionError::NotOwner { .. }) => {}
                Err(error) => tracing::error!(session = %id, %error, "session can't be mended"),
            }
        };
        stream::iter(unfinished).for_each_concurrent(MAX_PARALLEL, mend_one).await;
    }
}
