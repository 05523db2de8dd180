//! The runner of the open turn, as its actor sees it.

use actix::prelude::*;
use futures_util::StreamExt;
use holdpoint_common::{Delta, EndedProcesses, Outcome, TurnId};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::{CancellationToken, DropGuard};
use tracing::Instrument;

use super::SessionActor;
use crate::lane::{LANE, Lane};
use crate::state::{Input, Phase, Report};
use crate::turn::{self, TurnJob};

/// The runner of the open turn.
pub(super) struct Runner {
    turn: TurnId,
    /// Cancelled at the cut, and when the actor is gone, however it goes.
    cancel: DropGuard,
    /// The stream of what it tells.
    lane: SpawnHandle,
    /// It has ended; what the cut ends of the turn's background jobs may still be waited for.
    ended: bool,
}

/// What comes out of a turn's lane.
struct FromLane {
    turn: TurnId,
    /// `None`: the lane is closed, so the runner and its tools are gone.
    told: Option<Lane>,
}

impl SessionActor {
    pub(super) fn start_runner(&mut self, turn: TurnId, ctx: &mut Context<Self>) {
        let Some(open) = self.state.turn().filter(|open| open.id == turn) else { return };
        // Of a turn that goes on after a restart: the calls whose Confirm stands.
        let (step, standing) = (open.step, open.calls.iter().map(|(call, _)| call.clone()).collect());
        let used = self.state.used(open.open_step.unwrap_or_default(), self.outfit.moment(self.numbers.next()));
        let cancel = CancellationToken::new();
        if matches!(self.state.phase(), Phase::Interrupting(..)) {
            // The cut was saved before the start was.
            cancel.cancel();
        }
        let (lane, told) = mpsc::channel(LANE);
        let told = ReceiverStream::new(told)
            .map(move |told| FromLane { turn, told: Some(told) })
            .chain(futures_util::stream::iter([FromLane { turn, told: None }]));
        let toolbox = self.toolbox.take().unwrap_or_else(|| (self.outfit.toolbox)(self.state.settings()));
        let job = TurnJob {
            turn,
            iteration: self.state.run().is_some(),
            first_item: self.state.next_item().max(self.first_item),
            step,
            standing,
            used,
            outfit: self.outfit.clone(),
            toolbox,
            background: self.background.clone(),
            cancel: cancel.clone(),
            lane,
            asks: ctx.address().downgrade().recipient(),
            alive: self.alive.clone(),
        };
        self.runner = Some(Runner { turn, cancel: cancel.drop_guard(), lane: ctx.add_stream(told), ended: false });
        let span = tracing::info_span!("turn", %turn);
        self.outfit.runtime.spawn(turn::run(job).instrument(span));
    }

    /// The cut: nothing waits for a save here.
    pub(super) fn cancel_runner(&mut self, turn: TurnId) {
        if let Some(runner) = self.runner.as_ref().filter(|runner| runner.turn == turn) {
            runner.cancel.token().cancel();
        }
        self.background.cut(turn);
        self.cut_gates();
        self.interrupt_asks();
    }

    /// The turn is over: what its tools may still say is not heard.
    pub(super) fn end_runner(&mut self, ctx: &mut Context<Self>) {
        if let Some(runner) = self.runner.take() {
            ctx.cancel_future(runner.lane);
        }
        self.cut_gates();
        self.interrupt_asks();
    }
}

impl StreamHandler<FromLane> for SessionActor {
    fn handle(&mut self, FromLane { turn, told }: FromLane, ctx: &mut Self::Context) {
        // A stream that is cancelled may still bring what has come: of a turn that stays open, for one, when its runner
        // was abandoned.
        if self.runner.as_ref().is_none_or(|runner| runner.turn != turn) {
            return;
        }
        match told {
            Some(Lane::Delta(delta)) => {
                let output = match &delta {
                    Delta::Output { item, .. } => Some(*item),
                    _ => None,
                };
                self.tell(delta, ctx);
                if let Some(item) = output {
                    self.heard(item, ctx);
                }
            }
            Some(Lane::Gate(gate, runner)) => self.ask_gate(turn, gate, runner, ctx),
            Some(Lane::Report(end @ Report::Finished { .. })) => self.runner_ended(turn, end, ctx),
            Some(Lane::Report(report)) => self.hear(turn, report, ctx),
            Some(Lane::Tools(toolbox)) => self.toolbox = Some(toolbox),
            None => {
                let error = Some("the turn's runner is gone".to_owned());
                let (tools, processes) = (Vec::new(), EndedProcesses::default());
                self.runner_ended(turn, Report::Finished { outcome: Outcome::Panicked, error, tools, processes }, ctx);
            }
        }
    }

    fn finished(&mut self, _: &mut Self::Context) {
        // The end of a lane is not the end of the actor.
    }
}

impl SessionActor {
    /// The runner is done. Its turn is over only when the background jobs that a cut has ended are gone, too; looked at here,
    /// where the cut is made: a runner that has just looked for itself would end a turn whose jobs still live.
    fn runner_ended(&mut self, turn: TurnId, mut end: Report, ctx: &mut Context<Self>) {
        // The end of its lane comes behind its own word.
        if self.runner.as_mut().is_none_or(|runner| std::mem::replace(&mut runner.ended, true)) {
            return;
        }
        // Most turns have none, and need no thread for it.
        if !matches!(self.state.phase(), Phase::Interrupting(..)) || !self.background.has_cut(turn) {
            return self.hear(turn, end, ctx);
        }
        let background = self.background.clone();
        let jobs = self.outfit.runtime.spawn_blocking(move || background.finish(turn));
        ctx.spawn(jobs.into_actor(self).map(move |jobs, actor, ctx| {
            // It may have been abandoned meanwhile.
            if actor.runner.as_ref().is_none_or(|runner| runner.turn != turn) {
                return;
            }
            if let Report::Finished { processes, .. } = &mut end {
                processes.add(jobs.unwrap_or_default());
            }
            actor.hear(turn, end, ctx);
        }));
    }

    fn hear(&mut self, turn: TurnId, report: Report, ctx: &mut Context<Self>) {
        // A report is never refused, at most stale.
        let _ = self.take(Input::Report { turn, report }, ctx);
    }
}
