//! What a crash has cut: sessions whose last fact left them in the middle of something.

use std::sync::Arc;

use holdpoint_common::{Hold, Limits, RestoreCause, SessionId, SessionStatus};

use super::fold::fold;
use super::scribe::Scribe;
use crate::actor::now;
use crate::error::SessionError;
use crate::outfit::Base;
use crate::state::{Input, Moment, decide};
use crate::store::{SavedSession, SessionStore};

/// Ends in the log what can't go on: of every session that was not at rest when this program ended.
pub(super) async fn all(base: &Arc<Base>) {
    let saved = match base.store.list().await {
        Ok(saved) => saved,
        Err(error) => {
            tracing::error!(%error, "the saved sessions can't be read");
            return;
        }
    };
    let cut = |saved: &SavedSession| saved.summary.status != SessionStatus::Idle || saved.summary.hold != Hold::Off;
    for SavedSession { summary, .. } in saved.into_iter().filter(cut) {
        let id = summary.id;
        match mend(&*base.store, &id).await {
            Ok(facts) => tracing::info!(session = %id, facts, "what was cut is ended"),
            Err(error) => tracing::error!(session = %id, %error, "the session can't be mended"),
        }
    }
}

/// Mends one, and says how many facts that took.
pub(crate) async fn mend(store: &dyn SessionStore, id: &SessionId) -> Result<usize, SessionError> {
    // What waits for somebody does so over many restarts, and is only read.
    if is_mended(store, id).await? {
        return Ok(0);
    }
    let mut scribe = Scribe::of(store, id).await?;
    let draft = std::mem::take(&mut scribe.draft);
    // Never refused.
    scribe.take(Input::Restored { cause: RestoreCause::Restart, draft })?;
    let (_, facts) = scribe.save().await?;
    Ok(facts)
}

/// Whether nothing of it is left to be ended.
async fn is_mended(store: &dyn SessionStore, id: &SessionId) -> Result<bool, SessionError> {
    let state = fold(id, &*store.open(id).await?).await?;
    let moment = Moment { now: now(), next: state.last() + 1, limits: &Limits::default() };
    let restored = Input::Restored { cause: RestoreCause::Restart, draft: Vec::new() };
    Ok(decide(&state, moment, restored)?.facts.is_empty())
}
