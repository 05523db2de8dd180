//! Asks, which tools raise and clients answer.

use std::collections::HashMap;

use actix::prelude::*;
use holdpoint_common::{AskId, CallId, ItemId};
use holdpoint_tools::{Answering, AskReply, TasksReply, ToolRequest};

use super::SessionActor;
use crate::state::{JobEnded, JobStarted, Phase, RaiseAsk};

/// The open asks of tools, and the asks that arrived before the output of their call.
#[derive(Default)]
pub(super) struct ToolAsks {
    /// The answering ends of the open asks. Dropping one wakes its tool as interrupted.
    answering: HashMap<AskId, Answering>,
    /// The answering ends of the tools that wait for a reply about the tasks and notes.
    pub(super) tasks: HashMap<TasksKey, Answering<TasksReply>>,
    /// How many requests about the tasks and notes there were, which makes their keys unique.
    pub(super) next_task_key: u64,
    /// How many pieces of output each call has published.
    published: HashMap<ItemId, u64>,
    /// Asks that wait for earlier output of their call: the mailbox can overtake the lane.
    early: Vec<ToolRequest>,
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
        let (turn, call, request, after, answering) = match request {
            ToolRequest::Ask { turn, call, request, after, answering } => (turn, call, request, after, answering),
            ToolRequest::Tasks { turn, call, request, answering } => {
                return self.handle_task_request(turn, call, request, answering, ctx);
            }
            ToolRequest::JobStarted { turn, call, command } => {
                tracing::info!(%call, "background job started");
                // News of a job is never refused; at most it is stale.
                let _ = self.handle_input(JobStarted { turn, call, command }, ctx);
                return;
            }
            ToolRequest::JobEnded { call, end } => {
                tracing::info!(%call, %end, "background job ended");
                let _ = self.handle_input(JobEnded { job: call, end }, ctx);
                return;
            }
            _ => return,
        };
        let runs = matches!(self.state.phase(), Phase::Running(open) if open.id == turn);
        if runs && self.asks.published.get(&call.item()).copied().unwrap_or_default() < after {
            self.asks.early.push(ToolRequest::Ask { turn, call, request, after, answering });
            return;
        }
        let tool = request.tool_name().to_owned();
        // Registered under the id that the ask will get, because the asks mode may answer it at
        // once.
        let id = AskId { session: self.state.id().clone(), seq: self.numbers.next() };
        self.asks.answering.insert(id.clone(), answering);
        match self.handle_input(RaiseAsk { turn, call, request }, ctx) {
            Ok(Some(ask)) => {
                tracing::info!(%ask, %call, tool, "asked");
                debug_assert_eq!(ask, id, "the id of an ask has the number of its event");
            }
            Ok(None) | Err(_) => {
                self.asks.answering.remove(&id);
            }
        }
    }
}

impl SessionActor {
    /// Wakes the tool that waits for an ask. After a cut, the tool is awake already.
    pub(super) fn wake(&mut self, ask: &AskId, reply: AskReply) {
        if let Some(answering) = self.asks.answering.remove(ask) {
            answering.answer(reply);
        }
    }

    /// Counts a published piece of output, and raises the asks that waited for it.
    pub(super) fn count_output(&mut self, item: ItemId, ctx: &mut Context<Self>) {
        *self.asks.published.entry(item).or_default() += 1;
        let of_item =
            |request: &mut ToolRequest| matches!(request, ToolRequest::Ask { call, .. } if call.item() == item);
        let early: Vec<_> = self.asks.early.extract_if(.., of_item).collect();
        for request in early {
            Handler::<ToolRequest>::handle(self, request, ctx);
        }
    }

    /// Wakes all waiting tools as interrupted.
    pub(super) fn interrupt_asks(&mut self) {
        self.asks = ToolAsks::default();
    }
}
