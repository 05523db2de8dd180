//! What a crash has cut: sessions whose last fact left them in the middle of something.

use std::sync::Arc;

use futures_util::{StreamExt, stream};
use holdpoint_common::{Hold, SessionStatus};
use tokio::sync::OwnedMutexGuard;

use crate::outfit::Base;
use crate::saved::mend;
use crate::store::SavedSession;

/// Sessions that are mended at once: they are read side by side, and written together.
const AT_ONCE: usize = 16;

/// Ends in the log what can't go on: of every session that was not at rest when this program ended. Until those are known
/// no actor is started: what is opened from then on is not among them.
pub(super) async fn all(base: &Arc<Base>, no_actor_yet: OwnedMutexGuard<()>) {
    let saved = match base.store.list().await {
        Ok(saved) => saved,
        Err(error) => {
            tracing::error!(%error, "the saved sessions can't be read");
            return;
        }
    };
    drop(no_actor_yet);
    let cut = |saved: &SavedSession| saved.summary.status != SessionStatus::Idle || saved.summary.hold != Hold::Off;
    let mended = saved.into_iter().filter(cut).map(|SavedSession { summary, .. }| async move {
        let id = summary.id;
        match mend(base, &id).await {
            Ok(facts) => tracing::info!(session = %id, facts, "what was cut is ended"),
            Err(error) => tracing::error!(session = %id, %error, "the session can't be mended"),
        }
    });
    stream::iter(mended).for_each_concurrent(AT_ONCE, |mended| mended).await;
}
