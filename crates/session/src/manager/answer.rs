//! Answers to saved sessions, which get an actor only if they would accept the answer.

use std::time::SystemTime;

use holdpoint_common::api::AnswerRequest;
use holdpoint_common::{SessionError, SessionId};

use super::registry::Registry;
use crate::saved::{self, Folded};
use crate::state::{ByClient, Moment, decide};

impl Registry {
    /// Checks whether a saved session would accept this answer. Succeeds for a live one, because
    /// its actor decides.
    pub(super) async fn check_answer(
        &self,
        id: &SessionId,
        request: &ByClient<AnswerRequest>,
    ) -> Result<(), SessionError> {
        if self.lifecycle().is_live(id) {
            return Ok(());
        }
        self.mended().await;
        let engine = &self.engine;
        let Folded { state, .. } = saved::fold(id, &*engine.store.open(id).await?).await?;
        let fixed_bytes = engine.fixed_bytes(state.settings(), &engine.system);
        let (now, limits) = (SystemTime::now().into(), &engine.limits);
        decide(&state, Moment { now, next: state.last() + 1, limits, fixed_bytes }, request)?;
        Ok(())
    }
}
