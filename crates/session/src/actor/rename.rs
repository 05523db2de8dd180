//! Renaming.

use actix::prelude::*;
use holdpoint_common::Who;

use super::{Replied, SessionActor};
use crate::state::{Input, Refused};

/// Gives the session another name, which the manager has found to be free. Replies when that is saved, or known not to be.
#[derive(Message)]
#[rtype(result = "Result<(), Refused>")]
pub(crate) struct Rename {
    pub(crate) name: String,
    pub(crate) by: Who,
}

impl Handler<Rename> for SessionActor {
    type Result = Replied<Result<(), Refused>>;

    fn handle(&mut self, Rename { name, by }: Rename, ctx: &mut Self::Context) -> Self::Result {
        match self.take_on(Input::Rename { name: name.clone(), by: by.clone() }, ctx) {
            Ok(_) => {
                tracing::info!(name, %by, "renamed");
                self.reply(|_| Ok(()), ctx)
            }
            Err(refused) => Replied::Now(Err(refused)),
        }
    }
}
