//! The open prompts of the editor, and the replies to them when their turns end.

use std::collections::BTreeMap;

use agent_client_protocol_schema::v1::{
    Error, ErrorCode, Meta, PromptResponse, RequestId, StopReason,
};
use holdpoint_common::api::PromptRequest;
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
    /// See [`PromptRequest::typed_bytes`].
    typed_bytes: Option<usize>,
    cancel: Cancel,
}

/// The progress of cancelling a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cancel {
    No,
    /// It begins when the session has accepted the prompt.
    Wanted,
    /// The prompt is being taken out of the queue.
    Unqueueing,
    /// The prompt is not in the queue, and the start of its turn has not arrived.
    AwaitsTurn,
    /// The turn of the prompt is being interrupted.
    Interrupting,
}

/// The next step of cancelling a prompt.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum CancelStep {
    Unqueue(PromptId),
    Interrupt(TurnId),
}

/// The open turn, from its events.
#[derive(Debug)]
struct OpenTurn {
    id: TurnId,
    prompts: Vec<PromptId>,
    steps: u32,
    /// Whether the provider refused the conversation.
    refused: bool,
    /// Whether it is interrupted because one of its prompts was cancelled.
    is_cut_for_one: bool,
}

impl Prompts {
    /// Whether no further prompt may be opened.
    pub(super) fn is_full(&self) -> bool {
        self.open.len() >= MAX_PROMPTS
    }

    /// The open turn, if its start was seen.
    pub(super) fn turn(&self) -> Option<TurnId> {
        self.turn.as_ref().map(|turn| turn.id)
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
    pub(super) fn sending(&mut self, request: RequestId, typed_bytes: Option<usize>) {
        self.open.push(Open { request, prompt: None, typed_bytes, cancel: Cancel::No });
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

    /// Removes a prompt that the session has refused. Returns whether it was open: it may have got
    /// its reply already.
    pub(super) fn refused(&mut self, request: &RequestId) -> bool {
        let before = self.open.len();
        self.open.retain(|open| open.request != *request);
        if !self.is_sending() {
            self.early.clear();
        }
        self.open.len() < before
    }

    /// Notes that the editor has cancelled everything. The caller interrupts the open turn.
    pub(super) fn cancel_all(&mut self) {
        let turn = self.turn.as_ref();
        for open in &mut self.open {
            let runs = turn.is_some_and(|turn| open.prompt.is_some_and(|it| turn.has(it)));
            match open.cancel {
                _ if runs => open.cancel = Cancel::Interrupting,
                Cancel::No => open.cancel = Cancel::Wanted,
                _ => {}
            }
        }
    }

    /// Notes that the editor has cancelled this request, if it is an open prompt.
    pub(super) fn cancel(&mut self, request: &RequestId) {
        let cancelled = self.open.iter_mut().find(|open| open.request == *request);
        if let Some(open) = cancelled.filter(|open| open.cancel == Cancel::No) {
            open.cancel = Cancel::Wanted;
        }
    }

    /// Whether the editor has cancelled an open prompt.
    pub(super) fn has_cancelled(&self) -> bool {
        self.open.iter().any(|open| open.cancel != Cancel::No)
    }

    /// Whether the open turn is interrupted because one of its prompts was cancelled. Its end has
    /// not arrived, and the other prompts that the interrupt hands back may not have either.
    pub(super) fn is_cut_for_one(&self) -> bool {
        self.turn.as_ref().is_some_and(|turn| turn.is_cut_for_one)
    }

    /// The steps by which the cancelled prompts continue. Each is returned once. A turn is not
    /// interrupted while an order is carried out, so that no later prompt gets into the queue
    /// before those that are handed back.
    pub(super) fn cancel_steps(&mut self, is_ordering: bool) -> Vec<CancelStep> {
        let mut steps = Vec::new();
        for open in &mut self.open {
            let Some(prompt) = open.prompt else { continue };
            let turn = self.turn.as_mut().filter(|turn| turn.has(prompt));
            match (open.cancel, turn) {
                (Cancel::Wanted | Cancel::AwaitsTurn, Some(_)) if is_ordering => {}
                (Cancel::Wanted | Cancel::AwaitsTurn, Some(turn)) => {
                    open.cancel = Cancel::Interrupting;
                    turn.is_cut_for_one = true;
                    steps.push(CancelStep::Interrupt(turn.id));
                }
                (Cancel::Wanted, None) => {
                    open.cancel = Cancel::Unqueueing;
                    steps.push(CancelStep::Unqueue(prompt));
                }
                _ => {}
            }
        }
        steps
    }

    /// Notes that a cancelled prompt is not in the queue: its turn has started, or it has ended.
    pub(super) fn not_queued(&mut self, prompt: PromptId) {
        let open = self.open.iter_mut().find(|open| open.prompt == Some(prompt));
        open.into_iter().for_each(|open| open.cancel = Cancel::AwaitsTurn);
    }

    /// The request of a prompt, and the prompt, which is to be sent once more: the interrupt of
    /// another prompt's turn has handed it back.
    pub(super) fn take_handed_back(&mut self, event: &Event) -> Option<(RequestId, PromptRequest)> {
        let Some(Fact::Prompt(PromptFact::Returned { prompt, text })) = event.fact() else {
            return None;
        };
        if !self.is_cut_for_one() {
            return None;
        }
        let open = self.open.iter_mut().find(|open| open.prompt == Some(*prompt))?;
        if open.cancel != Cancel::No {
            return None;
        }
        open.prompt = None;
        let prompt = PromptRequest {
            text: text.to_string(),
            typed_bytes: open.typed_bytes,
            idempotency_key: None,
        };
        Some((open.request.clone(), prompt))
    }

    /// Removes all open prompts with the same error. The end of the open turn may not arrive.
    pub(super) fn fail(&mut self, error: &Error) -> Vec<(RequestId, Reply)> {
        self.turn = None;
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
        self.turn = Some(OpenTurn { id, prompts, steps: 0, refused: false, is_cut_for_one: false });
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

impl OpenTurn {
    /// Whether the turn works on this prompt.
    fn has(&self, prompt: PromptId) -> bool {
        self.prompts.contains(&prompt)
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
        let hint = "the session keeps the prompt and the work of the turn; send another prompt to \
                    continue";
        meta.insert("message".to_owned(), json!(message));
        meta.insert("hint".to_owned(), json!(hint));
        failure(ErrorCode::InternalError, message).data(json!(meta))
    }
}

fn meta(about: serde_json::Value) -> Meta {
    Meta::from_iter([("holdpoint".to_owned(), about)])
}
