//! Answers to saved sessions, which get an actor only if they would accept the answer.

use std::sync::Arc;
use std::time::SystemTime;

use actix::prelude::*;
use holdpoint_common::SessionId;
use holdpoint_common::api::AnswerRequest;

use super::{Life, Manager};
use crate::error::SessionError;
use crate::saved;
use crate::state::{ByClient, Moment, decide};

/// Checks whether a saved session would accept this answer. Succeeds for a live one, because its
/// actor decides.
#[derive(Message)]
#[rtype(result = "Result<(), SessionError>")]
pub(crate) struct CheckAnswer {
    pub(crate) id: SessionId,
    pub(crate) request: ByClient<AnswerRequest>,
}

impl Handler<CheckAnswer> for Manager {
    type Result = ResponseFuture<Result<(), SessionError>>;

    fn handle(&mut self, check: CheckAnswer, _: &mut Self::Context) -> Self::Result {
        let CheckAnswer { id, request } = check;
        if self.sessions.get(&id).is_some_and(|entry| !matches!(entry.life, Life::Saved)) {
            return Box::pin(async { Ok(()) });
        }
        let (engine, mending) = (Arc::clone(&self.engine), Arc::clone(&self.mending));
        Box::pin(async move {
            drop(mending.lock().await);
            let state = saved::fold(&id, &*engine.store.open(&id).await?).await?;
            let fixed_bytes = engine.fixed_bytes(state.settings(), &engine.system);
            let (now, limits) = (SystemTime::now().into(), &engine.limits);
            let moment = Moment { now, next: state.last() + 1, limits, fixed_bytes };
            decide(&state, moment, &request)?;
            Ok(())
        })
    }
}
