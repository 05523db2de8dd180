//! Asks: tools raise them, clients answer them.

use std::collections::HashMap;

use actix::prelude::*;
use holdpoint_common::api::Answered;
use holdpoint_common::{Answer, AskId, CallId, ItemId, Who};
use holdpoint_tools::{Answering, AskReply, TasksReply, ToolRequest};

use super::{Replied, SessionActor};
use crate::state::{Input, Phase, Refused, Reply};

/// Answers an ask.
#[derive(Message)]
#[rtype(result = "Result<Answered, Refused>")]
pub(crate) struct AnswerAsk {
    pub(crate) ask: AskId,
    pub(crate) answer: Answer,
    pub(crate) by: Who,
}

impl Handler<AnswerAsk> for SessionActor {
    type Result = Replied<Result<Answered, Refused>>;

    fn handle(&mut self, AnswerAsk { ask, answer, by }: AnswerAsk, ctx: &mut Self::Context) -> Self::Result {
        let word = answer.word();
        // What stands is left for the restart. An answer taken now would be one to a call that nobody runs.
        if self.outbox.is_ending() {
            return Replied::Never;
        }
        match self.take(Input::Answer { ask: ask.clone(), answer, by: by.clone() }, ctx) {
            Ok(_) => {
                tracing::info!(%ask, answer = word, %by, "answered");
                self.reply(move |saved| Ok(Answered { ask, saved }), ctx)
            }
            Err(refused) => {
                tracing::info!(%ask, answer = word, %by, %refused, "answer refused");
                Replied::Now(Err(refused))
            }
        }
    }
}

/// The asks of tools: what is open, and what came before its call's output.
#[derive(Default)]
pub(super) struct ToolAsks {
    /// The answering ends of the open asks. Dropping one wakes its tool as interrupted.
    answering: HashMap<AskId, Answering>,
    /// Likewise of the tools that wait to hear of the tasks and notes.
    pub(super) tasks: HashMap<TasksKey, Answering<TasksReply>>,
    /// How often they have been asked about.
    pub(super) tasks_wanted: u64,
    /// The pieces of output heard of each call.
    heard: HashMap<ItemId, u64>,
    /// Asks that wait for output of their call: the mailbox is faster than the lane.
    early: Vec<ToolRequest>,
}

/// Names one who waits to hear of the tasks and notes: a call may have several threads that ask.
pub(super) type TasksKey = (CallId, u64);

impl ToolAsks {
    /// An ask is over without an answer: if its tool waits still, it wakes as interrupted.
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
                return self.tasks_wanted(turn, call, request, answering, ctx);
            }
            ToolRequest::JobStarted { turn, call, command } => {
                tracing::info!(%call, "a background job runs");
                // News of a job is never refused, at most stale.
                let _ = self.take(Input::JobStarted { turn, call, command }, ctx);
                return;
            }
            ToolRequest::JobEnded { call, end } => {
                tracing::info!(%call, %end, "a background job is over");
                let _ = self.take(Input::JobEnded { job: call, end }, ctx);
                return;
            }
            _ => return,
        };
        let runs = matches!(self.state.phase(), Phase::Running(open) if open.id == turn);
        if runs && self.asks.heard.get(&call.item()).copied().unwrap_or_default() < after {
            self.asks.early.push(ToolRequest::Ask { turn, call, request, after, answering });
            return;
        }
        let tool = request.tool_name().to_owned();
        // The answering end is filed under the id the ask is about to get, for the setting may answer it at once.
        let id = AskId { session: self.state.id().clone(), seq: self.numbers.next() };
        self.asks.answering.insert(id.clone(), answering);
        match self.take(Input::Ask { turn, call, request }, ctx) {
            Ok(Reply::Asked(ask)) => {
                tracing::info!(%ask, %call, tool, "asked");
                debug_assert_eq!(ask, id, "an ask is named after its own event");
            }
            Ok(_) | Err(_) => {
                self.asks.answering.remove(&id);
            }
        }
    }
}

impl SessionActor {
    /// Wakes the tool that waits on an ask. If the cut was first, it is awake already.
    pub(super) fn wake(&mut self, ask: &AskId, reply: AskReply) {
        if let Some(answering) = self.asks.answering.remove(ask) {
            answering.answer(reply);
        }
    }

    /// A piece of output has been published: an ask that waited for it may be raised.
    pub(super) fn heard(&mut self, item: ItemId, ctx: &mut Context<Self>) {
        *self.asks.heard.entry(item).or_default() += 1;
        let of_item =
            |request: &mut ToolRequest| matches!(request, ToolRequest::Ask { call, .. } if call.item() == item);
        let early: Vec<_> = self.asks.early.extract_if(.., of_item).collect();
        for request in early {
            Handler::<ToolRequest>::handle(self, request, ctx);
        }
    }

    /// Wakes every tool that waits, as interrupted.
    pub(super) fn interrupt_asks(&mut self) {
        self.asks = ToolAsks::default();
    }
}
