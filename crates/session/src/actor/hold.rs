//! Hold and release.

use actix::prelude::*;
use holdpoint_common::{HoldShown, Who};

use super::{Replied, SessionActor};
use crate::state::{Input, Refused, Reply};

/// Stops the session at its next boundary.
#[derive(Message)]
#[rtype(result = "Result<holdpoint_common::Hold, Refused>")]
pub(crate) struct Hold {
    pub(crate) by: Who,
}

/// Lets the session go on.
#[derive(Message)]
#[rtype(result = "Result<holdpoint_common::Hold, Refused>")]
pub(crate) struct Release {
    pub(crate) by: Who,
}

/// Holds or releases, whichever the client was showing the other of. If what it showed is no longer so,
/// nothing changes, and the reply is what is so.
#[derive(Message)]
#[rtype(result = "Result<holdpoint_common::Hold, Refused>")]
pub(crate) struct ToggleHold {
    pub(crate) shown: HoldShown,
    pub(crate) by: Who,
}

type Held = Replied<Result<holdpoint_common::Hold, Refused>>;

impl Handler<Hold> for SessionActor {
    type Result = Held;

    fn handle(&mut self, Hold { by }: Hold, ctx: &mut Self::Context) -> Held {
        self.hold_input(Input::Hold { by: by.clone() }, &by, ctx)
    }
}

impl Handler<Release> for SessionActor {
    type Result = Held;

    fn handle(&mut self, Release { by }: Release, ctx: &mut Self::Context) -> Held {
        self.hold_input(Input::Release, &by, ctx)
    }
}

impl Handler<ToggleHold> for SessionActor {
    type Result = Held;

    fn handle(&mut self, ToggleHold { shown, by }: ToggleHold, ctx: &mut Self::Context) -> Held {
        self.hold_input(Input::Toggle { shown, by: by.clone() }, &by, ctx)
    }
}

impl SessionActor {
    fn hold_input(&mut self, input: Input, by: &Who, ctx: &mut Context<Self>) -> Held {
        if self.outbox.is_ending() {
            return Replied::Never;
        }
        // Of two in a row the second does nothing: it is the releases in between that have to have an end.
        let taken = match input {
            Input::Hold { .. } | Input::Toggle { shown: HoldShown::Off, .. } => self.take(input, ctx),
            _ => self.take_on(input, ctx),
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
