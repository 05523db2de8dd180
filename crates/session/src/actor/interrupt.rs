//! Interrupts, and those who wait for a turn's end.

use actix::prelude::*;
use holdpoint_common::api::TurnEnd;
use holdpoint_common::{Outcome, Receipt, TurnId, Who};
use tokio::sync::oneshot;

use super::{Replied, SessionActor};
use crate::state::{Input, Refused, Reply};

/// Ends the open turn now. Replies at once; the turn's end comes later. Where only a run was open, its end is all that comes
/// of it: the reply comes when that is saved.
#[derive(Message)]
#[rtype(result = "Result<Interrupted, Refused>")]
pub(crate) struct Interrupt {
    /// Only if it is this one.
    pub(crate) turn: Option<TurnId>,
    pub(crate) by: Who,
}

/// What an interrupt found.
#[derive(Debug)]
pub(crate) enum Interrupted {
    /// The turn is being cut. Its end comes through the channel; closed without one, the session is gone.
    Interrupting { turn: TurnId, end: oneshot::Receiver<TurnEnd> },
    /// A run was between two turns, and is over.
    RunEnded,
    /// There was no such turn.
    NotRunning,
}

/// Those who wait for turns to end.
#[derive(Default)]
pub(super) struct Ends(Vec<(TurnId, oneshot::Sender<TurnEnd>)>);

impl Handler<Interrupt> for SessionActor {
    type Result = Replied<Result<Interrupted, Refused>>;

    fn handle(&mut self, Interrupt { turn, by }: Interrupt, ctx: &mut Self::Context) -> Self::Result {
        // That a turn is cut is told at once, saved or not: an interrupt waits for nothing.
        Replied::Now(match self.take(Input::Interrupt { turn, by: by.clone() }, ctx) {
            Ok(Reply::Interrupting { turn }) => {
                tracing::info!(%turn, %by, "interrupt");
                let (over, end) = oneshot::channel();
                self.ends.0.push((turn, over));
                Ok(Interrupted::Interrupting { turn, end })
            }
            Ok(Reply::RunInterrupted) => {
                tracing::info!(%by, "a run was interrupted between two turns");
                return self.reply(|_| Ok(Interrupted::RunEnded), ctx);
            }
            Ok(_) => Ok(Interrupted::NotRunning),
            Err(refused) => Err(refused),
        })
    }
}

impl SessionActor {
    pub(super) fn turn_over(&mut self, turn: TurnId, outcome: Outcome, receipt: Option<Receipt>) {
        tracing::info!(%turn, %outcome, "turn finished");
        for (_, over) in self.ends.0.extract_if(.., |(waits_for, _)| *waits_for == turn) {
            // Who waited may be gone.
            let _ = over.send(TurnEnd { turn, outcome, receipt: receipt.clone() });
        }
    }
}
