//! What a crash has cut is ended in the log.

use holdpoint_common::SessionId;

use super::scribe::Scribe;
use crate::error::SessionError;
use crate::outfit::Base;

/// Ends in a session's log what can't go on, and says how many facts that took.
pub(crate) async fn mend(base: &Base, id: &SessionId) -> Result<usize, SessionError> {
    let mut scribe = Scribe::of(base, id).await?;
    scribe.end_what_is_open()?;
    let (_, facts) = scribe.save().await?;
    Ok(facts)
}
