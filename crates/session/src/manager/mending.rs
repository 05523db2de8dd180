//! Mending: ending the work that a crash cut, in the logs of saved sessions.

use std::sync::Arc;

use futures_util::{StreamExt, stream};
use holdpoint_common::{Hold, SessionStatus};
use tokio::sync::OwnedMutexGuard;

use crate::saved::mend;
use crate::session_env::EngineEnv;
use crate::store::SavedSession;

/// How many sessions are mended at once. They are read in parallel and written together.
const MAX_PARALLEL: usize = 16;

/// Mends every session that was not at rest when the program ended. No actor is started until these
/// sessions are known, so that a session that is opened later is not among them.
pub(super) async fn mend_all(engine: &Arc<EngineEnv>, no_actor_yet: OwnedMutexGuard<()>) {
    let saved = match engine.store.list().await {
        Ok(saved) => saved,
        Err(error) => {
            tracing::error!(%error, "saved sessions can't be read");
            return;
        }
    };
    drop(no_actor_yet);
    let cut = |saved: &SavedSession| saved.summary.status != SessionStatus::Idle || saved.summary.hold != Hold::Off;
    let mended = saved.into_iter().filter(cut).map(|SavedSession { summary, .. }| async move {
        let id = summary.id;
        match mend(engine, &id).await {
            Ok(facts) => tracing::info!(session = %id, facts, "session mended after a crash"),
            Err(error) => tracing::error!(session = %id, %error, "session can't be mended"),
        }
    });
    stream::iter(mended).for_each_concurrent(MAX_PARALLEL, |mended| mended).await;
}
