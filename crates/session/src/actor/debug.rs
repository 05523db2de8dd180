//! Looking closely: whether the session is logged at debug level.

use actix::prelude::*;
use holdpoint_common::Who;

use super::{Replied, SessionActor};
use crate::state::{Input, Refused};

/// Has the session logged at debug level, or not any more. Replies when that is saved, or known not to be.
#[derive(Message)]
#[rtype(result = "Result<(), Refused>")]
pub(crate) struct ChangeDebug {
    pub(crate) enabled: bool,
    pub(crate) by: Who,
}

impl Handler<ChangeDebug> for SessionActor {
    type Result = Replied<Result<(), Refused>>;

    fn handle(&mut self, ChangeDebug { enabled, by }: ChangeDebug, ctx: &mut Self::Context) -> Self::Result {
        match self.take_on(Input::Debug { enabled, by: by.clone() }, ctx) {
            Ok(_) => {
                tracing::info!(enabled, %by, "debug");
                self.log_debug(enabled);
                self.reply(|_| Ok(()), ctx)
            }
            Err(refused) => Replied::Now(Err(refused)),
        }
    }
}

impl SessionActor {
    /// Marks the session's span. What is logged is for the program's subscriber to say; all that the session does, on
    /// whatever thread, is logged inside of this span.
    pub(super) fn log_debug(&self, enabled: bool) {
        tracing::Span::current().record("debug", enabled);
    }
}
