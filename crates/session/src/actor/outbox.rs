//! The outbox: what follows from facts leaves in order, once the facts are saved.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use actix::prelude::*;
use futures_util::FutureExt;
use holdpoint_common::limits::SAVE_LATE;
use holdpoint_common::{AskId, Delta, Event, Outcome, Receipt, Snapshot, TurnId};
use holdpoint_tools::{AskReply, TasksReply};
use std::time::Duration;

use super::SessionActor;
use super::ask::TasksKey;
use crate::lane::{GateKey, Passage};
use crate::state::{Input, Refused, Reply};
use crate::store::StoreError;

/// How long after a failed save the next is tried.
pub(super) const RETRY: Duration = Duration::from_secs(1);

/// How long the end of the actor waits for what is not saved yet.
const LAST_SAVE: Duration = Duration::from_secs(10);

/// The notice of a session that begins nothing more.
const REFUSES_WORK: &str = "too much is not saved yet: nothing more is begun until it is";

/// What waits for saves, and what is not saved yet.
#[derive(Default)]
pub(crate) struct Outbox {
    /// Facts that were not handed to the store yet, or that it refused. In order.
    unsaved: VecDeque<Arc<Event>>,
    /// A save is under way.
    saving: bool,
    /// The last fact that is saved.
    saved: u64,
    /// Why saving does not work at present; clients have been told.
    failing: Option<Arc<str>>,
    /// The next save after a failed one is due at its time, not before.
    retrying: bool,
    /// So much is not saved that nothing is begun; clients have been told.
    full: bool,
    /// The actor ends once everything is saved, or can't be.
    ending: bool,
    /// Bytes of the events that wait in `held`.
    weight: usize,
    /// The most bytes that one of those has brought since `held` was empty.
    largest: usize,
    /// What waits, in order.
    held: VecDeque<Held>,
}

/// What leaves together once the facts up to a number are saved.
struct Held {
    upto: u64,
    /// Bytes of its events.
    weight: usize,
    parcel: Parcel,
}

/// What leaves together.
#[derive(Default)]
pub(super) struct Parcel {
    /// Published, in order.
    pub(super) events: Vec<Arc<Event>>,
    /// What clients see from now on; replaced before the events reach them.
    pub(super) snapshot: Option<Snapshot>,
    /// Done, in order, after publishing.
    pub(super) actions: Vec<Action>,
}

/// Something that waits for a save.
pub(super) enum Action {
    /// Start the runner of this turn.
    Start(TurnId),
    /// Come back to a run so many milliseconds after this turn of it has failed.
    Wait(TurnId, u64),
    /// Wake the tool that waits on this ask.
    Wake(AskId, AskReply),
    /// Tell the tool that waits for it what the tasks and notes are.
    TellTasks(TasksKey, TasksReply),
    /// Tell the runner at this gate.
    Pass(GateKey, Passage),
    /// Tell those who wait that the turn is over.
    TurnOver(TurnId, Outcome, Option<Receipt>),
    /// Tell the sender of a message; with whether what it did is saved.
    Reply(Box<dyn FnOnce(bool)>),
    /// End the actor, when everything is saved.
    Stop,
}

impl Outbox {
    /// An outbox for a log that ends with the fact of this number.
    pub(crate) fn after(saved: u64) -> Self {
        Self { saved, ..Self::default() }
    }

    /// Nothing waits.
    pub(super) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// The events that wait, in order.
    pub(super) fn events(&self) -> impl Iterator<Item = &Arc<Event>> {
        self.held.iter().flat_map(|held| &held.parcel.events)
    }

    /// The end of this turn waits.
    pub(super) fn has_end_of(&self, turn: TurnId) -> bool {
        let mut actions = self.held.iter().flat_map(|held| &held.parcel.actions);
        actions.any(|action| matches!(action, Action::TurnOver(over, ..) if *over == turn))
    }

    /// The facts between these numbers that are not saved, and so not in the log.
    pub(super) fn unsaved_in(&self, range: Range<u64>) -> impl Iterator<Item = &Arc<Event>> {
        self.unsaved.iter().filter(move |fact| range.contains(&fact.seq))
    }

