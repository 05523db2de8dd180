//! What a crash has cut is ended in the log.

use holdpoint_common::{Limits, SessionId};

use super::scribe::Scribe;
use crate::error::SessionError;
use crate::store::SessionStore;

/// Ends in a session's log what can't go on, and says how many facts that took.
pub(crate) async fn mend(store: &dyn SessionStore, limits: &Limits, id: &SessionId) -> Result<usize, SessionError> {
    let mut scribe = Scribe::of(store, limits, id).await?;
    scribe.end_what_is_open()?;
    let (_, facts) = scribe.save().await?;
    Ok(facts)
}
