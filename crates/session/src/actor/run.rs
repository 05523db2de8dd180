//! Runs, and the tasks they work through.

use std::time::Duration;

use actix::prelude::*;
use holdpoint_common::api::{RunRequest, RunStarted};
use holdpoint_common::{CallId, TaskRequest, TurnId, Who};
use holdpoint_tools::{Answering, TasksReply};

use super::ask::TasksKey;
use super::outbox::{Action, Parcel};
use super::{Replied, SessionActor};
use crate::state::{Input, Refused, Reply};

/// Begins a run.
#[derive(Message)]
#[rtype(result = "Result<RunStarted, Refused>")]
pub(crate) struct StartRun {
    pub(crate) request: RunRequest,
    pub(crate) by: Who,
}

impl Handler<StartRun> for SessionActor {
    type Result = Replied<Result<RunStarted, Refused>>;

    fn handle(&mut self, StartRun { request, by }: StartRun, ctx: &mut Self::Context) -> Self::Result {
        if self.outbox.is_ending() {
            return Replied::Never;
        }
        match self.take_on(Input::Run { request, by: by.clone() }, ctx) {
            Ok(Reply::RunStarted { turn }) => {
                tracing::info!(%by, "a run began");
                self.reply(move |saved| Ok(RunStarted { turn, saved }), ctx)
            }
            Ok(_) => Replied::Now(Err(Refused::Closed)),
            Err(refused) => Replied::Now(Err(refused)),
        }
    }
}

impl SessionActor {
    /// Comes back to a run when its wait after this turn is over.
    pub(super) fn wait_for_run(&mut self, turn: TurnId, wait_ms: u64, ctx: &mut Context<Self>) {
        ctx.run_later(Duration::from_millis(wait_ms), move |actor, ctx| {
            // Never refused, at most stale.
            let _ = actor.take(Input::WaitOver { turn }, ctx);
        });
    }

    /// Does what a tool wants done to the tasks and notes, and tells it when that is saved.
    pub(super) fn tasks_wanted(
        &mut self,
        turn: TurnId,
        call: CallId,
        request: TaskRequest,
        answering: Answering<TasksReply>,
        ctx: &mut Context<Self>,
    ) {
        let reply = match self.take(Input::Tasks { turn, call, request }, ctx) {
            Ok(Reply::Noted) => Ok(self.state.tasks().clone()),
            Err(Refused::Task(error)) => Err(error),
            // Its turn is cut: dropped, the answer reads as interrupted.
            Ok(_) | Err(_) => return,
        };
        let key = (call, self.asks.tasks_wanted);
        self.asks.tasks_wanted += 1;
        self.asks.tasks.insert(key, answering);
        let told = Parcel { actions: vec![Action::TellTasks(key, reply)], ..Parcel::default() };
        self.dispatch(Vec::new(), told, ctx);
    }

    /// Tells the tool. If the cut was first, it is awake already.
    pub(super) fn tell_tasks(&mut self, key: TasksKey, reply: TasksReply) {
        if let Some(answering) = self.asks.tasks.remove(&key) {
            answering.answer(reply);
        }
    }
}
