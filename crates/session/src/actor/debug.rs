//! The switch for logging a session at debug level.

use actix::prelude::*;
use holdpoint_common::Who;

use super::{Replied, SessionActor};
use crate::state::{Input, Refused};

/// Turns debug logging of the session on or off. Replies when the change is saved, or is known not
/// to be.
#[derive(Message)]
#[rtype(result = "Result<(), Refused>")]
pub(crate) struct ChangeDebug {
    pub(crate) enabled: bool,
    pub(crate) by: Who,
}

impl Handler<ChangeDebug> for SessionActor {
    type Result = Replied<Result<(), Refused>>;

    fn handle(&mut self, ChangeDebug { enabled, by }: ChangeDebug, ctx: &mut Self::Context) -> Self::Result {
        match self.handle_bounded(Input::Debug { enabled, by: by.clone() }, ctx) {
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
    /// Records the field `debug` in the session's span. Everything the session does, on any thread,
    /// is logged inside this span, and the program's subscriber decides which lines to write.
    pub(super) fn log_debug(&self, enabled: bool) {
        tracing::Span::current().record("debug", enabled);
    }
}
