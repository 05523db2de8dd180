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
    /// The turn is being cut.
    Interrupting(TurnId),
    /// No turn was open, but a run: it is over.
    RunEnded,
    /// There was no such turn.
    NotRunning,
}

/// Waits for the end of a turn; nothing if this is neither the open turn nor the one before it.
#[derive(Message)]
#[rtype(result = "Option<oneshot::Receiver<TurnEnd>>")]
pub(crate) struct AwaitEnd {
    pub(crate) turn: TurnId,
}

/// The ends of turns.
#[derive(Default)]
pub(super) struct Ends {
    waiting: Vec<(TurnId, oneshot::Sender<TurnEnd>)>,
    /// Of the turn that ended last.
    last: Option<TurnEnd>,
}

impl Handler<Interrupt> for SessionActor {
    type Result = Replied<Result<Interrupted, Refused>>;

    fn handle(&mut self, Interrupt { turn, by }: Interrupt, ctx: &mut Self::Context) -> Self::Result {
        // That a turn is cut is told at once, saved or not: an interrupt waits for nothing.
        Replied::Now(match self.take(Input::Interrupt { turn, by: by.clone() }, ctx) {
            Ok(Reply::Interrupting { turn }) => {
                tracing::info!(%turn, %by, "interrupt");
                Ok(Interrupted::Interrupting(turn))
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

impl Handler<AwaitEnd> for SessionActor {
    type Result = MessageResult<AwaitEnd>;

    fn handle(&mut self, AwaitEnd { turn }: AwaitEnd, _: &mut Self::Context) -> Self::Result {
        let is_open = self.state.turn().is_some_and(|open| open.id == turn);
        let is_last = self.ends.last.as_ref().is_some_and(|last| last.turn == turn);
        MessageResult((is_open || is_last || self.outbox.has_end_of(turn)).then(|| self.ends.await_end(turn)))
    }
}

impl SessionActor {
    pub(super) fn turn_over(&mut self, turn: TurnId, outcome: Outcome, receipt: Option<Receipt>) {
        tracing::info!(%turn, %outcome, "turn finished");
        self.ends.over(TurnEnd { turn, outcome, receipt });
    }
}

impl Ends {
    /// The end of this turn, which is open or was the last.
    fn await_end(&mut self, turn: TurnId) -> oneshot::Receiver<TurnEnd> {
        let (over, end) = oneshot::channel();
        match &self.last {
            Some(last) if last.turn == turn => drop(over.send(last.clone())),
            _ => {
                self.waiting.retain(|(_, over)| !over.is_closed());
                self.waiting.push((turn, over));
            }
        }
        end
    }

    fn over(&mut self, end: TurnEnd) {
        for (_, over) in self.waiting.extract_if(.., |(turn, _)| *turn == end.turn) {
            // Its client may be gone.
            let _ = over.send(end.clone());
        }
        self.last = Some(end);
    }
}
