//! The outbox, from which the consequences of facts leave in order, once the facts are saved.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use actix::prelude::*;
use futures_util::FutureExt;
use holdpoint_common::limits::SAVE_LATE;
use holdpoint_common::{AskId, Delta, Event, Outcome, Receipt, Refused, Snapshot, TurnId};
use holdpoint_tools::{AskReply, TasksReply};
use std::time::Duration;

use super::SessionActor;
use super::ask::TasksKey;
use crate::lane::{GateAnswer, GateKey};
use crate::store::StoreError;

/// The delay before a failed save is retried.
pub(super) const RETRY_DELAY: Duration = Duration::from_secs(1);

/// How long the actor's end waits for the last save.
const LAST_SAVE_TIMEOUT: Duration = Duration::from_secs(10);

/// The reason that clients see while too much is unsaved to begin new work.
const REFUSES_WORK: &str = "too much unsaved data; new work is refused until it is written";

/// The parcels that wait for a save, and the facts that are not saved yet.
#[derive(Default)]
pub(crate) struct Outbox {
    /// The unsaved facts in order, including those that are being saved.
    unsaved: VecDeque<Arc<Event>>,
    /// Whether a save is under way.
    saving: bool,
    /// The number of the last saved fact.
    saved: u64,
    /// Why saves of facts fail or are late at present. Clients have been notified.
    failing: Option<Arc<str>>,
    /// Whether the next save waits for [`RETRY_DELAY`] after a failed one.
    retrying: bool,
    /// Whether work was refused because too much is unsaved. Clients have been notified.
    full: bool,
    /// Whether the actor ends once everything is saved, or a save fails.
    ending: bool,
    /// The size of the events in `held`, in bytes.
    weight: usize,
    /// The size of the largest parcel since `held` was last empty, in bytes.
    largest: usize,
    /// The waiting parcels, in order.
    held: VecDeque<HeldParcel>,
}

/// A parcel that leaves once the facts up to number `upto` are saved.
struct HeldParcel {
    upto: u64,
    /// The size of the parcel's events, in bytes.
    weight: usize,
    parcel: Parcel,
}

/// Events, a snapshot and actions that leave the outbox together.
#[derive(Default)]
pub(super) struct Parcel {
    /// The events to publish, in order.
    pub(super) events: Vec<Arc<Event>>,
    /// The new snapshot, published before the events.
    pub(super) snapshot: Option<Snapshot>,
    /// The actions to carry out after the events, in order. Only wakes go before the snapshot.
    pub(super) actions: Vec<Action>,
}

/// An action that waits for a save.
pub(super) enum Action {
    /// Start the runner of this turn.
    Start(TurnId),
    /// Continue a run this many milliseconds after this turn of it failed.
    Wait(TurnId, u64),
    /// Wake the tool that waits for this ask.
    Wake(AskId, AskReply),
    /// Send the tasks and notes to the tool that waits for them.
    ReplyTasks(TasksKey, TasksReply),
    /// Answer the runner at this gate.
    Pass(GateKey, GateAnswer),
    /// Notify the clients that wait for the end of this turn.
    TurnOver(TurnId, Outcome, Option<Receipt>),
    /// Reply to a message. The argument says whether its facts are saved.
    Reply(Box<dyn FnOnce(bool)>),
    /// End the actor when everything is saved.
    Stop,
}

impl Outbox {
    /// An outbox for a log that ends with the fact of this number.
    pub(crate) fn after(saved: u64) -> Self {
        Self { saved, ..Self::default() }
    }

    /// Whether no parcel waits.
    pub(super) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// The events of the waiting parcels, in order.
    pub(super) fn events(&self) -> impl Iterator<Item = &Arc<Event>> {
        self.held.iter().flat_map(|held| &held.parcel.events)
    }

    /// Whether a waiting parcel carries the end of this turn.
    pub(super) fn has_end_of(&self, turn: TurnId) -> bool {
        let mut actions = self.held.iter().flat_map(|held| &held.parcel.actions);
        actions.any(|action| matches!(action, Action::TurnOver(ended, ..) if *ended == turn))
    }

    /// The unsaved facts with numbers in this range.
    pub(super) fn unsaved_in(&self, range: Range<u64>) -> impl Iterator<Item = &Arc<Event>> {
        self.unsaved.iter().filter(move |fact| range.contains(&fact.seq))
    }

    /// The size of the unsaved facts, in bytes.
    pub(super) fn unsaved_bytes(&self) -> usize {
        self.unsaved.iter().map(|fact| fact.weight()).sum()
    }

    /// Whether more than `max_bytes` bytes are unsaved, not counting the largest fact: a single
    /// answer may be larger than any bound.
    fn is_behind(&self, max_bytes: usize) -> bool {
        let weights = || self.unsaved.iter().map(|fact| fact.weight());
        weights().sum::<usize>() - weights().max().unwrap_or_default() > max_bytes
    }