    /// Bytes of the facts that are not saved.
    pub(super) fn unsaved(&self) -> usize {
        self.unsaved.iter().map(|fact| fact.weight()).sum()
    }

    /// More than `most` bytes are not saved, the largest fact not counted: one answer may be larger than any bound.
    fn is_behind(&self, most: usize) -> bool {
        let weights = || self.unsaved.iter().map(|fact| fact.weight());
        weights().sum::<usize>() - weights().max().unwrap_or_default() > most
    }

    /// More than `most` bytes of events wait for saves, counted the same way.
    fn is_overfull(&self, most: usize) -> bool {
        self.weight.saturating_sub(self.largest) > most
    }

    /// The bytes that are not saved, if saving does not work at present.
    pub(super) fn failing(&self) -> Option<usize> {
        self.failing.is_some().then(|| self.unsaved())
    }

    /// Everything is saved.
    pub(super) fn is_saved(&self) -> bool {
        self.unsaved.is_empty() && !self.saving
    }

    /// The actor ends with what is on its way.
    pub(super) fn is_ending(&self) -> bool {
        let stops = |held: &Held| held.parcel.actions.iter().any(|action| matches!(action, Action::Stop));
        self.ending || self.held.iter().any(stops)
    }
}

impl SessionActor {
    /// Sends a parcel on its way: at once if its facts are saved at once, else when they are.
    pub(super) fn dispatch(&mut self, facts: Vec<Arc<Event>>, parcel: Parcel, ctx: &mut Context<Self>) {
        // What carries no facts of its own leaves behind what is before it.
        let before = self.outbox.held.back().map(|held| held.upto);
        let upto = facts.last().map(|fact| fact.seq).or(before).unwrap_or_default();
        let save = !facts.is_empty();
        self.outbox.unsaved.extend(facts);
        let weight = parcel.events.iter().map(|event| event.weight()).sum();
        self.outbox.largest = if self.outbox.held.is_empty() { weight } else { self.outbox.largest.max(weight) };
        self.outbox.weight += weight;
        self.outbox.held.push_back(Held { upto, weight, parcel });
        if save {
            self.save(ctx);
        }
        if self.outbox.is_overfull(self.outfit.limits.buffered_bytes) {
            self.not_saved("more happens than can be saved in time", ctx);
        }
        self.release(ctx);
    }

    /// Lets everything leave that waits for nothing any more.
    fn release(&mut self, ctx: &mut Context<Self>) {
        let failing = self.outbox.failing.is_some();
        while let Some(held) = self.outbox.held.pop_front_if(|held| failing || held.upto <= self.outbox.saved) {
            self.outbox.weight -= held.weight;
            self.carry_out(held.parcel, held.upto <= self.outbox.saved, ctx);
        }
    }

