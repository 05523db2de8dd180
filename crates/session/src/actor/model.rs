//! Changing a session's model.

use std::sync::Arc;

use actix::prelude::*;
use holdpoint_common::Who;

use super::{Replied, SessionActor};
use crate::model::Model;
use crate::session_env::SessionEnv;
use crate::state::{Input, Refused};

/// Changes the session's model, from its next turn on. Replies when the change is saved, or is
/// known not to be.
#[derive(Message)]
#[rtype(result = "Result<(), Refused>")]
pub(crate) struct ChangeModel {
    pub(crate) model: Arc<dyn Model>,
    pub(crate) by: Who,
}

impl Handler<ChangeModel> for SessionActor {
    type Result = Replied<Result<(), Refused>>;

    fn handle(&mut self, ChangeModel { model, by }: ChangeModel, ctx: &mut Self::Context) -> Self::Result {
        match self.handle_bounded(Input::Model { model: model.name().to_owned(), by: by.clone() }, ctx) {
            Ok(_) => {
                tracing::info!(model = model.name(), %by, "model");
                self.env = Arc::new(SessionEnv { model, ..(*self.env).clone() });
                self.reply(|_| Ok(()), ctx)
            }
            Err(refused) => Replied::Now(Err(refused)),
        }
    }
}
