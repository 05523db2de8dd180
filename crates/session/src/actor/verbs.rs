//! The verbs of clients: one handler for all, and the part of each that is not in its decision.

use actix::prelude::*;
use holdpoint_common::api::{
    AnswerRequest, Answered, AsksRequest, CloseRequest, DebugRequest, HoldRequest, InterruptReply,
    InterruptRequest, PromptRequest, Prompted, ReleaseRequest, RenameRequest, RunRequest,
    RunStarted, ToggleRequest, UnqueueRequest, Unqueued, Verb, VerbReply,
};
use holdpoint_common::{Hold, HoldState, Refused, Who};

use super::{Replied, SessionActor};
use crate::state::{ByClient, Decide, Phase};

/// A verb that the actor of its session handles.
pub(crate) trait Act: Decide {
    /// Whether an actor that is ending still handles the verb. Otherwise it is left to the next
    /// actor: an answer that was accepted now, for example, would be for a call that never runs.
    const WHILE_ENDING: bool = false;

    /// Whether the reply waits until the facts of the verb are saved.
    fn waits_for_save(_reply: &Self::Reply) -> bool {
        true
    }

    /// Checks whether the actor can handle the verb at present. By default it can't while too much
    /// is unsaved, because clients could repeat the verb without end.
    fn check(&self, actor: &SessionActor) -> Result<(), Refused> {
        actor.check_room_for_work()
    }

    /// Logs the verb after its decision, and carries out the effects that are not facts.
    fn done(&self, by: &Who, reply: &Self::Reply, actor: &SessionActor);

    /// Logs a refusal.
    fn refused(&self, _by: &Who, _refused: &Refused) {}
}

impl<V: Verb> Message for ByClient<V> {
    type Result = Result<V::Reply, Refused>;
}

impl<V: Act> Handler<ByClient<V>> for SessionActor {
    type Result = Replied<Result<V::Reply, Refused>>;

    fn handle(&mut self, request: ByClient<V>, ctx: &mut Self::Context) -> Self::Result {
        if self.outbox.is_ending() && !V::WHILE_ENDING {
            return Replied::Never;
        }
        let ByClient { verb, by } = &request;
        match verb.check(self).and_then(|()| self.handle_input(&request, ctx)) {
            Ok(mut reply) => {
                verb.done(by, &reply, self);
                if !V::waits_for_save(&reply) {
                    return Replied::Now(Ok(reply));
                }
                let make = |saved| {
                    reply.set_saved(saved);
                    Ok(reply)
                };
                self.reply(make, ctx)
            }
            Err(refused) => {
                verb.refused(by, &refused);
                Replied::Now(Err(refused))
            }
        }
    }
}

impl Act for PromptRequest {
    fn done(&self, _by: &Who, Prompted { prompt, position, .. }: &Prompted, _: &SessionActor) {
        tracing::info!(%prompt, position, "prompt accepted");
    }
}

impl Act for UnqueueRequest {
    // A prompt is taken out only once, so it is enough to bound the prompts.
    fn check(&self, _: &SessionActor) -> Result<(), Refused> {
        Ok(())
    }

    fn done(&self, by: &Who, Unqueued { prompt, .. }: &Unqueued, _: &SessionActor) {
        tracing::info!(%prompt, %by, "prompt taken out of the queue");
    }
}

impl Act for RunRequest {
    fn done(&self, by: &Who, _: &RunStarted, _: &SessionActor) {
        tracing::info!(%by, "run started");
    }
}

impl Act for AnswerRequest {
    // A tool or a gate waits for the answer.
    fn check(&self, _: &SessionActor) -> Result<(), Refused> {
        Ok(())
    }

    fn done(&self, by: &Who, _: &Answered, _: &SessionActor) {
        tracing::info!(ask = %self.ask, answer = self.answer.kind_name(), %by, "answered");
    }

    fn refused(&self, by: &Who, refused: &Refused) {
        tracing::info!(ask = %self.ask, answer = self.answer.kind_name(), %by, %refused, "answer refused");
    }
}

impl Act for InterruptRequest {
    const WHILE_ENDING: bool = true;

    // The cut of a turn never waits for a save.
    fn waits_for_save(reply: &InterruptReply) -> bool {
        reply.run
    }

    fn check(&self, _: &SessionActor) -> Result<(), Refused> {
        Ok(())
    }

    fn done(&self, by: &Who, reply: &InterruptReply, _: &SessionActor) {
        match reply {
            InterruptReply { turn: Some(turn), .. } => tracing::info!(%turn, %by, "interrupt"),
            InterruptReply { run: true, .. } => {
                tracing::info!(%by, "run interrupted between two turns")
            }
            _ => {}
        }
    }
}

impl Act for HoldRequest {
    // A second hold in a row has no effect, so it is enough to bound the releases.
    fn check(&self, _: &SessionActor) -> Result<(), Refused> {
        Ok(())
    }

    fn done(&self, by: &Who, hold: &Hold, _: &SessionActor) {
        log_hold(by, hold);
    }
}

impl Act for ReleaseRequest {
    fn done(&self, by: &Who, hold: &Hold, _: &SessionActor) {
        log_hold(by, hold);
    }
}

impl Act for ToggleRequest {
    fn check(&self, actor: &SessionActor) -> Result<(), Refused> {
        match self.shown {
            HoldState::Off => HoldRequest {}.check(actor),
            HoldState::Requested | HoldState::Standing => ReleaseRequest {}.check(actor),
        }
    }

    fn done(&self, by: &Who, hold: &Hold, _: &SessionActor) {
        log_hold(by, hold);
    }
}

fn log_hold(by: &Who, hold: &Hold) {
    tracing::info!(hold = ?hold.shown(), %by, "hold");
}

impl Act for RenameRequest {
    const WHILE_ENDING: bool = true;

    fn done(&self, by: &Who, (): &(), _: &SessionActor) {
        tracing::info!(name = self.name, %by, "renamed");
    }
}

impl Act for DebugRequest {
    const WHILE_ENDING: bool = true;

    fn done(&self, by: &Who, (): &(), actor: &SessionActor) {
        tracing::info!(enabled = self.enabled, %by, "debug");
        actor.record_debug(self.enabled);
    }
}

impl Act for AsksRequest {
    fn done(&self, by: &Who, (): &(), _: &SessionActor) {
        tracing::info!(asks = %self.asks, %by, "asks mode");
    }
}

/// The reply means that the close has begun. The manager notices the end of the actor.
impl Act for CloseRequest {
    const WHILE_ENDING: bool = true;

    fn waits_for_save((): &()) -> bool {
        false
    }

    // Unsaved facts would be lost. A session that is already ending waits for its last save anyway.
    fn check(&self, actor: &SessionActor) -> Result<(), Refused> {
        let is_ending = match actor.state.phase() {
            Phase::Closed => true,
            Phase::Interrupting(_, cut) => cut.closing.is_some(),
            Phase::Idle | Phase::Running(_) => false,
        };
        match actor.outbox.unsaved_while_failing() {
            Some(unsaved) if !is_ending => Err(Refused::NotSaving { unsaved }),
            _ => Ok(()),
        }
    }

    fn done(&self, by: &Who, (): &(), _: &SessionActor) {
        tracing::info!(%by, "close");
    }
}