    /// Hands what is not saved to the store, one save at a time.
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
                    actor.not_saved(&format!("saving takes longer than {} s", SAVE_LATE.as_secs()), ctx);
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
                self.release(ctx);
                self.saves_again(ctx);
                if self.outbox.full && self.takes_on().is_ok() {
                    self.outbox.full = false;
                    self.ask_gates_again(ctx);
                }
                if self.outbox.ending && self.outbox.is_saved() {
                    ctx.stop();
                }
            }
            // An append whose failure was told had been written all the same.
            Err(StoreError::Conflict { last, .. }) if self.outbox.unsaved.iter().any(|fact| fact.seq == last) => {
                self.saved(last, Ok(()), ctx);
                self.save(ctx);
            }
            Err(error) => {
                self.not_saved(&error.to_string(), ctx);
                if self.outbox.ending {
                    return ctx.stop();
                }
                self.outbox.retrying = true;
                ctx.run_later(RETRY, |actor, ctx| {
                    actor.outbox.retrying = false;
                    actor.save(ctx);
                });
            }
        }
    }

    /// A save has come to pass: if that was in doubt, and nothing is left to be saved, everyone is told.
    pub(super) fn saves_again(&mut self, ctx: &mut Context<Self>) {
        if self.outbox.failing.is_some() && self.outbox.unsaved.is_empty() {
            self.outbox.failing = None;
            tracing::info!("saving works again");
            let not_saved = self.outfit.not_saved.clone();
            self.shown.send_modify(|shown| Arc::make_mut(shown).set_not_saved(not_saved));
            self.tell(Delta::SavedAgain, ctx);
        }
    }

    /// Saving failed or is late: the session goes on, and everyone is told.
    pub(super) fn not_saved(&mut self, reason: &str, ctx: &mut Context<Self>) {
        if let Some(before) = self.outbox.failing.replace(reason.into()) {
            // Another reason is shown; the notice was given, and a retry that fails alike changes nothing.
            if *before != *reason {
                let not_saved = self.outfit.not_saved.clone().or_else(|| self.outbox.failing.clone());
                self.shown.send_modify(|shown| Arc::make_mut(shown).set_not_saved(not_saved));
            }
            return;
        }
        tracing::error!(reason, "not saved");
        self.release(ctx);
        self.tell(Delta::NotSaved { reason: reason.to_owned() }, ctx);
        if self.outbox.full && reason != REFUSES_WORK {
            self.tell(Delta::NotSaved { reason: REFUSES_WORK.to_owned() }, ctx);
        }
    }

    /// Whether more to do is taken on, or begun. What is not saved is kept in memory, and only so much of it.
    pub(super) fn takes_on(&self) -> Result<(), Refused> {
        let (unsaved, most) = (self.outbox.unsaved(), self.outfit.limits.buffered_bytes);
        if unsaved > most { Err(Refused::NotSaving { unsaved }) } else { Ok(()) }
    }

    /// Takes an input in that there is no end of: beyond the bound of what is not saved it is refused.
    pub(super) fn take_on(&mut self, input: Input, ctx: &mut Context<Self>) -> Result<Reply, Refused> {
        if self.outbox.failing.is_some() || self.outbox.is_behind(self.outfit.limits.buffered_bytes) {
            self.takes_on()?;
        }
        self.take(input, ctx)
    }

    /// Something can't be begun because so much is not saved: everyone is told, once.
    pub(super) fn stand_until_saved(&mut self, ctx: &mut Context<Self>) {
        if std::mem::replace(&mut self.outbox.full, true) {
            return;
        }
        if self.outbox.failing.is_some() {
            self.tell(Delta::NotSaved { reason: REFUSES_WORK.to_owned() }, ctx);
        } else if self.outbox.is_behind(self.outfit.limits.buffered_bytes) {
            self.not_saved(REFUSES_WORK, ctx);
        }
        // Else a single large fact is being saved, which is no fault.
    }

    /// Ends the actor, after the save of what it has to leave behind.
    fn stop(&mut self, ctx: &mut Context<Self>) {
        if self.outbox.is_saved() {
            return ctx.stop();
        }
        self.outbox.ending = true;
        ctx.run_later(LAST_SAVE, |_, ctx| ctx.stop());
    }

    fn carry_out(&mut self, mut parcel: Parcel, saved: bool, ctx: &mut Context<Self>) {
        // First of all the tools: each has waited longest, and nothing it does from here can overtake what follows.
        for wake in parcel.actions.extract_if(.., |action| matches!(action, Action::Wake(..))) {
            if let Action::Wake(ask, reply) = wake {
                self.wake(&ask, reply);
            }
        }
        if let Some(mut snapshot) = parcel.snapshot {
            snapshot.set_not_saved(
                self.outfit.not_saved.clone().or_else(|| self.outbox.failing.clone().filter(|_| !saved)),
            );
            snapshot.clients = self.clients.len();
            self.show(snapshot);
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
                Action::TellTasks(key, reply) => self.tell_tasks(key, reply),
                Action::Pass(gate, passage) => self.pass(gate, passage),
                Action::TurnOver(turn, outcome, receipt) => self.turn_over(turn, outcome, receipt),
                Action::Reply(reply) => reply(saved && self.outfit.not_saved.is_none()),
                Action::Stop => self.stop(ctx),
            }
        }
    }
}
