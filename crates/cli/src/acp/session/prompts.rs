//! The open prompts of the editor, and the replies to them when their turns end.

use std::collections::BTreeMap;

use agent_client_protocol_schema::v1::{
    Error, ErrorCode, Meta, PromptResponse, RequestId, StopReason,
};
use holdpoint_common::{
    CutCause, Event, Fact, Outcome, PromptFact, PromptId, Receipt, RunFact, SessionFact, TurnFact,
    TurnId,
};
use serde_json::json;

use crate::acp::rpc::failure;

/// The maximum number of open prompts of a session.
pub(super) const MAX_PROMPTS: usize = 64;

/// The reply to a prompt.
pub(super) type Reply = Result<PromptResponse, Error>;

/// The open prompts of one session.
#[derive(Debug, Default)]
pub(super) struct Prompts {
    open: Vec<Open>,
    /// The ends of prompts that came before the session's reply to a prompt that is being sent.
    early: BTreeMap<PromptId, Reply>,
    turn: Option<OpenTurn>,
}

#[derive(Debug)]
struct Open {
    request: RequestId,
    /// The prompt; `None` while it is being sent.
    prompt: Option<PromptId>,
    cancelled: bool,
}

/// The open turn, from its events.
#[derive(Debug)]
struct OpenTurn {
    id: TurnId,
    prompts: Vec<PromptId>,
    steps: u32,
    /// Whether the provider refused the conversation.
    refused: bool,
}

impl Prompts {
    /// Whether no further prompt may be opened.
    pub(super) fn is_full(&self) -> bool {
        self.open.len() >= MAX_PROMPTS
    }

    /// Whether a prompt is being sent.
    pub(super) fn is_sending(&self) -> bool {
        self.open.iter().any(|open| open.prompt.is_none())
    }

    /// Whether this request is an open prompt.
    pub(super) fn has(&self, request: &RequestId) -> bool {
        self.open.iter().any(|open| open.request == *request)
    }

    /// Adds a prompt that is being sent.
    pub(super) fn sending(&mut self, request: RequestId) {
        self.open.push(Open { request, prompt: None, cancelled: false });
    }

    /// Notes that the session has accepted a prompt. Returns the reply if its turn is over.
    pub(super) fn accepted(&mut self, request: &RequestId, prompt: PromptId) -> Option<Reply> {
        let reply = self.early.remove(&prompt);
        match reply {
            Some(_) => self.open.retain(|open| open.request != *request),
            None => {
                let sent = self.open.iter_mut().find(|open| open.request == *request);
                sent.into_iter().for_each(|open| open.prompt = Some(prompt));
            }
        }
        if !self.is_sending() {
            self.early.clear();
        }
        reply
    }

    /// Removes a prompt that the session has refused.
    pub(super) fn refused(&mut self, request: &RequestId) {
        self.open.retain(|open| open.request != *request);
        if !self.is_sending() {
            self.early.clear();
        }
    }

    /// Notes that the editor has cancelled all open prompts.
    pub(super) fn cancel(&mut self) {
        self.open.iter_mut().for_each(|open| open.cancelled = true);
    }

    /// Whether the editor has cancelled an open prompt.
    pub(super) fn has_cancelled(&self) -> bool {
        self.open.iter().any(|open| open.cancelled)
    }

    /// Removes the cancelled prompts that still wait in the queue of a held session, and returns
    /// their replies. They stay in the queue.
    pub(super) fn cancelled_in_queue(
        &mut self,
        is_queued: impl Fn(PromptId) -> bool,
    ) -> Vec<(RequestId, Reply)> {
        let is_over = |open: &mut Open| open.cancelled && open.prompt.is_some_and(&is_queued);
        let meta = meta(json!({ "queued": true }));
        let reply = || Ok(PromptResponse::new(StopReason::Cancelled).meta(meta.clone()));
        self.open.extract_if(.., is_over).map(|open| (open.request, reply())).collect()
    }

    /// Removes all open prompts with the same error.
    pub(super) fn fail(&mut self, error: &Error) -> Vec<(RequestId, Reply)> {
        self.early.clear();
        self.open.drain(..).map(|open| (open.request, Err(error.clone()))).collect()
    }

