//! Asks, which tools raise and clients answer.

use std::collections::HashMap;

use actix::prelude::*;
use holdpoint_common::{AskId, CallId};
use holdpoint_tools::{Answering, AskReply, TasksReply, ToolAsk, ToolRequest};
use tokio::sync::mpsc::error::TrySendError;

use super::SessionActor;
use crate::lane::LaneMessage;
use crate::state::{JobEnded, JobStarted, RaiseAsk, WithdrawAsk};

/// The requests of tools that wait for a reply.
#[derive(Default)]
pub(super) struct ToolAsks {
    /// The answering ends of the open asks. Dropping one wakes its tool as interrupted.
    answering: HashMap<AskId, Answering>,
    /// The answering ends of the tools that wait for a reply about the tasks and notes.
    pub(super) tasks: HashMap<TasksKey, Answering<TasksReply>>,
    /// How many requests about the tasks and notes there were, which makes their keys unique.
    pub(super) next_task_key: u64,
}

/// Identifies a request about the tasks and notes. A call can have several, one per thread.
pub(super) type TasksKey = (CallId, u64);

impl ToolAsks {
    /// Closes an ask without an answer. If its tool still waits, it wakes as interrupted.
    pub(super) fn close(&mut self, ask: &AskId) {
        self.answering.remove(ask);
    }
}

impl Handler<ToolRequest> for SessionActor {
    type Result = ();

    fn handle(&mut self, request: ToolRequest, ctx: &mut Self::Context) {
        match request {
            ToolRequest::Ask(ask) => self.queue_ask(ask, ctx),
            ToolRequest::Tasks { turn, call, request, answering } => {
                self.handle_task_request(turn, call, request, answering, ctx);
            }
            ToolRequest::JobStarted { turn, call, command } => {
                tracing::info!(%call, "background job started");
                // News of a job is never refused; at most it is stale.
                let _ = self.handle_input(JobStarted { turn, call, command }, ctx);
            }
            ToolRequest::JobEnded { call, end } => {
                tracing::info!(%call, %end, "background job ended");
                let _ = self.handle_input(JobEnded { job: call, end }, ctx);
            }
            _ => {}
        }
    }
}

impl SessionActor {
    /// Puts an ask at the end of its turn's lane. The output that its call has sent before is in
    /// the lane already, while the ask came by message.
    fn queue_ask(&self, ask: ToolAsk, ctx: &mut Context<Self>) {
        // Without a lane, no output can follow: the ask is dropped, and its tool is interrupted.
        let Some(lane) = self.runner.as_ref().and_then(|runner| runner.lane_for(ask.turn)) else {
            return;
        };
        if let Err(TrySendError::Full(message)) = lane.try_send(LaneMessage::Ask(ask)) {
            ctx.spawn(async move { drop(lane.send(message).await) }.into_actor(self));
        }
    }

    /// Raises an ask. Everything that its call has sent before is published.
    pub(super) fn raise_ask(
        &mut self,
        ToolAsk { turn, call, request, may_be_denied, answering, withdrawn }: ToolAsk,
        ctx: &mut Context<Self>,
    ) {
        let tool = request.tool_name().to_owned();
        // Registered under the id that the ask will get, because the asks mode may answer it at
        // once.
        let id = AskId { session: self.state.id().clone(), seq: self.numbers.next() };
        self.asks.answering.insert(id.clone(), answering);
        match self.handle_input(RaiseAsk { turn, call, request, may_be_denied }, ctx) {
            Ok(Some(ask)) => {
                tracing::info!(%ask, %call, tool, "asked");
                debug_assert_eq!(ask, id, "the id of an ask has the number of its event");
                if let Some(withdrawn) = withdrawn {
                    // Ends when the tool continues, for whatever reason. An ask that is not open
                    // any more makes this stale.
                    let withdrawn = withdrawn.cancelled_owned().into_actor(self);
                    ctx.spawn(withdrawn.map(|(), actor, ctx| {
                        let _ = actor.handle_input(WithdrawAsk { ask }, ctx);
                    }));
                }
            }
            Ok(None) | Err(_) => {
                self.asks.answering.remove(&id);
            }
        }
    }

    /// Wakes the tool that waits for an ask. After a cut, the tool is awake already.
    pub(super) fn wake(&mut self, ask: &AskId, reply: AskReply) {
        if let Some(answering) = self.asks.answering.remove(ask) {
            answering.answer(reply);
        }
    }

    /// Wakes all waiting tools as interrupted.
    pub(super) fn interrupt_asks(&mut self) {
        self.asks = ToolAsks::default();
    }
}
