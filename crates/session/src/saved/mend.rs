//! What a crash has cut, or a text that was taken in left open, is ended in the log.

use holdpoint_common::{Limits, RestoreCause, SessionId};

use super::scribe::Scribe;
use crate::error::SessionError;
use crate::state::Input;
use crate::store::SessionStore;

/// Ends in a session's log what can't go on, and says how many facts that took.
pub(crate) async fn mend(store: &dyn SessionStore, limits: &Limits, id: &SessionId) -> Result<usize, SessionError> {
    let mut scribe = Scribe::of(store, limits, id).await?;
    let draft = std::mem::take(&mut scribe.draft);
    // Never refused.
    scribe.take(Input::Restored { cause: RestoreCause::Restart, draft })?;
    let (_, facts) = scribe.save().await?;
    Ok(facts)
}
