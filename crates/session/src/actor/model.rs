//! Changing a session's model.

use std::sync::Arc;

use actix::prelude::*;
use holdpoint_common::api::ChangeModelRequest;
use holdpoint_common::{Refused, Who};

use super::{Replied, SessionActor};
use crate::model::Model;
use crate::session_env::SessionEnv;
use crate::state::ByClient;

/// Uses this model from the session's next turn on. The manager has found it by the name in the
/// client's verb. Replies when the change is saved, or is known not to be.
#[derive(Message)]
#[rtype(result = "Result<(), Refused>")]
pub(crate) struct UseModel {
    pub(crate) model: Arc<dyn Model>,
    pub(crate) by: Who,
}

impl Handler<UseModel> for SessionActor {
    type Result = Replied<Result<(), Refused>>;

    fn handle(
        &mut self,
        UseModel { model, by }: UseModel,
        ctx: &mut Self::Context,
    ) -> Self::Result {
        let verb = ChangeModelRequest { model: model.name().to_owned(), supplies: None };
        let request = ByClient { verb, by };
        match self.check_room_for_work().and_then(|()| self.handle_input(&request, ctx)) {
            Ok(()) => {
                tracing::info!(model = model.name(), by = %request.by, "model");
                self.env = Arc::new(SessionEnv { model, ..(*self.env).clone() });
                self.reply(|_| Ok(()), ctx)
            }
            Err(refused) => Replied::Now(Err(refused)),
        }
    }
}