    /// Whether more than `max_bytes` bytes of events wait for saves, not counting the largest
    /// parcel.
    fn is_overfull(&self, max_bytes: usize) -> bool {
        self.weight.saturating_sub(self.largest) > max_bytes
    }

    /// The size of the unsaved facts in bytes, if saving them fails or is late at present.
    pub(super) fn unsaved_while_failing(&self) -> Option<usize> {
        self.failing.is_some().then(|| self.unsaved_bytes())
    }

    /// Whether everything is saved.
    pub(super) fn is_saved(&self) -> bool {
        self.unsaved.is_empty() && !self.saving
    }

    /// Whether the actor ends after the waiting parcels.
    pub(super) fn is_ending(&self) -> bool {
        let stops = |held: &HeldParcel| {
            held.parcel.actions.iter().any(|action| matches!(action, Action::Stop))
        };
        self.ending || self.held.iter().any(stops)
    }
}

impl SessionActor {
    /// Adds a parcel to the outbox. It leaves when its facts are saved, which may be at once.
    pub(super) fn dispatch(
        &mut self,
        facts: Vec<Arc<Event>>,
        parcel: Parcel,
        ctx: &mut Context<Self>,
    ) {
        // A parcel without facts leaves together with the one before it.
        let before = self.outbox.held.back().map(|held| held.upto);
        let upto = facts.last().map(|fact| fact.seq).or(before).unwrap_or_default();
        let save = !facts.is_empty();
        self.outbox.unsaved.extend(facts);
        let weight = parcel.events.iter().map(|event| event.weight()).sum();
        self.outbox.largest =
            if self.outbox.held.is_empty() { weight } else { self.outbox.largest.max(weight) };
        self.outbox.weight += weight;
        self.outbox.held.push_back(HeldParcel { upto, weight, parcel });
        if save {
            self.save(ctx);
        }
        if self.outbox.is_overfull(self.env.limits.buffered_bytes) {
            self.notify_not_saved("events arrive faster than they can be saved", ctx);
        }
        self.release_parcels(ctx);
    }

    /// Carries out the parcels that need no further save, or all parcels while saves of facts fail.
    fn release_parcels(&mut self, ctx: &mut Context<Self>) {
        let failing = self.outbox.failing.is_some();
        while let Some(held) =
            self.outbox.held.pop_front_if(|held| failing || held.upto <= self.outbox.saved)
        {
            self.outbox.weight -= held.weight;
            self.release_parcel(held.parcel, held.upto <= self.outbox.saved, ctx);
        }
    }

    /// Saves the unsaved facts, with one save at a time.
    fn save(&mut self, ctx: &mut Context<Self>) {
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
                    actor.save(ctx);
                }));
            }
        }
    }

    fn saved(&mut self, upto: u64, result: Result<(), StoreError>, ctx: &mut Context<Self>) {
        match result {
            Ok(()) => {
                tracing::debug!(upto, "saved");
                self.outbox.saved = upto;
                while self.outbox.unsaved.front().is_some_and(|fact| fact.seq <= upto) {
                    self.outbox.unsaved.pop_front();
                }
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
            Err(error) => {
                self.notify_not_saved(&error.to_string(), ctx);
                if self.outbox.ending {
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
    fn failing(&self) -> Option<Arc<str>> {
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
    fn stop(&mut self, ctx: &mut Context<Self>) {
        if self.outbox.is_saved() {
            return ctx.stop();
        }
        self.outbox.ending = true;
        ctx.run_later(LAST_SAVE_TIMEOUT, |_, ctx| ctx.stop());
    }

    fn release_parcel(&mut self, mut parcel: Parcel, saved: bool, ctx: &mut Context<Self>) {
        // Tools wake first: they have waited longest, and their next messages can't overtake the
        // rest.
        for wake in parcel.actions.extract_if(.., |action| matches!(action, Action::Wake(..))) {
            if let Action::Wake(ask, reply) = wake {
                self.wake(&ask, reply);
            }
        }
        if let Some(mut snapshot) = parcel.snapshot {
            let all_saved = saved && !self.draft.is_save_pending();
            let failing = || self.failing().filter(|_| !all_saved);
            snapshot.set_not_saved(self.env.not_saved.clone().or_else(failing));
            snapshot.clients = self.clients.len();
            self.publish_snapshot(snapshot);
        }
        for event in parcel.events {
            self.publish(event);
        }
        for action in parcel.actions {
            match action {
                Action::Start(turn) => self.start_runner(turn, ctx),
                Action::Wait(turn, wait_ms) => self.wait_for_run(turn, wait_ms, ctx),
                // Done above.
                Action::Wake(..) => {}
                Action::ReplyTasks(key, reply) => self.reply_tasks(key, reply),
                Action::Pass(key, answer) => self.answer_gate(key, answer),
                Action::TurnOver(turn, outcome, receipt) => self.turn_over(turn, outcome, receipt),
                Action::Reply(reply) => reply(saved && self.env.not_saved.is_none()),
                Action::Stop => self.stop(ctx),
            }
        }
    }
}
