//! The runner of the open turn, seen from its actor.

use actix::prelude::*;
use futures_util::StreamExt;
use holdpoint_common::{EndedProcesses, Outcome, TurnId};
use tokio::sync::mpsc::{self, Sender, WeakSender};
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::{CancellationToken, DropGuard};
use tracing::Instrument;

use super::SessionActor;
use crate::lane::{LANE_CAPACITY, LaneMessage};
use crate::state::{Phase, Report, RunnerReport};
use crate::turn::{self, Kept, TurnSetup};

pub(super) struct Runner {
    turn: TurnId,
    /// Cancels the runner at the cut, and when the actor is dropped.
    cancel: DropGuard,
    /// The sending end of the lane. It is weak, because the lane closes with its last sender.
    lane: WeakSender<LaneMessage>,
    /// The stream of the lane's messages.
    messages: SpawnHandle,
    /// Whether the runner has ended. The background jobs that the cut ended may still be awaited.
    ended: bool,
}

impl Runner {
    /// The sending end of the lane of this turn. `None` if another turn runs, or the lane is
    /// closed.
    pub(super) fn lane_for(&self, turn: TurnId) -> Option<Sender<LaneMessage>> {
        if self.turn == turn { self.lane.upgrade() } else { None }
    }
}

/// A message from a turn's lane.
struct FromLane {
    turn: TurnId,
    /// `None` if the lane is closed, because the runner and its tools are gone.
    message: Option<LaneMessage>,
}

impl SessionActor {
    /// Starts the runner of this turn.
    pub(super) fn start_runner(&mut self, turn: TurnId, ctx: &mut Context<Self>) {
        let Some(open) = self.state.turn().filter(|open| open.id == turn) else { return };
        // A turn that continues after a restart still has its calls with an open Confirm.
        let pending_calls = open.calls.iter().map(|(call, _)| call.clone()).collect();
        let step = open.step;
        let used = self
            .state
            .step_usage(open.open_step.unwrap_or_default(), self.env.moment(self.numbers.next()));
        let cancel = CancellationToken::new();
        if matches!(self.state.phase(), Phase::Interrupting(..)) {
            // The turn was cut while its start waited for the save.
            cancel.cancel();
        }
        let (lane, receiver) = mpsc::channel(LANE_CAPACITY);
        let messages = ReceiverStream::new(receiver)
            .map(move |message| FromLane { turn, message: Some(message) })
            .chain(futures_util::stream::iter([FromLane { turn, message: None }]));
        let weak_lane = lane.downgrade();
        if self.kept.is_none() {
            self.lapses = self.log.lapses();
        }
        let new = || Kept { toolbox: self.env.make_toolbox(&self.state), counter: None };
        let mut kept = self.kept.take().unwrap_or_else(new);
        if let Some(counter) = self.conversation.take_counter() {
            kept.counter.get_or_insert(counter);
        }
        let setup = TurnSetup {
            turn,
            iteration: self.state.run().is_some(),
            first_item: self.state.next_item().max(self.first_item),
            step,
            pending_calls,
            used,
            env: self.env.clone(),
            kept,
            background: self.background.clone(),
            cancel: cancel.clone(),
            lane,
            asks: ctx.address().downgrade().recipient(),
            alive: self.alive.clone(),
        };
        self.runner = Some(Runner {
            turn,
            cancel: cancel.drop_guard(),
            lane: weak_lane,
            messages: ctx.add_stream(messages),
            ended: false,
        });
        let span = tracing::info_span!("turn", %turn);
        self.env.runtime.spawn(turn::run(setup).instrument(span));
        self.watch_lease(ctx);
    }

    /// Cancels the runner at the cut, without waiting for a save.
    pub(super) fn cancel_runner(&mut self, turn: TurnId) {
        if let Some(runner) = self.runner.as_ref().filter(|runner| runner.turn == turn) {
            runner.cancel.token().cancel();
        }
        self.background.cut(turn);
        self.cut_gates();
        self.interrupt_asks();
    }

    /// Drops the runner of a turn that is over. Later messages of its tools are ignored.
    pub(super) fn end_runner(&mut self, ctx: &mut Context<Self>) {
        self.forget_waiting_runner();
        if let Some(runner) = self.runner.take() {
            ctx.cancel_future(runner.messages);
        }
        self.cut_gates();
        self.interrupt_asks();
    }
}

impl StreamHandler<FromLane> for SessionActor {
    fn handle(&mut self, FromLane { turn, message }: FromLane, ctx: &mut Self::Context) {
        // A cancelled stream may still deliver a message, for example if the runner was abandoned
        // but the turn is still open.
        if self.runner.as_ref().is_none_or(|runner| runner.turn != turn) {
            return;
        }
        match message {
            Some(LaneMessage::Delta(delta)) => self.publish_delta(delta, ctx),
            Some(LaneMessage::Ask(ask)) => self.raise_ask(ask, ctx),
            Some(LaneMessage::Gate(gate, answer_to)) => self.ask_gate(turn, gate, answer_to, ctx),
            Some(LaneMessage::Report(end @ Report::Finished { .. })) => {
                self.runner_ended(turn, end, ctx)
            }
            Some(LaneMessage::Report(report)) => self.take_report(turn, report, ctx),
            Some(LaneMessage::ReadOlder(bytes, answer_to)) => {
                self.read_for_runner(bytes, answer_to, ctx)
            }
            Some(LaneMessage::Kept(kept)) => self.kept = Some(kept),
            None => {
                let end = Report::Finished {
                    outcome: Outcome::Panicked,
                    error: Some("the turn's runner ended without a report".to_owned()),
                    tools: Vec::new(),
                    processes: EndedProcesses::default(),
                };
                self.runner_ended(turn, end, ctx);
            }
        }
    }

    fn finished(&mut self, _: &mut Self::Context) {
        // The end of a lane must not end the actor.
    }
}

impl SessionActor {
    /// Handles the end of the runner. After a cut, the turn is over only when its background jobs
    /// are gone as well. The check is made here, where the cut is made: a runner that checked on
    /// its own could end a turn that is cut just then, while its jobs still live.
    fn runner_ended(&mut self, turn: TurnId, mut end: Report, ctx: &mut Context<Self>) {
        // The lane closes after the runner's own report, which was handled already.
        if self.runner.as_mut().is_none_or(|runner| std::mem::replace(&mut runner.ended, true)) {
            return;
        }
        // Most turns have no such jobs, and need no thread.
        if !matches!(self.state.phase(), Phase::Interrupting(..)) || !self.background.has_cut(turn)
        {
            return self.take_report(turn, end, ctx);
        }
        let background = self.background.clone();
        let jobs = self.env.runtime.spawn_blocking(move || background.finish(turn));
        ctx.spawn(jobs.into_actor(self).map(move |jobs, actor, ctx| {
            // The turn may have been abandoned in the meantime.
            if actor.runner.as_ref().is_none_or(|runner| runner.turn != turn) {
                return;
            }
            if let Report::Finished { processes, .. } = &mut end {
                processes.add(jobs.unwrap_or_default());
            }
            actor.take_report(turn, end, ctx);
        }));
    }

    fn take_report(&mut self, turn: TurnId, report: Report, ctx: &mut Context<Self>) {
        // A report is never refused; at most it is stale.
        let _ = self.handle_input(RunnerReport { turn, report }, ctx);
    }
}
