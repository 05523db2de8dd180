//! Hold, release and toggle.

use actix::prelude::*;
use holdpoint_common::{HoldShown, Who};

use super::{Replied, SessionActor};
use crate::state::{Input, Refused, Reply};

/// Holds the session at its next boundary.
#[derive(Message)]
#[rtype(result = "Result<holdpoint_common::Hold, Refused>")]
pub(crate) struct Hold {
    pub(crate) by: Who,
}

/// Releases a held session.
#[derive(Message)]
#[rtype(result = "Result<holdpoint_common::Hold, Refused>")]
pub(crate) struct Release {
    pub(crate) by: Who,
}

/// Holds or releases the session, whichever is the opposite of the state that the client showed. If
/// that state is outdated, the session stays as it is, and the reply is the current hold.
#[derive(Message)]
#[rtype(result = "Result<holdpoint_common::Hold, Refused>")]
pub(crate) struct ToggleHold {
    pub(crate) shown: HoldShown,
    pub(crate) by: Who,
}

type HoldReply = Replied<Result<holdpoint_common::Hold, Refused>>;

impl Handler<Hold> for SessionActor {
    type Result = HoldReply;

    fn handle(&mut self, Hold { by }: Hold, ctx: &mut Self::Context) -> HoldReply {
        self.hold_input(Input::Hold { by: by.clone() }, &by, ctx)
    }
}

impl Handler<Release> for SessionActor {
    type Result = HoldReply;

    fn handle(&mut self, Release { by }: Release, ctx: &mut Self::Context) -> HoldReply {
        self.hold_input(Input::Release, &by, ctx)
    }
}

impl Handler<ToggleHold> for SessionActor {
    type Result = HoldReply;

    fn handle(&mut self, ToggleHold { shown, by }: ToggleHold, ctx: &mut Self::Context) -> HoldReply {
        self.hold_input(Input::Toggle { shown, by: by.clone() }, &by, ctx)
    }
}

impl SessionActor {
    fn hold_input(&mut self, input: Input, by: &Who, ctx: &mut Context<Self>) -> HoldReply {
        if self.outbox.is_ending() {
            return Replied::Never;
        }
        // A second hold in a row has no effect, so it is enough to bound the releases.
        let taken = match input {
            Input::Hold { .. } | Input::Toggle { shown: HoldShown::Off, .. } => self.handle_input(input, ctx),
            _ => self.handle_bounded(input, ctx),
        };
        match taken {
            Ok(Reply::Hold(hold)) => {
                tracing::info!(hold = ?hold.shown(), %by, "hold");
                self.reply(move |_| Ok(hold), ctx)
            }
            Ok(_) => Replied::Now(Err(Refused::Closed)),
            Err(refused) => Replied::Now(Err(refused)),
        }
    }
}
