//! Prompts to a session.

use actix::prelude::*;
use holdpoint_common::Who;
use holdpoint_common::api::Prompted;

use super::{Replied, SessionActor};
use crate::state::{Input, Refused, Reply};

/// Starts a turn with this prompt, or queues it.
#[derive(Message)]
#[rtype(result = "Result<Prompted, Refused>")]
pub(crate) struct Prompt {
    pub(crate) text: String,
    pub(crate) by: Who,
}

impl Handler<Prompt> for SessionActor {
    type Result = Replied<Result<Prompted, Refused>>;

    fn handle(&mut self, Prompt { text, by }: Prompt, ctx: &mut Self::Context) -> Self::Result {
        if self.outbox.is_ending() {
            return Replied::Never;
        }
        match self.handle_bounded(Input::Prompt { text, by }, ctx) {
            Ok(Reply::Prompted { prompt, position }) => {
                tracing::info!(%prompt, position, "prompt accepted");
                self.reply(move |saved| Ok(Prompted { prompt, position, saved }), ctx)
            }
            Ok(_) => Replied::Now(Err(Refused::Closed)),
            Err(refused) => Replied::Now(Err(refused)),
        }
    }
}
