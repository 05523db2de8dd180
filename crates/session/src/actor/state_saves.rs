//! Saving the state itself, so that the next opening of the session folds few facts.

use actix::prelude::*;
use holdpoint_common::Event;

use super::SessionActor;
use crate::saved::Tail;
use crate::store::SavedState;

/// The fewest facts between two saves of the state. An opening folds about this many.
const MIN_FACTS: usize = 512;

/// The facts after which the state is saved even if a turn is open. Between turns, nobody waits for
/// the session.
const MAX_FACTS: usize = 8 * MIN_FACTS;

/// When the state is saved next.
#[derive(Default)]
pub(super) struct StateSaves {
    /// The saved facts since the last save of the state.
    tail: Tail,
    saving: bool,
}

impl StateSaves {
    /// The saves of a session that has this many facts after its saved state.
    pub(super) fn after(tail: Tail) -> Self {
        Self { tail, saving: false }
    }

    /// Counts a fact that was saved.
    pub(super) fn count(&mut self, fact: &Event) {
        self.tail.add(fact);
    }

    /// Whether the state is to be saved. All saves together write no more than the facts.
    fn is_due(&self, is_in_turn: bool) -> bool {
        let facts = if is_in_turn { MAX_FACTS } else { MIN_FACTS };
        !self.saving && self.tail.facts >= facts && self.tail.bytes >= self.tail.state_bytes
    }
}

impl SessionActor {
    /// Saves the state, if that is due and all facts are saved. Nothing waits for it.
    pub(super) fn save_state(&mut self, ctx: &mut Context<Self>) {
        let is_durable = self.env.not_saved.is_none();
        let is_due = self.state_saves.is_due(self.state.turn().is_some());
        if !is_durable || !is_due || !self.outbox.unsaved.is_empty() {
            return;
        }
        let Some(text) = self.state.to_saved() else { return };
        let tail = Tail { state_bytes: text.len(), ..Tail::default() };
        self.state_saves = StateSaves { tail, saving: true };
        let saving = self.log.keep_state(SavedState { upto: self.state.last(), text });
        ctx.spawn(saving.into_actor(self).map(|saved, actor, _| {
            actor.state_saves.saving = false;
            if let Err(error) = saved {
                tracing::warn!(%error, "the state was not saved; the next opening takes longer");
            }
        }));
    }
}
