//! Saving the facts in the outbox, and what clients learn when that fails.

use std::sync::Arc;
use std::time::Duration;

use actix::prelude::*;
use futures_util::FutureExt;
use holdpoint_common::limits::SAVE_LATE;
use holdpoint_common::{Delta, Event, Fact, Refused, ToolFact, TurnFact};

use super::SessionActor;
use crate::store::StoreError;

/// How long facts that [others follow at once](is_followed_at_once) wait for these, in order to be
/// saved together: one commit in place of two. Nothing waits for a timer when the others come.
pub(super) const JOIN_WAIT: Duration = Duration::from_millis(2);

/// The delay before a failed save is retried.
pub(super) const RETRY_DELAY: Duration = Duration::from_secs(1);

/// How long the actor's end waits for the last save.
const LAST_SAVE_TIMEOUT: Duration = Duration::from_secs(10);

/// The reason that clients see while too much is unsaved to begin new work.
const REFUSES_WORK: &str = "too much unsaved data; new work is refused until it is written";

/// Whether a turn's runner sends more facts right after this one, or asks for its next step or call.
pub(super) fn is_followed_at_once(event: &Event) -> bool {
    matches!(
        event.fact(),
        Some(
            Fact::Turn(
                TurnFact::AssistantMessage(_)
                    | TurnFact::StepFinished { .. }
                    | TurnFact::InstructionsRead { .. }
                    | TurnFact::ProjectCut { .. }
                    | TurnFact::ContentAdded { .. }
            ) | Fact::Tool(ToolFact::Finished(_))
        )
    )
}

impl SessionActor {
    /// Saves the unsaved facts together with the next ones, or after [`JOIN_WAIT`].
    pub(super) fn save_soon(&mut self, ctx: &mut Context<Self>) {
        if self.env.not_saved.is_some() {
            // A store in memory saves at once.
            return self.save(ctx);
        }
        if self.outbox.joining.is_none() && !self.outbox.saving {
            self.outbox.joining = Some(ctx.run_later(JOIN_WAIT, |actor, ctx| {
                actor.outbox.joining = None;
                actor.save(ctx);
            }));
        }
    }

    /// Saves the unsaved facts, with one save at a time.
    pub(super) fn save(&mut self, ctx: &mut Context<Self>) {
        if let Some(joining) = self.outbox.joining.take() {
            ctx.cancel_future(joining);
        }
        if self.outbox.saving || self.outbox.retrying {
            return;
        }
        let Some(upto) = self.outbox.unsaved.back().map(|fact| fact.seq) else { return };
        let facts = self.outbox.unsaved.iter().cloned().collect();
        let mut saving = self.log.append(self.outbox.saved, facts, self.state.summary());
        match (&mut saving).now_or_never() {
            Some(result) => self.saved(upto, result, ctx),
            None => {
                self.outbox.saving = true;
                let late = ctx.run_later(SAVE_LATE, move |actor, ctx| {
                    actor.notify_not_saved(
                        &format!("saving takes longer than {} s", SAVE_LATE.as_secs()),
                        ctx,
                    );
                });
                ctx.spawn(saving.into_actor(self).map(move |result, actor, ctx| {
                    ctx.cancel_future(late);
                    actor.outbox.saving = false;
                    actor.saved(upto, result, ctx);
                    if !ctx.state().stopping() {
                        actor.save(ctx);
                    }
                }));
            }
        }
    }

    fn saved(&mut self, upto: u64, result: Result<(), StoreError>, ctx: &mut Context<Self>) {
        match result {
            Ok(()) => {
                tracing::debug!(upto, "saved");
                self.outbox.saved = upto;
                while let Some(fact) = self.outbox.pop_saved(upto) {
                    self.state_saves.count(&fact);
                }
                self.save_state(ctx);
                self.begin_withheld(ctx);
                self.release_parcels(ctx);
                self.notify_if_saved_again(ctx);
                if self.outbox.full && self.check_unsaved_bound().is_ok() {
                    self.outbox.full = false;
                    self.ask_gates_again(ctx);
                }
                if self.outbox.ending && self.outbox.is_saved() {
                    ctx.stop();
                }
            }
            // The append had written its facts in spite of the reported error.
            Err(StoreError::Conflict { last, .. })
                if self.outbox.unsaved.iter().any(|fact| fact.seq == last) =>
            {
                self.saved(last, Ok(()), ctx);
                self.save(ctx);
            }
            Err(error) if self.end_if_fenced(&error, ctx) => {}
            Err(error) => {
                self.notify_not_saved(&error.to_string(), ctx);
                // A session that was handed over exists only in its log.
                if self.outbox.ending && !self.handed_over {
                    return ctx.stop();
                }
                self.outbox.retrying = true;
                ctx.run_later(RETRY_DELAY, |actor, ctx| {
                    actor.outbox.retrying = false;
                    actor.save(ctx);
                });
            }
        }
    }