    /// The replies that an event brings. `max_steps` is the limit of the session's turns.
    pub(super) fn event(&mut self, event: &Event, max_steps: u32) -> Vec<(RequestId, Reply)> {
        match event.fact() {
            Some(Fact::Turn(fact)) => return self.turn_fact(fact, event, max_steps),
            Some(Fact::Run(RunFact::IterationStarted { turn, .. })) => self.begin(*turn, None),
            Some(Fact::Prompt(PromptFact::Delivered { prompt, .. })) => {
                if let Some(turn) = &mut self.turn {
                    turn.prompts.push(*prompt);
                }
            }
            Some(Fact::Prompt(PromptFact::Returned { prompt, .. })) => {
                let reply = Ok(PromptResponse::new(StopReason::Cancelled)
                    .meta(meta(json!({ "seq": event.seq, "returned": true }))));
                return self.end(*prompt, reply).into_iter().collect();
            }
            Some(Fact::Session(SessionFact::Closed { .. })) => self.turn = None,
            _ => {}
        }
        Vec::new()
    }

    fn turn_fact(
        &mut self,
        fact: &TurnFact,
        event: &Event,
        max_steps: u32,
    ) -> Vec<(RequestId, Reply)> {
        match (fact, &mut self.turn) {
            (TurnFact::Started { turn, prompt }, _) => self.begin(*turn, Some(*prompt)),
            (TurnFact::StepFinished { refused, .. }, Some(turn)) => {
                turn.steps += 1;
                turn.refused |= refused;
            }
            (TurnFact::Finished { outcome, error, cause, receipt, usage }, _) => {
                let Some(turn) = self.turn.take().filter(|turn| event.turn == Some(turn.id)) else {
                    return Vec::new();
                };
                let end = TurnEnd {
                    turn: &turn,
                    outcome: *outcome,
                    error: error.as_deref(),
                    cause: cause.as_ref(),
                    receipt: receipt.as_ref(),
                };
                let about = json!({
                    "seq": event.seq,
                    "turn": turn.id,
                    "outcome": outcome,
                    "receipt": receipt,
                    "usage": usage,
                });
                let reply = end.reply(max_steps, meta(about));
                let ended = turn.prompts.iter();
                return ended.filter_map(|prompt| self.end(*prompt, reply.clone())).collect();
            }
            _ => {}
        }
        Vec::new()
    }

    fn begin(&mut self, id: TurnId, prompt: Option<PromptId>) {
        let prompts = prompt.into_iter().collect();
        self.turn = Some(OpenTurn { id, prompts, steps: 0, refused: false });
    }

    fn end(&mut self, prompt: PromptId, reply: Reply) -> Option<(RequestId, Reply)> {
        let ended = self.open.iter().position(|open| open.prompt == Some(prompt));
        match ended {
            Some(ended) => Some((self.open.remove(ended).request, reply)),
            None => {
                if self.is_sending() {
                    self.early.insert(prompt, reply);
                }
                None
            }
        }
    }
}

/// The end of a turn.
struct TurnEnd<'a> {
    turn: &'a OpenTurn,
    outcome: Outcome,
    error: Option<&'a str>,
    cause: Option<&'a CutCause>,
    receipt: Option<&'a Receipt>,
}

impl TurnEnd<'_> {
    /// The reply to the prompts of the turn.
    fn reply(&self, max_steps: u32, meta: Meta) -> Reply {
        let reason = match (self.outcome, self.cause) {
            (Outcome::Done, _) => StopReason::EndTurn,
            (Outcome::Failed, _) if self.turn.refused => StopReason::Refusal,
            (Outcome::Limit, _) if max_steps > 0 && self.turn.steps >= max_steps => {
                StopReason::MaxTurnRequests
            }
            (Outcome::Limit, _) => StopReason::MaxTokens,
            (Outcome::Interrupted, Some(CutCause::User { .. } | CutCause::Close { .. }) | None) => {
                StopReason::Cancelled
            }
            // Nobody has asked for the end of the turn.
            (Outcome::Interrupted | Outcome::Failed | Outcome::Panicked, _) => {
                return Err(self.failure(meta));
            }
        };
        Ok(PromptResponse::new(reason).meta(meta))
    }

    fn failure(&self, mut meta: Meta) -> Error {
        let cause = self.cause.map(|cause| format!("the turn was cut: {cause}"));
        let receipt = self.receipt.map(|receipt| format!(" ({receipt})")).unwrap_or_default();
        let cause = cause.map(|cause| cause + &receipt);
        let error = self.error.map(str::to_owned).or(cause);
        let message = error.unwrap_or_else(|| format!("the turn ended: {}", self.outcome));
        let hint = "the session keeps the prompt and the work of the turn; send another prompt to continue";
        meta.insert("message".to_owned(), json!(message));
        meta.insert("hint".to_owned(), json!(hint));
        failure(ErrorCode::InternalError, message).data(json!(meta))
    }
}

fn meta(about: serde_json::Value) -> Meta {
    Meta::from_iter([("holdpoint".to_owned(), about)])
}
