//! Waiting for the end of a turn.

use actix::prelude::*;
use holdpoint_common::api::TurnEnd;
use holdpoint_common::{Outcome, Receipt, TurnId};
use tokio::sync::oneshot;

use super::SessionActor;

/// Waits for the end of a turn. The reply is `None` if the turn is neither the open one nor the
/// last.
#[derive(Message)]
#[rtype(result = "Option<oneshot::Receiver<TurnEnd>>")]
pub(crate) struct AwaitEnd {
    pub(crate) turn: TurnId,
}

/// The clients that wait for the end of a turn.
#[derive(Default)]
pub(super) struct TurnEndWaiters {
    waiting: Vec<(TurnId, oneshot::Sender<TurnEnd>)>,
    /// The end of the last turn.
    last: Option<TurnEnd>,
}

impl Handler<AwaitEnd> for SessionActor {
    type Result = MessageResult<AwaitEnd>;

    fn handle(&mut self, AwaitEnd { turn }: AwaitEnd, _: &mut Self::Context) -> Self::Result {
        let is_open = self.state.turn().is_some_and(|open| open.id == turn);
        let is_last = self.ends.last.as_ref().is_some_and(|last| last.turn == turn);
        MessageResult(
            (is_open || is_last || self.outbox.has_end_of(turn)).then(|| self.ends.await_end(turn)),
        )
    }
}

impl SessionActor {
    pub(super) fn turn_over(&mut self, turn: TurnId, outcome: Outcome, receipt: Option<Receipt>) {
        tracing::info!(%turn, %outcome, "turn finished");
        self.ends.finish(TurnEnd { turn, outcome, receipt });
    }
}

impl TurnEndWaiters {
    /// Returns a receiver for the end of a turn that is open or was the last.
    fn await_end(&mut self, turn: TurnId) -> oneshot::Receiver<TurnEnd> {
        let (sender, receiver) = oneshot::channel();
        match &self.last {
            Some(last) if last.turn == turn => drop(sender.send(last.clone())),
            _ => {
                self.waiting.retain(|(_, sender)| !sender.is_closed());
                self.waiting.push((turn, sender));
            }
        }
        receiver
    }

    fn finish(&mut self, end: TurnEnd) {
        for (_, sender) in self.waiting.extract_if(.., |(turn, _)| *turn == end.turn) {
            // The client may be gone.
            let _ = sender.send(end.clone());
        }
        self.last = Some(end);
    }
}
