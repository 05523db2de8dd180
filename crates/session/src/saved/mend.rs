//! Mending: ending the work that a crash cut, in the session's log.

use holdpoint_common::{SessionError, SessionId};

use super::offline::OfflineSession;
use crate::session_env::EngineEnv;

/// Ends everything in a session's log that can't continue. Returns how many facts were appended.
pub(crate) async fn mend(engine: &EngineEnv, id: &SessionId) -> Result<usize, SessionError> {
    let mut session = OfflineSession::load(engine, id).await?;
    session.end_cut_work()?;
    let (_, facts) = session.save().await?;
    Ok(facts)
}
