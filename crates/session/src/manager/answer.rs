//! Answers to a session that has no actor: one that it would refuse does not give it one.

use std::sync::Arc;
use std::time::SystemTime;

use actix::prelude::*;
use holdpoint_common::{Answer, AskId, SessionId, Who};

use super::{Life, Manager};
use crate::error::SessionError;
use crate::saved;
use crate::state::{Input, Moment, decide};

/// What a session that has no actor would refuse this answer with. Of one that has, nothing is said: it is asked itself.
#[derive(Message)]
#[rtype(result = "Result<(), SessionError>")]
pub(crate) struct WeighAnswer {
    pub(crate) id: SessionId,
    pub(crate) ask: AskId,
    pub(crate) answer: Answer,
    pub(crate) by: Who,
}

impl Handler<WeighAnswer> for Manager {
    type Result = ResponseFuture<Result<(), SessionError>>;

    fn handle(&mut self, weigh: WeighAnswer, _: &mut Self::Context) -> Self::Result {
        let WeighAnswer { id, ask, answer, by } = weigh;
        if self.sessions.get(&id).is_some_and(|entry| !matches!(entry.life, Life::Saved)) {
            return Box::pin(async { Ok(()) });
        }
        let (base, mending) = (Arc::clone(&self.base), Arc::clone(&self.mending));
        Box::pin(async move {
            drop(mending.lock().await);
            let state = saved::fold(&id, &*base.store.open(&id).await?).await?;
            let fixed_bytes = base.fixed_bytes(state.settings(), &base.system);
            let (now, limits) = (SystemTime::now().into(), &base.limits);
            let moment = Moment { now, next: state.last() + 1, limits, fixed_bytes };
            decide(&state, moment, Input::Answer { ask, answer, by })?;
            Ok(())
        })
    }
}
