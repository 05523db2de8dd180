//! Runs and their tasks.

use std::time::Duration;

use actix::prelude::*;
use holdpoint_common::{CallId, Refused, TaskRequest, TurnId};
use holdpoint_tools::{Answering, TasksReply};

use super::SessionActor;
use super::ask::TasksKey;
use super::outbox::{Action, Parcel};
use crate::state::{ChangeTasks, Reception, WaitOver};

impl SessionActor {
    /// Continues a run when the wait after this turn is over.
    pub(super) fn wait_for_run(&mut self, turn: TurnId, wait_ms: u64, ctx: &mut Context<Self>) {
        ctx.run_later(Duration::from_millis(wait_ms), move |actor, ctx| {
            // Never refused; at most it is stale.
            let _ = actor.handle_input(WaitOver { turn }, ctx);
        });
    }

    /// Carries out a tool's request about the tasks and notes, and replies when the change is
    /// saved.
    pub(super) fn handle_task_request(
        &mut self,
        turn: TurnId,
        call: CallId,
        request: TaskRequest,
        answering: Answering<TasksReply>,
        ctx: &mut Context<Self>,
    ) {
        let reply = match self.handle_input(ChangeTasks { turn, call, request }, ctx) {
            Ok(Reception::Noted) => Ok(self.state.tasks().clone()),
            Err(Refused::Task(error)) => Err(error),
            // The turn was cut. Dropping `answering` wakes the tool as interrupted.
            Ok(Reception::Stale) | Err(_) => return,
        };
        let key = (call, self.asks.next_task_key);
        self.asks.next_task_key += 1;
        self.asks.tasks.insert(key, answering);
        let parcel = Parcel { actions: vec![Action::ReplyTasks(key, reply)], ..Parcel::default() };
        self.dispatch(Vec::new(), parcel, ctx);
    }

    /// Replies to a tool. After a cut, it is awake already.
    pub(super) fn reply_tasks(&mut self, key: TasksKey, reply: TasksReply) {
        if let Some(answering) = self.asks.tasks.remove(&key) {
            answering.answer(reply);
        }
    }
}
