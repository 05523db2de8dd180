//! The outbox, from which the consequences of facts leave in order, once the facts are saved.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use actix::prelude::*;
use holdpoint_common::{AskId, Event, Outcome, Receipt, Snapshot, TurnId};
use holdpoint_tools::{AskReply, TasksReply};

use super::SessionActor;
use super::ask::TasksKey;
use super::saving::is_followed_at_once;
use crate::lane::{GateAnswer, GateKey};
use crate::state::Phase;

/// The parcels that wait for a save, and the facts that are not saved yet.
#[derive(Default)]
pub(crate) struct Outbox {
    /// The unsaved facts in order, including those that are being saved.
    pub(super) unsaved: VecDeque<Arc<Event>>,
    /// The size of the unsaved facts, in bytes.
    unsaved_bytes: usize,
    /// Whether a save is under way.
    pub(super) saving: bool,
    /// The save that waits for more facts, at most for [`JOIN_WAIT`](super::saving::JOIN_WAIT).
    pub(super) joining: Option<SpawnHandle>,
    /// The number of the last saved fact.
    pub(super) saved: u64,
    /// Why saves of facts fail or are late at present. Clients have been notified.
    pub(super) failing: Option<Arc<str>>,
    /// Whether the next save waits for [`RETRY_DELAY`] after a failed one.
    pub(super) retrying: bool,
    /// Whether work was refused because too much is unsaved. Clients have been notified.
    pub(super) full: bool,
    /// Whether the actor ends once everything is saved, or a save fails.
    pub(super) ending: bool,
    /// The size of the events in `held`, in bytes.
    weight: usize,
    /// The size of the largest parcel since `held` was last empty, in bytes.
    largest: usize,
    /// The waiting parcels, in order.
    held: VecDeque<HeldParcel>,
    /// The actions of earlier parcels that begin work, in order, each with the number of the fact
    /// that has to be saved first. Only a log with a lease withholds them.
    withheld: VecDeque<(u64, Action)>,
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

impl Action {
    /// Whether this begins or continues work, in contrast to news for clients.
    fn begins_work(&self) -> bool {
        match self {
            Self::Start(_)
            | Self::Wait(..)
            | Self::Wake(..)
            | Self::ReplyTasks(..)
            | Self::Pass(..) => true,
            Self::TurnOver(..) | Self::Reply(_) | Self::Stop => false,
        }
    }
}

impl Outbox {
    /// An outbox for a log that ends with the fact of this number.
    pub(crate) fn after(saved: u64) -> Self {
        Self { saved, ..Self::default() }
    }

    /// Whether work waits for a save or for the lease, although its parcel has left.
    pub(super) fn is_withholding(&self) -> bool {
        !self.withheld.is_empty()
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
        self.unsaved_bytes
    }

    /// Removes the first unsaved fact, if it was saved with those up to this number.
    pub(super) fn pop_saved(&mut self, upto: u64) -> Option<Arc<Event>> {
        let fact = self.unsaved.pop_front_if(|fact| fact.seq <= upto)?;
        self.unsaved_bytes -= fact.weight();
        Some(fact)
    }

    /// Whether more than `max_bytes` bytes are unsaved, not counting the largest fact: a single
    /// answer may be larger than any bound.
    pub(super) fn is_behind(&self, max_bytes: usize) -> bool {
        if self.unsaved_bytes <= max_bytes {
            return false;
        }
        let largest = self.unsaved.iter().map(|fact| fact.weight()).max().unwrap_or_default();
        self.unsaved_bytes - largest > max_bytes
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
        let unsaved = || self.outbox.unsaved.back().map(|fact| fact.seq);
        let upto = facts.last().map(|fact| fact.seq).or(before).or_else(unsaved);
        let upto = upto.unwrap_or_default();
        let has_facts = !facts.is_empty();
        let is_awaited = !parcel.actions.is_empty();
        let may_wait = !is_awaited && facts.iter().all(|fact| is_followed_at_once(fact));
        self.outbox.unsaved_bytes += facts.iter().map(|fact| fact.weight()).sum::<usize>();
        self.outbox.unsaved.extend(facts);
        let weight = parcel.events.iter().map(|event| event.weight()).sum();
        self.outbox.largest =
            if self.outbox.held.is_empty() { weight } else { self.outbox.largest.max(weight) };
        self.outbox.weight += weight;
        self.outbox.held.push_back(HeldParcel { upto, weight, parcel });
        if has_facts && may_wait {
            self.save_soon(ctx);
        } else if has_facts || is_awaited {
            self.save(ctx);
        }
        if self.outbox.is_overfull(self.env.limits.buffered_bytes) {
            self.notify_not_saved("events arrive faster than they can be saved", ctx);
        }
        self.release_parcels(ctx);
    }

    /// Carries out the parcels that need no further save, or all parcels while saves of facts fail.
    pub(super) fn release_parcels(&mut self, ctx: &mut Context<Self>) {
        let failing = self.outbox.failing.is_some();
        while let Some(held) =
            self.outbox.held.pop_front_if(|held| failing || held.upto <= self.outbox.saved)
        {
            self.outbox.weight -= held.weight;
            self.release_parcel(held.parcel, held.upto, ctx);
        }
    }

    fn release_parcel(&mut self, mut parcel: Parcel, upto: u64, ctx: &mut Context<Self>) {
        let saved = upto <= self.outbox.saved;
        if self.outbox.is_withholding() || !self.may_begin(saved) {
            for action in parcel.actions.extract_if(.., |action| action.begins_work()) {
                self.withhold(upto, action, ctx);
            }
        }
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
            self.carry_out(action, saved, ctx);
        }
    }

    /// Keeps an action until it may begin. The start of a turn that was cut begins no work.
    fn withhold(&mut self, upto: u64, action: Action, ctx: &mut Context<Self>) {
        self.outbox.withheld.push_back((upto, action));
        self.start_cut_turn(ctx);
        self.watch_lease(ctx);
    }

    /// Starts the runner of a turn that was cut while its start was withheld: it only ends the turn.
    pub(super) fn start_cut_turn(&mut self, ctx: &mut Context<Self>) {
        let is_start = |(_, action): &(u64, Action)| matches!(action, Action::Start(_));
        if matches!(self.state.phase(), Phase::Interrupting(..))
            && let Some(at) = self.outbox.withheld.iter().position(is_start)
            && let Some((_, start)) = self.outbox.withheld.remove(at)
        {
            self.carry_out(start, false, ctx);
        }
    }

    /// Carries out the withheld actions that may begin by now.
    pub(super) fn begin_withheld(&mut self, ctx: &mut Context<Self>) {
        while let Some(upto) = self.outbox.withheld.front().map(|(upto, _)| *upto)
            && self.may_begin(upto <= self.outbox.saved)
            && let Some((_, action)) = self.outbox.withheld.pop_front()
        {
            self.carry_out(action, true, ctx);
        }
    }

    fn carry_out(&mut self, action: Action, saved: bool, ctx: &mut Context<Self>) {
        match action {
            Action::Start(turn) => self.start_runner(turn, ctx),
            Action::Wait(turn, wait_ms) => self.wait_for_run(turn, wait_ms, ctx),
            Action::Wake(ask, reply) => self.wake(&ask, reply),
            Action::ReplyTasks(key, reply) => self.reply_tasks(key, reply),
            Action::Pass(key, answer) => self.answer_gate(key, answer),
            Action::TurnOver(turn, outcome, receipt) => self.turn_over(turn, outcome, receipt),
            Action::Reply(reply) => reply(saved && self.env.not_saved.is_none()),
            Action::Stop => self.stop(ctx),
        }
    }
}
