//! Asks: tools raise them, clients answer them.

use actix::prelude::*;
use holdpoint_common::{Answer, AskId, Who};
use holdpoint_tools::{AskReply, ToolRequest};

use super::{Replied, SessionActor};
use crate::state::{Input, Refused, Reply};

/// Answers an ask.
#[derive(Message)]
#[rtype(result = "Result<Answered, Refused>")]
pub(crate) struct AnswerAsk {
    pub(crate) ask: AskId,
    pub(crate) answer: Answer,
    pub(crate) by: Who,
}

/// An answer counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answered {
    /// The ask.
    pub ask: AskId,
    /// The answer is saved.
    pub saved: bool,
}

impl Handler<AnswerAsk> for SessionActor {
    type Result = Replied<Result<Answered, Refused>>;

    fn handle(&mut self, AnswerAsk { ask, answer, by }: AnswerAsk, ctx: &mut Self::Context) -> Self::Result {
        let word = answer.word();
        match self.take(Input::Answer { ask: ask.clone(), answer, by: by.clone() }, ctx) {
            Ok(_) => {
                tracing::info!(session = %self.state.id(), %ask, answer = word, %by, "answered");
                self.reply(move |saved| Ok(Answered { ask, saved }), ctx)
            }
            Err(refused) => {
                tracing::info!(session = %self.state.id(), %ask, answer = word, %by, %refused, "answer refused");
                Replied::Now(Err(refused))
            }
        }
    }
}

impl Handler<ToolRequest> for SessionActor {
    type Result = ();

    fn handle(&mut self, request: ToolRequest, ctx: &mut Self::Context) {
        let ToolRequest::Ask { turn, call, request, answering } = request else { return };
        let tool = request.tool_name().to_owned();
        // The answering end is filed under the id the ask is about to get, for the setting may answer it at once.
        let id = AskId { session: self.state.id().clone(), seq: self.numbers.start };
        self.answering.insert(id.clone(), answering);
        match self.take(Input::Ask { turn, call, request }, ctx) {
            Ok(Reply::Asked(ask)) => {
                tracing::info!(session = %self.state.id(), %ask, %call, tool, "asked");
                debug_assert_eq!(ask, id, "an ask is named after its own event");
            }
            Ok(_) | Err(_) => {
                // Dropping the answering end wakes the tool as interrupted.
                self.answering.remove(&id);
            }
        }
    }
}

impl SessionActor {
    /// Wakes the tool that waits on an ask. If the cut was first, it is awake already.
    pub(super) fn wake(&mut self, ask: &AskId, reply: AskReply) {
        if let Some(answering) = self.answering.remove(ask) {
            answering.answer(reply);
        }
    }
}