    /// Notifies clients if saving had failed and everything is saved now.
    pub(super) fn notify_if_saved_again(&mut self, ctx: &mut Context<Self>) {
        if !self.outbox.unsaved.is_empty() {
            return;
        }
        let failed = self.outbox.failing.take().or_else(|| self.draft.failing.take());
        let Some(reason) = failed else { return };
        if self.draft.is_save_pending() {
            self.draft.failing.get_or_insert(reason);
            return self.show_failing();
        }
        self.draft.failing = None;
        tracing::info!("saving works again");
        self.show_failing();
        self.publish_delta(Delta::SavedAgain, ctx);
    }

    /// Why saving fails or is late at present: that of facts, else that of the draft.
    pub(super) fn failing(&self) -> Option<Arc<str>> {
        self.outbox.failing.clone().or_else(|| self.draft.failing.clone())
    }

    /// Updates the reason in the published snapshot.
    fn show_failing(&self) {
        let not_saved = self.env.not_saved.clone().or_else(|| self.failing());
        self.shown.send_modify(|shown| Arc::make_mut(shown).set_not_saved(not_saved));
    }

    /// Notifies clients, once, that a save of the draft failed. Facts still wait for their saves.
    pub(super) fn notify_draft_not_saved(&mut self, reason: &str, ctx: &mut Context<Self>) {
        let before = self.draft.failing.replace(reason.into());
        if self.outbox.failing.is_some() || before.as_deref() == Some(reason) {
            return;
        }
        self.show_failing();
        if before.is_none() {
            tracing::error!(reason, "draft not saved");
            self.publish_delta(Delta::NotSaved { reason: reason.to_owned() }, ctx);
        }
    }

    /// Notifies clients, once, that a save of facts failed or is late. The session continues.
    pub(super) fn notify_not_saved(&mut self, reason: &str, ctx: &mut Context<Self>) {
        if let Some(before) = self.outbox.failing.replace(reason.into()) {
            // Only the shown reason changes. Clients were notified when saving first failed.
            if *before != *reason {
                self.show_failing();
            }
            return;
        }
        tracing::error!(reason, "not saved");
        self.release_parcels(ctx);
        self.publish_delta(Delta::NotSaved { reason: reason.to_owned() }, ctx);
        if self.outbox.full && reason != REFUSES_WORK {
            self.publish_delta(Delta::NotSaved { reason: REFUSES_WORK.to_owned() }, ctx);
        }
    }

    /// Checks that new work may be accepted or begun. Unsaved facts stay in memory, so there is a
    /// bound.
    pub(super) fn check_unsaved_bound(&self) -> Result<(), Refused> {
        let unsaved = self.outbox.unsaved_bytes();
        if unsaved > self.env.limits.buffered_bytes {
            Err(Refused::NotSaving { unsaved })
        } else {
            Ok(())
        }
    }

    /// Refuses new work while too much is unsaved and saves of facts fail or fall behind.
    pub(super) fn check_room_for_work(&self) -> Result<(), Refused> {
        if self.outbox.failing.is_some() || self.outbox.is_behind(self.env.limits.buffered_bytes) {
            self.check_unsaved_bound()?;
        }
        Ok(())
    }

    /// Notifies clients, once, that new work waits because too much is unsaved.
    pub(super) fn notify_full(&mut self, ctx: &mut Context<Self>) {
        if std::mem::replace(&mut self.outbox.full, true) {
            return;
        }
        if self.outbox.failing.is_some() {
            self.publish_delta(Delta::NotSaved { reason: REFUSES_WORK.to_owned() }, ctx);
        } else if self.outbox.is_behind(self.env.limits.buffered_bytes) {
            self.notify_not_saved(REFUSES_WORK, ctx);
        }
        // Otherwise a single large fact is being saved, which is normal.
    }

    /// Ends the actor after its last save, or after [`LAST_SAVE_TIMEOUT`].
    pub(super) fn stop(&mut self, ctx: &mut Context<Self>) {
        if self.outbox.is_saved() {
            return ctx.stop();
        }
        self.outbox.ending = true;
        ctx.run_later(LAST_SAVE_TIMEOUT, |_, ctx| ctx.stop());
    }
}
