//! Renaming a session.

use actix::prelude::*;
use holdpoint_common::Who;

use super::{Replied, SessionActor};
use crate::state::{Input, Refused};

/// Renames the session. The manager has reserved the name. Replies when the change is saved, or is
/// known not to be.
#[derive(Message)]
#[rtype(result = "Result<(), Refused>")]
pub(crate) struct Rename {
    pub(crate) name: String,
    pub(crate) by: Who,
}

impl Handler<Rename> for SessionActor {
    type Result = Replied<Result<(), Refused>>;

    fn handle(&mut self, Rename { name, by }: Rename, ctx: &mut Self::Context) -> Self::Result {
        match self.handle_bounded(Input::Rename { name: name.clone(), by: by.clone() }, ctx) {
            Ok(_) => {
                tracing::info!(name, %by, "renamed");
                self.reply(|_| Ok(()), ctx)
            }
            Err(refused) => Replied::Now(Err(refused)),
        }
    }
}
